"""Axis-aligned boxes: plain tuples for one box, (n, 4) arrays for many.

Everywhere in pagemill a box is ``(x1, y1, x2, y2)`` in pixels of the decoded page image: x to the right,
y downwards, the origin at the outer corner of the top-left pixel, so that ``image[y1:y2, x1:x2]`` is its crop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
Point = tuple[float, float]

T = TypeVar("T")

_PAIRS = 2**18
"""Pairs of boxes that are compared at once: 64 bytes each."""


def as_array(boxes: Iterable[Box]) -> NDArray[np.float64]:
    """Stack boxes into a float64 array of shape (n, 4); no boxes give shape (0, 4)."""
    return np.asarray(list(boxes), dtype=np.float64).reshape(-1, 4)


def as_boxes(array: NDArray[np.float64]) -> list[Box]:
    """The rows of an array of shape (n, 4) as boxes."""
    return [(x1, y1, x2, y2) for x1, y1, x2, y2 in array.tolist()]


def area(box: Box | NDArray[np.float64]) -> float:
    """Area in square pixels; 0 for an empty or inverted box."""
    return float(max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1]))


def intersection(a: Box, b: Box) -> float:
    """Area shared by two boxes, in square pixels."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(0.0, width) * max(0.0, height)


def union_box(boxes: Iterable[Box]) -> Box:
    """The smallest box around all boxes.

    Raises:
        ValueError: There is no box.
    """
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)  # of a few boxes five times as fast as arrays
    return float(min(lefts)), float(min(tops)), float(max(rights)), float(max(bottoms))


def mirrored_box(box: Box, width: float) -> Box:
    """The box in the mirror image of a page of this width."""
    return width - box[2], box[1], width - box[0], box[3]


def frame_of(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smallest box, shape (4,), around boxes of shape (n, 4), n > 0."""
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])


def clip(box: Box, width: float, height: float) -> Box:
    """Cut a box to the page; a box outside of it becomes empty at the nearest edge."""
    x1, y1, x2, y2 = box
    if 0.0 <= x1 <= x2 <= width and 0.0 <= y1 <= y2 <= height:  # nearly always
        return box
    x1, y1 = min(max(x1, 0.0), width), min(max(y1, 0.0), height)
    return (x1, y1, max(x1, min(max(x2, 0.0), width)), max(y1, min(max(y2, 0.0), height)))


def intersection_matrix(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pairwise shared areas of (n, 4) and (m, 4) boxes, shape (n, m), in square pixels."""
    width = np.minimum(a[:, None, 2], b[:, 2]) - np.maximum(a[:, None, 0], b[:, 0])
    height = np.minimum(a[:, None, 3], b[:, 3]) - np.maximum(a[:, None, 1], b[:, 1])
    shared: NDArray[np.float64] = np.maximum(width, 0.0) * np.maximum(height, 0.0)
    return shared


def shared_areas(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Area that each of (n, 4) boxes shares with (m, 4) others, summed over these, shape (n,), in square pixels.

    Memory does not grow with n: pages of untrusted files can have a hundred thousand lines.
    """
    rows = max(1, _PAIRS // max(1, len(b)))
    parts = [intersection_matrix(a[start : start + rows], b).sum(axis=1) for start in range(0, len(a), rows)]
    return np.concatenate(parts) if parts else np.empty(0)


def areas(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas of (n, 4) boxes, shape (n,), in square pixels."""
    extent = np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None)
    result: NDArray[np.float64] = extent[:, 0] * extent[:, 1]
    return result


def normalise_1000(box: Box, width: float, height: float) -> tuple[int, int, int, int]:
    """Express a pixel box in thousandths of the page, rounded and clipped to 0-1000 (the ``bbox_2d`` of records)."""
    # A page that failed has no size.
    if width <= 0 or height <= 0:
        return (0, 0, 0, 0)
    sides = zip(clip(box, width, height), (width, height, width, height), strict=True)
    x1, y1, x2, y2 = (round(side / extent * 1000) for side, extent in sides)
    return (x1, y1, x2, y2)


def components(count: int, links: Iterable[Sequence[int]]) -> list[NDArray[np.intp]]:
    """Connected components of a graph on ``range(count)``, each sorted, in order of their smallest member."""
    parent = list(range(count))

    def root(node: int) -> int:
        while parent[node] != node:
            # Halving the path on the way keeps later walks short: pages have thousands of lines.
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in links:
        parent[max(root(a), root(b))] = min(root(a), root(b))
    members: dict[int, list[int]] = {}
    for node in range(count):
        members.setdefault(root(node), []).append(node)
    return [np.array(nodes, dtype=np.intp) for nodes in members.values()]


def split_when(items: Sequence[T], apart: Callable[[T, T], bool]) -> list[list[T]]:
    """Cut a sequence between neighbours for which a condition holds."""
    cuts = [index for index, pair in enumerate(pairwise(items), start=1) if apart(*pair)]
    return [list(items[start:end]) for start, end in pairwise([0, *cuts, len(items)]) if start < end]
