"""Which of a model's boxes are regions: suppression, containment, page-filling images, growth. No loop over pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pagemill.document.labels import Label
from pagemill.layout.pp_doclayout.settings import Merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.layout.pp_doclayout.settings import FilterSettings

    Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]
    """Indices of the first and of the second box of every pair."""


@dataclass(frozen=True, slots=True)
class ClassTables:
    """The settings of every class by class index, as arrays."""

    thresholds: NDArray[np.float32]
    """Shape (classes,): lowest scores."""
    large: NDArray[np.bool_]
    small: NDArray[np.bool_]
    one_mode: bool
    """No class has a merge mode of its own."""
    never_contained: NDArray[np.bool_]
    image: NDArray[np.bool_]
    unclip: NDArray[np.float64] | None
    """Shape (classes, 2): growth of width and height; None when no class grows."""

    @classmethod
    def of(cls, settings: FilterSettings, labels: Sequence[Label]) -> ClassTables:
        """Tables for a model with these labels, in the order of its classes."""
        unclip = np.array([settings.unclip_of(label) for label in labels], dtype=np.float64).reshape(-1, 2)
        merges = [settings.merge_of(label) for label in labels]
        return cls(
            thresholds=np.array([settings.threshold_of(label) for label in labels], dtype=np.float32),
            large=np.array([merge is Merge.LARGE for merge in merges], dtype=np.bool_),
            small=np.array([merge is Merge.SMALL for merge in merges], dtype=np.bool_),
            one_mode=not settings.merges,
            never_contained=np.array([label in settings.never_contained for label in labels], dtype=np.bool_),
            image=np.array([label is Label.IMAGE for label in labels], dtype=np.bool_),
            unclip=None if (unclip == 1.0).all() else unclip,
        )


def keep_regions(
    boxes: NDArray[np.float64],
    scores: NDArray[np.floating[Any]],
    classes: NDArray[np.intp],
    page_size: tuple[float, float],
    settings: FilterSettings,
    tables: ClassTables,
) -> NDArray[np.intp]:
    """Indices of the boxes that are regions, by falling score (equal scores in input order).

    Boxes or scores that are not finite never are. The order of the steps is that of the GLM-OCR pipeline:
    suppression, page-filling images, containment.

    Args:
        boxes: Shape (n, 4), page pixels; may stick out of the page or be inverted.
        scores: Shape (n,).
        classes: Shape (n,), indices into ``tables``.
        page_size: Width and height in pixels.
        settings: Limits that hold for all classes.
        tables: Settings by class.
    """
    kept = np.argsort(-scores, kind="stable")
    sound = np.isfinite(boxes).all(axis=1) & np.isfinite(scores)
    if not sound.all():
        kept = kept[sound[kept]]
    boxes, classes = boxes[kept], classes[kept]
    pairs = _near_pairs(boxes, settings)
    stays = np.ones(len(kept), dtype=np.bool_)
    if settings.nms:
        stays = _unsuppressed(boxes, classes, pairs, settings)
    _drop_oversized(stays, boxes, tables.image[classes], page_size, settings)
    _drop_merged(stays, boxes, classes, pairs, settings, tables)
    return kept[stays]


def _near_pairs(boxes: NDArray[np.float64], settings: FilterSettings) -> Pairs:
    """Pairs of boxes that share enough to suppress or contain each other, and perhaps some more; the stronger first.

    Everything else is computed for these few alone.
    """
    least = np.float32(0.99 * min(settings.same_class_iou, settings.other_class_iou, settings.contained))
    x1, y1, x2, y2 = np.ascontiguousarray(boxes.T, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.minimum(x2[:, None], x2)
        width -= np.maximum(x1[:, None], x1)
        width += 1.0
        height = np.minimum(y2[:, None], y2)
        height -= np.maximum(y1[:, None], y1)
        height += 1.0
        shared = np.maximum(width, 0.0, out=width)
        shared *= np.maximum(height, 0.0, out=height)
        needed = (x2 - x1 + 1.0) * (y2 - y1 + 1.0) * least
        far = shared < np.minimum(needed[:, None], needed)  # false where sums overflow: such pairs are looked at
    first, second = np.nonzero(~far)
    stronger = first < second
    return first[stronger], second[stronger]


def _unsuppressed(
    boxes: NDArray[np.float64], classes: NDArray[np.intp], pairs: Pairs, settings: FilterSettings
) -> NDArray[np.bool_]:
    """Greedy non-maximum suppression over boxes sorted by falling score.

    Boxes cover their last pixel, so that a side is ``x2 - x1 + 1`` long.
    """
    first, second = pairs
    shared = _shared_areas(boxes, pairs, 1.0)
    size = (boxes[:, 2] - boxes[:, 0] + 1.0) * (boxes[:, 3] - boxes[:, 1] + 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # inverted boxes may have no area
        iou = shared / (size[first] + size[second] - shared)
    same = classes[first] == classes[second]
    conflict = iou >= np.where(same, settings.same_class_iou, settings.other_class_iou)
    first, second = first[conflict], second[conflict]
    # A box stays unless a box that stays and is stronger conflicts with it. Iterating this from "all stay" settles
    # the strongest box first and every later one at the latest one round after those before it: the greedy result.
    stays = np.ones(len(boxes), dtype=np.bool_)
    while True:
        settled = np.ones(len(boxes), dtype=np.bool_)
        settled[second[stays[first]]] = False
        if np.array_equal(settled, stays):
            return stays
        stays = settled


def _drop_oversized(
    stays: NDArray[np.bool_],
    boxes: NDArray[np.float64],
    image: NDArray[np.bool_],
    page_size: tuple[float, float],
    settings: FilterSettings,
) -> None:
    """Drop image boxes that fill the page, as long as anything remains."""
    pictures = image & stays
    if not pictures.any():
        return
    width, height = page_size
    limit = (settings.oversized_landscape if width > height else settings.oversized_portrait) * width * height
    visible = np.clip(boxes, 0.0, np.array([width, height, width, height]))
    sides = np.maximum(visible[:, 2:] - visible[:, :2], 0.0)
    rest = stays & ~(pictures & (sides[:, 0] * sides[:, 1] > limit))
    if rest.any():
        stays[:] = rest


def _drop_merged(
    stays: NDArray[np.bool_],
    boxes: NDArray[np.float64],
    classes: NDArray[np.intp],
    pairs: Pairs,
    settings: FilterSettings,
    tables: ClassTables,
) -> None:
    """Merge boxes in each other by the modes of their classes.

    All classes are judged on the same boxes: a box that is dropped still drops others.
    """
    both = stays[pairs[0]] & stays[pairs[1]]
    first, second = pairs[0][both], pairs[1][both]  # of these, the first has the higher score
    shared = _shared_areas(boxes, (first, second), 0.0)
    size = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    first_inside = _share(shared, size[first]) >= settings.contained
    second_inside = _share(shared, size[second]) >= settings.contained
    first_inside &= ~tables.never_contained[classes[first]]
    second_inside &= ~tables.never_contained[classes[second]]
    nested = np.zeros(len(boxes), dtype=np.bool_)
    nested[first[first_inside]] = True
    nested[second[second_inside]] = True
    # A box of a "large" class drops those inside it. One of a "small" class drops those around it, unless they lie in
    # another themselves; where classes differ in mode, only a box of the same class is spared so.
    alike = np.ones(len(first), dtype=np.bool_) if tables.one_mode else classes[first] == classes[second]
    large, small = tables.large[classes], tables.small[classes]
    drops_second = (large[first] & second_inside) | (small[first] & first_inside & ~(alike & nested[second]))
    drops_first = (large[second] & first_inside) | (small[second] & second_inside & ~(alike & nested[first]))
    if settings.spare_stronger:
        drops_first &= ~drops_second
    stays[second[drops_second]] = False
    stays[first[drops_first]] = False


def _shared_areas(boxes: NDArray[np.float64], pairs: Pairs, pixel: float) -> NDArray[np.float64]:
    """Areas that the boxes of each pair share, sides longer by ``pixel``."""
    a, b = boxes[pairs[0]], boxes[pairs[1]]
    sides = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]) + pixel
    np.maximum(sides, 0.0, out=sides)
    return np.asarray(sides[:, 0] * sides[:, 1])


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quotients; 0 for an empty whole."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def grown(boxes: NDArray[np.float64], ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Boxes (n, 4) grown about their centres by ratios (n, 2) of width and height."""
    low, high = boxes[:, :2], boxes[:, 2:]
    centre, half = (low + high) / 2, (high - low) / 2 * ratios
    return np.concatenate([centre - half, centre + half], axis=1)
