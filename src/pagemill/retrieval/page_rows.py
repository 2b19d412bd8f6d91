"""The rows of a page in an index: page, regions, and the words of both."""

from __future__ import annotations

import hashlib
import sqlite3
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from pagemill.document.page import PageResult, Region, Status
from pagemill.document.structure import Overlay
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import Part
from pagemill.export.embedding_text import region_text
from pagemill.export.parts import is_left_out
from pagemill.retrieval import database
from pagemill.retrieval.languages import language_of
from pagemill.retrieval.tokens import indexed
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageRow, PageState
from pagemill.store.summary import RunSummary


class PageVersion(NamedTuple):
    """A page with the checksum and the length of its record."""

    page_id: str
    crc: int
    length: int

    @classmethod
    def of(cls, row: PageRow) -> PageVersion:
        """The version of a page with a record."""
        return cls(row.page_id, row.crc or 0, row.length or 0)


def done_pages(reader: RunReader) -> Iterator[PageRow]:
    """The pages of a run that can be indexed; their checksums change with the structure of their documents, too."""
    doc_id, overlay = None, Overlay()
    for row in reader.rows("p.record IS NOT NULL"):
        if row.doc_id != doc_id:
            doc_id, overlay = row.doc_id, reader.structure(row.doc_id)
        if row.state is PageState.DONE:
            # The structure is not part of the record, and changes what is indexed: headings, joined tables.
            derived = msgspec.msgpack.encode([overlay.pages.get(row.page_id), overlay.links])
            yield row._replace(crc=(row.crc or 0) ^ zlib.crc32(derived))


def languages_of_run(summary: RunSummary) -> list[str]:
    """The languages that the user named."""
    given = summary.settings.get("parse", {}).get("languages") or ()
    return [language for language in given if language != "auto"]


class IndexedPages:
    """Adds pages of a run to an index and deletes them.

    Args:
        connection: The index, opened for writing; the caller commits.
        run: The name of the run in the index.
    """

    def __init__(self, connection: sqlite3.Connection, run: str) -> None:
        self._connection = connection
        self._run = run

    def remove(self, page: int) -> None:
        """Delete the page of this number."""
        about = self._connection.execute("SELECT about FROM pages WHERE page = ?", (page,)).fetchone()
        self._change_words(page, "delete", about[0] if about else "")
        self._connection.execute("DELETE FROM regions WHERE page = ?", (page,))
        self._connection.execute("DELETE FROM pages WHERE page = ?", (page,))

    def put(self, page: PageResult, version: PageVersion, languages: Sequence[str], vector: bytes | None = None) -> int:
        """Add a page.

        Args:
            page: Its record.
            version: Checksum and length of the record.
            languages: Those of the run, where the record has none.
            vector: Vector of the page's text, if the index stores it.

        Returns:
            The number of its row; 0 if the page is not finished (it was a moment ago: the run is in progress).
        """
        if page.status is not Status.DONE:
            return 0
        execute = self._connection.execute
        number = execute("SELECT ifnull(max(page), 0) + 1 FROM pages").fetchone()[0]
        regions: dict[int | None, Region] = {region.index: region for region in page.regions}
        text_digests = {
            content.row.key.region: content.row.digest for content in contents(page, Part.REGIONS, images=False)
        }
        left_out = {region.index for region in page.regions if is_left_out(region, page.leaves_out)}
        texts = []
        for content in contents(page, Part.REGIONS, images=True):
            region = regions[content.row.key.region]
            texts.append(_sound(content.page_text))
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
        for region in page.regions:  # what texts leave out is found, too
            if region.content and region.index in left_out:
                execute(
                    "INSERT INTO regions (page, region, label, bbox, text, description) VALUES (?, ?, ?, ?, ?, '')",
                    (
                        *(number, region.index, region.label, msgspec.json.encode(region.bbox_2d).decode()),
                        _sound(region_text(region)),
                    ),
                )
        about = " ".join(str(page.metadata.get(name, "")) for name in ("title", "author"))
        # With its first page alone: a search for the title should not give every page.
        about = _sound(about.strip()) if page.page_number in (None, 1) else ""
        words = self._change_words(number, None, about)
        digests = [next(contents(page, part, images=False), None) for part in (Part.TEXT, Part.IMAGES)]
        execute(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                self._run,
                page.page_id,
                page.doc_id,
                _sound(page.source),
                page.page_number,
                language_of("\n".join(texts), page.languages or languages),
                hashlib.sha256(words.encode()).digest(),
                *(content.row.digest if content else None for content in digests),
                version.crc,
                version.length,
                about,
                vector,
            ),
        )
        return int(number)

    def _change_words(self, page: int, command: str | None, about: str) -> str:
        """Add the words of a page and its regions, or ``delete`` them, and give those of the page.

        ``about`` are words of the document as a whole, which go with the page.

        Deleting from a contentless full-text table needs the old text.
        """
        statement = "SELECT id, text, label, description FROM regions WHERE page = ? ORDER BY id"
        rows = [
            (command, number, indexed(text), database.label_token(label), indexed(description))
            for number, text, label, description in self._connection.execute(statement, (page,))
        ]
        self._connection.executemany(
            "INSERT INTO region_words (region_words, rowid, words, label, description) VALUES (?, ?, ?, ?, ?)", rows
        )
        words, described = (" ".join(filter(None, (row[place] for row in rows))) for place in (2, 4))
        self._connection.execute(
            "INSERT INTO page_words (page_words, rowid, words, description) VALUES (?, ?, ?, ?)",
            (command, page, " ".join(filter(None, (indexed(about), words))), described),
        )
        return words


def _sound(text: str) -> str:
    """The text in NFC, without lone surrogates, which SQLite rejects."""
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode()
