"""The context of an element: the headings above it, its captions, the text before and after it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from pagemill.document.labels import FURNITURE_LABELS, TITLES, Category, Label, category_of
from pagemill.document.page import Region
from pagemill.export.markdown import plain_content
from pagemill.export.parts import captions_of, is_in_text

CONTEXT_CHARACTERS = 600
"""Characters of the text before an element, and of that after it: two paragraphs. Not measured."""

LONGEST_HEADING = 200
"""Characters of a heading in a section path, which stands with every region below it; real ones are shorter."""
_HALF = CONTEXT_CHARACTERS + 1
_DEFAULT_LEVEL = 2
_SPOKEN = frozenset({Category.TITLE, Category.TEXT, Category.LIST})


def heading_level(region: Region) -> int | None:
    """Level of a heading with a text, 1 for a title; None for what is not a heading."""
    if region.label not in TITLES or not (region.content or "").strip():
        return None
    return region.level or (1 if region.label is Label.DOC_TITLE else _DEFAULT_LEVEL)


class Sections:
    """Follows the headings of one document, whose regions are given one by one in reading order, over its pages."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def path(self, region: Region) -> tuple[str, ...]:
        """The headings above a region, outermost first; above a heading those of lower levels. Furniture has none."""
        # Running heads repeat on each page, and would close the section they are in.
        if not is_in_text(region) or region.label in FURNITURE_LABELS:
            return ()
        level = heading_level(region)
        if level is not None:
            self._open = [(above, text) for above, text in self._open if above < level]
        path = tuple(text for _, text in self._open)
        if level is not None:
            text = one_line(region)
            self._open.append((level, text if len(text) <= LONGEST_HEADING else f"{text[: LONGEST_HEADING - 1]}…"))
        return path


class Surroundings(NamedTuple):
    """The text around an element on its page."""

    before: str
    after: str
    captions: tuple[str, ...]


class PageContext:
    """Finds the context of the elements of a page, in a time that does not depend on their number."""

    def __init__(self, regions: Sequence[Region]) -> None:
        spoken = [region for region in regions if _is_spoken(region)]
        self._captions = captions_of(regions)
        self._places = [region.index for region in spoken]
        self._texts = [_ends(one_line(region)) for region in spoken]

    def of(self, region: Region) -> Surroundings:
        """Text around a region: running text, headings and lists, without captions of other elements."""
        middle = bisect_left(self._places, region.index)
        before = " ".join(self._texts[max(0, middle - CONTEXT_CHARACTERS) : middle])
        after = " ".join(self._texts[middle : middle + CONTEXT_CHARACTERS])
        captions = tuple(one_line(caption) for caption in self._captions.get(region.index, ()))
        return Surroundings(_head(before[::-1])[::-1], _head(after), captions)


def one_line(region: Region) -> str:
    """The text of a region in one line, without markup."""
    return " ".join(plain_content(region).split())


def _is_spoken(region: Region) -> bool:
    category = category_of(region.label, list_item=region.list_item)
    return bool(region.content) and category in _SPOKEN and region.label is not Label.FIGURE_TITLE


def _ends(text: str) -> str:
    """A text without its middle, which no context uses: a page may have thousands of elements around a long text."""
    return text if len(text) <= 3 * CONTEXT_CHARACTERS else f"{text[:_HALF]} {text[-_HALF:]}"


def _head(text: str) -> str:
    """The start of a text, cut between words where there are any."""
    if len(text) <= CONTEXT_CHARACTERS:
        return text
    # From the middle on, so that a text without spaces is cut, and not left out.
    space = text.rfind(" ", CONTEXT_CHARACTERS // 2, CONTEXT_CHARACTERS + 1)
    return text[: space if space > 0 else CONTEXT_CHARACTERS] + " …"
