"""What a page is, whatever its file is called: the digest of the source's content and the place in it."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

_TEXT = re.compile(r"([0-9a-f]{64})/(\d{1,12})(?:\+(\d{1,9}))?")


class PageKey(NamedTuple):
    """Identity of a page across runs: a renamed or moved file keeps it, a changed one gets another.

    As text it is ``DIGEST/PAGE``, and ``DIGEST/PAGE+COPY`` in the second and further of several identical sources.
    """

    digest: str
    """SHA-256 of the source's bytes, 64 hex digits; of its name where it cannot be read."""
    page: int
    """Page, frame or row in the source, from 1; 0 stands for a source that does not open."""
    copy: int = 1
    """Which of several sources with the same content, in input order, from 1."""

    def __str__(self) -> str:
        return f"{self.digest}/{self.page}" + (f"+{self.copy}" if self.copy > 1 else "")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what :meth:`__str__` wrote.

        Raises:
            ValueError: It is no such text.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"no page key: {text[:100]!r}")
        return cls(match[1], int(match[2]), int(match[3] or 1))
