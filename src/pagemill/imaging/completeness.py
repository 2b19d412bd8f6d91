"""Whether a PDF page shows more than its text layer tells: pictures, drawings, letters drawn as shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Box, area, as_array, shared_areas
from pagemill.document.page import ANNOTATION
from pagemill.imaging.page import TextLayer
from pagemill.imaging.types import Floats, Pixels
from pagemill.late import cv2

# All in font sizes of the page. Not measured.
_LEAST_PICTURE = 3.0
"""Least side of an image that may hold text in lines."""
_LETTER, _LETTER_GAP = 1.5, 0.6
"""A drawn shape up to this size is a letter or a bullet; shapes closer to each other than the gap may be a word."""
_LEAST_BARS, _LEAST_DRAWINGS = 4, 6
"""Filled areas without text, and shapes longer than a letter or beside each other, that may be a drawing."""
_MOST_SQUARES = 20
"""Filled areas of any size without text, bullets for instance, that are no picture. A matrix code has hundreds."""
_BAR_TEXT = 0.6
"""Share of a bar that text covers at most: shades of inline code are as large as their text."""

_MOST_BOXES = 1000
"""Shapes of a page that are compared with each other."""
_LOOK_SIDE, _LOOK_EM = 850, 10.0
"""Least pixels of the longer side and of a letter's height for a look at a page: A4 at 72 dpi."""
_EDGE, _EDGE_WIDTH = 32, 2
"""Difference of neighbouring pixels, of 255, that is an edge, and pixels that its blur reaches."""
_OVERHANG = 0.35
"""How far letters reach out of the boxes of their words, by the boxes' height."""
_STRAY = 12
"""Pixels of edges beside all that is known, at most: a letter has more."""


def may_show_more(layer: TextLayer, images: Sequence[Box]) -> bool:
    """Whether a page may show what a layout engine is needed for: pictures, which may hold text, or drawings."""
    em = _font_size(layer)
    if any(_least_side(box) >= _LEAST_PICTURE * em for box in images):
        return True
    # Shades are behind text; the bars of a chart are not.
    bars = [box for box, _ in layer.fills if _least_side(box) >= em]
    shared = _text_in(bars, layer)
    if np.count_nonzero(shared <= 0) >= _LEAST_BARS or _are_bars(bars, shared):
        return True
    large = sum(_side(box) >= em for box in layer.drawings)
    return max(large, _beside_each_other(layer.drawings, _LETTER_GAP * em)) >= _LEAST_DRAWINGS


def _text_in(boxes: Sequence[Box], layer: TextLayer) -> Floats:
    """The area of each box that lines cover."""
    return shared_areas(as_array(boxes), as_array(line.box for line in layer.lines))


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


def may_be_text_only(layer: TextLayer, images: Sequence[Box]) -> bool:
    """Whether the lines of a layer may be all that its page shows; :func:`shows_only_text` looks at the page then.

    What is beside lines, rules and shades are bullets at most. Pages with the signs of formulas do not count: their
    formulas are cut out. Nor do those with fields of forms, whose structure is read from the pixels, nor those with
    slanted lines, whose boxes say little.
    """
    em = _font_size(layer)
    drawn = [*layer.drawings, *layer.strokes, *(box for box, _ in layer.fills)]
    return (
        bool(layer.lines)
        and not (layer.marks or any(line.engine == ANNOTATION or line.polygon for line in layer.lines))
        and not (layer.hidden_lines or layer.symbols or layer.unmapped or layer.left_out or layer.has_more)
        and not (images or layer.unseen or layer.watermarks)
        and not any(_side(box) >= _LETTER * em for box in layer.drawings)
        and int(np.count_nonzero(_text_in([box for box, _ in layer.fills], layer) <= 0)) <= _MOST_SQUARES
        and not _beside_each_other([box for box in drawn if _side(box) < _LETTER * em], _LETTER_GAP * em)
        and _beside_each_other([box for box in drawn if _is_upright(box)], _LETTER_GAP * em) < _LEAST_DRAWINGS
        and not may_show_more(layer, images)
    )


def looking_scale(layer: TextLayer, side: int) -> float:
    """The scale, of a page whose longer side has so many pixels, at which a look at it says what it shows."""
    return min(1.0, max(_LOOK_SIDE / side, _LOOK_EM / _font_size(layer)))


def shows_only_text(layer: TextLayer, pixels: Pixels, scale: float) -> bool:
    """Whether a page shows ink at each of its words, and none beside them but rules, shades and bullets.

    Args:
        layer: One that :func:`may_be_text_only`.
        pixels: The page, drawn smaller, shape (height, width, 3), dtype uint8.
        scale: Their size by that of the page in whose pixels the layer is.
    """
    red, green, blue = cv2.split(pixels)
    darkest = cv2.min(cv2.min(red, green), blue)
    edges = cv2.morphologyEx(darkest, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > _EDGE
    words = scale * as_array(word.box for line in layer.lines for word in line.words or (line,))
    counts = cv2.integral(edges.astype(np.uint8))
    x1, y1, x2, y2 = _pixels_of(words, edges.shape).T
    if (counts[y2, x2] - counts[y1, x2] - counts[y2, x1] + counts[y1, x1] == 0).any():
        return False
    reach = _OVERHANG * (words[:, 3:] - words[:, 1:2]) + _EDGE_WIDTH
    drawn = scale * as_array([*layer.strokes, *layer.drawings, *_borders(layer.fills)])
    known = np.concatenate([words + reach * [-1, -1, 1, 1], drawn + _EDGE_WIDTH * np.array([-1, -1, 1, 1])])
    for left, top, right, bottom in _pixels_of(known, edges.shape).tolist():
        edges[top:bottom, left:right] = False
    return int(np.count_nonzero(edges)) <= _STRAY


def _pixels_of(boxes: Floats, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The pixels of an image that boxes touch, from the first to one behind the last."""
    whole = np.concatenate([np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])], axis=1).astype(np.int64)
    return np.clip(whole, 0, [shape[1], shape[0]] * 2)


def _borders(fills: Sequence[tuple[Box, int]]) -> Iterator[Box]:
    for (x1, y1, x2, y2), _ in fills:
        yield from ((x1, y1, x2, y1), (x1, y2, x2, y2), (x1, y1, x1, y2), (x2, y1, x2, y2))


def _font_size(layer: TextLayer) -> float:
    return float(np.median([line.font_size or line.box[3] - line.box[1] for line in layer.lines] or [1.0]))


def _side(box: Box) -> float:
    return max(box[2] - box[0], box[3] - box[1])


def _is_upright(box: Box) -> bool:
    return box[3] - box[1] > box[2] - box[0]


def _least_side(box: Box) -> float:
    return min(box[2] - box[0], box[3] - box[1])


def _beside_each_other(boxes: Sequence[Box], gap: float) -> int:
    """How many boxes have another one close at their right, as letters drawn as shapes have; bullets do not."""
    if len(boxes) > _MOST_BOXES:
        return len(boxes)  # a drawing
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
