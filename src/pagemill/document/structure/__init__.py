"""The structure of a document, derived from facts of its pages: headings, furniture, joins, anchors.

A page is read without knowing the others, and its record is never rewritten. What only all pages together show is
derived from their facts, in a moment and always alike, and laid over the records as they are read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pagemill.document.page import DocumentInfo, PageResult
from pagemill.document.structure.book import Book, Draft
from pagemill.document.structure.facts import Facts, facts_from, facts_of, is_current
from pagemill.document.structure.furniture import mark_furniture
from pagemill.document.structure.headings import mark_headings
from pagemill.document.structure.joins import join
from pagemill.document.structure.overlay import Overlay, RegionOverlay, apply, decode_overlay, encode_overlay
from pagemill.late import re

__all__ = [
    "MOST_PAGES",
    "Facts",
    "Overlay",
    "apply",
    "decode_overlay",
    "derive",
    "encode_overlay",
    "facts_from",
    "facts_of",
    "is_current",
    "structured",
]

MOST_PAGES = 20_000
"""Pages of a document that are looked at together: a longer one, as of rows of a dataset, keeps what its pages say."""
_PLACE = re.compile(r"#page=(\d+)(?:&top=(\d+))?")
_ABOVE = 30
"""Thousandths of the page's height by which a link may lead to below a heading's upper edge."""
_BELOW = 150
"""Maximum distance of its heading below the target of a link, likewise. Not measured."""
_LONGEST_ANCHOR = 100
"""Characters."""


def derive(pages: Iterable[Facts | None], info: DocumentInfo | None = None) -> Overlay:
    """The structure of a document, a function of its facts alone.

    Args:
        pages: The facts of its pages, in page order; None for a page without, which stays as it is.
        info: Metadata of the document.
    """
    listed = list(islice(pages, MOST_PAGES + 1))
    if len(listed) > MOST_PAGES:
        return Overlay()
    book = Book(listed)
    mark_furniture(book)
    mark_headings(book, info.outline if info else ())
    join(book)
    _name_headings(book)
    found: dict[str, dict[int, RegionOverlay]] = {}
    for page, drafts in zip(listed, book.drafts, strict=True):
        changed = {draft.index: given for draft in drafts if (given := _overlay(draft)) is not None}
        if page is not None and changed:
            found[page.page_id] = changed
    return Overlay(found, dict(_links(book)))


def structured(pages: Sequence[PageResult], info: DocumentInfo | None = None) -> Iterator[PageResult]:
    """The records of one document, in page order, with its structure applied."""
    overlay = derive((facts_from(facts_of(page)) for page in pages), info)
    return (apply(page, overlay) for page in pages)


def _overlay(draft: Draft) -> RegionOverlay | None:
    """Replacements for a region's own values; None where these are correct."""
    given = RegionOverlay(draft.label, draft.level, draft.furniture, draft.anchor, draft.joined_to)
    own = RegionOverlay(draft.facts.label, draft.facts.level, draft.facts.furniture, None, None)
    return None if given == own else given


def _name_headings(book: Book) -> None:
    """Give headings the anchors of GitHub; duplicates get a number."""
    taken: dict[str, int] = {}
    for draft in book.each():
        if not draft.is_heading:
            continue
        name = anchor = slug(draft.facts.head)[:_LONGEST_ANCHOR]
        # A heading may be called `intro-1` itself.
        while anchor in taken:
            taken[name] += 1
            anchor = f"{name}-{taken[name]}"
        taken[anchor] = 0
        draft.anchor = anchor or None


def slug(text: str) -> str:
    """The anchor of a heading: its letters and digits in lower case, with hyphens for spaces."""
    kept = (char for char in text.lower() if char in " -_" or unicodedata.category(char)[0] in "LNM")
    return "".join(kept).strip().replace(" ", "-")


def _links(book: Book) -> Iterator[tuple[str, str]]:
    """The headings that links lead to: the nearest at or below the target."""
    numbers = {page.number: position for position, page in enumerate(book.pages) if page}
    for target in sorted({target for page in book.pages if page for target in page.targets}):
        match = _PLACE.fullmatch(target)
        position = numbers.get(int(match[1])) if match else None
        if match is None or match[2] is None or position is None:
            continue
        top = int(match[2])
        below = [
            draft for draft in book.drafts[position] if draft.anchor and -_ABOVE <= draft.facts.box[1] - top <= _BELOW
        ]
        if below:
            nearest = min(below, key=lambda draft: (draft.facts.box[1], draft.index))
            yield target, f"#{nearest.anchor}"
