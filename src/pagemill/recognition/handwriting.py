"""Tell handwriting from print, in any script, by whether shapes of ink repeat.

Engines for print misread handwriting, and the result looks like text in another script. In print a letter has the same
shape each time, so nearly every shape of ink on a page has a near-identical twin; handwritten letters have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pagemill.imaging.transforms import ink_mask
from pagemill.imaging.types import Flags, Pixels
from pagemill.late import cv2

_SIDE = 16
"""Pixels of a side to which shapes are shrunk to compare them."""
_LEAST_HEIGHT, _MOST_WIDTH = 0.25, 4.0
"""Smallest height and largest width of a shape, in line heights: less is a dot or a comma, more a rule."""
_HEADLINE = 0.8
"""Share of a shape's width that one row fills, above which it is a word of Devanagari or Bengali: its letters hang from
one line, so only a repeated word would have a twin."""
_SAME_SIZE = 1.2
"""Largest ratio of two widths, or heights, of twins."""
_ALIKE = 0.7
"""Share of the ink of twins that both have."""
_MOST_SHAPES = 400
"""Shapes that are compared with each other: 15 ms."""
_LEAST_SHAPES = 100
"""Shapes needed for a verdict: of the 80 in 4 printed lines of traditional Chinese, as few have twins as in a hand."""
_TWINS = 0.25
"""Share of shapes with twins below which lines are handwriting. Measured: 0.08 in Chinese handwriting (309
shapes); 0.46 (traditional Chinese) to 0.97 in print of 12 languages, scanned or photographed (400 shapes)."""

_Shape = tuple[tuple[int, int], Flags]
"""Width and height, and the mask."""


def is_handwriting(doubtful: Sequence[Pixels], others: Sequence[Pixels]) -> bool:
    """Whether the lines that an engine doubts are handwritten.

    Args:
        doubtful: Images of these lines.
        others: Images of the other lines of the page, where printed letters may find their twins.
    """
    shapes = _shapes(doubtful)[:_MOST_SHAPES]
    if len(shapes) < _LEAST_SHAPES:
        return False
    candidates = shapes + _shapes(others)[: _MOST_SHAPES - len(shapes)]
    sizes = np.array([size for size, _ in candidates], dtype=np.float32)
    masks = np.array([mask for _, mask in candidates], dtype=np.float32)
    ink, count = masks.sum(axis=1), len(shapes)
    # Pixels in both masks; what follows is intersection over union, for all pairs at once.
    shared = masks[:count] @ masks.T
    alike = (shared > 0) & (shared >= _ALIKE * (ink[:count, None] + ink - shared))
    ratio = np.abs(np.log(sizes[:count, None] / sizes)).max(axis=2)
    twins = alike & (ratio <= np.log(_SAME_SIZE))
    twins[np.arange(count), np.arange(count)] = False
    return float(twins.any(axis=1).mean()) < _TWINS


def _shapes(lines: Iterable[Pixels]) -> list[_Shape]:
    """Width and height of each connected shape of ink, and its mask shrunk to a square."""
    found: list[_Shape] = []
    for line in lines:
        found += _shapes_of(line)
        if len(found) >= _MOST_SHAPES:
            break
    return found


def _shapes_of(line: Pixels) -> Iterator[_Shape]:
    grey = line[..., 1]
    high, wide = grey.shape
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink_mask(grey).astype(np.uint8), connectivity=8)
    for number, (x, y, width, height, _) in enumerate(stats.tolist()):
        # A shape that the edge of the line cuts is no longer its letter. Component 0 is the ground.
        inside = x > 0 and y > 0 and x + width < wide and y + height < high
        if number and inside and height >= _LEAST_HEIGHT * high and 2 < width <= _MOST_WIDTH * high:
            mask = (labels[y : y + height, x : x + width] == number).astype(np.float32)
            if width > height and mask.mean(axis=1).max() > _HEADLINE:
                continue
            small = cv2.resize(mask, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
            yield (width, height), (small > 0.5).ravel()
