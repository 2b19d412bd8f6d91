"""The database of a run for writing: its pages, records, documents and crops."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pagemill._version import __version__
from pagemill.document.identity import PageKey
from pagemill.document.page import DocumentInfo, PageResult, Status
from pagemill.document.structure import Overlay, encode_overlay, facts_of
from pagemill.store import paths
from pagemill.store.reading import RunReader
from pagemill.store.records import Compressor, decode_page, decompress
from pagemill.store.rows import PageRow, PageState, Place, plain, state_is
from pagemill.store.summary import Counters, RunSummary, failure_kind

NO_LONGER_IN_THE_INPUT = "no longer in the input"
"""Reason for skipping a page of an earlier invocation that the input does not hold any more."""
MAX_TEXT = 1_000
"""Characters of a message that are stored."""
MAX_URI = 8_192
_MOST_LOST = 10_000
"""More records than a power cut can lose: several times what a process writes between two syncs."""
_PAGE_COLUMNS = (
    *("source", "page", "attempts", "state", "alone", "page_id", "name", "document"),
    *("page_number", "page_idx", "category", "message", "record", "length", "crc"),
)
_SET_STATE = (
    f"INSERT INTO pages ({', '.join(_PAGE_COLUMNS)}) VALUES ({', '.join('?' * len(_PAGE_COLUMNS))})"
    " ON CONFLICT (source, page) DO UPDATE SET attempts = max(attempts, excluded.attempts), "
    + ", ".join(f"{name} = excluded.{name}" for name in _PAGE_COLUMNS[3:])
)
_OF_PAGE = "WHERE (source, page) = (SELECT source, ? FROM sources WHERE digest = ? AND copy = ?)"
"""WHERE clause for ``pages``; takes :func:`_key_values`."""


class RunDatabase(RunReader):
    """A run that is open for writing. Thread-safe; every change is one transaction."""

    def __init__(self, file: Path, *, trial: bool = False) -> None:
        """See :class:`~pagemill.store.database.Database`."""
        super().__init__(file, trial=trial)
        self._compressor = Compressor()
        self.new_documents: dict[str, str] = {}
        """Names of documents without a page yet, by their key: as few as there are pages in flight."""
        self.new_names: set[str] = set()
        """Case-folded names of pages without a row yet."""

    def begin(self, summary: RunSummary) -> None:
        """Start a run in a new database."""
        with self.transaction() as connection:
            connection.execute(
                "INSERT INTO run (identity, settings, version, started) VALUES (?, ?, ?, ?)",
                (_json(summary.identity), _json(summary.settings), summary.version, summary.started.isoformat()),
            )
            connection.execute("INSERT INTO counts VALUES (?)", (summary.counters(),))
            connection.execute("INSERT INTO sqlite_sequence VALUES ('records', 0)")
            connection.executemany("INSERT INTO derived VALUES (?, 0, 0)", [(paths.RESULTS,), (paths.TEXTS,)])

    def is_fruitless(self) -> bool:
        """Whether the run has no page: the inputs did not open, for example because of a misspelt name."""
        return self.one("SELECT 1 FROM pages WHERE page > 0 AND record IS NOT NULL LIMIT 1") is None

    def unopened(self) -> int:
        """Number of sources that could not be read; these are tried again by each invocation."""
        # The condition twice: only with the second one does SQLite use the partial index of unfinished pages.
        done = PageState.DONE
        return int(self.one(f"SELECT count(*) FROM pages WHERE page = 0 AND state > {done:d} AND state <> {done:d}"))

    def start_session(self, settings: Mapping[str, Any] | None) -> None:
        """Record that this process continues the run.

        Files that another version derived from the records are derived again: this version may write them differently.

        Args:
            settings: Settings of this process; None for one that parses nothing, which leaves a finished run finished.
        """
        with self.durable_transaction() as connection:
            # A power cut may have lost records that readers have seen. Readers ask for higher numbers than the last one
            # they have, so the numbers of lost records must not be used again.
            connection.execute(
                "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'records'"
                " AND EXISTS (SELECT 1 FROM run WHERE session + seq > 0 AND finished IS NULL)",
                (_MOST_LOST,),
            )
            if connection.execute("SELECT version FROM run").fetchone() != (__version__,):
                connection.execute("DELETE FROM derived")
                connection.execute("UPDATE documents SET written = 0 WHERE written = 1")
            elif settings is None and self.one("SELECT finished FROM run"):
                return
            connection.execute(
                "UPDATE run SET session = session + 1, finished = NULL, interrupted = 0,"
                " settings = ifnull(?, settings), version = ?",
                (None if settings is None else _json(settings), __version__),
            )

    def finish(self, summary: RunSummary) -> None:
        """Store, durably, that the run has finished, and how."""
        with self.durable_transaction() as connection:
            connection.execute(
                "UPDATE run SET finished = ?, interrupted = ?",
                (summary.finished.isoformat() if summary.finished else None, summary.interrupted),
            )
        self.checkpoint()

    def rows_of(self, records: Iterable[int]) -> list[PageRow]:
        """The pages with these records. Scans all pages."""
        wanted = set(records)
        return [row for row in self.rows() if row.record in wanted]

    def set_state(
        self,
        connection: sqlite3.Connection,
        key: PageKey,
        place: Place,
        state: PageState,
        *,
        alone: bool = False,
        attempts: int = 0,
        category: str | None = None,
        message: str | None = None,
        stored: tuple[int, int, int] | tuple[None, None, None] = (None, None, None),
    ) -> None:
        """Set the state of a page, inside a transaction; a page without a row gets one.

        ``stored`` is the number of its record, and the length and CRC-32 of its line.
        """
        source = self._source(connection, key, place.uri)
        document = self._document(connection, place)
        page_id = plain(place.page_id)
        self.new_names.discard(page_id.casefold())
        connection.execute(
            _SET_STATE,
            (
                *(source, key.page, attempts, state, alone, page_id, page_id.casefold(), document),
                *(place.page_number, place.page_idx, short(category), short(message), *stored),
            ),
        )

    def _source(self, connection: sqlite3.Connection, key: PageKey, uri: str) -> int:
        identity = bytes.fromhex(key.digest), key.copy
        row = connection.execute("SELECT source FROM sources WHERE digest = ? AND copy = ?", identity).fetchone()
        if row is None:
            row = connection.execute(
                "INSERT INTO sources (digest, copy, uri) VALUES (?, ?, ?) RETURNING source",
                (*identity, plain(uri[:MAX_URI])),
            ).fetchone()
        return int(row[0])

    def _document(self, connection: sqlite3.Connection, place: Place) -> int:
        doc_id = plain(place.doc_id)
        name = doc_id.casefold()
        row = connection.execute("SELECT document FROM documents WHERE name = ?", (name,)).fetchone()
        if row is None:
            key = next((key for key, known in self.new_documents.items() if known == doc_id), None)
            self.new_documents.pop(key or "", None)
            row = connection.execute(
                "INSERT INTO documents (key, doc_id, name, uri) VALUES (?, ?, ?, ?) RETURNING document",
                (key, doc_id, name, plain(place.uri[:MAX_URI])),
            ).fetchone()
        return int(row[0])

    def postpone(self, key: PageKey, *, attempts: int, category: str, message: str) -> None:
        """Record that an attempt failed and that the page will be retried."""
        self.change(
            f"UPDATE pages SET state = ?, attempts = ?, category = ?, message = ? {_OF_PAGE} AND state < ?",
            (PageState.WAITING, attempts, short(category), short(message), *_key_values(key), PageState.DONE),
        )

    def forget_started(self, key: PageKey) -> None:
        """Delete a page that has no record."""
        self.change(f"DELETE FROM pages {_OF_PAGE} AND record IS NULL", _key_values(key))

    def end_page(
        self, connection: sqlite3.Connection, page: PageResult, key: PageKey, line: bytes, preview: bytes | None = None
    ) -> int:
        """Store the record of a finished page, inside a transaction.

        Args:
            connection: Connection of the transaction.
            page: The record.
            key: Its key.
            line: The record as a line of JSON.
            preview: Small image of the page for the report.

        Returns:
            The number of the record.
        """
        failed = page.status is Status.FAILED
        data = self._compressor.compress(line)
        number = connection.execute("INSERT INTO records (data) VALUES (?)", (data,)).lastrowid
        assert number is not None
        self.set_state(
            connection,
            key,
            Place.of(page),
            PageState.FAILED if failed else PageState.DONE,
            attempts=page.attempts,
            category=failure_kind(page) if failed else None,
            message=page.errors[0].message if failed and page.errors else None,
            stored=(number, len(line), zlib.crc32(line)),
        )
        connection.execute(
            "UPDATE documents SET written = 0 WHERE name = ? AND written = 1", (plain(page.doc_id).casefold(),)
        )
        connection.execute("INSERT INTO facts VALUES (?, ?)", (number, facts_of(page)))
        if preview is not None:
            connection.execute("INSERT INTO previews VALUES (?, ?)", (number, preview))
        connection.executemany(
            "INSERT OR REPLACE INTO crops VALUES (?, ?, ?, ?)",
            [(crop.path, number, crop.size, crop.sha256) for crop in page.image_crops],
        )
        return number

    def set_info(self, doc_id: str, info: DocumentInfo) -> None:
        """Store the metadata of a document."""
        if self.info(doc_id) != info:
            values = plain(doc_id).casefold(), msgspec.json.encode(info)
            with self.transaction() as connection:
                connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", values)
                connection.execute("UPDATE documents SET written = 0 WHERE name = ? AND written = 1", values[:1])

    def _keep(self, document: int, digest: bytes, overlay: Overlay) -> None:
        self.change("INSERT OR REPLACE INTO overlays VALUES (?, ?, ?)", (document, digest, encode_overlay(overlay)))

    def count(self, connection: sqlite3.Connection, summary: Counters) -> None:
        """Store the counts, inside a transaction."""
        connection.execute("UPDATE counts SET counters = ?", (summary.counters(),))

    def drop(self, summary: RunSummary, rows: Iterable[PageRow], *, forget: bool, keep_documents: bool = False) -> None:
        """Remove the records of pages with everything that belongs to them; their files become garbage.

        Args:
            summary: Counts of the run; those of the pages are subtracted.
            rows: The pages.
            forget: Delete the pages, too; otherwise they wait to be parsed again.
            keep_documents: Keep the names of documents without pages, which are about to get one.

        Raises:
            OutputError: The database cannot be written; nothing was changed. NoSpaceError when the disk is full.
        """
        try:
            # Durable, as their files are deleted next: a power cut must not restore pages without their files.
            with self.durable_transaction() as connection:
                intact = True
                documents: set[str] = set()
                for row in rows:
                    documents.add(row.doc_id)
                    intact &= _drop(connection, summary, row, forget=forget)
                for doc_id in documents:
                    _release_document(connection, doc_id, keep=keep_documents)
                connection.execute("DELETE FROM derived")  # the JSONL files hold lines of removed pages
                # A record that cannot be read cannot be subtracted from the counts.
                if not intact:
                    summary.restore(recounted(connection))
                self.count(connection, summary)
        except BaseException:
            summary.restore(self.summary)
            raise

    def set_written(self, doc_ids: Iterable[str], *, written: bool) -> None:
        """Store whether the files of documents are up to date and on the disk."""
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE documents SET written = ? WHERE name = ?",
                [(written, plain(doc_id).casefold()) for doc_id in doc_ids],
            )

    def derived(self, name: str) -> tuple[int, int]:
        """The last record in a derived file, and the file size up to it; -1 if the file must be rewritten."""
        rows = self.query("SELECT record, bytes FROM derived WHERE name = ?", (name,))
        return rows[0] if rows else (0, -1)

    def set_derived(self, name: str, record: int, size: int) -> None:
        """Store the last record and the size of a derived file, whose content is on the disk."""
        self.change("INSERT OR REPLACE INTO derived VALUES (?, ?, ?)", (name, record, size))

    def unsynced_crops(self) -> list[tuple[int, str, str]]:
        """Record number, path and SHA-256 of crops that a record names and that may not be on the disk."""
        return self.query("SELECT record, path, sha256 FROM crops WHERE record > (SELECT synced FROM run)")

    def synced(self, ended: int, *, crops: bool) -> None:
        """Make all earlier commits durable, and store a sample of the number of finished pages.

        Args:
            ended: Finished pages.
            crops: Whether all crops that records name are on the disk.
        """
        with self.durable_transaction() as connection:
            if crops:
                connection.execute("UPDATE run SET synced = (SELECT ifnull(max(record), 0) FROM records)")
            connection.execute(
                "INSERT OR REPLACE INTO samples SELECT ?, session, ? FROM run WHERE finished IS NULL",
                (time.time(), ended),
            )

    def release_in_flight(self) -> None:
        """Return the pages in flight to waiting, without counting an attempt: the process ended in order."""
        self.change(f"UPDATE pages SET state = {PageState.WAITING:d} WHERE {_RUNNING}")

    def recover_in_flight(self, death: str | None) -> None:
        """Return the pages that were in flight when a process died to waiting.

        Args:
            death: How it died; None if unknown, which does not count as an attempt: it may have been killed from
                outside.
        """
        if death is None:
            self.change(f"UPDATE pages SET state = {PageState.WAITING:d}, deaths = deaths + 1 WHERE {_RUNNING}")
        else:
            self.change(
                f"UPDATE pages SET state = {PageState.WAITING:d}, attempts = attempts + 1,"
                f" death = iif(alone, ?, death), category = 'crash', message = ? WHERE {_RUNNING}",
                (short(death), short(f"the process died of {death}")),
            )


_RUNNING = state_is(PageState.RUNNING)
_TO_WAITING = (
    f"state = {PageState.WAITING:d}, alone = 0, attempts = 0, deaths = 0, death = NULL, category = NULL,"
    " message = NULL, record = NULL, length = NULL, crc = NULL"
)
"""SET clause for ``pages``: as if the page had just been found in the input."""


def recounted(connection: sqlite3.Connection) -> Counters:
    """Recount all records, after one of them has become unreadable."""
    counters = Counters()
    for (data,) in connection.execute("SELECT data FROM pages JOIN records USING (record) ORDER BY record"):
        page = _decoded(data)
        if page is not None:
            counters.add(page)
    for reason, pages in connection.execute(
        f"SELECT category, count(*) FROM pages WHERE {state_is(PageState.SKIPPED)} GROUP BY category"
    ):
        counters.add_skipped(reason, pages)
    return counters


def _drop(connection: sqlite3.Connection, summary: RunSummary, row: PageRow, *, forget: bool) -> bool:
    """Remove one page; return False if its record cannot be read, so that all must be counted again."""
    intact = True
    if row.state is PageState.SKIPPED:
        summary.add_skipped(row.category or "", -1)
    elif row.record is not None:
        data = connection.execute("SELECT data FROM records WHERE record = ?", (row.record,)).fetchone()
        page = _decoded(data[0]) if data else None
        if page is None:
            intact = False
        else:
            summary.add(page, -1)
        remove_record(connection, row.record)
    if forget:
        connection.execute(f"DELETE FROM pages {_OF_PAGE}", _key_values(row.key))
    else:
        connection.execute(f"UPDATE pages SET {_TO_WAITING} {_OF_PAGE}", _key_values(row.key))
    return intact


def remove_record(connection: sqlite3.Connection, record: int) -> None:
    """Remove a record, its preview and its crops, whose files become garbage, inside a transaction."""
    connection.execute("INSERT OR IGNORE INTO garbage SELECT path FROM crops WHERE record = ?", (record,))
    for table in ("crops", "previews", "facts", "records"):
        connection.execute(f"DELETE FROM {table} WHERE record = ?", (record,))


def _release_document(connection: sqlite3.Connection, doc_id: str, *, keep: bool) -> None:
    """Mark the files of a document that lost pages as out of date, and as garbage if it has no record left."""
    (document,) = connection.execute(
        "UPDATE documents SET written = 0 WHERE name = ? RETURNING document", (doc_id.casefold(),)
    ).fetchone()
    pages, records = connection.execute(
        "SELECT count(*), count(record) FROM"
        " (SELECT record FROM pages WHERE document = ? ORDER BY record DESC LIMIT 1)",
        (document,),
    ).fetchone()
    if not records:
        names = paths.document_names(doc_id)
        connection.executemany("INSERT OR IGNORE INTO garbage VALUES (?)", [(name,) for name in names])
    # Its id is free for another document then; while pages are about to come, it must stay.
    if not pages and not keep:
        connection.execute("DELETE FROM about WHERE name = ?", (doc_id.casefold(),))
        for table in ("overlays", "documents"):
            connection.execute(f"DELETE FROM {table} WHERE document = ?", (document,))


def _decoded(data: bytes) -> PageResult | None:
    try:
        return decode_page(decompress(data))
    except ValueError:  # the base class of msgspec's errors
        return None


def _key_values(key: PageKey) -> tuple[int, bytes, int]:
    return key.page, bytes.fromhex(key.digest), key.copy


def short(text: str | None) -> str | None:
    """A message, truncated to what is stored."""
    return None if text is None else plain(text[:MAX_TEXT])


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
