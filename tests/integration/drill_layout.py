"""A layout engine of an imaginary package: the same eight regions for every page."""

from collections.abc import Sequence

from pagemill.document.labels import Label
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion

REGIONS = (
    *(Label.DOC_TITLE, Label.TEXT, Label.TABLE, Label.TEXT),
    *(Label.DISPLAY_FORMULA, Label.TEXT, Label.IMAGE, Label.TEXT),
)
"""Row by row, two a row."""


class DrillLayout:
    """The same eight regions for every page."""

    name = "drill"
    max_batch = 8

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page."""
        return [[_region(page, place) for place in range(len(REGIONS))] for page in pages]

    def close(self) -> None:
        """Nothing to free."""


def _region(page: Pixels, place: int) -> DetectedRegion:
    height, width = page.shape[:2]
    row, column = divmod(place, 2)
    left, top = column * width / 2 + 10, row * height / 4 + 10
    box = (left, top, left + width / 2 - 20, top + height / 4 - 20)
    return DetectedRegion(box=box, label=REGIONS[place], score=0.9, source="drill", order=place)


def create(settings: object) -> DrillLayout:
    """The entry point of the engine."""
    return DrillLayout()
