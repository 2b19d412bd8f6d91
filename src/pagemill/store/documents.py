"""Documents whose files somebody has deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagemill.store import paths
from pagemill.store.files import output_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pagemill.store.ledger import Ledger
    from pagemill.store.summary import RunSummary

_CHUNK_ROWS = 1_000


def doubt_missing_documents(out: Path, ledger: Ledger, summary: RunSummary) -> None:
    """Note that documents are to be written again whose files are not there; looks for each file once.

    Args:
        out: The run directory.
        ledger: Its ledger.
        summary: Its counts, kept in step.

    Raises:
        OutputError: The ledger or the folder cannot be used; NoSpaceError when the disk is full.
    """
    for missing in missing_documents(out, ledger):
        with ledger.database.transaction() as connection:
            connection.executemany("UPDATE documents SET written = 0 WHERE document = ?", missing)
            summary.documents -= len(missing)
            try:
                ledger.count(connection, summary)
            except BaseException:
                summary.documents += len(missing)
                raise


def missing_documents(out: Path, ledger: Ledger) -> Iterator[list[tuple[int]]]:
    """Numbers of documents that are said to be up to date and lack a file, some at a time."""
    last = 0
    while rows := ledger.database.query(
        "SELECT document, doc_id FROM documents WHERE document > ? AND written ORDER BY document LIMIT ?",
        (last, _CHUNK_ROWS),
    ):
        last = rows[-1][0]
        with output_errors(out / paths.DOCUMENTS):
            missing = [
                (document,)
                for document, doc_id in rows
                if not all(file.is_file() for file in paths.document_files(out, doc_id))
            ]
        if missing:
            yield missing
