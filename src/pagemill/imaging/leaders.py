"""Leaders: rows of dots that lead the eye from a title to a page number, from a dish to its price.

Text detectors join what a leader joins, and recognizers read letters in it: a row of dots is twenty Korean syllables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.types import Pixels
from pagemill.late import cv2

_CONTRAST = 30
"""Grey levels of a dot below its surroundings: pale receipts have 80, but their dots are a pixel or two wide."""
_SEPARATE, _NEAR = 0.5, (5, 5)
"""Share of the darkest pixel near it that a pixel of a dot has: at 100 dpi, dots four pixels apart touch."""
_AROUND = (31, 31)
"""Pixels whose mean is the surroundings."""
_LARGEST = 0.006
"""Largest side of a dot as a share of the page's longer side: 14 pixels of 2,300."""
_SOLID, _BLURRED = 0.63, 6
"""Share of its box that the usual dot of a leader fills, and the side up to which that tells nothing: discs fill 0.7
and more, digits and letters 0.6 and less. Rows of small digits, such as a scale from 0 to 9, are as even as leaders."""
_ALIKE = 0.09
"""Usual difference in ink of two neighbours, as a share of a dot's: leaders have up to 0.08, also in photographs, rows
of digits or letters a few pixels high from 0.09 on."""
_MOST = 20_000
"""Dots of a page that are looked at; newspapers have some thousand dots on letters, noise has more."""
_DOTS = 8
"""Least dots of a leader: an ellipsis has three, a row of initials fewer than eight."""
_PITCH = (1.4, 8.0)
"""Distance of two dots in widths of them."""
_EVEN = 0.08
"""Largest difference of two distances, as a share of the usual one, and a pixel: vowel points are not even."""
_LEVEL = 0.5
"""Difference in height of two neighbours, in widths; a skew of 4 degrees is as much."""
_ABOVE = 3.0
"""Room above a leader that is blank, in widths of its dots: none is a dotted line under text."""
_INK_ABOVE = 0.02
"""Share of that room that specks may take."""


def without_leaders(page: Pixels) -> Pixels:
    """A page whose leaders have the colour of the paper around them; the page itself where it has none."""
    found = find_leaders(cv2.cvtColor(np.ascontiguousarray(page), cv2.COLOR_RGB2GRAY).astype(np.uint8, copy=False))
    if not found:
        return page
    cleaned = page.copy()
    for x1, y1, x2, y2 in found:
        around = page[max(0, y1 - 3) : y2 + 3, x1:x2].reshape(-1, page.shape[2])
        cleaned[y1:y2, x1:x2] = np.median(around, axis=0).astype(np.uint8)
    return cleaned


def find_leaders(grey: NDArray[np.uint8]) -> Sequence[tuple[int, int, int, int]]:
    """Boxes of the dots of all leaders in a page, shape (height, width)."""
    darker = cv2.subtract(cv2.blur(grey, _AROUND), grey)
    least = cv2.convertScaleAbs(cv2.dilate(darker, np.ones(_NEAR, np.uint8)), alpha=_SEPARATE)
    ink = (darker > np.maximum(least, _CONTRAST)).astype(np.uint8)
    _, _, stats, centres = cv2.connectedComponentsWithStats(ink, connectivity=8)
    x, y, width, height, area = (stats[1:, column] for column in range(5))
    largest = max(3.0, _LARGEST * max(grey.shape))
    side = np.maximum(width, height)
    small = np.flatnonzero((side <= largest) & (side <= 2 * np.minimum(width, height) + 1))
    if len(small) < _DOTS or len(small) > _MOST:
        return []
    order = small[np.argsort(centres[1 + small, 0], kind="stable")]
    places, size = centres[1 + order].astype(np.float64), side[order].astype(np.float64)
    boxes: list[tuple[int, int, int, int]] = []
    for chain in _chains(places, size):
        dots = order[chain]
        usual = np.median(size[chain])
        if usual > _BLURRED and np.median(area[dots] / (width[dots] * height[dots])) < _SOLID:
            continue
        top = int(y[dots].min())
        left, right = int(x[dots].min()), int((x[dots] + width[dots]).max())
        above = ink[max(0, top - int(_ABOVE * usual)) : top, left:right]
        if above.size and above.mean() > _INK_ABOVE:
            continue
        own = [  # with their blurred edges
            (max(0, x1 - 1), max(0, y1 - 1), x1 + wide + 1, y1 + high + 1)
            for x1, y1, wide, high in stats[1 + dots, :4].tolist()
        ]
        amounts = np.array([darker[y1:y2, x1:x2].sum(dtype=np.int64) for x1, y1, x2, y2 in own])
        if np.median(np.abs(np.diff(amounts))) <= _ALIKE * np.median(amounts):
            boxes += own
    return boxes


def _chains(places: NDArray[np.float64], size: NDArray[np.float64]) -> list[list[int]]:
    """Dots that follow each other on a level at one distance; places by rising x."""
    rows: dict[int, list[int]] = {}
    chains: list[list[int]] = []
    ends: dict[int, int] = {}
    for i, (x, y) in enumerate(places.tolist()):
        best, nearest = None, np.inf
        key = int(y) // 4
        for level in (key - 1, key, key + 1):
            for j in reversed(rows.get(level, ())):
                dx, wide = x - places[j, 0], max(size[i], size[j])
                if dx > _PITCH[1] * wide:
                    break
                if abs(y - places[j, 1]) > _LEVEL * wide + 0.5 or dx < _PITCH[0] * wide or dx >= nearest:
                    continue
                if not 0.5 * size[j] - 1 <= size[i] <= 2 * size[j] + 1:
                    continue
                best, nearest = j, dx
        rows.setdefault(key, []).append(i)
        if best is not None and ends.get(best) is not None:
            chain = chains[ends[best]]
            if chain[-1] == best and _is_even(places[chain[-3:], 0], x):
                chain.append(i)
                ends[i] = ends[best]
                continue
            chains.append([best, i])
        else:
            chains.append([best, i] if best is not None else [i])
        ends[i] = len(chains) - 1
    return [chain for chain in chains if len(chain) >= _DOTS]


def _is_even(before: NDArray[np.float64], x: float) -> bool:
    if len(before) < 2:
        return True
    usual = float(np.diff(before).mean())
    return bool(abs(x - before[-1] - usual) <= _EVEN * usual + 1)
