"""What the tools need: something that parses documents, returns their pages and searches them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pagemill.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from pagemill.document.page import PageResult
    from pagemill.sources.options import PageRanges

MAX_ERRORS = 10
"""Errors of a document that are reported."""


MAX_LISTED = 100
MAX_FILES = 500


class ParseState(StrEnum):
    """How far a document is."""

    PARSING = "parsing"
    FINISHED = "finished"


class ParsedDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A document that is being parsed, or is parsed."""

    document: str
    """Its id, for the other tools."""
    name: str
    state: ParseState
    pages_finished: int
    """Pages that can be read."""
    pages_failed: int = 0
    pages_total: int | None = None
    """None while it is not known."""
    errors: list[str] = []
    """What went wrong on pages, at most ``MAX_ERRORS``."""


class Found(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A page that was found."""

    document: str
    name: str
    page: int | None
    score: float
    """Higher is better; comparable within one answer only."""
    snippet: str
    label: str | None = None
    """Of the region that matches."""
    box: tuple[int, int, int, int] | None = None
    """Of that region: left, top, right, bottom in thousandths of the page."""


class Listing(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What can be read, and what can be parsed."""

    documents: list[ParsedDocument]
    """Parsed documents, the newest first, at most ``MAX_LISTED``."""
    files: list[str] = []
    """Documents of the folder, and folders in it, which end with a slash: paths for ``parse_document``."""
    files_left_out: int = 0
    """Files and folders beyond ``MAX_FILES``."""


class Documents(Protocol):
    """Parses documents, returns their pages and searches them. An async context manager."""

    async def __aenter__(self) -> Documents:
        """Start."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Stop; parsing in flight is resumed when it is requested again."""
        ...

    async def parse(
        self,
        source: str,
        *,
        pages: PageRanges | None,
        languages: Sequence[str],
        wait_s: float,
        tell: Callable[[ParsedDocument], Awaitable[object]],
    ) -> ParsedDocument:
        """Parse a document, and return when it is finished, or after ``wait_s`` seconds; parsing then continues.

        Raises:
            PagemillError: It cannot be read, or may not be.
        """
        ...

    async def listed(self, folder: str) -> Listing:
        """Parsed documents, and the files of a folder that may be parsed.

        Raises:
            PagemillError: There is no such folder below the root.
        """
        ...

    def pages(self, document: str, pages: PageRanges | None) -> AsyncGenerator[PageResult]:
        """The finished pages of a document in order; None for all.

        Raises:
            PagemillError: There is no such document.
        """
        ...

    async def finished(self, document: str) -> list[int]:
        """Numbers of the finished pages of a document.

        Raises:
            PagemillError: There is no such document.
        """
        ...

    async def is_unfinished(self, document: str) -> bool:
        """Whether more pages may come: the document is being parsed, or that was cut short.

        Raises:
            PagemillError: There is no such document.
        """
        ...

    async def image(self, document: str, page: PageResult, width: int) -> bytes:
        """The image of a page as JPEG, at most ``width`` pixels wide."""
        ...

    async def search(self, query: str, *, document: str | None, languages: Sequence[str], limit: int) -> list[Found]:
        """Find pages of parsed documents, best first."""
        ...


def still_parsing(document: str) -> UsageError:
    """The error of a tool that needs a document as a whole, or a page of it that is not finished."""
    return UsageError(
        f"document {document} is still being parsed",
        remedy="Call parse_document again to wait; get_pages gives the pages that are finished.",
    )


def plain(value: Any) -> dict[str, Any]:
    """A result as plain JSON values."""
    made: dict[str, Any] = msgspec.to_builtins(value)
    return made
