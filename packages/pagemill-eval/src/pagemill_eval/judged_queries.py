"""Queries with the pages that answer them: those of a file, or with ``auto`` those of the dataset of a run."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from pagemill.app.queries import AUTO, find_query_table
from pagemill.errors import UsageError
from pagemill.retrieval.query_sets import (
    Query,
    as_query,
    first_of,
    input_errors,
    json_lines,
    read_qa_table,
    require_answers,
)

_TABLES = (".parquet", ".arrow")


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
}


def judged_queries(
    given: str,
    query_format: QueryFormat | None,
    qrels: Path | None,
    places: Iterable[str],
    out: Path | None = None,
) -> tuple[list[Query], str]:
    """Queries with the pages that answer them, and where they come from, as ``query_texts`` of the app."""
    if given != AUTO:
        return read_queries(Path(given), query_format, qrels), given
    if query_format is not None or qrels is not None:
        raise UsageError("--queries auto knows the format", remedy="Leave out --format and --qrels.")
    table = find_query_table(places, out)
    return table.queries, table.name


def read_queries(path: Path, query_format: QueryFormat | None = None, qrels: Path | None = None) -> list[Query]:
    """Read a set of queries.

    Args:
        path: The queries.
        query_format: Format of the queries; None: detected from ``qrels`` and the suffix.
        qrels: BEIR: the table that says which pages answer.

    Raises:
        UsageError: ``qrels`` is missing, or named where there is none.
        MissingInputError: A file does not exist; UnreadableInputError when it cannot be read.
        CorruptInputError: A file is not of this format, or contains no query with an answer.
    """
    if query_format is None:
        is_table = path.suffix.lower() in _TABLES
        query_format = QueryFormat.BEIR if qrels else QueryFormat.SDS_KOPUB if is_table else QueryFormat.JSONL
    if (qrels is not None) != (query_format is QueryFormat.BEIR):
        raise UsageError(
            f"the format {query_format} {'has no file of' if qrels else 'needs the file of'} relevant pages",
            remedy="Pass it with --qrels, for --format beir alone.",
        )
    if query_format is QueryFormat.SDS_KOPUB:
        return read_qa_table([(str(path), path)])
    judged = _judgements(qrels) if qrels else None
    with input_errors(str(path), path, _FIELDS[query_format]):
        queries = [
            _query(number, row, judged)
            for number, row in enumerate(json_lines(path), start=1)
            # The file of queries may hold those of other splits, too: the table says which ones count.
            if judged is None or first_of(row, ("_id",)) in judged
        ]
    require_answers(str(path), queries)
    return queries


def _query(number: int, row: dict[str, Any], judged: dict[str, dict[str, int]] | None) -> Query:
    fields = row
    try:
        if judged is not None:
            known, query_id = row.get("metadata") or {}, first_of(row, ("_id",)) or ""
            fields = {"id": query_id, "query": row["text"], "relevant": judged[query_id]}
            fields |= {name: str(known.get(name, "")) for name in ("type", "domain")}
        elif isinstance(row.get("relevant"), list):
            fields = {**row, "relevant": dict.fromkeys(row["relevant"], 1)}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"query {number}: {error}") from error
    return as_query(number, fields)


def _judgements(qrels: Path) -> dict[str, dict[str, int]]:
    """Grades by query and page."""
    relevant: dict[str, dict[str, int]] = {}
    with (
        input_errors(str(qrels), qrels, "A line has query id, page id and grade, with tabs between."),
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
