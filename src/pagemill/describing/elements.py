"""The elements of a page that are described, the requests about them, and their results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from pagemill.config.modes import Described
from pagemill.document.geometry import area
from pagemill.document.labels import Label
from pagemill.document.page import WHOLE_PAGE, Description, PageError, PageResult, Region, Status
from pagemill.export.context import PageContext, Surroundings
from pagemill.imaging.encode import encode_jpeg
from pagemill.imaging.transforms import crop
from pagemill.imaging.types import Pixels
from pagemill.recognition.base import Problem

COMPONENT = "describe"
"""Component of errors about missing descriptions."""
LEAST_SHARE = 0.005
"""Minimum share of the page's area: smaller elements are icons, logos and signatures. Not measured: a square of 1.8 cm
on A4."""

_KINDS = {
    Label.IMAGE: Described.FIGURES,
    Label.CHART: Described.CHARTS,
    Label.TABLE: Described.TABLES,
    Label.DISPLAY_FORMULA: Described.FORMULAS,
}


class ElementRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An element to be described."""

    index: int
    """Index of its region."""
    kind: Described
    picture: bytes
    """JPEG."""
    around: Surroundings
    language: str
    """Language of the page; empty if unknown."""


def wanted(page: PageResult, kinds: Collection[Described]) -> Iterator[Region]:
    """The elements of a page without a description, except small ones and those without a place."""
    if page.status is Status.FAILED:
        return
    least = LEAST_SHARE * page.width * page.height
    for region in page.regions:
        # A region that stands for the whole page has no picture of its own.
        is_placed = region.source != WHOLE_PAGE and area(region.bbox) >= least
        if _KINDS.get(region.label) in kinds and is_placed and region.description is None:
            yield region


def pictures(
    page: PageResult, pixels: Pixels, kinds: Collection[Described], crops: Sequence[tuple[str, bytes]] = ()
) -> dict[int, bytes]:
    """JPEGs of the elements to be described, by region. Reuses ``crops``, which are encoded already."""
    cut = {saved.region: encoded for saved, (_, encoded) in zip(page.image_crops, crops, strict=False)}
    return {
        region.index: cut.get(region.index) or encode_jpeg(crop(pixels, region.bbox)) for region in wanted(page, kinds)
    }


def requests_for(page: PageResult, encoded: Mapping[int, bytes]) -> list[ElementRequest]:
    """The requests for the elements of a page, from their pictures."""
    context = PageContext(page.regions)
    return [
        ElementRequest(
            index=index,
            kind=_KINDS[page.regions[index].label],
            picture=picture,
            around=context.of(page.regions[index]),
            language=page.languages[0] if page.languages else "",
        )
        for index, picture in encoded.items()
        if page.regions[index].label in _KINDS
    ]


def take(page: PageResult, answers: Mapping[int, Description | Problem | None]) -> None:
    """Store descriptions in a record, by region; its Markdown stays as it was.

    A problem becomes an error, which replaces an earlier one.
    """
    page.errors = [error for error in page.errors if error.component != COMPONENT or error.region not in answers]
    for index, answer in answers.items():
        if isinstance(answer, Description):
            page.regions[index].description = answer
            if answer.left_out:
                what = "; ".join(answer.left_out)
                message = f"of the description of the {page.regions[index].label.value} was left out: {what}"
                page.errors.append(PageError(component=COMPONENT, category="incomplete", message=message, region=index))
        elif answer is not None:
            message = f"the {page.regions[index].label.value} has no description: {answer.message}"
            page.errors.append(
                PageError(
                    component=COMPONENT, category=answer.category, message=message, remedy=answer.remedy, region=index
                )
            )
