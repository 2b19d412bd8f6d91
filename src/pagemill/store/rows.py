"""Rows of pages in the database of a run."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from pagemill.document.identity import PageKey
from pagemill.late import re

if TYPE_CHECKING:
    from pagemill.document.page import PageResult

_ESCAPE = re.compile(rb"\\udc([89a-f][0-9a-f])")
"""Escape of a byte in a file name that is not UTF-8."""


class PageState(IntEnum):
    """State of a page. The last three are final."""

    RUNNING = 1
    WAITING = 2
    DONE = 3
    FAILED = 4
    SKIPPED = 5

    @property
    def final(self) -> bool:
        """Whether no more work is due on the page."""
        return self >= PageState.DONE


def state_is(state: PageState) -> str:
    """SQL condition on ``pages``; its second half lets SQLite use the index of the pages that are not done."""
    return f"state = {state:d} AND state <> {PageState.DONE:d}"


class Place(NamedTuple):
    """Names and position of a page in the input."""

    page_id: str
    doc_id: str
    uri: str
    page_number: int | None
    page_idx: int

    @classmethod
    def of(cls, page: PageResult) -> Place:
        """From a record."""
        return cls(page.page_id, page.doc_id, page.source, page.page_number, page.page_idx)


class PageRow(NamedTuple):
    """A page in the database, without its record."""

    key: PageKey
    state: PageState
    page_id: str
    doc_id: str
    uri: str
    page_number: int | None
    page_idx: int
    category: str | None
    """Category of the last failure; reason of a skipped page."""
    message: str | None
    record: int | None
    """Number of its record, ascending in the order of writing; None without one."""
    length: int | None
    """Bytes of its line in ``ocr_results.jsonl``, newline included."""
    crc: int | None
    """CRC-32 of that line."""

    @property
    def place(self) -> Place:
        """Names and position."""
        return Place(self.page_id, self.doc_id, self.uri, self.page_number, self.page_idx)


PAGE_ROWS = """
SELECT s.digest, p.page, s.copy, p.state, p.page_id, d.doc_id, d.uri, p.page_number, p.page_idx, p.category,
    p.message, p.record, p.length, p.crc
FROM pages p JOIN sources s USING (source) JOIN documents d USING (document) """
"""To be followed by a WHERE and an ORDER BY clause; each row is for :func:`page_row`."""


def page_row(row: tuple[Any, ...]) -> PageRow:
    """A row of :data:`PAGE_ROWS`."""
    digest, page, copy, state, *rest = row
    return PageRow._make((PageKey(bytes(digest).hex(), page, copy), PageState(state), *rest))


def plain(text: str) -> str:
    """Text with lone surrogates (file names in other encodings) escaped, so that UTF-8 can encode it."""
    return text.encode("utf-8", "backslashreplace").decode()


def unescaped(path: str) -> str:
    """Undo :func:`plain` if a file of that name exists; otherwise return the path unchanged."""
    # Only if such a file exists: a name may hold the escape as plain characters.
    name = os.fsdecode(_ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), path.encode()))
    return name if name != path and os.path.exists(name) else path  # noqa: PTH110 - Path.exists raises for long names
