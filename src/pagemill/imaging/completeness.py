"""Whether a PDF page shows more than its text layer tells: pictures, drawings, letters drawn as shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from pagemill.document.geometry import Box, area, as_array, shared_areas
from pagemill.document.page import ANNOTATION
from pagemill.imaging.page import TextLayer
from pagemill.imaging.types import Floats

# All in font sizes of the page. Not measured.
_LEAST_PICTURE = 3.0
"""Least side of an image that may hold text in lines, and of one that may hold a letter."""
_LEAST_ICON = 0.5
_LETTER, _LETTER_GAP = 1.5, 0.6
"""A drawn shape up to this size is a letter or a bullet; shapes closer to each other than the gap may be a word."""
_LEAST_BARS, _LEAST_DRAWINGS = 4, 6
"""Filled areas without text, and shapes longer than a letter or beside each other, that may be a drawing."""
_BAR_TEXT = 0.6
"""Share of a bar that text covers at most: shades of inline code are as large as their text."""


def may_show_more(layer: TextLayer, images: Sequence[Box]) -> bool:
    """Whether a page may show what a layout engine is needed for: pictures, which may hold text, or drawings."""
    em = _font_size(layer)
    if any(_least_side(box) >= _LEAST_PICTURE * em for box in images):
        return True
    # Shades are behind text; the bars of a chart are not.
    bars = [box for box, _ in layer.fills if _least_side(box) >= em]
    shared = shared_areas(as_array(bars), as_array(line.box for line in layer.lines))
    if np.count_nonzero(shared <= 0) >= _LEAST_BARS or _are_bars(bars, shared):
        return True
    large = sum(_side(box) >= em for box in layer.drawings)
    return max(large, _beside_each_other(layer.drawings, _LETTER_GAP * em)) >= _LEAST_DRAWINGS


def _are_bars(boxes: Sequence[Box], shared: Floats) -> bool:
    """Whether shades that begin at one line differ in length, and text covers little of them."""
    for start, end, low, high in ((0, 2, 1, 3), (3, 1, 0, 2)):
        groups = defaultdict(set)
        for box, text in zip(boxes, shared.tolist(), strict=True):
            if text < _BAR_TEXT * area(box):
                groups[round(box[start]), round(box[high] - box[low])].add(round(box[end]))
        if any(len(ends) >= _LEAST_BARS for ends in groups.values()):
            return True
    return False


def tells_all(layer: TextLayer, images: Sequence[Box]) -> bool:
    """Whether nothing but the lines of a layer can be text or a picture on its page, so that nobody has to look at it.

    What is beside lines, rules and shades are bullets at most. Pages with the signs of formulas do not count: their
    formulas are cut out. Nor do those with fields of forms, whose structure is read from the pixels.
    """
    em = _font_size(layer)
    return (
        bool(layer.lines)
        and not (layer.marks or any(line.engine == ANNOTATION for line in layer.lines))
        and not (layer.hidden_lines or layer.symbols or layer.unmapped or layer.left_out or layer.has_more)
        and not any(_side(box) >= _LEAST_ICON * em for box in images)
        and not any(_side(box) >= _LETTER * em for box in layer.drawings)
        and not _beside_each_other(layer.drawings, _LETTER_GAP * em)
        and not may_show_more(layer, images)
    )


def _font_size(layer: TextLayer) -> float:
    return float(np.median([line.font_size or line.box[3] - line.box[1] for line in layer.lines] or [1.0]))


def _side(box: Box) -> float:
    return max(box[2] - box[0], box[3] - box[1])


def _least_side(box: Box) -> float:
    return min(box[2] - box[0], box[3] - box[1])


def _beside_each_other(boxes: Sequence[Box], gap: float) -> int:
    """How many boxes have another one close at their right, as letters drawn as shapes have; bullets do not."""
    ordered = sorted(boxes, key=lambda box: box[0])
    count = 0
    for place, (_, y1, x2, y2) in enumerate(ordered):
        for other in ordered[place + 1 :]:
            if other[0] > x2 + gap:
                break
            if min(y2, other[3]) - max(y1, other[1]) > 0.5 * min(y2 - y1, other[3] - other[1]):
                count += 1
                break
    return count
