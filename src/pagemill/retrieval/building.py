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
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import FOLDER as VECTORS
from pagemill.embedding.vectors import Part, RowKey, VectorFile, VectorPaths, VectorRow, parts_of
from pagemill.errors import DifferentRunError
from pagemill.retrieval import database
from pagemill.retrieval.languages import language_of
from pagemill.retrieval.tokens import indexed
from pagemill.store.database import database_errors, is_damage
from pagemill.store.files import output_errors, reading_errors
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pagemill.document.page import PageResult, Region
    from pagemill.errors import DamagedRunError

_PAGES_A_TRANSACTION = 500
_EXAMPLES = 3
EMBEDDED = (Part.IMAGES, Part.TEXT, Part.REGIONS)


class PartCount(NamedTuple):
    """Vectors of one part."""

    vectors: int
    missing: int
    """Pages or regions without a vector: parsed after the last ``pagemill embed``."""
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


class _Wanted(NamedTuple):
    doc_id: str
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
            return _build(reader, out, tell)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            database.delete(path)  # it can be rebuilt from the run
            return _build(reader, out, tell)


def _build(reader: RunReader, out: Path, tell: Callable[[int, int], None] | None) -> IndexReport:
    with database.open_for_writing(out / database.FILE) as connection:
        return _IndexBuilder(reader, out, connection, tell).build()


@dataclass
class _IndexBuilder:
    reader: RunReader
    out: Path
    connection: sqlite3.Connection
    tell: Callable[[int, int], None] | None
    report: IndexReport = field(default_factory=IndexReport)

    def build(self) -> IndexReport:
        started = self.reader.summary.started.isoformat()
        size, end = self.reader.stamp()  # before the pages are read: later ones are not in the index
        wanted = {
            row.page_id: _Wanted(row.doc_id, row.crc or 0, row.length or 0)
            for row in self.reader.rows("p.record IS NOT NULL")
            if row.state is PageState.DONE
        }
        there = {
            page_id: (page, crc, length)
            for page, page_id, crc, length in self.connection.execute("SELECT page, page_id, crc, length FROM pages")
        }
        gone = [page_id for page_id in there if page_id not in wanted]
        changed = {
            page_id: row
            for page_id, row in wanted.items()
            if page_id not in there or there[page_id][1:] != (row.crc, row.length)
        }
        with self._transaction():
            self.connection.execute("DELETE FROM state")
            self.connection.execute("INSERT INTO state VALUES (?, ?, ?, 0)", (started, size, end))
            if gone or any(page_id in there for page_id in changed):
                self.connection.execute("DELETE FROM vectors")
            for page_id in gone:
                self._remove(there[page_id][0])
        self.report.removed = len(gone)
        records = self._records(changed)
        while batch := list(islice(records, _PAGES_A_TRANSACTION)):
            with self._transaction():
                for page in batch:
                    self._put(page, changed[page.page_id])
            if self.tell:
                self.tell(self.report.added, len(changed))
        self._bind()
        self.report.pages = self.connection.execute("SELECT count(*) FROM pages").fetchone()[0]
        self.report.regions = self.connection.execute("SELECT count(*) FROM regions").fetchone()[0]
        self.report.failed = self.reader.summary.failed
        return self.report

    def _records(self, changed: dict[str, _Wanted]) -> Iterator[PageResult]:
        def damaged(error: DamagedRunError) -> None:
            self.report.damages.append(error.message)

        documents = {row.doc_id for row in changed.values()}
        for doc_id, pages in self.reader.documents(on_damage=damaged):
            if doc_id in documents:
                # A run in progress may have replaced the record since its checksum was read: the next call sees that.
                yield from (page for page in pages if page.page_id in changed)

    def _transaction(self) -> sqlite3.Connection:
        """Begin a transaction: the connection, entered as a context manager, ends it."""
        self.connection.execute("BEGIN IMMEDIATE")
        return self.connection

    def _remove(self, page: int) -> None:
        """Remove a page. Deleting from a contentless full-text table needs the old text."""
        execute = self.connection.execute
        regions = execute("SELECT id, label, text FROM regions WHERE page = ? ORDER BY region", (page,)).fetchall()
        words_of_regions = [indexed(text) for _, _, text in regions]
        for (identifier, label, _), words in zip(regions, words_of_regions, strict=True):
            execute(
                "INSERT INTO region_words (region_words, rowid, words, label) VALUES ('delete', ?, ?, ?)",
                (identifier, words, database.label_token(label)),
            )
        words = _page_words(words_of_regions)
        execute("INSERT INTO page_words (page_words, rowid, words) VALUES ('delete', ?, ?)", (page, words))
        execute("DELETE FROM regions WHERE page = ?", (page,))
        execute("DELETE FROM pages WHERE page = ?", (page,))

    def _put(self, page: PageResult, row: _Wanted) -> None:
        execute = self.connection.execute
        earlier = execute("SELECT page FROM pages WHERE page_id = ?", (page.page_id,)).fetchone()
        if earlier:
            self._remove(earlier[0])
        if page.status is not Status.DONE:  # it was a moment ago: the run is in progress
            return
        self.report.added += 1
        regions = list(contents(page, Part.REGIONS, images=True))
        text_digests = {each.row.key.region: each.row.digest for each in contents(page, Part.REGIONS, images=False)}
        texts = [_sound(content.text) for content in regions]
        words_of_regions = [indexed(text) for text in texts]
        words = _page_words(words_of_regions)
        digests = [next(contents(page, part, images=False), None) for part in (Part.TEXT, Part.IMAGES)]
        cursor = execute(
            "INSERT INTO pages (page_id, doc_id, source, page_number, language, words, text_digest, image_digest, crc,"
            " length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                page.page_id,
                page.doc_id,
                _sound(page.source),
                page.page_number,
                language_of("\n".join(texts), page.languages or _languages_of(self.reader.summary.settings)),
                hashlib.sha256(words.encode()).digest(),
                *(content.row.digest if content else None for content in digests),
                row.crc,
                row.length,
            ),
        )
        number = cursor.lastrowid
        execute("INSERT INTO page_words (rowid, words) VALUES (?, ?)", (number, words))
        by_index: dict[int | None, Region] = {region.index: region for region in page.regions}
        for content, text, region_words in zip(regions, texts, words_of_regions, strict=True):
            region = by_index[content.row.key.region]
            cursor = execute(
                "INSERT INTO regions (page, region, label, bbox, crop, text, text_digest, picture_digest)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    region.index,
                    region.label,
                    msgspec.json.encode(region.bbox_2d).decode(),
                    content.crop.path if content.crop else None,
                    text,
                    text_digests.get(region.index),
                    content.row.digest,
                ),
            )
            execute(
                "INSERT INTO region_words (rowid, words, label) VALUES (?, ?, ?)",
                (cursor.lastrowid, region_words, database.label_token(region.label)),
            )

    def _bind(self) -> None:
        """Bind each row of the vectors to its page and region, in one transaction."""
        there = [part for part in parts_of(self.out) if part in EMBEDDED]
        # Stamped before they are opened: a search notices files that were replaced meanwhile.
        stamps = {part: vectors_stamp(VectorPaths(self.out / VECTORS, part)) for part in there}
        files = {part: VectorFile.open(self.out, part) for part in there}
        bound = {part: self._bound(file) for part, file in files.items()}
        with self._transaction():
            self.connection.execute("DELETE FROM vectors")
            for part, file in files.items():
                pages, regions = bound[part]
                self.connection.execute(
                    "INSERT INTO vectors VALUES (?, ?, ?, ?, ?)",
                    (part, msgspec.json.encode(file.info), stamps[part], pages.tobytes(), regions.tobytes()),
                )
            self.connection.execute("UPDATE state SET complete = 1")

    def _bound(self, file: VectorFile) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """For each row the numbers of its page and its region (0 for a whole page), little-endian int64.

        Raises:
            DifferentRunError: A row belongs to an earlier content, or to a removed page.
        """
        part = file.info.part
        pages = np.zeros(len(file), dtype="<i8")
        regions = np.zeros(len(file), dtype="<i8")
        count = 0
        for page_id, region, page, identifier, digest in self._embeddable(file):
            count += 1
            place = file.place(VectorRow(RowKey(page_id, region), digest))
            if place is not None:
                pages[place], regions[place] = page, identifier
        if stale := [str(file.rows[place].key) for place in np.flatnonzero(pages == 0)]:
            examples = "; ".join(stale[:_EXAMPLES]) + ("; ..." if len(stale) > _EXAMPLES else "")
            raise DifferentRunError(
                f"{len(stale)} vectors of {part.plural} belong to changed or removed pages: {examples}",
                remedy=f"Update the vectors, then the index: pagemill embed {self.out}",
            )
        identity = file.info.identity
        self.report.parts[part] = PartCount(len(file), count - len(file), identity.dimension, identity.engine)
        return pages, regions

    def _embeddable(self, file: VectorFile) -> Iterator[tuple[str, int | None, int, int, str]]:
        """Page id, region, number of the page, number of the region, digest: of all that may have a vector."""
        if file.info.part is Part.REGIONS:
            digest = "picture_digest" if file.info.images else "text_digest"
            statement = (
                f"SELECT page_id, region, page, id, regions.{digest} FROM regions JOIN pages USING (page)"
                f" WHERE regions.{digest} IS NOT NULL"
            )
        else:
            digest = "text_digest" if file.info.part is Part.TEXT else "image_digest"
            statement = f"SELECT page_id, NULL, page, 0, {digest} FROM pages WHERE {digest} IS NOT NULL"
        return iter(self.connection.execute(statement))


def vectors_stamp(files: VectorPaths) -> str:
    """Size of a file of vectors, and SHA-256 of its ids, which hold a checksum of every row; empty without files."""
    if not files.vectors.exists() or not files.ids.exists():
        return ""
    with reading_errors(files.ids), files.ids.open("rb") as ids:
        return f"{files.vectors.stat().st_size} {hashlib.file_digest(ids, 'sha256').hexdigest()}"


def _languages_of(settings: dict[str, Any]) -> list[str]:
    """The languages that the user gave; empty if they were detected."""
    parse = settings.get("parse")
    languages = parse.get("languages") if isinstance(parse, dict) else None
    return [each for each in languages if each != "auto"] if isinstance(languages, list) else []


def _page_words(words_of_regions: list[str]) -> str:
    """The words of a page: those of its regions, in reading order."""
    return " ".join(filter(None, words_of_regions))


def _sound(text: str) -> str:
    """NFC, without lone surrogates, which SQLite rejects."""
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode()
