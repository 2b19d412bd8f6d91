"""From a model's candidates to regions: invalid boxes dropped, duplicates and nested boxes resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pagemill.document.geometry import areas, intersection_matrix
from pagemill.document.labels import FIGURES, Label
from pagemill.layout.base import DetectedRegion
from pagemill.layout.thresholds import LAYOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.layout.candidates import Candidates

# Regions that live inside others by nature and keep their own box there.
_NESTED = frozenset({Label.INLINE_FORMULA, Label.FORMULA_NUMBER, Label.SEAL})


def postprocess(
    candidates: Candidates, labels: Sequence[Label], width: int, height: int, source: str
) -> list[DetectedRegion]:
    """Turn candidates into regions that lie inside the page, have finite scores and do not repeat each other.

    Args:
        candidates: What the model proposes, scores already above its threshold.
        labels: Our label of every class index.
        width: Page width in pixels.
        height: Page height in pixels.
        source: Name of the engine, kept in every region.
    """
    candidates = _strongest(_valid(candidates, width, height))
    boxes = candidates.boxes
    region_labels = [labels[index] for index in candidates.classes]
    kept = _suppress(boxes, candidates.classes)
    kept = _without_contained(boxes, region_labels, kept)
    kept = _without_oversized(boxes, region_labels, kept, width, height)
    return [
        DetectedRegion(
            box=(float(boxes[i, 0]), float(boxes[i, 1]), float(boxes[i, 2]), float(boxes[i, 3])),
            label=region_labels[i],
            score=float(min(candidates.scores[i], 1.0)),
            source=source,
            order=None if candidates.order is None else int(candidates.order[i]),
        )
        for i in kept
    ]


def _valid(candidates: Candidates, width: int, height: int) -> Candidates:
    """Finite boxes and scores only, clipped to the page, with an area."""
    finite = np.isfinite(candidates.boxes).all(axis=1) & np.isfinite(candidates.scores)
    candidates = candidates.select(finite)
    boxes = np.clip(candidates.boxes, 0.0, np.array([width, height, width, height], dtype=np.float64))
    candidates = type(candidates)(boxes, candidates.scores, candidates.classes, candidates.order)
    return candidates.select(
        np.nonzero((boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf) >= LAYOUT.min_side)[0]
    )


def _strongest(candidates: Candidates) -> Candidates:
    """Sorted by falling score (ties by position, so that the result does not depend on the input's order), bounded."""
    keys = (candidates.boxes[:, 0], candidates.boxes[:, 1], -candidates.scores)
    return candidates.select(np.lexsort(keys)[: LAYOUT.max_candidates])


def _suppress(boxes: NDArray[np.float64], classes: NDArray[np.intp]) -> list[int]:
    """Greedy non-maximum suppression over boxes sorted by score; other classes need more overlap to suppress."""
    shared = intersection_matrix(boxes, boxes)
    size = areas(boxes)
    iou = shared / np.maximum(size[:, None] + size[None, :] - shared, 1e-9)
    limit = np.where(classes[:, None] == classes[None, :], LAYOUT.same_class_iou, LAYOUT.other_class_iou)
    conflicts = iou > limit
    alive = np.ones(len(boxes), dtype=bool)
    kept = []
    for i in range(len(boxes)):
        if alive[i]:
            kept.append(i)
            alive &= ~conflicts[i]
    return kept


def _without_contained(boxes: NDArray[np.float64], labels: Sequence[Label], kept: list[int]) -> list[int]:
    """Drop a box that lies inside a larger one, except where nesting is natural.

    A picture only swallows pictures: text inside a large "figure" is what the fallback needs to tell a real figure
    from a misread page.
    """
    if len(kept) < 2:
        return kept
    index = np.array(kept)
    inner = boxes[index]
    size = areas(inner)
    contained = intersection_matrix(inner, inner) >= LAYOUT.contained * size[:, None]
    contained &= size[:, None] < size[None, :]
    picture = np.array([labels[i] in FIGURES for i in kept])
    nested = np.array([labels[i] in _NESTED for i in kept])
    contained &= ~(picture[None, :] & ~picture[:, None])
    contained &= ~nested[:, None] & ~nested[None, :]
    return [int(i) for i in index[~contained.any(axis=1)]]


def _without_oversized(
    boxes: NDArray[np.float64], labels: Sequence[Label], kept: list[int], width: int, height: int
) -> list[int]:
    """Drop a picture that fills the page while there are other regions: it is the page itself."""
    limit = (LAYOUT.oversized_landscape if width > height else LAYOUT.oversized_portrait) * width * height
    size = areas(boxes)
    rest = [i for i in kept if labels[i] not in FIGURES or size[i] <= limit]
    return rest or kept
