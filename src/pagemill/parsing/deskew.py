"""Straightening a scanned page for analysis, and putting what was found back onto the page as it is.

Layout, tables and reading order work on straight pages; boxes in the record must lie on the image the user has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import msgspec
import numpy as np

from pagemill.document.geometry import clip, normalise_1000, union_box
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.document.geometry import Box, Point
    from pagemill.document.page import PageResult, TextLine
    from pagemill.imaging.types import Pixels

_WHITE = 255


def estimate_skew(lines: Sequence[TextLine]) -> float:
    """The angle at which the lines of a page run, in degrees, positive where they fall to the right.

    The median over long lines, weighted by length; 0 where there are too few or they disagree.
    """
    angles: list[float] = []
    weights: list[float] = []
    for line in lines:
        if line.polygon is None:
            (x1, y1), (x2, y2) = (line.box[0], line.box[1]), (line.box[2], line.box[1])
            height = line.box[3] - line.box[1]
        else:
            (x1, y1), (x2, y2) = line.polygon[0], line.polygon[1]
            height = math.dist(line.polygon[0], line.polygon[3])
        length = math.hypot(x2 - x1, y2 - y1)
        if length >= PARSING.slender * max(height, 1.0) and x2 > x1:
            angles.append(math.degrees(math.atan2(y2 - y1, x2 - x1)))
            weights.append(length)
    if len(angles) < PARSING.skew_lines:
        return 0.0
    order = np.argsort(angles)
    cumulated = np.cumsum(np.asarray(weights)[order])
    angle = float(np.asarray(angles)[order][np.searchsorted(cumulated, cumulated[-1] / 2)])
    agree = sum(weight for one, weight in zip(angles, weights, strict=True) if abs(one - angle) < PARSING.skew_spread)
    agreed = agree > PARSING.skew_agreement * cumulated[-1]
    return angle if agreed and PARSING.min_skew <= abs(angle) <= PARSING.max_skew else 0.0


@dataclass(frozen=True, slots=True)
class StraightPage:
    """A page turned so that its lines run level. Same size as the original; corners that come free are white."""

    pixels: Pixels
    lines: tuple[TextLine, ...]
    """The original lines with level boxes, in the same order."""
    _back: NDArray[np.float64]
    """Affine map, shape (2, 3), from straight to original pixels."""
    _original: tuple[TextLine, ...]

    def restore(self, record: PageResult) -> None:
        """Put the regions and lines of a record made from the straight page back onto the original page."""
        originals = {id(line): original for line, original in zip(self.lines, self._original, strict=True)}
        for region in record.regions:
            region.lines = tuple(originals.get(id(line), line) for line in region.lines)
            corners = _corners(region.bbox) if region.polygon is None else region.polygon
            region.polygon = _mapped(self._back, corners)
            box = union_box([(x, y, x, y) for x, y in region.polygon])
            region.bbox = clip(box, record.width, record.height)
            region.bbox_2d = normalise_1000(region.bbox, record.width, record.height)


def straighten(pixels: Pixels, lines: Sequence[TextLine], angle: float) -> StraightPage:
    """Turn a page by ``-angle`` degrees about its middle.

    Args:
        pixels: The page, shape (height, width, 3).
        lines: Its lines, in its pixels.
        angle: As :func:`estimate_skew` gives it, in degrees.
    """
    height, width = pixels.shape[:2]
    there = np.asarray(cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1.0), dtype=np.float64)
    back = cv2.invertAffineTransform(there)
    turned = cv2.warpAffine(
        pixels,
        there,
        (width, height),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=(_WHITE,) * 3,
    )
    level = tuple(_level(line, there) for line in lines)
    return StraightPage(np.asarray(turned, dtype=np.uint8), level, np.asarray(back, dtype=np.float64), tuple(lines))


def _level(line: TextLine, there: NDArray[np.float64]) -> TextLine:
    """The line with a level box around its turned corners, and its words likewise."""
    corners = line.polygon or _corners(line.box)
    box = _around(_mapped(there, corners))
    words = tuple(
        msgspec.structs.replace(word, box=_between(_mapped(there, _corners(word.box)), box)) for word in line.words
    )
    return msgspec.structs.replace(line, box=box, polygon=None, words=words)


def _between(corners: Sequence[Point], line: Box) -> Box:
    """A word's box: its own extent along the line, the line's extent across it (a slanted word's box is too tall)."""
    x1, _, x2, _ = _around(corners)
    return (x1, line[1], x2, line[3])


def _corners(box: Box) -> tuple[Point, ...]:
    x1, y1, x2, y2 = box
    return ((x1, y1), (x2, y1), (x2, y2), (x1, y2))


def _around(corners: Sequence[Point]) -> Box:
    return union_box([(x, y, x, y) for x, y in corners])


def _mapped(affine: NDArray[np.float64], points: Sequence[Point]) -> tuple[Point, ...]:
    moved = np.asarray(points, dtype=np.float64) @ affine[:, :2].T + affine[:, 2]
    return tuple((round(float(x), 1), round(float(y), 1)) for x, y in moved)
