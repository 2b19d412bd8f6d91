"""Queries, and the pages that answer them, in the formats in which such sets are published."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pagemill.errors import CorruptInputError, InputError, UnsupportedInputError, UsageError, unreadable
from pagemill.evaluation.retrieval import Query

_MAX_LINE = 2**20
MAX_BYTES = 2**30
"""Of a file of queries."""
_PARQUET_MAGIC = b"PAR1"
_ARROW_MAGIC = b"ARROW1"
_TABLES = (".parquet", ".arrow")
_IDS = ("id", "query_id", "query-id", "_id", "qid")
_TEXTS = ("text", "query", "question")
_QA_COLUMNS = frozenset({"id", "query", "ground_truth"})
_WANTED = (*_IDS, *_TEXTS, "type", "domain")
_COLUMNS = "It needs an id (id, query_id, _id or qid) and a text (text, query or question) for each query."


class QueryFormat(StrEnum):
    """How queries and their pages are written."""

    JSONL = "jsonl"
    """One object a line: ``id``, ``query``, ``relevant`` (a list of page ids, or grades by page id), and if known
    ``type`` and ``domain``."""
    BEIR = "beir"
    """``queries.jsonl`` with ``_id`` and ``text``, and a table of query id, page id and grade."""
    SDS_KOPUB = "sds-kopub"
    """The table ``SDS-KoPub-QA``, Parquet or Arrow: ``id`` (the page that answers), ``query``, ``type``, ``domain``."""


_FIELDS = {
    QueryFormat.JSONL: "A line has the fields id, query and relevant (page ids).",
    QueryFormat.BEIR: "A line has the fields _id and text.",
    QueryFormat.SDS_KOPUB: "Name the file of the configuration SDS-KoPub-QA.",
}


def read_query_texts(path: Path) -> tuple[tuple[str, str], ...]:
    """Ids and texts of the queries in a file, told by its suffix: ``.jsonl``, ``.parquet``, ``.csv`` or ``.tsv``.

    In a table like ``SDS-KoPub-QA`` the id is that of a page, so that a query is called by the number of its row.

    Raises:
        InputError: The file cannot be read; or a query has no id or text, or an id comes twice.
        UnsupportedInputError: It has another suffix.
    """
    readers = {".jsonl": _json_lines, ".parquet": _table, ".csv": _comma_separated, ".tsv": _comma_separated}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnsupportedInputError(f"{path} is not a file of queries", remedy="Give a .jsonl, .parquet, .csv or .tsv.")
    queries: dict[str, str] = {}
    with _input_errors(str(path), path, _COLUMNS):
        if reader is _table and is_qa_table(_columns(path)):
            return tuple((query.id, query.query) for query in read_qa_table([(str(path), path)]))
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


def is_qa_table(columns: Iterable[str]) -> bool:
    """Whether a table with these columns is one like ``SDS-KoPub-QA``."""
    return set(columns) >= _QA_COLUMNS


def read_qa_table(files: Sequence[tuple[str, Path]]) -> list[Query]:
    """Read the queries of a table like ``SDS-KoPub-QA``.

    Args:
        files: Name and path of each of its shards, in order.

    Raises:
        InputError: As of :func:`read_queries`.
    """
    queries: list[Query] = []
    for name, path in files:
        with _input_errors(name, path, _FIELDS[QueryFormat.SDS_KOPUB]):
            rows = enumerate(_table(path), start=len(queries) + 1)
            queries += [_query(QueryFormat.SDS_KOPUB, number, row, {}) for number, row in rows]
    _check(", ".join(name for name, _ in files[:1]), queries)
    return queries


def read_queries(path: Path, query_format: QueryFormat | None = None, qrels: Path | None = None) -> list[Query]:
    """Read a set of queries.

    Args:
        path: The queries.
        query_format: How they are written; None: as the file says, by ``qrels`` and by its suffix.
        qrels: BEIR: the table that says which pages answer.

    Raises:
        UsageError: ``qrels`` is missing, or named where there is none.
        MissingInputError: A file does not exist; UnreadableInputError when it cannot be read.
        CorruptInputError: A file is not of this format, or holds no query with an answer.
    """
    if query_format is None:
        is_table = path.suffix.lower() in _TABLES
        query_format = QueryFormat.BEIR if qrels else QueryFormat.SDS_KOPUB if is_table else QueryFormat.JSONL
    if (qrels is not None) != (query_format is QueryFormat.BEIR):
        raise UsageError(
            f"the format {query_format} {'has no file of' if qrels else 'needs the file of'} relevant pages",
            remedy="Name it with --qrels, for --format beir alone.",
        )
    if query_format is QueryFormat.SDS_KOPUB:
        return read_qa_table([(str(path), path)])
    judged = _judgements(qrels) if qrels else {}
    with _input_errors(str(path), path, _FIELDS[query_format]):
        queries = [
            _query(query_format, number, row, judged)
            for number, row in enumerate(_json_lines(path), start=1)
            # The file of queries may hold those of other splits, too: the table says which ones count.
            if query_format is not QueryFormat.BEIR or _first(row, ("_id",)) in judged
        ]
    _check(str(path), queries)
    return queries


def _query(query_format: QueryFormat, number: int, row: dict[str, Any], judged: dict[Any, dict[str, int]]) -> Query:
    fields = row
    try:
        if query_format is QueryFormat.SDS_KOPUB:
            # One page may answer several queries, so its id is no name for a query: the row is.
            page = _first(row, ("id",))
            if page is None:
                raise ValueError("it has no id of a page")
            fields = {**row, "id": str(number), "relevant": {page: 1}}
            fields |= {name: row.get(name) or "" for name in ("type", "domain")}
        elif query_format is QueryFormat.BEIR:
            known, query_id = row.get("metadata") or {}, _first(row, ("_id",))
            fields = {"id": query_id, "query": row["text"], "relevant": judged[query_id]}
            fields |= {name: str(known.get(name, "")) for name in ("type", "domain")}
        elif isinstance(row.get("relevant"), list):
            fields = {**row, "relevant": dict.fromkeys(row["relevant"], 1)}
        return msgspec.convert(fields, Query)
    except (KeyError, TypeError, AttributeError, ValueError, msgspec.ValidationError) as error:
        raise ValueError(f"query {number}: {error}") from error


def _judgements(qrels: Path) -> dict[str, dict[str, int]]:
    """Grades by query and page."""
    relevant: dict[str, dict[str, int]] = {}
    with (
        _input_errors(str(qrels), qrels, "A line has query id, page id and grade, with tabs between."),
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
def _input_errors(name: str, path: Path, remedy: str) -> Iterator[None]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{name} is larger than {MAX_BYTES:,} bytes", remedy="Split it.")
        yield
    except OSError as error:
        raise unreadable(name, error) from error
    except (ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise CorruptInputError(f"{name} cannot be read as queries: {error}", remedy=remedy) from error


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
                    json.dumps(row, ensure_ascii=False).encode()  # half a surrogate pair is no text to search for
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} holds no JSON object")
                yield row


def _columns(path: Path) -> list[str]:
    with path.open("rb") as opened, pq.ParquetFile(opened) as file:
        return list(file.schema_arrow.names)


def _table(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet or Arrow file; content decides, not the name."""
    with path.open("rb") as file:
        head = file.read(len(_ARROW_MAGIC))
    if head.startswith(_PARQUET_MAGIC):
        with path.open("rb") as opened, pq.ParquetFile(opened) as parquet:
            wanted = [name for name in parquet.schema_arrow.names if name in _WANTED]
            for batch in parquet.iter_batches(columns=wanted):
                yield from batch.to_pylist()
        return
    with pa.OSFile(os.fsencode(path)) as file:
        reader = (pa.ipc.open_file if head == _ARROW_MAGIC else pa.ipc.open_stream)(file)
        table = reader.read_all()
        table.validate(full=True)  # offsets of untrusted files may point anywhere
        yield from table.select([name for name in table.schema.names if name in _WANTED]).to_pylist()


def _comma_separated(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")


def _check(name: str, queries: list[Query]) -> None:
    twice = [each for each, count in Counter(query.id for query in queries).items() if count > 1]
    if twice:
        raise CorruptInputError(f"{name} has two queries {twice[0]!r}")
    for query in queries:
        if not any(grade > 0 for grade in query.relevant.values()):
            raise CorruptInputError(f"{name}: no page answers query {query.id!r}", remedy="Leave it out, or name one.")
    if not queries:
        raise CorruptInputError(f"{name} holds no query that a page answers")
