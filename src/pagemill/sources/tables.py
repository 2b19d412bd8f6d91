"""Dataset shards: rows of Arrow and Parquet files with a column of encoded page images.

Rows are read a few at a time; the encoded bytes pass through untouched. A ``path`` beside them is never opened.
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.errors import CorruptInputError, PagemillError
from pagemill.imaging.formats import FileFormat
from pagemill.sources.items import Content
from pagemill.sources.options import SourceOptions
from pagemill.sources.shards import (
    MAX_NAMED,
    Columns,
    EndedRows,
    LostRows,
    TableWithoutImagesError,
    columns_of,
    damaged,
    pieces,
    reason_of,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    from pagemill.config.arrow import pa, pq

_METADATA_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow:
    """One row: encoded image, id and the small columns beside them."""

    number: int
    """Number in the shard, from 1."""
    data: bytes | None
    """None if the row has no image; ``problem`` then has the reason."""
    row_id: str | None = None
    problem: str | None = None
    lost: bool = False
    """The shard announces the row, but its bytes are damaged."""
    metadata: dict[str, Any] = field(default_factory=dict)


def read_rows(
    content: Content,
    file_format: FileFormat,
    options: SourceOptions,
    ended: Container[int] = frozenset(),
    opened: Callable[[Columns], None] | None = None,
    *,
    images: bool = True,
) -> Generator[DatasetRow | EndedRows | LostRows]:
    """Yield the rows of a shard in order, and only counts instead of those in ``ended``.

    Row groups of Parquet files whose rows are all finished are not decoded. A damaged row group or record batch costs
    only its own rows: they are yielded as lost rows, or as :class:`LostRows` if their number is unknown or above
    ``MAX_NAMED``, or if the filesystem failed and they may be readable next time.

    Args:
        content: The shard.
        file_format: Its format.
        options: Names of columns.
        ended: Numbers, from 1, of rows that are not read.
        opened: Called with the columns of the shard before its rows.
        images: Read the images and the columns beside them; False for ids alone, of which many are read at once.

    Raises:
        CorruptInputError: The shard cannot be read at all.
        TableWithoutImagesError: The shard has no column that can hold images.
        UnsupportedInputError: The column with the images cannot be determined.
        UsageError: A column that ``options`` names does not exist.
        OSError: A remote filesystem failed.
    """
    try:
        with ExitStack() as stack:
            columns, found = pieces(stack, content, file_format, options, ended, images=images)
            if opened is not None:
                opened(columns)
            first = 1
            for piece in found:
                if isinstance(piece, EndedRows):
                    yield piece
                    first += piece.count
                elif isinstance(piece, LostRows):
                    yield from _lost(piece, first, ended)
                    first += piece.count or 0
                else:
                    yield from _rows(piece, columns, first, ended)
                    first += piece.num_rows
    except TableWithoutImagesError:
        raise
    except Exception as error:
        raise reason_of(error, content) from error


def count_rows(path: Path, file_format: FileFormat, options: SourceOptions) -> int | None:
    """Number of rows of a local shard from its metadata; 0 for a table without images.

    None for a shard that is damaged or lacks a column: reading it will report the error.
    """
    try:
        if file_format is FileFormat.PARQUET:
            with path.open("rb") as opened, pq.ParquetFile(opened) as file:
                columns_of(file.schema_arrow, options)
                return int(file.metadata.num_rows)
        with pa.memory_map(os.fsencode(path)) as mapped:  # does not read the images
            if file_format is FileFormat.ARROW_STREAM:
                stream = pa.ipc.open_stream(mapped)
                columns_of(stream.schema, options)
                return sum(int(batch.num_rows) for batch in stream)
            reader = pa.ipc.open_file(mapped)
            columns_of(reader.schema, options)
            return sum(int(reader.get_batch(index).num_rows) for index in range(reader.num_record_batches))
    except TableWithoutImagesError:
        return 0
    except PagemillError:
        return None
    except (pa.ArrowException, OSError, EOFError):
        return None


def _lost(lost: LostRows, first: int, ended: Container[int]) -> Iterator[DatasetRow | EndedRows | LostRows]:
    """Damaged rows one by one, as only another file will restore them; others together."""
    if lost.count is None:
        yield lost
        return
    by_name = isinstance(lost.error, CorruptInputError) and lost.count <= MAX_NAMED
    for has_ended, numbers in groupby(range(first, first + lost.count), key=lambda number: number in ended):
        if has_ended or not by_name:
            rows = sum(1 for _ in numbers)
            yield EndedRows(rows) if has_ended else LostRows(rows, lost.error)
            continue
        for number in numbers:
            row_id = lost.row_ids[number - first] if lost.row_ids else None
            problem = f"cannot be read: {lost.error}"
            yield DatasetRow(number=number, data=None, row_id=_short(row_id), problem=problem, lost=True)


def _short(row_id: Any) -> str | None:
    return None if row_id is None else str(row_id)[:_METADATA_CHARACTERS]


def _rows(
    batch: pa.RecordBatch, columns: Columns, first: int, ended: Container[int]
) -> Iterator[DatasetRow | EndedRows | LostRows]:
    # Before the batch is validated: what is not read need not be intact.
    if all(number in ended for number in range(first, first + batch.num_rows)):
        yield EndedRows(batch.num_rows)
        return
    try:
        # Arrow trusts offsets: those of a damaged or hostile file would read memory outside of the batch.
        batch.validate(full=True)
    except pa.ArrowException as error:
        yield from _lost(LostRows(batch.num_rows, damaged(str(error))), first, ended)
        return
    for index in range(batch.num_rows):
        if first + index in ended:
            yield EndedRows(1)
            continue
        if not columns.images:
            row_id = _short(_value(batch.column(columns.row_id)[index])) if columns.row_id else None
            yield DatasetRow(number=first + index, data=None, row_id=row_id)
            continue
        data, problem = _image_bytes(batch.column(columns.image)[index].as_py())
        yield DatasetRow(
            number=first + index,
            data=data,
            problem=problem,
            row_id=_short(_value(batch.column(columns.row_id)[index])) if columns.row_id else None,
            metadata=_metadata({name: _value(batch.column(name)[index]) for name in columns.metadata}),
        )


def _value(scalar: pa.Scalar) -> Any:
    """A value as a Python object; as text if Python cannot represent it, such as a date after the year 9999."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return str(scalar.cast(pa.int64())) if pa.types.is_temporal(scalar.type) else str(scalar)


def _image_bytes(image: Any) -> tuple[bytes | None, str | None]:
    if isinstance(image, dict):
        # The path is somebody else's: opening it would read any file of this machine into the results.
        if image.get("bytes") is None and image.get("path"):
            return None, "contains the path of an image file, not its bytes"
        image = image.get("bytes")
    if image is None:
        return None, "contains no image"
    if not image:
        return None, "contains an image of 0 bytes"
    return bytes(image), None


def _metadata(values: dict[str, Any]) -> dict[str, Any]:
    """Small values as JSON types; long texts are left out."""
    kept: dict[str, Any] = {}
    for name, given in values.items():
        value = given
        if isinstance(value, (datetime.date, datetime.time)):
            value = value.isoformat()
        elif isinstance(value, datetime.timedelta):
            value = value.total_seconds()
        if isinstance(value, float):
            kept[name] = value if math.isfinite(value) else None
        elif value is None or isinstance(value, int) or (isinstance(value, str) and len(value) <= _METADATA_CHARACTERS):
            kept[name] = value
    return kept
