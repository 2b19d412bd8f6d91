"""Taking pages out of a run: their lines belong to nobody from then on, and are cut out by the next compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from pagemill.store import paths
from pagemill.store.files import output_errors
from pagemill.store.lines import open_lines, read_record
from pagemill.store.rows import PageState, Span
from pagemill.store.summary import Counters

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

    from pagemill.store.ledger import Ledger
    from pagemill.store.rows import PageRow
    from pagemill.store.summary import RunSummary

RESULTS_FILE = 0
TEXTS_FILE = 1
"""Values of ``dropped.file``."""
TO_WAITING = (
    f"state = {PageState.WAITING.value}, alone = 0, attempts = 0, deaths = 0, death = NULL, category = NULL,"
    " message = NULL, offset = NULL, length = NULL, crc = NULL, text_offset = NULL, text_length = NULL,"
    " text_crc = NULL, preview_offset = NULL, preview_length = NULL, preview_crc = NULL"
)
"""SET clause for ``pages``: as if the page had been met just now."""
OF_PAGE = "WHERE (source, page) = (SELECT source, ? FROM sources WHERE digest = ? AND copy = ?)"
"""WHERE clause for ``pages``; takes page, digest and copy of a key."""


def drop_pages(
    out: Path,
    ledger: Ledger,
    summary: RunSummary,
    rows: Iterable[PageRow],
    *,
    forget: bool,
    keep_documents: bool = False,
) -> None:
    """Take pages out of the run, with their lines, crops and counts.

    Args:
        out: The run directory.
        ledger: Its ledger.
        summary: Counts of the run; takes back those of the pages.
        rows: The pages. One without a line (``record`` or ``text`` is None) leaves none behind.
        forget: Forget the pages, as if they had never been met; else they wait to be tried anew.
        keep_documents: Keep the names of documents that have no page any more, as they are about to get one.

    Raises:
        OutputError: The ledger cannot be written; nothing has changed then. NoSpaceError when the disk is full.
    """
    before = summary.copy()
    try:
        # Durable: their files may go next, and no power cut must bring pages back without them.
        with ledger.database.durable_transaction() as connection, open_lines(out / paths.RESULTS) as stream:
            whole = True
            documents: set[str] = set()
            for row in rows:
                documents.add(row.doc_id)
                whole &= _drop(connection, stream, summary, row, forget=forget)
            for doc_id in documents:
                _release_document(connection, out, summary, doc_id, keep=keep_documents)
            if not whole:
                summary.restore(counted(connection, stream))
            ledger.count(connection, summary)
            ledger.has_leftovers = True
    except BaseException:
        summary.restore(before)
        raise


def counted(connection: sqlite3.Connection, results: BinaryIO) -> Counters:
    """The counts, taken from the records themselves: for when one that was counted cannot be read any more."""
    counters = Counters()
    for place in connection.execute("SELECT offset, length, crc FROM pages WHERE offset IS NOT NULL ORDER BY offset"):
        page = read_record(results, Span(*place))
        if page is not None:
            counters.add(page)
    for reason, pages in connection.execute(
        "SELECT category, count(*) FROM pages WHERE state = 5 AND state <> 3 GROUP BY category"
    ):
        counters.add_skipped(reason, pages)
    (counters.documents,) = connection.execute("SELECT count(*) FROM documents WHERE written").fetchone()
    return counters


def _drop(
    connection: sqlite3.Connection, results: BinaryIO, summary: RunSummary, row: PageRow, *, forget: bool
) -> bool:
    """Drop one page; False when it was counted and its record cannot be read, so that all must be counted anew."""
    whole = True
    for file, span in ((RESULTS_FILE, row.record), (TEXTS_FILE, row.text)):
        if span is not None:
            connection.execute("INSERT OR REPLACE INTO dropped VALUES (?, ?, ?)", (file, span.offset, span.length))
    if row.state is PageState.SKIPPED:
        summary.add_skipped(row.category or "", -1)
    elif row.state.final:
        page = read_record(results, row.record) if row.record else None
        if page is None:
            whole = False
        else:
            summary.remove(page)
            connection.executemany(
                "INSERT OR IGNORE INTO leftovers VALUES (?)", [(crop.path,) for crop in page.image_crops]
            )
    key = (row.key.page, bytes.fromhex(row.key.digest), row.key.copy)
    if forget:
        connection.execute(f"DELETE FROM pages {OF_PAGE}", key)
    else:
        connection.execute(f"UPDATE pages SET {TO_WAITING} {OF_PAGE}", key)
    return whole


def _release_document(
    connection: sqlite3.Connection, out: Path, summary: RunSummary, doc_id: str, *, keep: bool
) -> None:
    """A document has lost pages: what was written of it is old, and gone when none has a record any more."""
    document, written = connection.execute(
        "SELECT document, written FROM documents WHERE name = ?", (doc_id.casefold(),)
    ).fetchone()
    if written:
        connection.execute("UPDATE documents SET written = 0 WHERE document = ?", (document,))
        summary.documents -= 1
    pages, records = connection.execute(
        "SELECT count(*), count(offset) FROM"
        " (SELECT offset FROM pages WHERE document = ? ORDER BY offset DESC LIMIT 1)",
        (document,),
    ).fetchone()
    if not records:
        names = [path.relative_to(out).as_posix() for path in paths.document_files(out, doc_id)]
        connection.executemany("INSERT OR IGNORE INTO leftovers VALUES (?)", [(name,) for name in names])
    if not pages and not keep:
        connection.execute("DELETE FROM documents WHERE document = ?", (document,))


def delete_leftovers(out: Path, ledger: Ledger) -> None:
    """Delete the crops and documents of pages that were taken out.

    Raises:
        OutputError: One cannot be deleted.
    """
    names = [name for (name,) in ledger.database.query("SELECT path FROM leftovers")]
    for name in names:
        path = paths.own_file(out, name)
        with output_errors(path):
            path.unlink(missing_ok=True)
    if names:
        with ledger.database.transaction() as connection:
            connection.execute("DELETE FROM leftovers")
    ledger.has_leftovers = False
