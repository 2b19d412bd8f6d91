"""Build and update an index: only new and changed pages are read.

Pages are added in large transactions; the rows of vectors are bound in the last one. An interrupted update is completed
by the next call, and until then the index reports that it is incomplete. From the first removed or changed page until
then it has no vectors: their rows refer to pages by numbers, which SQLite reuses.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pagemill.document.page import PageResult
from pagemill.document.shown import count as counted
from pagemill.embedding.contents import chunk_row, document_digest
from pagemill.embedding.vectors import FOLDER as VECTORS
from pagemill.embedding.vectors import Part, RowKey, VectorFile, VectorPaths, VectorRow
from pagemill.errors import DifferentRunError, MissingInputError
from pagemill.retrieval import database
from pagemill.retrieval.page_rows import IndexedPages, PageVersion, done_pages, languages_of_run
from pagemill.store.database import database_errors
from pagemill.store.files import output_errors, reading_errors
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader

_PAGES_A_TRANSACTION = 200
_EXAMPLES = 3


class PartCount(NamedTuple):
    """Vectors of one part."""

    vectors: int
    missing: int
    """Pages or regions, of chunks documents, without a vector: parsed after the last ``pagemill embed``."""
    dimension: int
    engine: str


@dataclass(slots=True)
class IndexReport:
    """Outcome of an index update."""

    pages: int = 0
    """Pages in the index."""
    regions: int = 0
    added: int = 0
    """New and changed pages."""
    removed: int = 0
    """Pages no longer in the run."""
    failed: int = 0
    """Failed pages of the run, which are not indexed."""
    is_finished: bool = True
    """The run holds all pages of its input."""
    damages: list[str] = field(default_factory=list)
    """Unreadable records; their pages are not indexed."""
    parts: dict[Part, PartCount] = field(default_factory=dict)


def build_index(out: Path, *, progress: Callable[[int, int], None] | None = None) -> IndexReport:
    """Build or update the index of a run directory, also while the run is in progress.

    Args:
        out: The run directory.
        progress: Called with pages done and pages in total, after each.

    Raises:
        DifferentRunError: Vectors belong to earlier contents of pages.
        DamagedRunError: The ledger or a file of vectors is damaged. (A damaged index is rebuilt.)
        LockedError: Another process updates the index.
        OutputError: It cannot be written; NoSpaceError when the disk is full.
    """
    with ExitStack() as stack:
        reader = stack.enter_context(RunReader.open(out))
        folder = out / database.FOLDER
        with output_errors(folder):
            folder.mkdir(exist_ok=True)
        stack.enter_context(RunLock(out / database.LOCK))
        path = out / database.FILE
        stack.enter_context(database_errors(path, repair=database.repair(path)))
        return database.rebuilt_if_damaged(path, lambda: _build(reader, path, progress))


def _build(reader: RunReader, path: Path, progress: Callable[[int, int], None] | None) -> IndexReport:
    with database.open_for_writing(path) as connection:
        return _IndexBuilder(reader, connection, progress).build()


class PageChanges:
    """Brings the pages of a run in an index up to date: only new and changed ones are read.

    Args:
        connection: The index, opened for writing.
        reader: The run.
        run: Its name in the index.
        owner: Owner, who may find its pages.
        collection: The collection that it is part of.
    """

    def __init__(
        self, connection: sqlite3.Connection, reader: RunReader, run: str = "", owner: str = "", collection: str = ""
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._rows = IndexedPages(connection, run)
        self._run = (run, owner, collection, reader.summary.started.isoformat())
        self.added = 0
        """New and changed pages."""
        self.damages: list[str] = []
        wanted = {PageVersion.of(row): row.doc_id for row in done_pages(reader)}
        statement = "SELECT page, page_id, crc, length FROM pages WHERE run = ?"
        there = {PageVersion(*version): page for page, *version in connection.execute(statement, (run,))}
        new = wanted.keys() - there.keys()
        self._new = {version.page_id: version for version in new}
        self._documents = {wanted[version] for version in new}
        self._outdated = [page for version, page in there.items() if version not in wanted]
        self.removed = len({version.page_id for version in there.keys() - wanted.keys()} - self._new.keys())
        """Pages that are not in the run any more."""

    def apply(
        self,
        *,
        vector: Callable[[PageResult], bytes | None] = lambda _: None,
        progress: Callable[[int, int], object] = lambda *_: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Make the changes, in several transactions. Until the caller stores its stamp, the run counts as incomplete.

        Args:
            vector: Makes the vector of a page that is kept in the index.
            progress: Called with pages added and pages to add, after each transaction.
            stopped: Asked before each transaction whether to leave the rest for the next call.

        Returns:
            Whether all changes were made.
        """
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, '')", self._run)
            # Rows of vectors name pages by number: until they are bound again none may point to a page that is gone.
            if self._outdated:
                self._connection.execute("DELETE FROM vectors")
            for page in self._outdated:
                self._rows.remove(page)
        languages = languages_of_run(self._reader.summary)
        pages = (page for page in self._records() if page.page_id in self._new)
        while batch := list(islice(pages, _PAGES_A_TRANSACTION)):
            if stopped():
                return False
            with self._connection:
                for page in batch:
                    self.added += bool(self._rows.put(page, self._new[page.page_id], languages, vector(page)))
            progress(self.added, len(self._new))
        return True

    def _records(self) -> Iterator[PageResult]:
        for doc_id, pages in self._reader.documents(on_damage=lambda error: self.damages.append(error.message)):
            if doc_id in self._documents:
                # A run in progress may have replaced a record since its checksum was read: the next call sees that.
                yield from pages


@dataclass
class _IndexBuilder:
    reader: RunReader
    connection: sqlite3.Connection
    progress: Callable[[int, int], None] | None
    report: IndexReport = field(default_factory=IndexReport)

    def build(self) -> IndexReport:
        stamp = str(self.reader.stamp())  # before the pages are read: later ones are not in the index
        changes = PageChanges(self.connection, self.reader)
        changes.apply(progress=self.progress or (lambda *_: None))
        self._bind(stamp)
        count = "SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM regions)"
        self.report.pages, self.report.regions = self.connection.execute(count).fetchone()
        self.report.added, self.report.removed, self.report.damages = changes.added, changes.removed, changes.damages
        self.report.failed = self.reader.summary.failed
        self.report.is_finished = self.reader.is_finished
        return self.report

    def _bind(self, stamp: str) -> None:
        """Bind each row of the vectors to its page and region, in one transaction."""
        with self.connection:
            self.connection.execute("DELETE FROM vectors")
            for part in (Part.IMAGES, Part.TEXT, Part.REGIONS, Part.CHUNKS):
                # Stamped before they are opened: a search notices files that were replaced meanwhile.
                made_of = vectors_stamp(VectorPaths(self.reader.path / VECTORS, part))
                try:
                    file = VectorFile.open(self.reader.path, part)
                except MissingInputError:  # not every part is embedded
                    continue
                numbers = [array.tobytes() for array in self._bound(file)]  # of pages, of regions
                self.connection.execute(
                    "INSERT INTO vectors VALUES (?, ?, ?, ?, ?)",
                    (part, msgspec.json.encode(file.info), made_of, *numbers),
                )
            self.connection.execute("UPDATE runs SET stamp = ?", (stamp,))

    def _bound(self, file: VectorFile) -> np.ndarray[Any, Any]:
        """For each row the numbers of its page and its region (0 for a whole page): shape (2, rows), int64.

        Raises:
            DifferentRunError: A row belongs to an earlier content, or to a removed page.
        """
        part = file.info.part
        numbers = np.zeros((2, len(file)), dtype="<i8")
        count = 0
        for row, *found in self._current_chunks(file) if part is Part.CHUNKS else self._current(file):
            count += 1
            place = file.place(row)
            if place is not None:
                numbers[:, place] = found
        # Refused, not left out: such a search would quietly miss what is on the page now.
        if stale := [str(file.rows[place].key) for place in np.flatnonzero(numbers[0] == 0)]:
            examples = "; ".join(stale[:_EXAMPLES]) + ("; ..." if len(stale) > _EXAMPLES else "")
            raise DifferentRunError(
                f"{counted(len(stale), 'vector')} of {part.plural} of changed or removed pages: {examples}",
                remedy=f"Update the vectors, then the index: pagemill embed {self.reader.path}",
            )
        identity = file.info.identity
        self.report.parts[part] = PartCount(len(file), count - len(file), identity.dimension, identity.engine)
        return numbers

    def _current(self, file: VectorFile) -> Iterator[tuple[VectorRow, int, int]]:
        """The rows that the pages have now, with the numbers of page and region."""
        part = file.info.part
        if part is Part.REGIONS:
            digest = "picture_digest" if file.info.images else "text_digest"
            wanted = f"page_id, region, regions.{digest} AS digest, page, id FROM regions JOIN pages USING (page)"
        else:
            digest = "text_digest" if part is Part.TEXT else "image_digest"
            wanted = f"page_id, NULL, {digest} AS digest, page, 0 FROM pages"
        for page_id, region, digest, page, number in self.connection.execute(
            f"SELECT {wanted} WHERE digest IS NOT NULL"
        ):
            yield VectorRow(RowKey(page_id, region), digest), page, number

    def _current_chunks(self, file: VectorFile) -> Iterator[tuple[VectorRow, int, int]]:
        """The same of chunks, as far as the pages are there on which they begin, and their documents are as they were.

        How documents were cut is not known here, so what lacks chunks is a document that has none: it gives one row.
        """
        pages = {
            page_id: (number, doc_id, digest)
            for number, page_id, doc_id, digest in self.connection.execute(
                "SELECT page, page_id, doc_id, ifnull(text_digest, '') FROM pages"
            )
        }
        lacking = {doc_id for _, doc_id, digest in pages.values() if digest}
        texts: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for page_id, (_, doc_id, digest) in pages.items():
            texts[doc_id] += [(page_id, digest)] if digest else []
        documents = {doc_id: document_digest(each) for doc_id, each in texts.items()}
        for key in (row.key for row in file.rows if row.key.page_id in pages):
            page, doc_id, _ = pages[key.page_id]
            lacking.discard(doc_id)
            # 0 where the region is not in the index, as one without text: then the page stands for it.
            statement = "SELECT ifnull(max(id), 0) FROM regions WHERE page = ? AND region = ?"
            number = self.connection.execute(statement, (page, key.region)).fetchone()[0]
            yield chunk_row(key, documents[doc_id]), page, number
        # Documents with text and without a chunk: they count as missing.
        for doc_id in lacking:
            yield VectorRow(RowKey(doc_id), ""), 0, 0


def vectors_stamp(files: VectorPaths) -> str:
    """Size of a file of vectors, and SHA-256 of its ids, which hold a checksum of every row; empty without files."""
    if not files.vectors.exists() or not files.ids.exists():
        return ""
    with reading_errors(files.ids), files.ids.open("rb") as ids:
        return f"{files.vectors.stat().st_size} {hashlib.file_digest(ids, 'sha256').hexdigest()}"
