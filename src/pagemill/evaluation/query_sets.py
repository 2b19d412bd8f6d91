"""Queries and the pages that answer them, in the formats in which such sets are published."""

from __future__ import annotations

import csv
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.errors import CorruptInputError, UsageError, unreadable
from pagemill.evaluation.retrieval import Query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_LINE = 2**20
_MAX_GRADE = 1000


class QueryFormat(StrEnum):
    """How queries and their pages are written."""

    JSONL = "jsonl"
    """One object a line: ``id``, ``query``, ``relevant`` (a list of page ids, or grades by page id), and if known
    ``type`` and ``domain``."""
    BEIR = "beir"
    """``queries.jsonl`` with ``_id`` and ``text``, and a table of query id, page id and grade."""
    SDS_KOPUB = "sds-kopub"
    """The Parquet file ``SDS-KoPub-QA``: ``id`` (the page that answers), ``query``, ``type``, ``domain``."""


class _JsonlQuery(msgspec.Struct):
    id: str
    query: str
    relevant: list[str] | dict[str, int]
    type: str = ""
    domain: str = ""


class _BeirQuery(msgspec.Struct):
    id: str = msgspec.field(name="_id")
    text: str
    metadata: dict[str, Any] = {}


_FIELDS: dict[Any, str] = {_JsonlQuery: "id, query and relevant (page ids)", _BeirQuery: "_id and text"}


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
    try:
        if query_format is QueryFormat.JSONL:
            queries = _jsonl(path)
        elif query_format is QueryFormat.SDS_KOPUB:
            queries = _sds_kopub(path)
        else:
            queries = _beir(path, qrels) if qrels else []
    except OSError as error:
        raise unreadable(str(error.filename or path), error) from error
    _check(path, queries)
    return queries


def _jsonl(path: Path) -> list[Query]:
    return [
        Query(
            id=each.id,
            query=each.query,
            relevant=each.relevant if isinstance(each.relevant, dict) else dict.fromkeys(each.relevant, 1),
            type=each.type,
            domain=each.domain,
        )
        for each in _lines(path, _JsonlQuery)
    ]


def _beir(path: Path, qrels: Path) -> list[Query]:
    relevant: dict[str, dict[str, int]] = {}
    with qrels.open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.reader(stream, delimiter="\t"), start=1):
            if number == 1 and row[:2] == ["query-id", "corpus-id"]:
                continue
            try:
                query, page, grade = row
                relevant.setdefault(query, {})[page] = int(grade)
            except ValueError as error:
                raise CorruptInputError(
                    f"{qrels}, line {number}, is not: query id, page id, grade, with tabs between"
                ) from error
    # The file of queries may hold those of other splits, too: the table says which ones count.
    return [
        Query(
            id=each.id,
            query=each.text,
            relevant=relevant[each.id],
            type=str(each.metadata.get("type", "")),
            domain=str(each.metadata.get("domain", "")),
        )
        for each in _lines(path, _BeirQuery)
        if each.id in relevant
    ]


def _sds_kopub(path: Path) -> list[Query]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = ("id", "query", "type", "domain")
    try:
        table = pq.read_table(path, columns=list(columns))
        rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
        # One page may answer several queries, so its id is no name for a query: the row is.
        return [
            Query(
                id=f"{number}",
                query=str(query),
                relevant={str(page): 1},
                type=str(kind or ""),
                domain=str(domain or ""),
            )
            for number, (page, query, kind, domain) in enumerate(rows, start=1)
        ]
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise CorruptInputError(
            f"{path} is no Parquet file with the columns {', '.join(columns)}: {error}",
            remedy="Name the file of the configuration SDS-KoPub-QA.",
        ) from error


def _lines(path: Path, kind: type[Any]) -> Iterator[Any]:
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(_MAX_LINE + 1):
            number += 1
            if not line.strip():
                continue
            try:
                if len(line) > _MAX_LINE:
                    raise ValueError("it is over a megabyte")
                yield decoder.decode(line)
            except (msgspec.DecodeError, ValueError) as error:
                raise CorruptInputError(
                    f"{path}, line {number}: {error}", remedy=f"A line has the fields {_FIELDS[kind]}."
                ) from error


def _check(path: Path, queries: list[Query]) -> None:
    twice = [name for name, count in Counter(query.id for query in queries).items() if count > 1]
    if twice:
        raise CorruptInputError(f"{path} has two queries {twice[0]!r}")
    for query in queries:
        if not query.query.strip():
            raise CorruptInputError(f"{path}: the query {query.id!r} is empty", remedy="Leave it out, or fill it in.")
        if any(abs(grade) > _MAX_GRADE for grade in query.relevant.values()):
            raise CorruptInputError(f"{path}: a grade of query {query.id!r} is over {_MAX_GRADE:,}")
        if not any(grade > 0 for grade in query.relevant.values()):
            raise CorruptInputError(f"{path}: no page answers query {query.id!r}", remedy="Leave it out, or name one.")
    if not queries:
        raise CorruptInputError(f"{path} holds no query that a page answers")
