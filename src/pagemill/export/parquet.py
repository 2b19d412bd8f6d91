"""Pages as a Parquet file: one row a page, regions nested, row groups of bounded size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from pagemill._version import __version__
from pagemill.document.json_text import json_text
from pagemill.document.page import SCHEMA_VERSION, ImageCrop, PageResult
from pagemill.export.embedding_text import embedding_text
from pagemill.export.formats import Content, ExportFormat

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    from pagemill.config.arrow import pa, pq

ROW_GROUP_PAGES = 1000
ROW_GROUP_BYTES = 64 * 2**20
"""Texts and pictures after which a row group ends; both bounds hold whichever comes first."""
_COLUMNS = (
    *("page_id", "page_idx", "doc_id", "source", "page_number", "page_key", "status", "attempts", "missing", "text"),
    *("markdown", "regions", "crops", "errors", "languages", "text_source", "confidence", "review", "signals"),
    *("width", "height", "scale", "dpi", "rotation", "timings", "metadata", "schema_version"),
)
_LEFT_OUT = ("lines", "polygon")  # of regions


def write_parquet(
    stream: BinaryIO, pages: Iterable[PageResult], *, picture: Callable[[ImageCrop], bytes | None] | None = None
) -> None:
    """Write pages as Parquet, compressed with Zstandard. Memory is that of one row group.

    Args:
        stream: Stream to write to; not closed.
        pages: In the order of the rows.
        picture: Gives the file of a crop. With it there is a column ``crop_images``: for each entry of ``crops`` its
            bytes and path, null where it gives None.
    """
    schema = page_schema(pictures=picture is not None)
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for rows in row_groups(pages, picture):
            writer.write_table(pa.Table.from_pylist(rows, schema))


def write_structs(stream: BinaryIO, kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> None:
    """Write structs as Parquet, a column for each field.

    Args:
        stream: Stream to write to; not closed.
        kind: Their class, of plain values, structs and lists.
        rows: In order.
    """
    struct = msgspec.inspect.type_info(kind)
    assert isinstance(struct, msgspec.inspect.StructType)
    columns = {field.name: _arrow_type(field.type) for field in struct.fields}
    schema = pa.schema(columns, metadata={"pagemill.version": __version__})
    left = iter(rows)
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        while batch := [json.loads(json_text(row)) for row in islice(left, ROW_GROUP_PAGES)]:
            writer.write_table(pa.Table.from_pylist(batch, schema))


def row_groups(
    pages: Iterable[PageResult],
    picture: Callable[[ImageCrop], bytes | None] | None,
    image: Callable[[PageResult], bytes | None] | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """Pages as rows of :func:`page_schema`, as many at a time as make a row group.

    Args:
        pages: In the order of the rows.
        picture: See :func:`write_parquet`.
        image: Gives the image of a page, for the column ``image``; null where it gives None.
    """
    rows: list[dict[str, Any]] = []
    size = 0
    for page in pages:
        row = _row(page)
        # The regions hold the same text once more.
        size += 2 * (len(row["markdown"]) + len(row["text"]))
        if picture is not None:
            images = [(crop.path, picture(crop)) for crop in page.image_crops]
            row["crop_images"] = [None if data is None else {"bytes": data, "path": path} for path, data in images]
            size += sum(len(data) for _, data in images if data)
        if image is not None:
            data = image(page)
            row["image"] = None if data is None else {"bytes": data, "path": None}
            size += len(data or b"")
        rows.append(row)
        if len(rows) >= ROW_GROUP_PAGES or size >= ROW_GROUP_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _row(page: PageResult) -> dict[str, Any]:
    """The columns of a page as plain values; lines of text, which are most of a record, stay in the record."""
    row = msgspec.structs.asdict(page)
    del row["image_crops"]
    regions = [msgspec.structs.asdict(region) for region in page.regions]
    for region in regions:
        region["description"] = msgspec.to_builtins(region["description"])
        region["spans"] = [msgspec.structs.asdict(span) for span in region["spans"]]
        for name in _LEFT_OUT:
            del region[name]
    return row | {
        "text": embedding_text(page),
        "regions": regions,
        "crops": [msgspec.structs.asdict(crop) for crop in page.image_crops],
        "errors": [msgspec.structs.asdict(error) for error in page.errors],
        "signals": [{"signal": signal, "share": share} for signal, share in page.signals.items()],
        "timings": [{"stage": stage, "seconds": seconds} for stage, seconds in page.timings.items()],
        # As JSON: the keys differ by source, and a column has one schema.
        "metadata": msgspec.json.encode(page.metadata).decode(),
    }


def page_schema(*, pictures: bool, images: bool = False) -> pa.Schema:
    """Columns of a page. No maps: the Hub's ``datasets`` library does not read them.

    Args:
        pictures: With the column ``crop_images``.
        images: With the column ``image``, the first one.
    """
    record = msgspec.inspect.type_info(PageResult)
    assert isinstance(record, msgspec.inspect.StructType)
    fields = {field.name: _arrow_type(field.type) for field in record.fields}
    picture = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    columns: dict[str, pa.DataType] = {"image": picture} if images else {}
    columns |= {name: fields.get(name, pa.string()) for name in _COLUMNS} | {
        "crops": fields["image_crops"],
        "signals": pa.list_(pa.struct({"signal": pa.string(), "share": pa.float64()})),
        "timings": pa.list_(pa.struct({"stage": pa.string(), "seconds": pa.float64()})),
        "metadata": pa.string(),
    }
    if pictures:
        columns["crop_images"] = pa.list_(picture)
    return pa.schema(columns, metadata={"pagemill.version": __version__, "pagemill.schema_version": SCHEMA_VERSION})


def _arrow_type(kind: Any) -> pa.DataType:
    """The type of a column for that of a record's field."""
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
    if isinstance(kind, msgspec.inspect.StructType):
        return pa.struct({field.name: _arrow_type(field.type) for field in kind.fields if field.name not in _LEFT_OUT})
    if isinstance(kind, msgspec.inspect.TupleType):
        return pa.list_(_arrow_type(kind.item_types[0]))
    if isinstance(kind, msgspec.inspect.CollectionType):
        return pa.list_(_arrow_type(kind.item_type))
    plain = {msgspec.inspect.IntType: pa.int64(), msgspec.inspect.FloatType: pa.float64()}
    return {**plain, msgspec.inspect.BoolType: pa.bool_()}.get(type(kind), pa.string())


def _write(content: Content, stream: BinaryIO, crops_root: str) -> None:
    write_parquet(stream, content.pages(), picture=content.picture if content.options.with_crops else None)


FORMAT = ExportFormat(ending=".parquet", to_file=_write, crops=False)
