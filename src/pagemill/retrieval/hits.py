"""Search request and result types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgspec


class IndexPart(StrEnum):
    """A way to rank pages; vectors have the names of ``pagemill embed --what``."""

    IMAGES = "images"
    """Vectors of page images."""
    TEXT = "text"
    """Vectors of page texts."""
    REGIONS = "regions"
    """Vectors of regions: a page ranks with its best region."""
    CHUNKS = "chunks"
    """Vectors of chunks: a page ranks with its best chunk."""
    FULL_TEXT = "full-text"
    """Words (BM25)."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters for pages and regions; all of them must match."""

    documents: tuple[str, ...] = ()
    """Patterns of document ids (``*``, ``?``, ``[...]``), any of which must match."""
    pages: tuple[str, ...] = ()
    """Patterns of page ids, likewise."""
    languages: tuple[str, ...] = ()
    """Language codes such as ``ko``."""
    labels: tuple[str, ...] = ()
    """Region classes such as ``table``: only regions are searched, by words and vectors."""

    @property
    def classes(self) -> list[str]:
        """The labels as in records: ``Figure title`` is ``figure_title``."""
        return [label.strip().lower().replace(" ", "_") for label in self.labels]

    @property
    def condition(self) -> str:
        """SQL that limits regions to these classes, behind another condition; the classes are its parameters."""
        return f" AND label IN ({', '.join('?' * len(self.labels))})" if self.labels else ""


EVERYTHING = Filters()
"""No filter."""


class PartRank(msgspec.Struct, frozen=True):
    """The rank of a page in one part."""

    rank: int
    """From 1."""
    score: float
    """Cosine or BM25: higher is better."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page that was found."""

    rank: int
    """From 1."""
    score: float
    """Sum of ``1 / (60 + rank)`` over the parts: comparable within one answer only."""
    page_id: str
    doc_id: str
    source: str
    """The input as it was named."""
    page_number: int | None
    language: str
    region: int | None
    """Index of the best region; None if the page as a whole matches."""
    label: str | None
    bbox_2d: tuple[int, int, int, int] | None
    """Box of the region in thousandths of the page."""
    crop: str | None
    """The region's picture, relative to the run directory."""
    snippet: str
    marks: tuple[tuple[int, int], ...]
    """Start and end of each hit in the snippet, in characters."""
    parts: dict[IndexPart, PartRank]
    """The page's rank in each part that found it."""
    run: str = ""
    """The name of its run in an index of several."""


class Ranked(NamedTuple):
    """A page in the ranking of one part."""

    page: int
    score: float
    region: int
    """Number of the region in the index; 0 for none."""


Rankings = dict[IndexPart, "Sequence[Ranked]"]
"""Best first."""
