"""Lines that detection found across the gutter between two columns, cut there.

Columns may stand less than a line's height apart. Detection separates them in most rows, but not in all. A blank
between two lines of a row that goes on above or below through a line is a gutter there, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Box, area
from pagemill.imaging.transforms import crop_quad
from pagemill.imaging.types import Pixels
from pagemill.recognition.base import DetectedLine
from pagemill.recognition.ink import ink_of

_LEVEL = 0.03
"""Most slope of a line."""
_LEAST, _MOST = 0.25, 3.0
"""Line heights: width of a gutter. Farther columns are found apart."""
_SAME_ROW = 0.5
_NEXT_ROW = 2.5
"""Line heights from one row to the next."""
_ROWS, _PARTED = 5, 2
"""Least rows through which a gutter runs, and those of them that detection parted: on drawn pages in one column no
blanks between words stand in line so often."""
_FARTHEST = 15
"""Rows above and below a gutter that are looked at. Each row that detection parted has a gutter of its own, so that the
time taken grows with the rows and not with their square; on drawn newspapers all lines are cut as without a bound."""
_NO_SPACE, _WIDER = 0.9, 1.5
"""Line heights, and multiples of the usual space of its line, from which a blank is no space: the spaces of a justified
line differ by a third."""
_DOUBLE = 0.6
"""Share of a piece inside another line from which that line holds it already."""


@dataclass(slots=True, eq=False)
class _Line:
    """A level line with the blanks in it."""

    found: DetectedLine
    box: Box
    height: float
    blanks: list[tuple[float, float]] | None = None
    """From left to right; the first ends and the last begins where the ink does."""

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2


def cut_at_gutters(page: Pixels, found: Sequence[DetectedLine], *, bends: bool = False) -> list[DetectedLine]:
    """The lines of a page, those across a gutter in two.

    Args:
        page: Its pixels.
        found: Its lines.
        bends: Whether it is a photograph: lines are cut only where the blank is wider than the spaces of the line.
    """
    lines = [
        _Line(line, line.box, math.dist(line.polygon[0], line.polygon[3]))
        for line in found
        if math.dist(line.polygon[0], line.polygon[1]) > math.dist(line.polygon[0], line.polygon[3])
        and abs(line.polygon[1][1] - line.polygon[0][1]) <= _LEVEL * (line.polygon[1][0] - line.polygon[0][0])
    ]
    if len(lines) < _ROWS:
        return list(found)
    lines.sort(key=lambda line: line.middle)
    middles = np.array([line.middle for line in lines])
    starts, ends = np.array([line.box[0] for line in lines]), np.array([line.box[2] for line in lines])
    cuts: defaultdict[int, set[tuple[float, float]]] = defaultdict(set)
    rows = [_row(index, lines, middles) for index in range(len(lines))]
    for index, row in enumerate(rows):
        for right in row:
            left = lines[index]
            if not ((starts < left.box[2] - left.height) & (ends > lines[right].box[0] + left.height)).any():
                continue
            gutter = _between(page, left, lines[right])
            if gutter is not None:
                for crossing, blank in _crossed(page, index, gutter, lines, middles):
                    if not bends or _is_wide(blank, lines[crossing]):
                        cuts[crossing].add(blank)
    if not cuts:
        return list(found)
    parted = {id(lines[index].found): _parts(lines[index], sorted(blanks)) for index, blanks in cuts.items()}
    boxes = np.array([line.box for index, line in enumerate(lines) if index not in cuts]).reshape(-1, 4)
    return [
        part
        for line in found
        for part in parted.get(id(line), [line])
        if id(line) not in parted or not _is_held(part, boxes)
    ]


def _row(index: int, lines: Sequence[_Line], middles: NDArray[np.float64]) -> list[int]:
    """The lines beside a line, at its right, that a gutter may part from it."""
    line = lines[index]
    reach = _SAME_ROW * line.height
    low, high = np.searchsorted(middles, [line.middle - reach, line.middle + reach])
    return [
        other
        for other in range(int(low), int(high))
        if line.box[0] < lines[other].box[0] and -line.height < lines[other].box[0] - line.box[2] < _MOST * line.height
    ]


def _between(page: Pixels, left: _Line, right: _Line) -> tuple[float, float] | None:
    """The blank between two lines of a row."""
    start, end = _blanks(page, left)[-1][0], _blanks(page, right)[0][1]
    return (start, end) if end - start >= _LEAST * left.height else None


def _blanks(page: Pixels, line: _Line) -> list[tuple[float, float]]:
    if line.blanks is None:
        x, width = line.box[0], line.box[2] - line.box[0]
        image = crop_quad(page, line.found.polygon)
        ink = ink_of(image)
        inked = np.flatnonzero(ink.any(axis=0)) if ink is not None else np.array([0, image.shape[1] - 1])
        scale = width / image.shape[1]
        inner = np.flatnonzero(np.diff(inked) * scale >= _LEAST * line.height)
        line.blanks = [(x, x + float(inked[0]) * scale)]
        line.blanks += [(x + float(inked[i] + 1) * scale, x + float(inked[i + 1]) * scale) for i in inner]
        line.blanks.append((x + float(inked[-1] + 1) * scale, x + width))
    return line.blanks


def _crossed(
    page: Pixels, index: int, gutter: tuple[float, float], lines: Sequence[_Line], middles: NDArray[np.float64]
) -> list[tuple[int, tuple[float, float]]]:
    """The lines that cross a gutter at the right of a line, with their blanks there; none if it is too short."""
    crossing: list[tuple[int, tuple[float, float]]] = []
    parted = rows = 1
    height = lines[index].height
    for step in (1, -1):
        free, y = gutter, lines[index].middle
        for _ in range(_FARTHEST):
            row = _next_row(y, step, height, free, lines, middles)
            if not row:
                break
            blanks = [_blank_at(_blanks(page, lines[i]), free) for i in row]
            free = max(free[0], *(start for start, _ in blanks)), min(free[1], *(end for _, end in blanks))
            if free[1] - free[0] < _LEAST * height:
                break
            across = [math.isfinite(start) and math.isfinite(end) for start, end in blanks]
            crossing += [(i, blank) for i, blank, is_across in zip(row, blanks, across, strict=True) if is_across]
            both = any(start == -math.inf for start, _ in blanks) and any(end == math.inf for _, end in blanks)
            parted += both
            rows += both or any(across)
            y = lines[row[0]].middle
    return crossing if parted >= _PARTED and rows >= _ROWS else []


def _next_row(
    y: float, step: int, height: float, free: tuple[float, float], lines: Sequence[_Line], middles: NDArray[np.float64]
) -> list[int]:
    """The lines of the next row, down or up the page, that are near a gutter."""
    low, high = np.searchsorted(middles, sorted((y + _SAME_ROW * step * height, y + _NEXT_ROW * step * height)))
    reach = _MOST * height
    near = [i for i in range(int(low), int(high)) if lines[i].box[0] < free[1] + reach]
    near = [i for i in near if lines[i].box[2] > free[0] - reach]
    first = middles[near[0] if step > 0 else near[-1]] if near else 0.0
    return [i for i in near if abs(middles[i] - first) < _SAME_ROW * height]


def _is_wide(blank: tuple[float, float], line: _Line) -> bool:
    """Whether a blank is no space: of a justified line below a table some space is in line with one of its gutters."""
    width = blank[1] - blank[0]
    others = [end - start for start, end in (line.blanks or [])[1:-1] if (start, end) != blank]
    return width >= _NO_SPACE * line.height or not others or width > _WIDER * median(others)


def _blank_at(blanks: Sequence[tuple[float, float]], gutter: tuple[float, float]) -> tuple[float, float]:
    """The blank of a line that shares most with a gutter; the first and the last are endless."""
    outer = [(-math.inf, blanks[0][1]), *blanks[1:-1], (blanks[-1][0], math.inf)]
    return max(outer, key=lambda blank: min(blank[1], gutter[1]) - max(blank[0], gutter[0]))


def _parts(line: _Line, blanks: Sequence[tuple[float, float]]) -> list[DetectedLine]:
    """A line without the blanks in it, but for a margin."""
    a, b, c, d = np.asarray(line.found.polygon)
    left, width = line.box[0], line.box[2] - line.box[0]
    margin = _LEAST * line.height / 4
    edges = [0.0, *(x for start, end in blanks for x in (start + margin - left, end - margin - left)), width]
    parts = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        corners = [a + (b - a) * start / width, a + (b - a) * end / width]
        corners += [d + (c - d) * end / width, d + (c - d) * start / width]
        if end - start > margin:
            (p, q, r, s) = ((float(x), float(y)) for x, y in corners)
            parts.append(replace(line.found, polygon=(p, q, r, s)))
    return parts


def _is_held(part: DetectedLine, boxes: NDArray[np.float64]) -> bool:
    """Whether most of a piece lies in another line."""
    sides = np.minimum(boxes[:, 2:], part.box[2:]) - np.maximum(boxes[:, :2], part.box[:2])
    return bool((sides.clip(min=0).prod(axis=1) > _DOUBLE * area(part.box)).any())
