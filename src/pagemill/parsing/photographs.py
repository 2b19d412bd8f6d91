"""Photographs of pages: laid flat before anything else, and what was found put back into the photograph.

Layout, tables, reading order and recognition work on the flat page; boxes in the record must lie on the image that the
user has. Pictures are cut out of the flat page: they are for readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from pagemill.config.modes import PhotographMode
from pagemill.document.geometry import Point, clip, union_box
from pagemill.document.page import PageResult, TextLine, Word
from pagemill.imaging.encode import PREVIEW_SIDE
from pagemill.imaging.levelling import levelled
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.photograph import photographed_area
from pagemill.imaging.transforms import fit, rotate_quarter
from pagemill.imaging.types import Floats, Pixels
from pagemill.imaging.unwarping import NAME, Sheet, find_sheet
from pagemill.parsing.lines import around, corners_of, mapped, quarter_turn
from pagemill.parsing.record import move_region
from pagemill.parsing.thresholds import PARSING
from pagemill.recognition.base import DetectedLine


class Photograph(msgspec.Struct, frozen=True, eq=False):
    """The photograph that a flat page was made of."""

    sheet: Sheet
    width: int
    """Pixels, as decoded."""
    height: int
    small: Pixels
    """The photograph shrunk for the report; without pixels where the report does not show it."""

    def turned(self, rotation: int) -> Pixels:
        """The small photograph, turned clockwise."""
        return rotate_quarter(self.small, rotation)

    def restore(self, record: PageResult) -> None:
        """Put the regions and lines of a record made from the flat page into the photograph, turned like that page."""
        flat = record.width, record.height
        record.unwarped = NAME
        record.width, record.height = self._size(record.rotation)
        for region in record.regions:
            outline = _densely(region.polygon or corners_of(region.bbox))
            move_region(region, self._placed(outline, flat, record.rotation), record.width, record.height)
            region.lines = tuple(self._line(line, flat, record.rotation) for line in region.lines)
        record.image_crops = [
            msgspec.structs.replace(crop, bbox=record.regions[crop.region].bbox_2d) for crop in record.image_crops
        ]

    def _size(self, rotation: int) -> tuple[int, int]:
        return (self.height, self.width) if rotation % 180 else (self.width, self.height)

    def _placed(self, points: Sequence[Point], flat: tuple[int, int], rotation: int) -> tuple[Point, ...]:
        """Points of the flat page turned upright, in the photograph turned likewise."""
        lying = np.asarray(points, dtype=np.float64)
        if rotation:
            back = quarter_turn(-rotation % 360, *flat)
            lying = lying @ back[:, :2].T + back[:, 2]
        there = self.sheet.place(lying)
        return mapped(quarter_turn(rotation, self.width, self.height), [(x, y) for x, y in there.tolist()])

    def _line(self, line: TextLine, flat: tuple[int, int], rotation: int) -> TextLine:
        """A line, in the narrowest quadrilateral along it that holds all of it: it may be bent in the photograph."""
        first, second, third, last = line.polygon or corners_of(line.box)
        above = self._placed(_between(first, second), flat, rotation)
        below = self._placed(_between(last, third), flat, rotation)
        return msgspec.structs.replace(
            line,
            polygon=_around_bent(np.array(above), np.array(below)),
            box=clip(around((*above, *below)), *self._size(rotation)),
            words=tuple(self._word(word, flat, rotation) for word in line.words),
        )

    def _word(self, word: Word, flat: tuple[int, int], rotation: int) -> Word:
        box = around(self._placed(corners_of(word.box), flat, rotation))
        return msgspec.structs.replace(word, box=clip(box, *self._size(rotation)))


def unwarp_page(page: DecodedPage, mode: PhotographMode, *, previewed: bool) -> tuple[DecodedPage, Photograph] | None:
    """Lay a page flat where it is the photograph of one.

    Args:
        page: As decoded; its text layer is not used.
        mode: Whether any page is unwarped, or photographs only.
        previewed: Keep a small copy of the photograph.

    Returns:
        The flat page, and the way back; None for a page that is to be read as it is.

    Raises:
        MissingDependencyError: The unwarping model is not there.
    """
    height, width = page.pixels.shape[:2]
    whole = (0.0, 0.0, float(width), float(height))
    area = whole if mode is PhotographMode.ALWAYS else photographed_area(page.pixels)
    sheet = find_sheet(page.pixels, area) if area is not None else None
    if sheet is None:
        return None
    flat = replace(page, pixels=sheet.flatten(page.pixels), text_layer=None, image_boxes=())
    small = fit(page.pixels, PREVIEW_SIDE) if previewed else np.empty((0, 0, 3), dtype=np.uint8)
    return flat, Photograph(sheet, width, height, small)


def level_photograph(
    flat: tuple[DecodedPage, Photograph], pixels: Pixels, lit: Pixels, lines: Sequence[DetectedLine]
) -> tuple[DecodedPage, Photograph]:
    """Make the lines of a page level that was laid flat.

    Args:
        flat: What `unwarp_page` found.
        pixels: The photograph.
        lit: The flat page, evenly lit.
        lines: That were found on it.
    """
    page, photograph = flat
    curves = [curve for line in lines if len(curve := _middle(line))]
    if not curves:
        return flat
    text = union_box(line.box for line in lines)
    height = float(np.median([math.dist(line.polygon[0], line.polygon[3]) for line in lines]))
    sheet = levelled(photograph.sheet, lit, curves, text, height)
    if sheet is photograph.sheet:
        return flat
    return replace(page, pixels=sheet.flatten(pixels)), msgspec.structs.replace(photograph, sheet=sheet)


def _middle(line: DetectedLine) -> Floats:
    """Points along the middle of a line, shape (n, 2); none of one too short to show how it runs."""
    if line.middle:
        return np.array(line.middle)
    a, b, c, d = np.array(line.polygon)
    start, end = (a + d) / 2, (b + c) / 2
    is_long = end[0] - start[0] > PARSING.shows_slope * math.dist(a, d)
    return np.linspace(start, end, 4)[1:3] if is_long else np.empty((0, 2))


def _densely(corners: Sequence[Point]) -> list[Point]:
    """The outline of a polygon with points between its corners."""
    points: list[Point] = []
    for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
        points += _between(start, end)[:-1]
    return points


def _between(start: Point, end: Point) -> list[Point]:
    """Evenly spaced points from start to end."""
    shares = np.linspace(0.0, 1.0, PARSING.outline_points)[:, None]
    return [(x, y) for x, y in (np.array(start) * (1 - shares) + np.array(end) * shares).tolist()]


def _around_bent(above: Floats, below: Floats) -> tuple[Point, ...]:
    """A quadrilateral around a line, from its bent upper and lower edges: their chords, moved out as far as they bend.

    Clockwise from the line's own top-left corner.
    """
    along = above[-1] + below[-1] - above[0] - below[0]
    upwards = np.array([along[1], -along[0]]) / max(math.hypot(*along), 1e-9)
    corners = np.array([above[0], above[-1], below[-1], below[0]])
    corners[:2] += upwards * _bulge(above, upwards)
    corners[2:] -= upwards * _bulge(below, -upwards)
    return tuple((round(x, 1), round(y, 1)) for x, y in corners.tolist())


def _bulge(edge: Floats, outwards: Floats) -> float:
    """How far an edge bends outwards from its chord."""
    height = (edge - edge[0]) @ outwards
    return float((height - np.linspace(0.0, height[-1], len(height))).max())
