"""Files of queries: JSON lines, Parquet, CSV."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pagemill.errors import CorruptInputError, InputError, UnsupportedInputError, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_IDS = ("id", "query_id", "query-id", "_id", "qid")
_TEXTS = ("text", "query", "question")
_MAX_BYTES = 2**30
_COLUMNS = "It needs an id (id, query_id, _id or qid) and a text (text, query or question) for each query."


def read_queries(path: Path) -> tuple[tuple[str, str], ...]:
    """Ids and texts of the queries in a file, told by its suffix: ``.jsonl``, ``.parquet``, ``.csv`` or ``.tsv``.

    Raises:
        InputError: The file cannot be read; or a query has no id or text, or an id comes twice.
        UnsupportedInputError: It has another suffix, or none of the columns.
    """
    readers = {".jsonl": _json_lines, ".parquet": _parquet, ".csv": _comma_separated, ".tsv": _comma_separated}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnsupportedInputError(f"{path} is no file of queries", remedy="Give a .jsonl, .parquet, .csv or .tsv.")
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path} is larger than {_MAX_BYTES:,} bytes", remedy="Split it.")
        queries = tuple(_queries(path, reader(path)))
    except OSError as error:
        raise unreadable(str(path), error) from error
    except (ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise CorruptInputError(f"{path} cannot be read as queries: {error}", remedy=_COLUMNS) from error
    if not queries:
        raise InputError(f"{path} holds no query", remedy=_COLUMNS)
    return queries


def _queries(path: Path, rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for number, row in enumerate(rows, start=1):
        query_id, text = _first(row, _IDS), _first(row, _TEXTS)
        if query_id is None or text is None:
            missing = "id" if query_id is None else "text"
            raise InputError(f"{path}: query {number} has no {missing}", remedy=_COLUMNS)
        if query_id in seen:
            raise InputError(f"{path}: the id {query_id!r} comes twice", remedy="Give each query an id of its own.")
        seen.add(query_id)
        yield query_id, text


def _first(row: dict[str, Any], names: Iterable[str]) -> str | None:
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} is no object")
                yield row


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        wanted = [name for name in file.schema_arrow.names if name in (*_IDS, *_TEXTS)]
        for batch in file.iter_batches(columns=wanted):
            yield from batch.to_pylist()


def _comma_separated(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
