"""A document while its structure is derived: the facts of its pages, and a draft of each region."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pagemill.document.labels import FURNITURE_LABELS, RUNNING_TEXT, TITLES, Label
from pagemill.document.page import Furniture, Style
from pagemill.document.structure.facts import Facts, RegionFacts
from pagemill.late import re

TEXTS = RUNNING_TEXT | TITLES | FURNITURE_LABELS
"""Labels that may be headings, paragraphs or furniture."""

_DIGITS = re.compile(r"\d+")


@dataclass(slots=True, eq=False)
class Draft:
    """What becomes of a region."""

    facts: RegionFacts
    page: int
    """Position of its page among those of the document."""
    index: int
    label: Label = field(init=False)
    level: int | None = field(init=False)
    furniture: Furniture | None = field(init=False)
    anchor: str | None = None
    joined_to: str | None = None

    def __post_init__(self) -> None:
        self.label, self.level, self.furniture = self.facts.label, self.facts.level, self.facts.furniture

    @property
    def is_heading(self) -> bool:
        """Whether it is a heading that has a text."""
        return self.label in TITLES and bool(self.facts.head) and self.furniture is None

    @property
    def is_content(self) -> bool:
        """Whether it is part of the page's content, and not known to be furniture."""
        return self.furniture is None and self.label not in BESIDE and self.facts.length > 0

    @property
    def centre(self) -> float:
        """Centre of its box, in thousandths of the page's width."""
        return (self.facts.box[0] + self.facts.box[2]) / 2


BESIDE = FURNITURE_LABELS | {Label.ASIDE_TEXT, Label.HEADER_IMAGE, Label.FOOTER_IMAGE}


class Book:
    """All pages of a document.

    Args:
        pages: In page order; None for one of which no facts are known, which stays as it is.
    """

    def __init__(self, pages: Sequence[Facts | None]) -> None:
        self.pages = pages
        self.drafts = [
            [Draft(region, position, index) for index, region in enumerate(page.regions)] if page else []
            for position, page in enumerate(pages)
        ]
        self._styles = [tuple(map(plain, page.styles)) if page else () for page in pages]
        self.characters = characters = Counter[Style]()
        """How many characters each style has."""
        for page, styles in zip(pages, self._styles, strict=True):
            for style, counted in zip(styles, page.styles if page else (), strict=True):
                characters[style] += counted.characters
        code = sum(count for style, count in characters.items() if style.fixed_pitch)
        prose = {
            style: count
            for style, count in characters.items()
            if not style.fixed_pitch and (not style.bold or count > code)  # else headings between code
        } or characters
        # Of equals the smaller one, so that the result does not depend on the order of the pages.
        self.body = min(prose, key=lambda style: (-prose[style], style.size, style.family), default=None)
        """The style of most characters; None where no page has a text layer."""
        heights = sorted(
            draft.facts.height for draft in self.each() if draft.label is Label.TEXT and draft.facts.height
        )
        self.body_height = heights[len(heights) // 2] if heights else 0
        """Median height of the lines of text, in ten-thousandths of the page's height."""

    def each(self) -> Iterator[Draft]:
        """The regions of all pages."""
        for drafts in self.drafts:
            yield from drafts

    def style(self, draft: Draft) -> Style | None:
        """The style of a region, without its count."""
        return self.style_of(draft, draft.facts.style)

    def style_of(self, draft: Draft, index: int | None) -> Style | None:
        """A style of a region's page by its index."""
        styles = self._styles[draft.page]
        return styles[index] if index is not None and 0 <= index < len(styles) else None

    def size(self, draft: Draft) -> float:
        """How much larger a region is set than the body; 1 where that is unknown."""
        style = self.style(draft)
        if style is not None and self.body is not None and self.body.size > 0:
            return style.size / self.body.size
        return draft.facts.height / self.body_height if draft.facts.height and self.body_height else 1.0

    def name(self, draft: Draft) -> str:
        """Name of a region in the whole run: the id of its page, and its index."""
        page = self.pages[draft.page]
        assert page is not None
        return f"{page.page_id}/{draft.index}"


def plain(style: Style) -> Style:
    """A style without its count of characters, for comparison."""
    return Style(style.family, style.size, style.bold, style.italic, style.fixed_pitch, style.colour)


def folded(text: str) -> str:
    """A text in which running heads of two pages are alike: without case, all numbers equal."""
    return _DIGITS.sub("0", text.casefold())


def letters(text: str) -> str:
    """Letters and digits alone, without case and width: what an outline and its headings have in common."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())
