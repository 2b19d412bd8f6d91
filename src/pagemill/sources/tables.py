"""Dataset shards: rows of Arrow and Parquet files with a column of encoded page images.

Rows are read a few at a time; the encoded bytes pass through untouched. A ``path`` beside them is never opened.
"""

from __future__ import annotations

import datetime
import math
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pagemill.errors import CorruptInputError, UnsupportedInputError, UsageError
from pagemill.imaging.formats import FileFormat
from pagemill.sources.items import RemoteFile

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from pagemill.sources.options import SourceOptions

BATCH_ROWS = 8
"""Rows of a Parquet file decoded at once: a page can have tens of megabytes."""
_BUFFER = 2**20
_METADATA_CHARACTERS = 1_000
_ID_COLUMNS = ("id", "page_id")
_IMAGE_NAMES = ("image", "page_image", "img", "page", "bytes", "content")
"""Which of several image columns to take, and which plain binary columns count as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: encoded image, id and the small columns beside them."""

    number: int
    """In the shard, from 1."""
    data: bytes | None
    """None when the row holds no image; ``problem`` then says why."""
    row_id: str | None = None
    problem: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndedRows:
    """The next rows of a shard, which need not be read again."""

    count: int


@dataclass(frozen=True, slots=True)
class _Columns:
    image: str
    row_id: str | None
    metadata: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        return list(dict.fromkeys((self.image, *([self.row_id] if self.row_id else []), *self.metadata)))


def read_rows(
    content: Path | bytes | RemoteFile,
    file_format: FileFormat,
    options: SourceOptions,
    ended: Container[int] = frozenset(),
) -> Iterator[Row | EndedRows]:
    """Yield the rows of a shard in order, and in the place of those that ``ended`` names only how many there are.

    Row groups of Parquet files and batches of Arrow files that have ended whole are not decoded.

    Raises:
        CorruptInputError: The shard cannot be read, from its start or from some row on.
        UnsupportedInputError: The shard has no image column.
        UsageError: A column that ``options`` names is not there.
        OSError: The file's filesystem fails, where that is a remote one.
    """
    try:
        with _batches(content, file_format, options, ended) as (columns, batches):
            first = 1
            for batch in batches:
                if isinstance(batch, EndedRows):
                    yield batch
                    first += batch.count
                else:
                    yield from _rows(batch, columns, first, ended)
                    first += batch.num_rows
    except (pa.ArrowException, OSError, EOFError) as error:
        if isinstance(content, RemoteFile) and not isinstance(error, pa.ArrowException):
            raise  # of the connection, not of the file
        raise CorruptInputError(f"the dataset file cannot be read: {error}", remedy="Get the file again.") from error


def count_rows(path: Path, file_format: FileFormat) -> int | None:
    """Rows of a local shard by its metadata; None for a damaged one, as reading it will say what is wrong."""
    try:
        if file_format is FileFormat.PARQUET:
            with pq.ParquetFile(path) as file:
                return int(file.metadata.num_rows)
        with pa.memory_map(str(path)) as mapped:  # which leaves the images on disk
            if file_format is FileFormat.ARROW_STREAM:
                return sum(int(batch.num_rows) for batch in pa.ipc.open_stream(mapped))
            reader = pa.ipc.open_file(mapped)
            return sum(int(reader.get_batch(index).num_rows) for index in range(reader.num_record_batches))
    except (pa.ArrowException, OSError, EOFError):
        return None


@contextmanager
def _batches(
    content: Path | bytes | RemoteFile, file_format: FileFormat, options: SourceOptions, ended: Container[int]
) -> Iterator[tuple[_Columns, Iterator[pa.RecordBatch | EndedRows]]]:
    with ExitStack() as stack:
        if isinstance(content, bytes):
            file: Any = pa.BufferReader(content)
        elif isinstance(content, Path):
            file = pa.memory_map(str(content)) if file_format is not FileFormat.PARQUET else pa.OSFile(str(content))
        else:
            file = content.filesystem.open(content.path, "rb")
        stack.enter_context(file)
        if file_format is FileFormat.PARQUET:
            parquet = stack.enter_context(pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER))
            columns = _columns(parquet.schema_arrow, options)
            yield columns, _parquet_batches(parquet, columns, ended)
        elif file_format is FileFormat.ARROW_FILE:
            reader = stack.enter_context(pa.ipc.open_file(file))
            columns = _columns(reader.schema, options)
            yield columns, (reader.get_batch(index) for index in range(reader.num_record_batches))
        else:
            stream = stack.enter_context(pa.ipc.open_stream(file))
            yield _columns(stream.schema, options), iter(stream)


def _parquet_batches(
    parquet: pq.ParquetFile, columns: _Columns, ended: Container[int]
) -> Iterator[pa.RecordBatch | EndedRows]:
    first = 1
    groups: list[tuple[bool, int, int]] = []  # whether it has ended, index, rows
    for index in range(parquet.num_row_groups):
        rows = max(parquet.metadata.row_group(index).num_rows, 0)
        groups.append((all(number in ended for number in range(first, first + rows)), index, rows))
        first += rows
    for has_ended, stretch in groupby(groups, key=lambda group: group[0]):
        indices, counts = zip(*((index, rows) for _, index, rows in stretch), strict=True)
        if has_ended:
            yield EndedRows(sum(counts))
        else:
            yield from parquet.iter_batches(batch_size=BATCH_ROWS, row_groups=list(indices), columns=columns.all)


def _columns(schema: pa.Schema, options: SourceOptions) -> _Columns:
    image = _image_column(schema, options.image_column)
    row_id = options.id_column
    if row_id is not None and row_id not in schema.names:
        raise UsageError(f"there is no column {row_id!r}", remedy=f"The columns are: {', '.join(schema.names)}.")
    if row_id is None:
        row_id = next(
            (name for name in _ID_COLUMNS if name in schema.names and _is_scalar(schema.field(name).type)), None
        )
    metadata = tuple(f.name for f in schema if f.name not in (image, row_id) and _is_scalar(f.type))
    return _Columns(image, row_id, metadata)


def _image_column(schema: pa.Schema, wanted: str | None) -> str:
    """The struct column with encoded ``bytes`` (the `datasets` library's Image feature), or a binary column."""
    names = ", ".join(schema.names)
    if wanted is not None:
        if wanted not in schema.names:
            raise UsageError(f"there is no column {wanted!r}", remedy=f"The columns are: {names}.")
        if not (_is_image_struct(schema.field(wanted).type) or _is_binary(schema.field(wanted).type)):
            raise UsageError(f"the column {wanted!r} holds no encoded images", remedy=f"The columns are: {names}.")
        return wanted
    structs = [f.name for f in schema if _is_image_struct(f.type)]
    plain = [f.name for f in schema if _is_binary(f.type) and f.name in _IMAGE_NAMES]
    candidates = structs or plain
    if not candidates:
        raise UnsupportedInputError(
            f"no column holds encoded page images (columns: {names})", remedy="Name it with --image-column."
        )
    return next((name for name in _IMAGE_NAMES if name in candidates), candidates[0])


def _is_image_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and any(f.name == "bytes" and _is_binary(f.type) for f in kind)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _is_scalar(kind: pa.DataType) -> bool:
    types = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(
        is_text
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_temporal(kind)
    )


def _rows(batch: pa.RecordBatch, columns: _Columns, first: int, ended: Container[int]) -> Iterator[Row | EndedRows]:
    if all(number in ended for number in range(first, first + batch.num_rows)):
        yield EndedRows(batch.num_rows)
        return
    batch.validate(full=True)  # offsets of untrusted files may point anywhere
    for index in range(batch.num_rows):
        if first + index in ended:
            yield EndedRows(1)
            continue
        values = {name: batch.column(name)[index] for name in columns.all}
        image = values[columns.image].as_py()
        data, problem = _image_bytes(image)
        row_id = values[columns.row_id].as_py() if columns.row_id else None
        yield Row(
            number=first + index,
            data=data,
            problem=problem,
            row_id=None if row_id is None else str(row_id)[:_METADATA_CHARACTERS],
            metadata=_metadata({name: values[name].as_py() for name in columns.metadata}),
        )


def _image_bytes(image: Any) -> tuple[bytes | None, str | None]:
    if isinstance(image, dict):
        if image.get("bytes") is None and image.get("path"):
            return None, "holds the path of an image file, not its bytes"
        image = image.get("bytes")
    if image is None:
        return None, "holds no image"
    if not image:
        return None, "holds an image of 0 bytes"
    return bytes(image), None


def _metadata(values: dict[str, Any]) -> dict[str, Any]:
    """Small values as JSON has them; long texts are left out."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, (datetime.date, datetime.time)):
            kept[name] = value.isoformat()
        elif isinstance(value, datetime.timedelta):
            kept[name] = value.total_seconds()
        elif isinstance(value, float):
            kept[name] = value if math.isfinite(value) else None
        elif isinstance(value, str):
            if len(value) <= _METADATA_CHARACTERS:
                kept[name] = value
        elif value is None or isinstance(value, (bool, int)):
            kept[name] = value
    return kept
