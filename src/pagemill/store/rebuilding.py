"""Making a ledger anew from the records, where it was lost or damaged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from pagemill.document.identity import PageKey
from pagemill.errors import DamagedRunError
from pagemill.store import paths
from pagemill.store.dropping import RESULTS_FILE, TEXTS_FILE
from pagemill.store.files import output_errors, sync_directory
from pagemill.store.ledger import Ledger
from pagemill.store.lines import open_lines, read_lines, read_record
from pagemill.store.records import decode_page, decode_text
from pagemill.store.rows import Place, Span
from pagemill.store.summary import Counters, RunSummary

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from pagemill.store.lines import Line

_MAX_RUN_JSON_BYTES = 64 * 2**20


def rebuild_ledger(out: Path) -> None:
    """Write a new ledger from ``run.json`` and the two JSONL files.

    What only the old one knew is lost: attempts of pages that had not ended, which pages were skipped, previews,
    digests of files. Of several records of a page, or with one page id, the last one counts.

    Args:
        out: The run directory, which nobody else has open.

    Raises:
        DamagedRunError: ``run.json`` does not tell what kind of run it was.
        OutputError: The directory cannot be read or written; NoSpaceError when the disk is full.
    """
    summary = read_run_json(out)
    if summary is None:
        raise DamagedRunError(
            f"{out} has lost both its ledger and its {paths.RUN_JSON}, so that it cannot be resumed",
            remedy=f"Keep {paths.RESULTS}, which holds what was parsed, and start over with --fresh or another -o.",
        )
    final = out / paths.LEDGER
    temporary = final.with_name(final.name + paths.TEMPORARY_SUFFIX)
    _delete_database(temporary)
    summary.restore(Counters())
    summary.finished = None  # so that everything is looked through
    ledger = Ledger(temporary)
    try:
        ledger.begin(summary)
        with (
            open_lines(out / paths.RESULTS) as results,
            open_lines(out / paths.TEXTS) as texts,
            ledger.database.transaction() as connection,
        ):
            _Rebuilding(ledger, connection, summary, results).run(texts)
    finally:
        ledger.close()
    _delete_database(final)
    with output_errors(final):
        temporary.replace(final)
    sync_directory(final.parent)


def read_run_json(out: Path) -> RunSummary | None:
    """What ``run.json`` says; None when it is missing, or not from a run that can be resumed."""
    try:
        with (out / paths.RUN_JSON).open("rb") as stream:
            summary = msgspec.json.decode(stream.read(_MAX_RUN_JSON_BYTES), type=RunSummary)
    except (OSError, msgspec.DecodeError):
        return None
    return summary if summary.identity else None


class _Rebuilding:
    def __init__(self, ledger: Ledger, connection: sqlite3.Connection, summary: RunSummary, results: BinaryIO) -> None:
        self._ledger = ledger
        self._connection = connection
        self._summary = summary
        self._results = results

    def run(self, texts: BinaryIO) -> None:
        connection = self._connection
        connection.execute("CREATE TEMP TABLE texts (page_id TEXT PRIMARY KEY, offset, length, crc) WITHOUT ROWID")
        texts_end = 0
        for line in read_lines(texts):
            texts_end = line.offset + line.length
            self._take_text(line)
        results_end = 0
        for line in read_lines(self._results):
            results_end = line.offset + line.length
            self._take_record(line)
        connection.execute("INSERT INTO dropped SELECT ?, offset, length FROM temp.texts", (TEXTS_FILE,))
        connection.create_function("address", 1, _address, deterministic=True)
        connection.execute("UPDATE sources SET uri = address(uri)")
        self._ledger.count(connection, self._summary, (results_end, texts_end, 0))

    def _take_text(self, line: Line) -> None:
        try:
            page_id = decode_text(line.whole()).page_id
        except ValueError:  # msgspec's are some
            self._drop(TEXTS_FILE, line.offset, line.length)
            return
        for offset, length in self._connection.execute(
            "SELECT offset, length FROM temp.texts WHERE page_id = ?", (page_id,)
        ).fetchall():
            self._drop(TEXTS_FILE, offset, length)
        self._connection.execute("INSERT OR REPLACE INTO temp.texts VALUES (?, ?, ?, ?)", (page_id, *line.span()))

    def _take_record(self, line: Line) -> None:
        connection = self._connection
        try:
            page = decode_page(line.whole())
            key = PageKey.parse(page.page_key)
        except ValueError:  # msgspec's are some
            self._drop(RESULTS_FILE, line.offset, line.length)
            return
        self._forget_earlier(key, page.page_id)
        place = Place.of(page)
        self._ledger.end_page(connection, key, place, page)
        text = connection.execute(
            "DELETE FROM temp.texts WHERE page_id = ? RETURNING offset, length, crc", (page.page_id,)
        ).fetchone()
        self._summary.add(page)
        self._ledger.note_lines(connection, key, record=line.span(), text=Span(*text) if text else None, preview=None)

    def _forget_earlier(self, key: PageKey, page_id: str) -> None:
        """Of a page, and of a name, the last record counts."""
        rows = self._connection.execute(
            "SELECT p.source, p.page, p.offset, p.length, p.crc, p.text_offset, p.text_length FROM pages p"
            " JOIN sources s USING (source) WHERE p.name = ? OR (s.digest = ? AND s.copy = ? AND p.page = ?)",
            (page_id.casefold(), bytes.fromhex(key.digest), key.copy, key.page),
        ).fetchall()
        for source, page, offset, length, crc, text_offset, text_length in rows:
            here = self._results.tell()
            record = read_record(self._results, Span(offset, length, crc))
            self._results.seek(here)
            if record is not None:
                self._summary.remove(record)
            self._drop(RESULTS_FILE, offset, length)
            if text_offset is not None:
                self._drop(TEXTS_FILE, text_offset, text_length)
            self._connection.execute("DELETE FROM pages WHERE source = ? AND page = ?", (source, page))

    def _drop(self, file: int, offset: int, length: int) -> None:
        self._connection.execute("INSERT OR REPLACE INTO dropped VALUES (?, ?, ?)", (file, offset, length))


def _address(uri: str) -> str:
    """What the catalogue will be asked for: records have files as the user named them, most likely from here."""
    return uri if "://" in uri else os.path.abspath(uri)  # noqa: PTH100 - Path.resolve would follow links


def _delete_database(path: Path) -> None:
    """Delete a database and SQLite's own files beside it."""
    for suffix in ("", "-wal", "-shm"):  # a database without its journal would be one of an earlier time
        with output_errors(path):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
