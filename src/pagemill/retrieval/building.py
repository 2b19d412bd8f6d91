"""Build and update an index: only new and changed pages are read.

Pages are added in large transactions; the rows of vectors are bound in the last one. An interrupted update is completed
by the next call, and until then the index reports that it is incomplete. From the first removed or changed page until
then it has no vectors: their rows refer to pages by numbers, which SQLite reuses.
"""

from __future__ import annotations

import hashlib
import sqlite3
import unicodedata
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from pagemill.document.page import Status
from pagemill.embedding.contents import chunk_row, contents
from pagemill.embedding.vectors import FOLDER as VECTORS
from pagemill.embedding.vectors import Part, RowKey, VectorFile, VectorPaths, VectorRow
from pagemill.errors import DifferentRunError, MissingInputError
from pagemill.retrieval import database
from pagemill.retrieval.languages import language_of
from pagemill.retrieval.tokens import indexed
from pagemill.store.database import database_errors, is_damage
from pagemill.store.files import output_errors, reading_errors
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pagemill.document.page import PageResult, Region
    from pagemill.errors import DamagedRunError

_PAGES_A_TRANSACTION = 500
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
    damages: list[str] = field(default_factory=list)
    """Unreadable records; their pages are not indexed."""
    parts: dict[Part, PartCount] = field(default_factory=dict)


class _Version(NamedTuple):
    """A page with the checksum and the length of its record."""

    page_id: str
    crc: int
    length: int


def build_index(out: Path, *, tell: Callable[[int, int], None] | None = None) -> IndexReport:
    """Build or update the index of a run directory, also while the run is in progress.

    Args:
        out: The run directory.
        tell: Called with pages done and pages in total, after each.

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
        try:
            return _build(reader, path, tell)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            database.delete(path)  # it can be rebuilt from the run
            return _build(reader, path, tell)


def _build(reader: RunReader, path: Path, tell: Callable[[int, int], None] | None) -> IndexReport:
    with database.open_for_writing(path) as connection:
        return _IndexBuilder(reader, connection, tell).build()


@dataclass
class _IndexBuilder:
    reader: RunReader
    connection: sqlite3.Connection
    tell: Callable[[int, int], None] | None
    report: IndexReport = field(default_factory=IndexReport)

    def build(self) -> IndexReport:
        execute = self.connection.execute
        summary = self.reader.summary
        size, end = self.reader.stamp()  # before the pages are read: later ones are not in the index
        wanted = {
            _Version(row.page_id, row.crc or 0, row.length or 0): row.doc_id
            for row in self.reader.rows("p.record IS NOT NULL")
            if row.state is PageState.DONE
        }
        there = {_Version(*version): page for page, *version in execute("SELECT page, page_id, crc, length FROM pages")}
        outdated = there.keys() - wanted.keys()
        new = {version.page_id: version for version in wanted.keys() - there.keys()}
        with self.connection:
            execute("DELETE FROM state")
            execute("INSERT INTO state VALUES (?, ?, ?, 0)", (summary.started.isoformat(), size, end))
            if outdated:
                execute("DELETE FROM vectors")
            for version in outdated:
                self._remove(there[version])
        self.report.removed = len({version.page_id for version in outdated} - new.keys())
        given = summary.settings.get("parse", {}).get("languages") or ()
        languages = [language for language in given if language != "auto"]
        records = self._records({wanted[version] for version in new.values()})
        pages = (page for page in records if page.page_id in new)
        while batch := list(islice(pages, _PAGES_A_TRANSACTION)):
            with self.connection:
                for page in batch:
                    self._put(page, new[page.page_id], page.languages or languages)
            if self.tell:
                self.tell(self.report.added, len(new))
        self._bind()
        self.report.pages = execute("SELECT count(*) FROM pages").fetchone()[0]
        self.report.regions = execute("SELECT count(*) FROM regions").fetchone()[0]
        self.report.failed = summary.failed
        return self.report

    def _records(self, documents: set[str]) -> Iterator[PageResult]:
        def damaged(error: DamagedRunError) -> None:
            self.report.damages.append(error.message)

        for doc_id, pages in self.reader.documents(on_damage=damaged):
            if doc_id in documents:
                # A run in progress may have replaced a record since its checksum was read: the next call sees that.
                yield from pages

    def _remove(self, page: int) -> None:
        self._change_words(page, "delete")
        self.connection.execute("DELETE FROM regions WHERE page = ?", (page,))
        self.connection.execute("DELETE FROM pages WHERE page = ?", (page,))

    def _put(self, page: PageResult, version: _Version, languages: Sequence[str]) -> None:
        if page.status is not Status.DONE:  # it was a moment ago: the run is in progress
            return
        execute = self.connection.execute
        self.report.added += 1
        number = execute("SELECT ifnull(max(page), 0) + 1 FROM pages").fetchone()[0]
        regions: dict[int | None, Region] = {region.index: region for region in page.regions}
        text_digests = {each.row.key.region: each.row.digest for each in contents(page, Part.REGIONS, images=False)}
        texts = []
        for content in contents(page, Part.REGIONS, images=True):
            region = regions[content.row.key.region]
            texts.append(_sound(content.said))
            execute(
                "INSERT INTO regions (page, region, label, bbox, crop, text, description, text_digest, picture_digest)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    region.index,
                    region.label,
                    msgspec.json.encode(region.bbox_2d).decode(),
                    content.crop.path if content.crop else None,
                    texts[-1],
                    _sound(content.description and f"\n{content.description}"),
                    text_digests.get(region.index),
                    content.row.digest,
                ),
            )
        words = self._change_words(number, None)
        digests = [next(contents(page, part, images=False), None) for part in (Part.TEXT, Part.IMAGES)]
        execute(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                page.page_id,
                page.doc_id,
                _sound(page.source),
                page.page_number,
                language_of("\n".join(texts), languages),
                hashlib.sha256(words.encode()).digest(),
                *(content.row.digest if content else None for content in digests),
                version.crc,
                version.length,
            ),
        )

    def _change_words(self, page: int, command: str | None) -> str:
        """Add the words of a page and its regions, or ``delete`` them, and give those of the page.

        Deleting from a contentless full-text table needs the old text.
        """
        statement = "SELECT id, text, label, description FROM regions WHERE page = ? ORDER BY id"
        rows = [
            (command, number, indexed(text), database.label_token(label), indexed(description))
            for number, text, label, description in self.connection.execute(statement, (page,))
        ]
        self.connection.executemany(
            "INSERT INTO region_words (region_words, rowid, words, label, description) VALUES (?, ?, ?, ?, ?)", rows
        )
        words, described = (" ".join(filter(None, (row[place] for row in rows))) for place in (2, 4))
        self.connection.execute(
            "INSERT INTO page_words (page_words, rowid, words, description) VALUES (?, ?, ?, ?)",
            (command, page, words, described),
        )
        return words

    def _bind(self) -> None:
        """Bind each row of the vectors to its page and region, in one transaction."""
        with self.connection:
            self.connection.execute("DELETE FROM vectors")
            for part in (Part.IMAGES, Part.TEXT, Part.REGIONS, Part.CHUNKS):
                # Stamped before they are opened: a search notices files that were replaced meanwhile.
                stamp = vectors_stamp(VectorPaths(self.reader.path / VECTORS, part))
                try:
                    file = VectorFile.open(self.reader.path, part)
                except MissingInputError:  # not every part is embedded
                    continue
                numbers = [array.tobytes() for array in self._bound(file)]  # of pages, of regions
                self.connection.execute(
                    "INSERT INTO vectors VALUES (?, ?, ?, ?, ?)",
                    (part, msgspec.json.encode(file.info), stamp, *numbers),
                )
            self.connection.execute("UPDATE state SET complete = 1")

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
        if stale := [str(file.rows[place].key) for place in np.flatnonzero(numbers[0] == 0)]:
            examples = "; ".join(stale[:_EXAMPLES]) + ("; ..." if len(stale) > _EXAMPLES else "")
            raise DifferentRunError(
                f"{len(stale)} vectors of {part.plural} belong to changed or removed pages: {examples}",
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
        """The same of chunks, as far as the pages are there on which they begin.

        How documents were cut is not known here, so what lacks chunks is a document that has none: it gives one row.
        """
        pages = {
            page_id: (number, doc_id, digest)
            for number, page_id, doc_id, digest in self.connection.execute(
                "SELECT page, page_id, doc_id, ifnull(text_digest, '') FROM pages"
            )
        }
        lacking = {doc_id for _, doc_id, digest in pages.values() if digest}
        for key in (row.key for row in file.rows if row.key.page_id in pages):
            page, doc_id, digest = pages[key.page_id]
            lacking.discard(doc_id)
            statement = "SELECT ifnull(max(id), 0) FROM regions WHERE page = ? AND region = ?"
            number = self.connection.execute(statement, (page, key.region)).fetchone()[0]
            yield chunk_row(key, digest), page, number
        for doc_id in lacking:
            yield VectorRow(RowKey(doc_id), ""), 0, 0


def vectors_stamp(files: VectorPaths) -> str:
    """Size of a file of vectors, and SHA-256 of its ids, which hold a checksum of every row; empty without files."""
    if not files.vectors.exists() or not files.ids.exists():
        return ""
    with reading_errors(files.ids), files.ids.open("rb") as ids:
        return f"{files.vectors.stat().st_size} {hashlib.file_digest(ids, 'sha256').hexdigest()}"


def _sound(text: str) -> str:
    """NFC, without lone surrogates, which SQLite rejects."""
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode()
