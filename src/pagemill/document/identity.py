"""Identity of a page, independent of its file name: the digest of the source's content and the position in it.

Beside it what is remembered of a source by that identity, which the store reports and sources use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, Self

import msgspec

from pagemill.late import re

_TEXT = re.compile(r"([0-9a-f]{64})/(\d{1,12})(?:\+(\d{1,9}))?")


def text_digest(text: str) -> str:
    """SHA-256 of a text, 64 hex digits: the identity of what cannot be read."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class PageKey(NamedTuple):
    """Identity of a page across runs: a renamed or moved file keeps it, a changed one gets another.

    As text it is ``DIGEST/PAGE``, and ``DIGEST/PAGE+COPY`` in the second and further of several identical sources.
    """

    digest: str
    """SHA-256, 64 hex digits: of the source's bytes; of its address and version where it is remote and its bytes are
    not at hand; of its address where it cannot be read."""
    page: int
    """Page, frame or row in the source, from 1; 0 stands for the source itself: for one that does not open, or for the
    pages that an open one cannot give."""
    copy: int = 1
    """Which of several sources with the same content, in input order, from 1."""

    def __str__(self) -> str:
        return f"{self.digest}/{self.page}" + (f"+{self.copy}" if self.copy > 1 else "")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what :meth:`__str__` wrote.

        Raises:
            ValueError: It is not such a text.
        """
        # Keys are read back from files that anybody may edit: no number is longer than any that was written.
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"no page key: {text[:100]!r}")
        return cls(match[1], int(match[2]), int(match[3] or 1))


class WaitingPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that was read earlier and is not finished."""

    page_id: str
    attempts: int = 0
    """Failed attempts in earlier processes; with any, the page is retried in isolation."""
    death: str | None = None
    """How a process died with only this page in flight; None if none did."""
    doc_id: str | None = None
    """Id of its document, where that is known; the catalogue is asked for it otherwise."""
    position: int | None = None
    """In the input of the run, where the stream reads a part of that."""


class AllBut:
    """All numbers but some."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = frozenset(numbers)

    def __contains__(self, number: object) -> bool:
        return number not in self._numbers


class KnownSource(msgspec.Struct, frozen=True, kw_only=True):
    """Stored facts about one source file (or one of several with the same content)."""

    copy: int = 1
    """Which of several sources with the same content, from 1."""
    pages: int | None = None
    """All pages, frames or rows in it; None until they are counted."""
    ended: Container[int] = frozenset()
    """Pages (:attr:`PageKey.page`) that need not be parsed again."""
    waiting: Mapping[int, WaitingPage] = {}
    """Pages that were read and are not finished."""
