"""Row groups and record batches of a dataset shard, including damaged ones.

A damaged one costs only its own rows: once the shard is open, it is reported in its place instead of raised.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pagemill.document.shown import count
from pagemill.errors import (
    CorruptInputError,
    InputError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
    UsageError,
)
from pagemill.imaging.formats import FileFormat
from pagemill.sources.items import Content, RemoteFile
from pagemill.sources.options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    from pagemill.config.arrow import pa, pq

BATCH_ROWS = 8
"""Rows of a Parquet file decoded at once: a page can have tens of megabytes."""
_BATCH_IDS = 10_000
"""The same if only ids are read."""
_BUFFER = 2**20
MAX_NAMED = 1_000
"""Consecutive lost rows up to which each gets its own record; more share one, as a damaged file may announce any
number. Row groups of image datasets have 100 to 1,000 rows."""
MAX_ROWS = 100_000_000
"""Maximum rows of a shard: a file that announces more is considered damaged."""
_MAX_FAILURES = 3
"""Consecutive failed reads after which the rest of a remote file or stream is given up: each may take minutes."""
_ARROW_MAGIC = b"ARROW1\0\0"
"""Start of an Arrow file; a stream with the same record batches follows."""
_END_MARK_BYTES = 4
"""Bytes of the shortest end-of-stream mark (Arrow before 0.15)."""
_ID_COLUMNS = ("id", "page_id")
_BYTES = "Store the file of each page image in a column of binary data, or in one of structs with `bytes`."
_ONE_IMAGE_A_ROW = "Put each image in its own row, in page order."
_IMAGE_NAMES = ("image", "page_image", "img", "page", "bytes", "content")
"""Order of preference among image columns; also the names of plain binary columns that count as one."""
_NEVER_TEXT = ("image", "images", "page_image", "page_images", "img")
"""Names of columns in which anything but binary data means missing images. Not "page" and "content", which are ordinary
columns of queries and annotations."""


@dataclass(frozen=True, slots=True)
class EndedRows:
    """The next rows of a shard, which are finished and not read again."""

    count: int


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a shard are read."""

    image: str
    row_id: str | None
    metadata: tuple[str, ...]
    other_images: tuple[str, ...] = ()
    """Further columns that may hold images and are not read."""
    images: bool = True
    """Whether the images are read."""

    @property
    def all(self) -> list[str]:
        """Names of the columns that are read, each once."""
        image = (self.image,) if self.images else ()
        return list(dict.fromkeys((*image, *([self.row_id] if self.row_id else []), *self.metadata)))

    def ids_only(self) -> Columns:
        """The same without images and metadata."""
        return replace(self, images=False, metadata=())


@dataclass(frozen=True, slots=True)
class LostRows:
    """The next rows of a shard, which are lost."""

    count: int | None
    """None if unknown."""
    error: Exception
    row_ids: tuple[str | None, ...] = ()
    """Ids of the rows, if their column is intact; otherwise empty."""


class TableWithoutImagesError(Exception):
    """An intact shard in which no column can hold images: queries or annotations beside the pages of a dataset.

    Args:
        error: Its error if it is the only input.
        columns: Its columns that hold images if another shard has images in columns of these names: not numbers.
    """

    def __init__(self, error: PagemillError, columns: frozenset[str]) -> None:
        super().__init__(error.message)
        self.error = error
        self.columns = columns


Piece: TypeAlias = "pa.RecordBatch | EndedRows | LostRows"


def reason_of(error: Exception, content: Content) -> Exception:
    """The error for an exception of a shard: damage, or the exception itself if its filesystem failed."""
    if isinstance(error, MemoryError):  # also the base class of Arrow's own
        return TooLargeError(
            f"the dataset file does not fit into memory: {error}", remedy="Write it with smaller row groups."
        )
    if isinstance(error, pa.ArrowException):
        return damaged(str(error))
    # pyarrow raises OSError for damage, too; only errors of the system have an errno.
    if not isinstance(content, RemoteFile) and isinstance(error, (OSError, EOFError)):
        return error if getattr(error, "errno", None) else damaged(str(error))
    return error


def damaged(reason: str) -> CorruptInputError:
    """The error for a damaged shard."""
    return CorruptInputError(f"the dataset file is damaged: {' '.join(reason.split())}", remedy="Get the file again.")


def pieces(
    stack: ExitStack,
    content: Content,
    file_format: FileFormat,
    options: SourceOptions,
    ended: Container[int],
    *,
    images: bool = True,
) -> tuple[Columns, Iterator[Piece]]:
    """Open a shard until ``stack`` is closed: its columns and, in order, its intact and lost parts.

    Row groups of Parquet files whose rows all are in ``ended`` are not decoded, nor is any column but that of the ids
    without ``images``.

    Raises:
        TableWithoutImagesError: It seems intact, and has no column for images.
    """

    def chosen(schema: pa.Schema) -> Columns:
        columns = columns_of(schema, options)
        return columns if images else columns.ids_only()

    file = stack.enter_context(_open(content, file_format))
    if file_format is FileFormat.PARQUET:
        parquet = stack.enter_context(
            pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True)
        )
        columns = chosen(parquet.schema_arrow)
        return columns, _row_groups(parquet, content, columns, ended)
    footer: Exception | None = None
    if file_format is FileFormat.ARROW_FILE:
        try:
            reader = stack.enter_context(pa.ipc.open_file(file))
            return chosen(reader.schema), _file_batches(file, reader, content)
        except (pa.ArrowException, OSError) as error:
            if reason_of(error, content) is error:  # an error of the filesystem
                raise
            # A truncated file has lost its footer, but its record batches can still be read as a stream.
            footer = damaged(f"it has no valid footer ({error})")
            file.seek(len(_ARROW_MAGIC))
    stream = stack.enter_context(pa.ipc.open_stream(file))
    try:
        columns = chosen(stream.schema)
    except TableWithoutImagesError:
        if footer is not None:  # the file is damaged: its schema may be, too
            raise footer from None
        raise
    return columns, _stream_batches(file, stream, content, footer)


def image_column(content: Content | None, file_format: FileFormat | None, options: SourceOptions) -> str | None:
    """The column with the images of a shard; None if it cannot be determined."""
    if content is None or file_format is None:
        return None
    with suppress(Exception), ExitStack() as stack:  # its rows are finished: an error costs nothing
        return pieces(stack, content, file_format, options, ())[0].image
    return None


def column_names(content: Content, file_format: FileFormat) -> list[str]:
    """Names of the columns of a shard.

    Raises:
        CorruptInputError: It is damaged.
        OSError: Its filesystem failed; a remote one may raise any exception.
    """
    try:
        with _open(content, file_format) as file:
            if file_format is FileFormat.PARQUET:
                return list(pq.ParquetFile(file).schema_arrow.names)
            opened = pa.ipc.open_file if file_format is FileFormat.ARROW_FILE else pa.ipc.open_stream
            return list(opened(file).schema.names)
    except Exception as error:
        raise reason_of(error, content) from error


def _open(content: Content, file_format: FileFormat) -> Any:
    if isinstance(content, bytes):
        return pa.BufferReader(content)
    if isinstance(content, Path):
        opened = pa.OSFile if file_format is FileFormat.PARQUET else pa.memory_map
        return opened(os.fsencode(content))  # a str must be UTF-8, which file names need not be
    return content.filesystem.open(content.path, "rb")


def _row_groups(parquet: pq.ParquetFile, content: Content, columns: Columns, ended: Container[int]) -> Iterator[Piece]:
    """Row groups, a few rows at a time; for a damaged one the rows before the damage, and the number of lost ones."""
    metadata = parquet.metadata
    groups = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    if min(groups, default=0) < 0 or max(sum(groups), metadata.num_rows) > MAX_ROWS:
        raise damaged(f"it announces row groups of {', '.join(map(str, groups[:20]))} rows")
    first = 1
    failures = 0
    for index, rows in enumerate(groups):
        given = 0
        error: Exception | None = None
        try:
            if all(number in ended for number in range(first, first + rows)):
                yield EndedRows(rows)
                given = rows
            else:
                size = BATCH_ROWS if columns.images else _BATCH_IDS
                for batch in parquet.iter_batches(batch_size=size, row_groups=[index], columns=columns.all):
                    whole = batch.slice(0, rows - given)
                    yield whole
                    given += whole.num_rows
            if given < rows:
                raise damaged(f"row group {index + 1} announces {count(rows, 'row')} and contains {given:,}")
        except Exception as raised:
            error = reason_of(raised, content)
            yield LostRows(rows - given, error, _row_ids(parquet, index, columns, rows)[given:])
        failures = 0 if error is None or isinstance(error, InputError) else failures + 1
        if error is not None and failures == _MAX_FAILURES:
            yield LostRows(sum(groups[index + 1 :]), error)
            return
        first += rows
    if metadata.num_rows != sum(groups):
        more = metadata.num_rows - sum(groups)
        error = damaged(f"its footer announces {metadata.num_rows} rows, its row groups {sum(groups)}")
        yield LostRows(more if more > 0 else None, error)


def _row_ids(parquet: pq.ParquetFile, index: int, columns: Columns, rows: int) -> tuple[str | None, ...]:
    """Ids of a damaged row group; empty if the column with the ids is damaged, too."""
    # More rows share one record, which has no room for their ids.
    if columns.row_id is None or rows > MAX_NAMED:
        return ()
    with suppress(Exception):  # the rows are then reported by number instead of id
        table = parquet.read_row_group(index, columns=[columns.row_id])
        table.validate(full=True)
        ids = table.column(0).to_pylist()
        if len(ids) == rows:
            return tuple(None if value is None else str(value) for value in ids)
    return ()


def _file_batches(file: Any, reader: pa.RecordBatchFileReader, content: Content) -> Iterator[Piece]:
    """Record batches of an Arrow file; for a damaged one the number of lost rows."""
    for index in range(reader.num_record_batches):
        try:
            batch = reader.get_batch(index)
        except Exception as raised:
            error = reason_of(raised, content)
            rows = _batch_rows(file, reader.schema, index)
            yield LostRows(rows, error)
            # Rows are identified by number. What a remote file does not yield now it may yield next time, and later
            # rows would then have other numbers.
            if rows is None and isinstance(content, RemoteFile):
                return
        else:
            yield batch
    if not isinstance(content, RemoteFile) and (there := _batches_there(file)) > reader.num_record_batches:
        yield LostRows(
            None, damaged(f"its footer lists {reader.num_record_batches} of the {there} record batches that are there")
        )


def _batches_there(file: Any) -> int:
    """Number of consecutive record batches before the footer of an Arrow file; reads no data."""
    count = 0
    file.seek(len(_ARROW_MAGIC))
    messages = pa.ipc.MessageReader.open_stream(file)
    with suppress(StopIteration, pa.ArrowException, OSError):  # the end, or damage
        while True:
            count += messages.read_next_message().type == "record batch"
    return count


def _batch_rows(file: Any, schema: pa.Schema, index: int) -> int | None:
    """Number of rows of a damaged record batch, from any column that is intact."""
    for column in range(len(schema)):
        with suppress(Exception):  # this column is damaged, too
            options = pa.ipc.IpcReadOptions(included_fields=[column])
            rows = pa.ipc.open_file(file, options=options).get_batch(index).num_rows
            return int(rows) if 0 <= rows <= MAX_ROWS else None
    return None


def _stream_batches(
    file: Any, stream: pa.RecordBatchStreamReader, content: Content, footer: Exception | None
) -> Iterator[Piece]:
    """Record batches of an Arrow stream, up to its end mark, which Arrow's readers do not require.

    Args:
        file: The open file of the stream.
        stream: The reader.
        content: The content of ``file``.
        footer: Error of the footer of an Arrow file that is read as a stream.
    """
    failures = 0
    while failures < _MAX_FAILURES:
        before = file.tell()
        try:
            batch = stream.read_next_batch()
        except StopIteration:
            if footer is None and file.tell() - before < _END_MARK_BYTES:
                footer = damaged("the stream has no end mark, so it may be truncated")
            elif footer is None and file.read(1):
                footer = damaged("there is data after the end of the stream")
            break
        except Exception as raised:
            yield LostRows(None, reason_of(raised, content))
            if isinstance(content, RemoteFile) or file.tell() == before:
                return  # row numbers of a remote file, as above; or no progress, at the end of the file
            failures += 1
        else:
            yield batch
            failures = 0
    if footer is not None:
        yield LostRows(None, footer)


def columns_of(schema: pa.Schema, options: SourceOptions) -> Columns:
    """The columns to read.

    Raises:
        TableWithoutImagesError: No column holds binary data, and none should by its name.
        UnsupportedInputError: The column with the images cannot be determined.
        UsageError: A column that ``options`` names does not exist, or has no images.
    """
    try:
        return _chosen(schema, options)
    except (UnsupportedInputError, UsageError) as error:
        columns = frozenset(field.name for field in schema if not pa.types.is_primitive(field.type))
        is_named = options.image_column in schema.names or any(name.casefold() in _NEVER_TEXT for name in columns)
        if is_named or any(_holds_binary(field.type) for field in schema):
            raise
        raise TableWithoutImagesError(error, columns) from error


def _chosen(schema: pa.Schema, options: SourceOptions) -> Columns:
    """The columns to read. Images are in one of structs with ``bytes`` (Image of `datasets`), or in a binary one."""
    for name in (options.image_column, options.id_column):
        if name is not None and name not in schema.names:
            raise UsageError(f"there is no column {name!r}", remedy=f"The columns are: {', '.join(schema.names)}.")
    wanted = options.image_column
    fields = list(schema) if wanted is None else [schema.field(wanted)]
    structs = [f.name for f in fields if _is_image_struct(f.type)]
    candidates = structs or [f.name for f in fields if _is_binary(f.type) and (wanted or f.name in _IMAGE_NAMES)]
    if not candidates and (wanted or not any(_holds_binary(f.type) for f in schema)):
        # A column without any value has the null type. It is read, so that each row reports its missing image.
        candidates = [f.name for f in fields if pa.types.is_null(f.type) and (wanted or f.name in _NEVER_TEXT)]
    if not candidates:
        error = UnsupportedInputError if wanted is None else UsageError
        if lists := [f.name for f in fields if _is_image_list(f.type)]:
            raise error(f"the column {lists[0]!r} contains lists of images", remedy=_ONE_IMAGE_A_ROW)
        holder = "no column contains" if wanted is None else f"the column {wanted!r} contains no"
        others = [f.name for f in schema if f.name != wanted and (_is_binary(f.type) or _is_image_struct(f.type))]
        remedy = f"Name one that does with --image-column: {', '.join(others)}." if others else _BYTES
        raise error(f"{holder} encoded page images", remedy=remedy)
    image = next((name for name in _IMAGE_NAMES if name in candidates), candidates[0])
    scalars = [f.name for f in schema if f.name != image and _is_scalar(f.type)]
    row_id = options.id_column or next((name for name in _ID_COLUMNS if name in scalars), None)
    return Columns(
        image,
        row_id,
        metadata=tuple(name for name in scalars if name != row_id),
        other_images=tuple(f.name for f in fields if f.name != image and _holds_binary(f.type)),
    )


def _is_image_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and any(f.name == "bytes" and _is_binary(f.type) for f in kind)


def _is_image_list(kind: pa.DataType) -> bool:
    types = pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    return _is_image_struct(kind.value_type) or _is_binary(kind.value_type)


def _values(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column, which may be dictionary-encoded."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_binary(kind: pa.DataType) -> bool:
    """Whether values are binary data; dictionary-encoded ones are read like others."""
    kind = _values(kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _holds_binary(kind: pa.DataType) -> bool:
    """Whether values of a type have binary data in them, at any depth."""
    kind = _values(kind)
    return _is_binary(kind) or any(_holds_binary(kind.field(index).type) for index in range(kind.num_fields))


def _is_scalar(kind: pa.DataType) -> bool:
    types, kind = pa.types, _values(kind)
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(is_text or types.is_primitive(kind))
