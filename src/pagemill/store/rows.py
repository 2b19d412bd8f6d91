"""Pages as the ledger knows them: how far each has come, how it is named, and where its lines are."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from pagemill.document.identity import PageKey

if TYPE_CHECKING:
    from pagemill.document.page import PageResult


class PageState(IntEnum):
    """How far a page has come. The last three are final."""

    RUNNING = 1
    WAITING = 2
    DONE = 3
    FAILED = 4
    SKIPPED = 5

    @property
    def final(self) -> bool:
        """Whether the page has ended."""
        return self >= PageState.DONE


class Span(NamedTuple):
    """Where a piece of a file is, and its CRC-32."""

    offset: int
    length: int
    crc: int


class Place(NamedTuple):
    """What is told of a page when it is met."""

    page_id: str
    doc_id: str
    uri: str
    page_number: int | None
    page_idx: int

    @classmethod
    def of(cls, page: PageResult) -> Place:
        """What a record tells."""
        return cls(page.page_id, page.doc_id, page.source, page.page_number, page.page_idx)


class PageRow(NamedTuple):
    """What the ledger knows of a page."""

    key: PageKey
    state: PageState
    page_id: str
    doc_id: str
    uri: str
    page_number: int | None
    page_idx: int
    attempts: int
    deaths: int
    death: str | None
    category: str | None
    """Of the (last) failure; the reason of a skipped page."""
    message: str | None
    record: Span | None
    """The line in ``ocr_results.jsonl``."""
    text: Span | None
    """The line in ``parsed_texts.jsonl``."""
    preview: Span | None

    @property
    def place(self) -> Place:
        """What was told of the page."""
        return Place(self.page_id, self.doc_id, self.uri, self.page_number, self.page_idx)


PAGE_ROWS = """
SELECT s.digest, p.page, s.copy, p.state, p.page_id, d.doc_id, d.uri, p.page_number, p.page_idx, p.attempts, p.deaths,
    p.death, p.category, p.message, p.offset, p.length, p.crc, p.text_offset, p.text_length, p.text_crc,
    p.preview_offset, p.preview_length, p.preview_crc
FROM pages p JOIN sources s USING (source) JOIN documents d USING (document) """
"""To be followed by a WHERE and an ORDER BY clause; each row is for :func:`page_row`."""


def page_row(row: tuple[Any, ...]) -> PageRow:
    """A row of :data:`PAGE_ROWS`."""
    digest, page, copy, state, *place = row[:14]
    key = PageKey(bytes(digest).hex(), page, copy)
    spans = (_span(row[start : start + 3]) for start in (14, 17, 20))
    return PageRow._make((key, PageState(state), *place, *spans))


def _span(values: tuple[Any, ...]) -> Span | None:
    return None if values[0] is None else Span(*values)
