"""Handwriting told from print, in any script: no letter of it has a twin.

Engines for print read handwriting badly, and what they make of it looks like another script. Print sets one shape for
one letter, so on a page of it nearly every connected shape of ink is there again; a hand never draws one twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.types import Pixels
from pagemill.late import cv2

_SIDE = 16
"""Pixels of a side to which shapes are shrunk to compare them."""
_LEAST_HEIGHT, _MOST_WIDTH = 0.25, 4.0
"""Line heights: less is a dot or a comma, more a rule."""
_HEADLINE = 0.8
"""Share of a shape's width that one row of it fills: a word of Devanagari or Bengali, which has a twin where it is said
again."""
_SAME_SIZE = 1.2
"""Largest ratio of two widths, or heights, of twins."""
_ALIKE = 0.7
"""Share of the ink of twins that both have."""
_MOST_SHAPES = 400
"""Shapes that are compared with each other: 15 ms."""
_LEAST_SHAPES = 100
"""Shapes below which nothing is said: of some 80, in 4 printed lines of traditional Chinese, as few have twins."""
_TWINS = 0.25
"""Share of shapes with twins under which they are handwriting: 0.08 of 309 of a Chinese hand; print, of 400, has 0.46
(traditional Chinese) to 0.97 in 12 languages, scanned or photographed."""


def is_handwriting(doubtful: Sequence[Pixels], others: Sequence[Pixels]) -> bool:
    """Whether lines that an engine is not sure of are written by hand.

    Args:
        doubtful: Images of these lines.
        others: Those of the other lines of the page, in which print has its twins, too.
    """
    shapes = _shapes(doubtful)[:_MOST_SHAPES]
    if len(shapes) < _LEAST_SHAPES:
        return False
    candidates = shapes + _shapes(others)[: _MOST_SHAPES - len(shapes)]
    sizes = np.array([size for size, _ in candidates], dtype=np.float32)
    masks = np.array([mask for _, mask in candidates], dtype=np.float32)
    ink, count = masks.sum(axis=1), len(shapes)
    shared = masks[:count] @ masks.T
    alike = (shared > 0) & (shared >= _ALIKE * (ink[:count, None] + ink - shared))
    ratio = np.abs(np.log(sizes[:count, None] / sizes)).max(axis=2)
    twins = alike & (ratio <= np.log(_SAME_SIZE))
    twins[np.arange(count), np.arange(count)] = False
    return float(twins.any(axis=1).mean()) < _TWINS


def _shapes(lines: Iterable[Pixels]) -> list[tuple[tuple[int, int], NDArray[np.bool_]]]:
    """Width and height of connected ink, and its mask on a small square; not of what a line's edge cuts."""
    found: list[tuple[tuple[int, int], NDArray[np.bool_]]] = []
    for line in lines:
        found += _shapes_of(line)
        if len(found) >= _MOST_SHAPES:
            break
    return found


def _shapes_of(line: Pixels) -> Iterator[tuple[tuple[int, int], NDArray[np.bool_]]]:
    grey = line[..., 1]
    high, wide = grey.shape
    level, _ = cv2.threshold(np.ascontiguousarray(grey), 0, 1, cv2.THRESH_OTSU)
    ink = grey <= level
    if ink.mean() > 0.5:  # light on dark
        ink = ~ink
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    for number, (x, y, width, height, _) in enumerate(stats.tolist()):
        inside = x > 0 and y > 0 and x + width < wide and y + height < high
        if number and inside and height >= _LEAST_HEIGHT * high and 2 < width <= _MOST_WIDTH * high:
            mask = (labels[y : y + height, x : x + width] == number).astype(np.float32)
            if width > height and mask.mean(axis=1).max() > _HEADLINE:
                continue
            small = cv2.resize(mask, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
            yield (width, height), (small > 0.5).ravel()
