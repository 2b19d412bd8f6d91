"""The ledger: which pages a run has met, how far each has come, and where its lines are."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.document.page import Status
from pagemill.store.database import Database
from pagemill.store.rows import PAGE_ROWS, PageRow, PageState, Place, Span, page_row
from pagemill.store.summary import Counters, RunSummary, failure_kind

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pagemill.document.identity import PageKey
    from pagemill.document.page import PageResult

NO_LONGER_IN_THE_INPUT = "no longer in the input"
"""Reason for skipping a page that was met and is not there any more."""
MAX_TEXT = 1_000
"""Characters of a message that the ledger keeps."""
MAX_URI = 8_192
_SAMPLES = 200
_CHUNK_ROWS = 1_000


class Ledger:
    """The tables of a run, in the words of the run. Thread-safe; every change is one transaction.

    Args:
        path: The database file, made when it is not there.

    Raises:
        DamagedRunError: It is there, and no whole ledger.
        OutputError: It cannot be used; NoSpaceError when the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        self.has_leftovers = bool(self.database.query("SELECT 1 FROM leftovers LIMIT 1"))
        """There may be files of pages that were taken out."""
        self.new_documents: dict[str, str] = {}
        """Names of documents that have no page yet, by their key."""
        self.new_document_keys: dict[str, str] = {}
        """The other way round, the name in lower case."""
        self.new_names: set[str] = set()
        """Names, in lower case, that are given to pages which are not met yet."""

    def begin(self, summary: RunSummary) -> None:
        """Start a run in a new ledger."""
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO run (identity, settings, started) VALUES (?, ?, ?)",
                (_json(summary.identity), _json(summary.settings), summary.started.isoformat()),
            )
            connection.execute("INSERT INTO written (counters) VALUES (?)", (summary.counters().decode(),))

    def summary(self) -> RunSummary | None:
        """The counts as of now; None in a new ledger."""
        rows = self.database.query(
            "SELECT identity, settings, started, finished, interrupted, counters FROM run, written"
        )
        return summary_of(rows[0]) if rows else None

    def sizes(self) -> tuple[int, int, int]:
        """Bytes of records, texts and previews that pages have; what is beyond belongs to no page."""
        results, texts, previews = self.database.query("SELECT results, texts, previews FROM written")[0]
        return results, texts, previews

    def is_fruitless(self) -> bool:
        """Whether no page came of the run: the inputs did not open, a misspelt name, say."""
        return not self.database.query("SELECT 1 FROM pages WHERE page > 0 AND offset IS NOT NULL LIMIT 1")

    def unopened(self) -> int:
        """Sources that did not open, which are tried again each time."""
        return int(self.database.query("SELECT count(*) FROM pages WHERE page = 0 AND state >= 3 AND state <> 3")[0][0])

    def session(self, settings: Mapping[str, Any]) -> None:
        """The run goes on in this process, with these settings."""
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE run SET session = session + 1, finished = NULL, interrupted = 0, settings = ?",
                (_json(settings),),
            )

    def finish(self, summary: RunSummary) -> None:
        """Note that the run has ended, and how; it is on the disk then."""
        with self.database.durable_transaction() as connection:
            connection.execute(
                "UPDATE run SET finished = ?, interrupted = ?",
                (summary.finished.isoformat() if summary.finished else None, summary.interrupted),
            )
        self.database.checkpoint()

    def set_total(self, total: int | None) -> None:
        """Note how many pages the input holds."""
        with self.database.lazily() as connection:
            connection.execute("UPDATE run SET total = ?", (total,))

    def state(self, key: PageKey) -> PageRow | None:
        """What is known of a page."""
        rows = self.database.query(
            PAGE_ROWS + "WHERE s.digest = ? AND s.copy = ? AND p.page = ?",
            (bytes.fromhex(key.digest), key.copy, key.page),
        )
        return page_row(rows[0]) if rows else None

    def rows(self, where: str, parameters: Iterable[Any] = ()) -> list[PageRow]:
        """The pages that a WHERE clause on ``p`` selects, all at once: for small answers."""
        return [page_row(row) for row in self.database.query(f"{PAGE_ROWS} WHERE {where}", tuple(parameters))]

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
    ) -> None:
        """Set how far a page has come, inside a transaction; a page that was not met is met."""
        source = self._source(connection, key, place.uri)
        document, _ = self._document(connection, place)
        page_id = plain(place.page_id)
        self.new_names.discard(page_id.casefold())
        connection.execute(
            "INSERT INTO pages (source, page, state, alone, attempts, page_id, name, document, page_number, page_idx,"
            " category, message) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, page) DO UPDATE SET"
            " state = excluded.state, alone = excluded.alone, attempts = max(attempts, excluded.attempts),"
            " page_id = excluded.page_id, name = excluded.name, document = excluded.document,"
            " page_number = excluded.page_number, page_idx = excluded.page_idx, category = excluded.category,"
            " message = excluded.message",
            (
                source,
                key.page,
                state,
                alone,
                attempts,
                page_id,
                page_id.casefold(),
                document,
                place.page_number,
                place.page_idx,
                _short(category),
                _short(message),
            ),
        )

    def _source(self, connection: sqlite3.Connection, key: PageKey, uri: str) -> int:
        digest = bytes.fromhex(key.digest)
        row = connection.execute(
            "SELECT source FROM sources WHERE digest = ? AND copy = ?", (digest, key.copy)
        ).fetchone()
        if row is None:
            row = connection.execute(
                "INSERT INTO sources (digest, copy, uri) VALUES (?, ?, ?) RETURNING source",
                (digest, key.copy, plain(uri[:MAX_URI])),
            ).fetchone()
        return int(row[0])

    def _document(self, connection: sqlite3.Connection, place: Place) -> tuple[int, bool]:
        """Number of a document, and whether its files are up to date."""
        doc_id = plain(place.doc_id)
        name = doc_id.casefold()
        row = connection.execute("SELECT document, written FROM documents WHERE name = ?", (name,)).fetchone()
        if row is None:
            key = self.new_document_keys.pop(name, None)
            if key is not None:
                del self.new_documents[key]
            row = connection.execute(
                "INSERT INTO documents (key, doc_id, name, uri) VALUES (?, ?, ?, ?) RETURNING document, 0",
                (key, doc_id, name, plain(place.uri[:MAX_URI])),
            ).fetchone()
        return int(row[0]), bool(row[1])

    def postpone(self, key: PageKey, *, attempts: int, category: str, message: str) -> None:
        """An attempt ended badly, and the page is to be tried again."""
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE pages SET state = ?, attempts = ?, category = ?, message = ? WHERE (source, page) = "
                "(SELECT source, ? FROM sources WHERE digest = ? AND copy = ?) AND state < ?",
                (
                    PageState.WAITING,
                    attempts,
                    _short(category),
                    _short(message),
                    key.page,
                    bytes.fromhex(key.digest),
                    key.copy,
                    PageState.DONE,
                ),
            )

    def end_page(self, connection: sqlite3.Connection, key: PageKey, place: Place, page: PageResult) -> None:
        """Note how a page has ended, inside a transaction."""
        failed = page.status is Status.FAILED
        self.set_state(
            connection,
            key,
            place,
            PageState.FAILED if failed else PageState.DONE,
            attempts=page.attempts,
            category=failure_kind(page) if failed else None,
            message=page.errors[0].message if failed and page.errors else None,
        )

    def note_lines(
        self, connection: sqlite3.Connection, key: PageKey, *, record: Span, text: Span | None, preview: Span | None
    ) -> None:
        """Note where the lines of a page are that has ended, inside a transaction."""
        nowhere = (None, None, None)
        connection.execute(
            "UPDATE pages SET offset = ?, length = ?, crc = ?, text_offset = ?, text_length = ?, text_crc = ?,"
            " preview_offset = ?, preview_length = ?, preview_crc = ? WHERE (source, page) = "
            "(SELECT source, ? FROM sources WHERE digest = ? AND copy = ?)",
            (*record, *(text or nowhere), *(preview or nowhere), key.page, bytes.fromhex(key.digest), key.copy),
        )

    def count(
        self, connection: sqlite3.Connection, summary: RunSummary, sizes: tuple[int, int, int] | None = None
    ) -> None:
        """Note the counts, and the sizes of the files where they change, inside a transaction."""
        if sizes is None:
            connection.execute("UPDATE written SET counters = ?", (summary.counters().decode(),))
        else:
            connection.execute(
                "UPDATE written SET counters = ?, results = ?, texts = ?, previews = ?",
                (summary.counters().decode(), *sizes),
            )

    def document_written(self, doc_id: str, summary: RunSummary, files: Iterable[str]) -> None:
        """Note that a document's files are up to date: ``files``, relative to the run directory."""
        with self.database.transaction() as connection:
            cursor = connection.execute(
                "UPDATE documents SET written = 2 WHERE name = ? AND written = 0", (plain(doc_id).casefold(),)
            )
            self.keep_files(connection, files)
            summary.documents += cursor.rowcount
            try:
                self.count(connection, summary)
            except BaseException:
                summary.documents -= cursor.rowcount
                raise

    def document_changed(self, connection: sqlite3.Connection, place: Place) -> bool:
        """Note that a document's files are out of date; whether they had been up to date."""
        document, written = self._document(connection, place)
        if written:
            connection.execute("UPDATE documents SET written = 0 WHERE document = ?", (document,))
        return written

    def doubt_documents(self, summary: RunSummary) -> None:
        """Documents that may not have come to the disk are to be written again."""
        with self.database.transaction() as connection:
            cursor = connection.execute("UPDATE documents SET written = 0 WHERE written = 2 AND written <> 1")
            summary.documents -= cursor.rowcount
            self.count(connection, summary)

    def unwritten_documents(self) -> Iterator[str]:
        """Ids of documents whose files are not up to date, each once; they may be written meanwhile."""
        last = 0
        while rows := self.database.query(
            "SELECT document, doc_id FROM documents WHERE written = 0 AND written <> 1 AND document > ?"
            " ORDER BY document LIMIT ?",
            (last, _CHUNK_ROWS),
        ):
            last = rows[-1][0]
            yield from (doc_id for _, doc_id in rows)

    def keep_files(self, connection: sqlite3.Connection, files: Iterable[str]) -> None:
        """Files that were written are no leftovers any more."""
        if self.has_leftovers:
            connection.executemany("DELETE FROM leftovers WHERE path = ?", [(name,) for name in files])

    def synced(self, results: int, ended: int) -> None:
        """Note that the first ``results`` bytes of the records, and all that belongs to them, are on the disk."""
        with self.database.durable_transaction() as connection:
            connection.execute("UPDATE run SET synced_results = ?", (results,))
            connection.execute("UPDATE documents SET written = 1 WHERE written = 2 AND written <> 1")
            connection.execute("INSERT OR REPLACE INTO samples SELECT ?, session, ? FROM run", (time.time(), ended))
            connection.execute(
                "DELETE FROM samples WHERE time < (SELECT time FROM samples ORDER BY time DESC LIMIT 1 OFFSET ?)"
                " AND time <> (SELECT min(time) FROM samples WHERE session = (SELECT session FROM run))",
                (_SAMPLES,),
            )
        self.database.checkpoint()

    def forget_previews(self) -> None:
        """No page has a preview any more."""
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE pages SET preview_offset = NULL, preview_length = NULL, preview_crc = NULL"
                " WHERE preview_offset IS NOT NULL"
            )
            connection.execute("UPDATE written SET previews = 0")

    def rest(self) -> None:
        """Pages that are under way go back to waiting: nobody died of them."""
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE pages SET state = ? WHERE state = ? AND state <> 3", (PageState.WAITING, PageState.RUNNING)
            )

    def wake(self, death: str | None) -> None:
        """Pages that were under way when a process died go back to waiting.

        Args:
            death: How it died; None when nobody saw it, and then it is not held against the pages.
        """
        with self.database.transaction() as connection:
            if death is None:
                connection.execute(
                    "UPDATE pages SET state = ?, deaths = deaths + 1 WHERE state = ? AND state <> 3",
                    (PageState.WAITING, PageState.RUNNING),
                )
            else:
                connection.execute(
                    "UPDATE pages SET state = ?, attempts = attempts + 1, death = iif(alone, ?, death),"
                    " category = 'crash', message = ? WHERE state = ? AND state <> 3",
                    (PageState.WAITING, _short(death), _short(f"the process died of {death}"), PageState.RUNNING),
                )

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self.database.close()


def summary_of(row: tuple[Any, ...]) -> RunSummary:
    """The summary from the columns identity, settings, started, finished, interrupted, counters."""
    identity, settings, started, finished, interrupted, counters = row
    return RunSummary(
        **msgspec.structs.asdict(msgspec.json.decode(counters, type=Counters)),
        identity=msgspec.json.decode(identity),
        settings=msgspec.json.decode(settings),
        started=datetime.fromisoformat(started),
        finished=datetime.fromisoformat(finished) if finished else None,
        interrupted=bool(interrupted),
    )


def plain(text: str) -> str:
    """Text that UTF-8 can hold, of any text: lone surrogates (file names of other encodings) become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _short(text: str | None) -> str | None:
    return None if text is None else plain(text[:MAX_TEXT])


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
