"""Reading the files of benchmarks: JSON, JSON lines, images in Parquet tables. All of it is untrusted and bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pagemill.errors import CorruptInputError, InputError, MissingInputError, TooLargeError, unreadable

T = TypeVar("T")

MAX_JSON_BYTES = 2**30
"""Size of a JSON file that is read whole. OmniDocBench's is 50 MB."""
MAX_LINE_BYTES = 2**26
"""Size of one line of JSON Lines. The longest of PubTabNet has about 100 KB."""
MAX_IMAGE_BYTES = 2**28
"""Size of an image in a cell of a table."""


def read_text(path: Path, limit: int = MAX_JSON_BYTES) -> str:
    """Text of a file.

    Raises:
        InputError: It is not there, cannot be read, is too large or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise unreadable(str(path), error) from error
    if len(data) > limit:
        raise TooLargeError(f"{path} has over {limit // 2**20:,} MB", remedy="Pass the published file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorruptInputError(f"{path} is not UTF-8: {error.reason}", remedy="Pass the published file.") from error


def read_json(path: Path, kind: type[T]) -> T:
    """Content of a JSON file.

    Args:
        path: The file.
        kind: Required type, as for :mod:`msgspec`; ``object`` for any. Unknown fields are ignored.

    Raises:
        InputError: As of :func:`read_text`, or it holds something else.
    """
    text = read_text(path)
    try:
        return msgspec.convert(json.loads(text), kind, strict=False)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors; json takes NaN, which they write
        raise CorruptInputError(f"{path} is not of the expected format: {error}", remedy=_REMEDY) from error


def read_json_lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Rows of a file with a JSON value a line; empty lines are skipped.

    Raises:
        InputError: As of :func:`read_json`.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise TooLargeError(f"{path}: line {number} has over {MAX_LINE_BYTES // 2**20} MB")
                if line.strip():
                    try:
                        yield msgspec.convert(json.loads(line), kind, strict=False)
                    except (ValueError, RecursionError) as error:
                        raise CorruptInputError(f"{path}: line {number}: {error}", remedy=_REMEDY) from error
    except OSError as error:
        raise unreadable(str(path), error) from error


def one_file(path: Path, patterns: Sequence[str], what: str) -> Path:
    """The file itself, or the one in a folder that matches the first pattern with any match.

    Args:
        path: A file or folder.
        patterns: Patterns of names below the folder; see :meth:`pathlib.Path.glob`.
        what: Content of the file, for messages.

    Raises:
        InputError: There is none, or there are several.
    """
    if path.is_file():
        return path
    if not path.exists():
        raise MissingInputError(f"{path} does not exist", remedy="Check the path.")
    for pattern in patterns:
        found = sorted(path.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(file.name for file in found[:4])
            raise InputError(f"{path} contains several files of {what}: {names}", remedy="Name one of them.")
    raise InputError(f"{path} contains no file of {what}", remedy=f"It is called {' or '.join(patterns)}.")


def image_bytes(path: Path, row: int, column: str) -> bytes:
    """Bytes of an image in a Parquet table, bare or as the ``datasets`` package stores it.

    Raises:
        InputError: The table cannot be read, or there is no image.
    """
    value = parquet_row(path, row, column)
    if isinstance(value, dict):
        value = value.get("bytes")
    if not isinstance(value, bytes) or not value:
        raise CorruptInputError(f"{path}: row {row + 1} has no image in its column {column!r}", remedy=_REMEDY)
    if len(value) > MAX_IMAGE_BYTES:
        raise TooLargeError(f"{path}: the image of row {row + 1} has over {MAX_IMAGE_BYTES // 2**20} MB")
    return value


def parquet_row(path: Path, row: int, column: str) -> Any:
    """One value of a Parquet table; only the row group that holds it is read.

    Raises:
        InputError: There is no such value.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if row < rows:
                    return file.read_row_group(group, columns=[column]).column(0)[row].as_py()
                row -= rows
    except OSError as error:
        raise unreadable(str(path), error) from error
    except (pa.ArrowException, IndexError) as error:
        raise CorruptInputError(f"{path} cannot be read: {error}", remedy=_REMEDY) from error
    raise InputError(f"{path} has fewer rows", remedy=_REMEDY)


def parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of a Parquet table with those of the columns that it has.

    Raises:
        InputError: It cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=256, columns=present):
                yield from batch.to_pylist()
    except OSError as error:
        raise unreadable(str(path), error) from error
    except pa.ArrowException as error:
        raise CorruptInputError(f"{path} cannot be read: {error}", remedy=_REMEDY) from error


_REMEDY = "Give the files as the benchmark publishes them."
