"""Which elements of a page are described, what is asked about them, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
"""Of the errors that say why an element has no description."""
LEAST_SHARE = 0.005
"""Of the page's area: smaller elements are icons, logos and signatures. Not measured: 1.8 cm squared of A4."""

_KINDS = {
    Label.IMAGE: Described.FIGURES,
    Label.CHART: Described.CHARTS,
    Label.TABLE: Described.TABLES,
    Label.DISPLAY_FORMULA: Described.FORMULAS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementRequest:
    """An element as the model gets it."""

    index: int
    """Of its region."""
    kind: Described
    picture: bytes
    """JPEG."""
    around: Surroundings
    language: str
    """Of the page, where it is known."""


def wanted(page: PageResult, kinds: Collection[Described]) -> Iterator[Region]:
    """The elements of a page that are to be described and are not yet; small ones and those without a place are not."""
    if page.status is Status.FAILED:
        return
    least = LEAST_SHARE * page.width * page.height
    for region in page.regions:
        is_placed = region.source != WHOLE_PAGE and area(region.bbox) >= least
        if _KINDS.get(region.label) in kinds and is_placed and region.description is None:
            yield region


def pictures(
    page: PageResult, pixels: Pixels, kinds: Collection[Described], crops: Sequence[tuple[str, bytes]] = ()
) -> dict[int, bytes]:
    """The elements to be described as JPEG by region; ``crops`` are those of the page that are encoded already."""
    cut = {saved.region: encoded for saved, (_, encoded) in zip(page.image_crops, crops, strict=False)}
    return {
        region.index: cut.get(region.index) or encode_jpeg(crop(pixels, region.bbox)) for region in wanted(page, kinds)
    }


def requests_for(page: PageResult, encoded: Mapping[int, bytes]) -> list[ElementRequest]:
    """What is asked about the elements of a page, by their pictures."""
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
    """Put descriptions into a record, by region; its Markdown stays as it was.

    A problem becomes an error, which replaces that of an earlier time.
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
