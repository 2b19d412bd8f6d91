"""Queries, and the pages that answer them, in the formats in which such sets are published."""

from __future__ import annotations

import contextlib
import csv
import json
from collections import Counter
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pagemill.errors import CorruptInputError, InputError, UnsupportedInputError, UsageError, unreadable
from pagemill.evaluation.retrieval import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_MAX_LINE = 2**20
_MAX_BYTES = 2**30
_IDS = ("id", "query_id", "query-id", "_id", "qid")
_TEXTS = ("text", "query", "question")
_COLUMNS = "It needs an id (id, query_id, _id or qid) and a text (text, query or question) for each query."


class QueryFormat(StrEnum):
    """How queries and their pages are written."""

    JSONL = "jsonl"
    """One object a line: ``id``, ``query``, ``relevant`` (a list of page ids, or grades by page id), and if known
    ``type`` and ``domain``."""
    BEIR = "beir"
    """``queries.jsonl`` with ``_id`` and ``text``, and a table of query id, page id and grade."""
    SDS_KOPUB = "sds-kopub"
    """The Parquet file ``SDS-KoPub-QA``: ``id`` (the page that answers), ``query``, ``type``, ``domain``."""


_FIELDS = {
    QueryFormat.JSONL: "A line has the fields id, query and relevant (page ids).",
    QueryFormat.BEIR: "A line has the fields _id and text.",
    QueryFormat.SDS_KOPUB: "Name the file of the configuration SDS-KoPub-QA.",
}


def read_query_texts(path: Path) -> tuple[tuple[str, str], ...]:
    """Ids and texts of the queries in a file, told by its suffix: ``.jsonl``, ``.parquet``, ``.csv`` or ``.tsv``.

    Raises:
        InputError: The file cannot be read; or a query has no id or text, or an id comes twice.
        UnsupportedInputError: It has another suffix.
    """
    readers = {".jsonl": _json_lines, ".parquet": _parquet, ".csv": _comma_separated, ".tsv": _comma_separated}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnsupportedInputError(f"{path} is no file of queries", remedy="Give a .jsonl, .parquet, .csv or .tsv.")
    queries: dict[str, str] = {}
    with _input_errors(path, _COLUMNS):
        for number, row in enumerate(reader(path), start=1):
            query_id, text = _first(row, _IDS), _first(row, _TEXTS)
            if query_id is None or text is None:
                missing = "id" if query_id is None else "text"
                raise InputError(f"{path}: query {number} has no {missing}", remedy=_COLUMNS)
            if query_id in queries:
                raise InputError(f"{path}: the id {query_id!r} comes twice", remedy="Give each query an id of its own.")
            queries[query_id] = text
    if not queries:
        raise InputError(f"{path} holds no query", remedy=_COLUMNS)
    return tuple(queries.items())


def read_queries(path: Path, query_format: QueryFormat, qrels: Path | None = None) -> list[Query]:
    """Read a set of queries.

    Args:
        path: The queries.
        query_format: How they are written.
        qrels: BEIR: the table that says which pages answer.

    Raises:
        UsageError: ``qrels`` is missing, or named where there is none.
        MissingInputError: A file does not exist; UnreadableInputError when it cannot be read.
        CorruptInputError: A file is not of this format, or holds no query with an answer.
    """
    if (qrels is not None) != (query_format is QueryFormat.BEIR):
        raise UsageError(
            f"the format {query_format} {'has no file of' if qrels else 'needs the file of'} relevant pages",
            remedy="Name it with --qrels, for --format beir alone.",
        )
    judged = _judgements(qrels) if qrels else {}
    with _input_errors(path, _FIELDS[query_format]):
        rows = _parquet(path) if query_format is QueryFormat.SDS_KOPUB else _json_lines(path)
        queries = [
            _query(query_format, number, row, judged)
            for number, row in enumerate(rows, start=1)
            # The file of queries may hold those of other splits, too: the table says which ones count.
            if query_format is not QueryFormat.BEIR or row.get("_id") in judged
        ]
    _check(path, queries)
    return queries


def _query(query_format: QueryFormat, number: int, row: dict[str, Any], judged: dict[Any, dict[str, int]]) -> Query:
    fields = row
    try:
        if query_format is QueryFormat.SDS_KOPUB:
            # One page may answer several queries, so its id is no name for a query: the row is.
            fields = {**row, "id": str(number), "relevant": {str(row["id"]): 1}}
            fields |= {"type": row["type"] or "", "domain": row["domain"] or ""}
        elif query_format is QueryFormat.BEIR:
            known = row.get("metadata") or {}
            fields = {"id": row["_id"], "query": row["text"], "relevant": judged[row["_id"]]}
            fields |= {name: str(known.get(name, "")) for name in ("type", "domain")}
        elif isinstance(row.get("relevant"), list):
            fields = {**row, "relevant": dict.fromkeys(row["relevant"], 1)}
        return msgspec.convert(fields, Query)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise ValueError(f"query {number}: {error}") from error


def _judgements(qrels: Path) -> dict[str, dict[str, int]]:
    """Grades by query and page."""
    relevant: dict[str, dict[str, int]] = {}
    with (
        _input_errors(qrels, "A line has query id, page id and grade, with tabs between."),
        qrels.open(encoding="utf-8", newline="") as stream,
    ):
        for number, row in enumerate(csv.reader(stream, delimiter="\t"), start=1):
            if number == 1 and row[:2] == ["query-id", "corpus-id"]:
                continue
            try:
                query, page, grade = row
                relevant.setdefault(query, {})[page] = int(grade)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
    return relevant


@contextlib.contextmanager
def _input_errors(path: Path, remedy: str) -> Iterator[None]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path} is larger than {_MAX_BYTES:,} bytes", remedy="Split it.")
        yield
    except OSError as error:
        raise unreadable(str(path), error) from error
    except (ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise CorruptInputError(f"{path} cannot be read as queries: {error}", remedy=remedy) from error


def _first(row: dict[str, Any], names: Iterable[str]) -> str | None:
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(iter(partial(stream.readline, _MAX_LINE + 1), ""), start=1):
            if len(line) > _MAX_LINE:
                raise ValueError(f"line {number} is over a megabyte")
            if line.strip():
                try:
                    row = json.loads(line)  # unlike msgspec it takes the NaN that Python's own writer leaves
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} holds no JSON object")
                yield row


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as file:
        wanted = [name for name in file.schema_arrow.names if name in (*_IDS, *_TEXTS, "type", "domain")]
        for batch in file.iter_batches(columns=wanted):
            yield from batch.to_pylist()


def _comma_separated(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")


def _check(path: Path, queries: list[Query]) -> None:
    twice = [name for name, count in Counter(query.id for query in queries).items() if count > 1]
    if twice:
        raise CorruptInputError(f"{path} has two queries {twice[0]!r}")
    for query in queries:
        if not any(grade > 0 for grade in query.relevant.values()):
            raise CorruptInputError(f"{path}: no page answers query {query.id!r}", remedy="Leave it out, or name one.")
    if not queries:
        raise CorruptInputError(f"{path} holds no query that a page answers")
