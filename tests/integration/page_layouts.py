"""Documents to derive a structure from, drawn in thousandths of a page."""

from collections.abc import Sequence
from typing import Any

import msgspec

from pagemill.document.labels import Label
from pagemill.document.page import DocumentInfo, PageResult, Region, Style
from pagemill.document.structure import structured

BODY = Style("Serif", 11.0, characters=1000)
SMALL = Style("Sans", 12.0, bold=True, characters=20)
LARGE = Style("Sans", 16.0, bold=True, characters=20)
HUGE = Style("Sans", 24.0, bold=True, characters=10)
STYLES = (BODY, SMALL, LARGE, HUGE)
PROSE = "The water turns the wheel, and the wheel turns the beater. " * 6


def region(label: Label, text: str | None, top: int, style: Style | None = None, **fields: Any) -> Region:
    left, bottom, right = fields.pop("left", 100), top + fields.pop("high", 15), fields.pop("right", 900)
    return Region(
        index=0,
        label=label,
        content=text,
        bbox_2d=(left, top, right, bottom),
        bbox=(float(left), float(top), float(right), float(bottom)),
        style=None if style is None else STYLES.index(style),
        **fields,
    )


def prose(top: int = 500, text: str = PROSE, **fields: Any) -> Region:
    return region(Label.TEXT, text, top, BODY, **{"high": 100, **fields})


def heading(text: str, top: int, style: Style | None = LARGE, **fields: Any) -> Region:
    return region(Label.PARAGRAPH_TITLE, text, top, style, **{"level": 2, **fields})


def page(number: int, *regions: Region, **fields: Any) -> PageResult:
    return PageResult(
        page_id=f"d_{number}",
        page_idx=number - 1,
        doc_id="d",
        source="d.pdf",
        page_number=number,
        width=1000,
        height=1000,
        regions=[msgspec.structs.replace(each, index=index) for index, each in enumerate(regions)],
        **{"styles": STYLES, **fields},
    )


def read(pages: Sequence[PageResult], info: DocumentInfo | None = None) -> list[Region]:
    """The regions of a document, through its structure."""
    return [region for page in structured(pages, info) for region in page.regions]


def levels(pages: Sequence[PageResult], info: DocumentInfo | None = None) -> list[tuple[str, int | None]]:
    """The headings of a document with their levels."""
    titles = (Label.PARAGRAPH_TITLE, Label.DOC_TITLE)
    return [(each.content or "", each.level) for each in read(pages, info) if each.label in titles]
