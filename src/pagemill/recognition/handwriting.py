"""Tell handwriting from print, in any script, by whether shapes of ink repeat.

Engines for print misread handwriting, and the result looks like text in another script. In print a letter has the same
shape each time, so nearly every shape of ink on a page has a near-identical twin; handwritten letters have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
_SAME_PROPORTIONS = 1.25
"""Largest ratio of the proportions of twins. Their sizes may differ: headings repeat the letters of the text."""
_ALIKE = 0.7
"""Share of the ink of twins that both have."""
_LEAST_OF_LINE, _TWINS = 3, 0.34
"""Shapes of a line for a verdict, and share of them with twins up to which it is written by hand."""
_LEAST_OF_LETTERS, _LEAST_OF_FEW, _TWINS_OF_PAGE = 8, 100, 0.25
"""The same for such lines together, or in scripts of few repeated shapes for all lines that are judged: of the 80
shapes in 4 printed lines of traditional Chinese, as few have twins as in a hand. Measured, twins of all shapes of a
page: 0.02 to 0.25 on four handwritten pages; 0.75 to 1.0 in print of 14 languages, scanned or photographed."""
_LEAST_OF_PAGE = 60
"""Shapes of a page for a verdict: no letter of a short text need be there twice."""
_MOST_JUDGED, _MOST_SHAPES = 400, 1200
"""Shapes that are looked at, and with which they are compared, themselves included: 30 ms."""

_Shape = tuple[float, Flags]
"""Width over height, and the mask."""


class Shapes(NamedTuple):
    """The shapes of ink of a line."""

    number: int
    twins: int
    """Those that have a near-identical shape in a line of the page."""


def are_handwritten(shapes: Sequence[Shapes], of_few: Sequence[bool]) -> list[bool]:
    """Which lines are written by hand.

    Args:
        shapes: Of each line.
        of_few: Whether a line seems to be in a script whose lines repeat few shapes: ideographs, joined letters.
    """
    few = [line.number >= _LEAST_OF_LINE and line.twins <= _TWINS * line.number for line in shapes]
    sure = {kind: _is_hand(shapes, few, of_few, kind) for kind in (False, True)}
    return [is_few and sure[kind] for is_few, kind in zip(few, of_few, strict=True)]


def _is_hand(shapes: Sequence[Shapes], few: Sequence[bool], of_few: Sequence[bool], kind: bool) -> bool:
    own = [line for line, is_few, own in zip(shapes, few, of_few, strict=True) if own == kind and (is_few or kind)]
    count, twins = sum(line.number for line in own), sum(line.twins for line in own)
    return count >= (_LEAST_OF_FEW if kind else _LEAST_OF_LETTERS) and twins <= _TWINS_OF_PAGE * count


def shapes_of(lines: Sequence[Pixels], others: Sequence[Pixels]) -> list[Shapes]:
    """The shapes of lines, up to a limit: those of the last lines may not be counted.

    Args:
        lines: Their images.
        others: Images of the other lines of the page, where printed letters may find their twins.
    """
    found = _shapes(lines, _MOST_JUDGED)
    pool = [shape for _, shape in found] + [shape for _, shape in _shapes(others, _MOST_SHAPES - len(found))]
    if len(pool) < _LEAST_OF_PAGE:
        return [Shapes(0, 0)] * len(lines)
    proportions = np.log(np.array([proportion for proportion, _ in pool], dtype=np.float32))
    masks = np.array([mask for _, mask in pool], dtype=np.float32)
    ink, count = masks.sum(axis=1), len(found)
    # Pixels in both masks; what follows is intersection over union, for all pairs at once.
    shared = masks[:count] @ masks.T
    alike = (shared > 0) & (shared >= _ALIKE * (ink[:count, None] + ink - shared))
    twins = alike & (np.abs(proportions[:count, None] - proportions) <= np.log(_SAME_PROPORTIONS))
    twins[np.arange(count), np.arange(count)] = False
    places = np.array([place for place, _ in found], dtype=np.intp)
    own = np.bincount(places, minlength=len(lines)), np.bincount(places, twins.any(axis=1), minlength=len(lines))
    return [Shapes(int(shapes), int(with_twin)) for shapes, with_twin in zip(*own, strict=True)]


def _shapes(lines: Sequence[Pixels], most: int) -> list[tuple[int, _Shape]]:
    """The shapes of lines, each with the place of its line."""
    found: list[tuple[int, _Shape]] = []
    for place, line in enumerate(lines):
        if len(found) >= most:
            break
        found += ((place, shape) for shape in _shapes_of(line))
    return found[:most]


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
            yield width / height, (small > 0.5).ravel()
