"""The rows of a page in an index: page, regions, and the words of both."""

from __future__ import annotations

import hashlib
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from pagemill.document.page import PageResult, Region, Status
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import Part
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
    def of(cls, row: PageRow, *, prefix: str = "") -> PageVersion:
        """The version of a page with a record; ``prefix`` precedes its id."""
        return cls(f"{prefix}{row.page_id}", row.crc or 0, row.length or 0)


def done_pages(reader: RunReader) -> Iterator[PageRow]:
    """The pages of a run that can be indexed."""
    return (row for row in reader.rows("p.record IS NOT NULL") if row.state is PageState.DONE)


def languages_of_run(summary: RunSummary) -> list[str]:
    """The languages that the user named."""
    given = summary.settings.get("parse", {}).get("languages") or ()
    return [language for language in given if language != "auto"]


class IndexedPages:
    """Adds pages to an index and deletes them.

    Args:
        connection: The index, opened for writing; the caller commits.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def remove(self, page: int) -> None:
        """Delete the page of this number."""
        self._change_words(page, "delete")
        self._connection.execute("DELETE FROM regions WHERE page = ?", (page,))
        self._connection.execute("DELETE FROM pages WHERE page = ?", (page,))

    def put(self, page: PageResult, version: PageVersion, languages: Sequence[str]) -> int:
        """Add a page.

        Args:
            page: Its record.
            version: Checksum and length of the record.
            languages: Those of the run, where the record has none.

        Returns:
            The number of its row; 0 if the page is not finished (it was a moment ago: the run is in progress).
        """
        if page.status is not Status.DONE:
            return 0
        execute = self._connection.execute
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
                language_of("\n".join(texts), page.languages or languages),
                hashlib.sha256(words.encode()).digest(),
                *(content.row.digest if content else None for content in digests),
                version.crc,
                version.length,
            ),
        )
        return int(number)

    def _change_words(self, page: int, command: str | None) -> str:
        """Add the words of a page and its regions, or ``delete`` them, and give those of the page.

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
            (command, page, words, described),
        )
        return words


def _sound(text: str) -> str:
    """The text in NFC, without lone surrogates, which SQLite rejects."""
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode()
