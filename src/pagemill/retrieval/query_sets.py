"""Queries in the formats in which they are published, and the pages that answer them where a table names those."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pagemill.config.arrow import pa, pq
from pagemill.errors import CorruptInputError, InputError, UnsupportedInputError, unreadable

_MAX_LINE = 2**20
MAX_BYTES = 2**30
"""Maximum size of a file of queries."""
_PARQUET_MAGIC = b"PAR1"
_ARROW_MAGIC = b"ARROW1"
_IDS = ("id", "query_id", "query-id", "_id", "qid")
_TEXTS = ("text", "query", "question")
_QA_COLUMNS = frozenset({"id", "query", "ground_truth"})
_WANTED = (*_IDS, *_TEXTS, "type", "domain")
_COLUMNS = "It needs an id (id, query_id, _id or qid) and a text (text, query or question) for each query."
_QA_REMEDY = "Name the file of the configuration SDS-KoPub-QA."


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A question and the pages that answer it."""

    id: str
    query: Annotated[str, msgspec.Meta(pattern=r"\S")]
    relevant: dict[str, Annotated[int, msgspec.Meta(ge=-1000, le=1000)]]
    """Grade by page id: over 0 for a page that answers."""
    type: str = ""
    domain: str = ""


def read_query_texts(path: Path) -> tuple[tuple[str, str], ...]:
    """Ids and texts of the queries in a file, by its suffix: ``.jsonl``, ``.parquet``, ``.csv`` or ``.tsv``.

    In a table like ``SDS-KoPub-QA`` the id is that of a page, so that a query is called by the number of its row.

    Raises:
        InputError: The file cannot be read; or a query has no id or text, or an id appears twice.
        UnsupportedInputError: It has another suffix.
    """
    readers = {".jsonl": json_lines, ".parquet": _table, ".csv": _comma_separated, ".tsv": _comma_separated}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnsupportedInputError(f"{path} is not a file of queries", remedy="Give a .jsonl, .parquet, .csv or .tsv.")
    queries: dict[str, str] = {}
    with input_errors(str(path), path, _COLUMNS):
        if reader is _table and is_qa_table(_columns(path)):
            return tuple((query.id, query.query) for query in read_qa_table([(str(path), path)]))
        for number, row in enumerate(reader(path), start=1):
            query_id, text = first_of(row, _IDS), first_of(row, _TEXTS)
            if query_id is None or text is None:
                missing = "id" if query_id is None else "text"
                raise InputError(f"{path}: query {number} has no {missing}", remedy=_COLUMNS)
            if query_id in queries:
                raise InputError(
                    f"{path}: the id {query_id!r} appears twice", remedy="Give each query an id of its own."
                )
            queries[query_id] = text
    if not queries:
        raise InputError(f"{path} contains no query", remedy=_COLUMNS)
    return tuple(queries.items())


def is_qa_table(columns: Iterable[str]) -> bool:
    """Whether a table with these columns is one like ``SDS-KoPub-QA``."""
    return set(columns) >= _QA_COLUMNS


def read_qa_table(files: Sequence[tuple[str, Path]]) -> list[Query]:
    """Read the queries of a table like ``SDS-KoPub-QA``.

    Args:
        files: Name and path of each of its shards, in order.

    Raises:
        MissingInputError: A file does not exist; UnreadableInputError when it cannot be read.
        CorruptInputError: A file is not of this format, or contains no query with an answer.
    """
    queries: list[Query] = []
    for name, path in files:
        with input_errors(name, path, _QA_REMEDY):
            queries += [_answered(number, row) for number, row in enumerate(_table(path), start=len(queries) + 1)]
    require_answers(", ".join(name for name, _ in files[:1]), queries)
    return queries


def _answered(number: int, row: dict[str, Any]) -> Query:
    page = first_of(row, ("id",))
    if page is None:
        raise ValueError(f"query {number}: it has no id of a page")
    # One page may answer several queries, so its id is not a name for a query: the row is.
    fields = {**row, "id": str(number), "relevant": {page: 1}}
    return as_query(number, fields | {name: row.get(name) or "" for name in ("type", "domain")})


def as_query(number: int, fields: dict[str, Any]) -> Query:
    """The query that a row describes.

    Raises:
        ValueError: It describes none; the message has the row's number.
    """
    try:
        return msgspec.convert(fields, Query)
    except msgspec.ValidationError as error:
        raise ValueError(f"query {number}: {error}") from error


@contextlib.contextmanager
def input_errors(name: str, path: Path, remedy: str) -> Iterator[None]:
    """Convert errors in a file of queries to input errors; a file that is too large is not read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{name} is larger than {MAX_BYTES:,} bytes", remedy="Split it.")
        yield
    except OSError as error:
        raise unreadable(name, error) from error
    except (ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise CorruptInputError(f"{name} cannot be read as queries: {error}", remedy=remedy) from error


def first_of(row: dict[str, Any], names: Iterable[str]) -> str | None:
    """The first of these fields that a row has, if it is a text or a number."""
    value = next((row[name] for name in names if row.get(name) is not None), None)
    # `true` is a number to Python.
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file.

    Raises:
        ValueError: A line is too long or is not an object.
    """
    with path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(iter(partial(stream.readline, _MAX_LINE + 1), ""), start=1):
            if len(line) > _MAX_LINE:
                raise ValueError(f"line {number} is over a megabyte")
            if line.strip():
                try:
                    row = json.loads(line)  # unlike msgspec it takes the NaN that Python's own writer leaves
                    json.dumps(row, ensure_ascii=False).encode()  # half a surrogate pair is not text to search for
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} is not a JSON object")
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


def require_answers(name: str, queries: list[Query]) -> None:
    """Make sure that each query has an id of its own and a page that answers it.

    Raises:
        CorruptInputError: One has not, or there is none.
    """
    twice = [each for each, count in Counter(query.id for query in queries).items() if count > 1]
    if twice:
        raise CorruptInputError(f"{name} has the query {twice[0]!r} twice")
    for query in queries:
        if not any(grade > 0 for grade in query.relevant.values()):
            raise CorruptInputError(f"{name}: no page answers query {query.id!r}", remedy="Leave it out, or name one.")
    if not queries:
        raise CorruptInputError(f"{name} contains no query that a page answers")
