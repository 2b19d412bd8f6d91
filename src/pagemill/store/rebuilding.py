"""Rebuilding the database of a run where it was lost or damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from pagemill.document.identity import PageKey
from pagemill.document.page import PageResult
from pagemill.errors import DamagedRunError, OutputError
from pagemill.store import paths
from pagemill.store.files import output_errors, reading_errors, size_of, sync_directory
from pagemill.store.holding import read_run_json
from pagemill.store.reading import RunReader
from pagemill.store.records import MAX_LINE_BYTES, decode_page, decompress, encode_line
from pagemill.store.run_database import RunDatabase, recounted, remove_record
from pagemill.store.summary import Counters, RunSummary
from pagemill.whole_files import TEMPORARY_SUFFIX

_JOURNAL = ("-wal", "-shm")


def rebuild_database(out: Path) -> None:
    """Write a new database from what can be read of the old one, from ``ocr_results.jsonl`` and ``run.json``.

    What only the old database held is lost: attempts at unfinished pages, skipped pages, previews, digests of files. Of
    several lines of one page, or with one page id, the last one is used.

    Args:
        out: The run directory, locked by this process.

    Raises:
        DamagedRunError: The identity of the run is lost.
        OutputError: The directory cannot be read or written; NoSpaceError when the disk is full.
    """
    final = out / paths.DATABASE
    summary = _stored_summary(final) or read_run_json(out)
    if summary is None:
        raise DamagedRunError(
            f"{out} has lost both its database and its {paths.RUN_JSON}, so that it cannot be resumed",
            remedy=f"Keep {paths.RESULTS}, which contains what was parsed, and start over with --fresh or another -o.",
        )
    temporary = final.with_name(final.name + TEMPORARY_SUFFIX)
    _delete(temporary, "", *_JOURNAL)
    # Counted again from the records that are found: those of the old database may include records that are lost.
    summary.restore(Counters())
    with RunDatabase(temporary) as run:
        run.begin(summary)
        with run.transaction() as connection:
            # Continue the numbers of the old database: a program that follows the records would otherwise take new ones
            # for those that it already has.
            connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'records'", (_last_record(final),))
            for page in _stored_pages(final):
                _put(run, connection, page, newest=0)
            newest = run.one("SELECT ifnull(max(record), 0) FROM records")
            for page in written_pages(out / paths.RESULTS):
                _put(run, connection, page, newest=newest)
            run.count(connection, recounted(connection))
            connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", _stored_infos(final))
            # Replaced records name crops that the page still has: deleting those would damage it.
            connection.execute("DELETE FROM garbage")
            connection.create_function("address", 1, _address, deterministic=True)
            connection.execute("UPDATE sources SET uri = address(uri)")
        run.checkpoint()
    # SQLite would apply the old journal to the new database. The old database stays until the new one replaces it.
    _delete(final, *_JOURNAL)
    with output_errors(final):
        temporary.replace(final)
    sync_directory(final.parent)


def holds_pages(out: Path) -> bool:
    """Whether a run directory holds pages from which a database can be rebuilt.

    Raises:
        OutputError: It cannot be read.
    """
    return size_of(out / paths.RESULTS) > 0 or next(_stored_pages(out / paths.DATABASE), None) is not None


def written_pages(path: Path) -> Iterator[PageResult]:
    """The lines of ``ocr_results.jsonl`` that are records."""
    if not path.exists():
        return
    with reading_errors(path), path.open("rb") as stream:
        while line := stream.readline(MAX_LINE_BYTES):
            with suppress(msgspec.DecodeError):
                yield decode_page(line)


def _stored_summary(file: Path) -> RunSummary | None:
    with suppress(OutputError, ValueError, TypeError), _opened(file) as reader:
        return reader.summary
    return None


def _stored_pages(file: Path) -> Iterator[PageResult]:
    """The records in a database that can still be read."""
    with suppress(OutputError, ValueError, TypeError), _opened(file) as reader:
        number, last = 0, _last_record(file)
        while number < last:
            number += 1
            # One by one: a scan would end at the first damaged page of the database.
            with suppress(DamagedRunError, ValueError):
                following = "SELECT record, data FROM records WHERE record >= ? ORDER BY record LIMIT 1"
                for found, data in reader.query(following, (number,)):
                    number = found  # numbers have gaps
                    yield decode_page(decompress(data))


def _stored_infos(file: Path) -> list[tuple[str, bytes]]:
    """The metadata of documents, if it can still be read."""
    with suppress(OutputError, ValueError, TypeError, sqlite3.DatabaseError), _opened(file) as reader:
        return reader.query("SELECT name, data FROM about")
    return []


def _last_record(file: Path) -> int:
    """Number of the last record in a database; 0 if it cannot be read."""
    with suppress(OutputError, ValueError, TypeError), _opened(file) as reader:
        return int(reader.one("SELECT ifnull(max(record), 0) FROM records"))
    return 0


def _opened(file: Path) -> RunReader:
    """The old database, opened without a check of its header, which may be damaged."""
    return RunReader(file, read_only=True, accept=lambda *_: None)


def _put(run: RunDatabase, connection: sqlite3.Connection, page: PageResult, *, newest: int) -> None:
    """Store a record, unless a record up to ``newest`` has the same page or name; later ones are replaced."""
    try:
        key = PageKey.parse(page.page_key)
    except ValueError:
        return
    rows = connection.execute(
        "SELECT p.source, p.page, p.record FROM pages p JOIN sources s USING (source)"
        " WHERE p.name = ? OR (s.digest = ? AND s.copy = ? AND p.page = ?)",
        (page.page_id.casefold(), bytes.fromhex(key.digest), key.copy, key.page),
    ).fetchall()
    # The old database wins over the JSONL file, which may hold an earlier version of the page.
    if any(record <= newest for _, _, record in rows):
        return
    for source, number, record in rows:
        remove_record(connection, record)
        connection.execute("DELETE FROM pages WHERE source = ? AND page = ?", (source, number))
    run.end_page(connection, page, key, encode_line(page))


def _address(uri: str) -> str:
    """The address as the catalogue looks it up: records have paths as the user gave them, probably relative to here."""
    return uri if "://" in uri else os.path.abspath(uri)  # noqa: PTH100 - Path.resolve would follow links


def _delete(path: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        with output_errors(path):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
