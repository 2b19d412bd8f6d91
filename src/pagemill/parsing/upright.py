"""A page turned and straightened so that its text runs level, and what was found put back onto the page as it is.

Layout, tables and reading order work on level text; boxes in the record must lie on the image the user has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from pagemill.document.page import PageResult, TextLine
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.transforms import WHITE, rotate_quarter
from pagemill.late import cv2
from pagemill.parsing.fields import with_marks
from pagemill.parsing.lines import (
    Affine,
    around,
    corners_of,
    direction,
    is_mostly_vertical,
    is_vertical,
    mapped,
    moved,
    quarter_turn,
    runs_across,
    weighted_median,
)
from pagemill.parsing.record import move_region
from pagemill.parsing.thresholds import PARSING

_HEAD_DOWN = 135
"""Degrees from which a line runs backwards."""


class LevelPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page whose lines run level."""

    upright: DecodedPage
    """Turned by ``rotation``: what the boxes of the record refer to."""
    rotation: int
    """Degrees clockwise, a multiple of 90."""
    straight: DecodedPage
    """Turned by the skew as well, in the same size; corners that come free are white."""
    lines: Sequence[TextLine]
    """On the straight page."""
    originals: Sequence[TextLine]
    """The same on the upright page."""
    skew: float
    """Degrees."""

    def restore(self, record: PageResult) -> None:
        """Put the regions and lines of a record made from the straight page onto the upright page."""
        if not self.skew:
            return
        back = cv2.invertAffineTransform(_turn_about_middle(self.upright, self.skew))
        originals = {id(line): original for line, original in zip(self.lines, self.originals, strict=True)}
        for region in record.regions:
            region.lines = tuple(originals.get(id(line), line) for line in region.lines)
            outline = mapped(np.asarray(back), region.polygon or corners_of(region.bbox))
            move_region(region, outline, record.width, record.height)


def level_page(
    page: DecodedPage, lines: Sequence[TextLine], marks: Sequence[TextLine], *, turned: int | None
) -> LevelPage:
    """Turn a page upright, add what is marked on it to its lines, and straighten it if it was scanned askew.

    Args:
        page: As decoded.
        lines: Of its text layer, or as read from the page turned by ``turned``.
        marks: Check boxes and field values in pixels of the page as decoded.
        turned: Degrees by which recognition turned the page; None for the lines of a text layer.
    """
    width, height = page.size
    rotation = turn_to_upright(lines) if turned is None else turned
    runs_down = turned is None and not rotation and is_mostly_vertical(lines)
    rotation = 270 if runs_down else rotation
    there = quarter_turn(rotation, width, height)
    if rotation and not page.is_text_only:
        boxes = tuple(around(mapped(there, corners_of(box))) for box in page.image_boxes)
        page = replace(page, pixels=rotate_quarter(page.pixels, rotation), image_boxes=boxes)
        if page.text_layer is not None and page.text_layer.symbols:  # they lie as the page was
            page = replace(page, text_layer=replace(page.text_layer, symbols=(), rules=()))
        if turned is None:
            lines = [_laid(line, there) if runs_down and is_vertical(line) else moved(line, there) for line in lines]
    if marks:
        lines = with_marks(lines, [moved(mark, there) for mark in marks])
    skew = 0.0 if turned is None else estimate_skew(lines)
    straight, level = straighten(page, lines, skew) if skew else (page, lines)
    return LevelPage(upright=page, rotation=rotation, straight=straight, lines=level, originals=lines, skew=skew)


def turn_to_upright(lines: Sequence[TextLine]) -> int:
    """Degrees, a multiple of 90, by which the page must be turned clockwise for most of its text to run level.

    Text tells its direction by its polygon; East Asian columns of upright characters have none and are level.
    """
    characters: Counter[int] = Counter()
    for line in lines:
        quarter = round(direction(line) / 90) * 90
        level = abs(direction(line) - quarter) <= PARSING.turned_tolerance
        characters[quarter % 360 if level else -1] += len(line.text)
    most = max((0, 90, 180, 270), key=lambda quarter: characters[quarter])
    return -most % 360 if characters[most] >= max(PARSING.turned * characters.total(), PARSING.turned_characters) else 0


def estimate_skew(lines: Sequence[TextLine]) -> float:
    """The angle at which the lines of a page run, in degrees, positive where they fall to the right.

    The median over long lines, weighted by length; 0 where there are too few or they disagree.
    """
    angles: list[float] = []
    lengths: list[float] = []
    for line in lines:
        first, second, *_, last = line.polygon or corners_of(line.box)
        length = math.dist(first, second)
        if length >= PARSING.slender * max(math.dist(first, last), 1.0) and second[0] > first[0]:
            angles.append(direction(line))
            lengths.append(length)
    if len(angles) < PARSING.skew_lines:
        return 0.0
    angle = weighted_median(angles, lengths)
    agreed = np.average(np.abs(np.subtract(angles, angle)) < PARSING.skew_spread, weights=lengths)
    meant = agreed > PARSING.skew_agreement and PARSING.min_skew <= abs(angle) <= PARSING.max_skew
    return angle if meant else 0.0


def straighten(page: DecodedPage, lines: Sequence[TextLine], skew: float) -> tuple[DecodedPage, list[TextLine]]:
    """The page, without the places of its images, and its lines, turned by ``-skew`` degrees about the middle."""
    height, width = page.pixels.shape[:2]
    there = _turn_about_middle(page, skew)
    turned = cv2.warpAffine(
        page.pixels,
        there,
        (width, height),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=(WHITE,) * 3,
    )
    straight = replace(page, pixels=np.asarray(turned, dtype=np.uint8), image_boxes=())
    return straight, [_level(moved(line, there)) for line in lines]


def _turn_about_middle(page: DecodedPage, skew: float) -> Affine:
    height, width = page.pixels.shape[:2]
    return np.asarray(cv2.getRotationMatrix2D((width / 2, height / 2), skew, 1.0), dtype=np.float64)


def _laid(line: TextLine, there: Affine) -> TextLine:
    """A column of upright characters on its side, where it runs level."""
    return msgspec.structs.replace(moved(line, there), polygon=None)


def _level(line: TextLine) -> TextLine:
    """The line with its box as its outline, and words as tall as the line: boxes around slanted ones are taller.

    One that runs across the page stays as it is, and one that stands on its head keeps its outline, which tells its
    direction.
    """
    if runs_across(line) or abs(direction(line)) > _HEAD_DOWN:
        return line
    _, y1, _, y2 = line.box
    words = tuple(msgspec.structs.replace(word, box=(word.box[0], y1, word.box[2], y2)) for word in line.words)
    return msgspec.structs.replace(line, polygon=None, words=words)
