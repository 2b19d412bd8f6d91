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
    if settings.nms and len(kept) > 1:
        kept = kept[_unsuppressed(boxes[kept], classes[kept], settings)]
    if len(kept) > 1:
        kept = _without_oversized(boxes, tables.image[classes], kept, page_size, settings)
    if len(kept) > 1:
        kept = kept[_uncontained(boxes[kept], classes[kept], settings, tables)]
    return kept


def _unsuppressed(boxes: NDArray[np.float64], classes: NDArray[np.intp], settings: FilterSettings) -> NDArray[np.bool_]:
    """Greedy non-maximum suppression over boxes sorted by falling score.

    Boxes cover their last pixel, so that a side is ``x2 - x1 + 1`` long.
    """
    width, height = _shared_sides(boxes)
    width += 1.0
    height += 1.0
    shared = np.maximum(width, 0.0, out=width)
    shared *= np.maximum(height, 0.0, out=height)
    size = (boxes[:, 2] - boxes[:, 0] + 1.0) * (boxes[:, 3] - boxes[:, 1] + 1.0)
    union = np.add.outer(size, size)
    union -= shared
    with np.errstate(divide="ignore", invalid="ignore"):  # inverted boxes may have no area
        iou = np.divide(shared, union, out=shared)
    conflict: NDArray[np.bool_] = iou >= settings.other_class_iou
    conflict |= (iou >= settings.same_class_iou) & (classes[:, None] == classes[None, :])
    stronger = np.triu(conflict, k=1).astype(np.float32)
    if not stronger.any():
        return np.ones(len(boxes), dtype=np.bool_)
    # A box stays unless a box that stays and is stronger conflicts with it. Iterating this from "all stay" settles
    # the strongest box first and every later one at the latest one round after those before it: the greedy result.
    alive = np.ones(len(boxes), dtype=np.float32)
    while True:
        settled = (alive @ stronger == 0).astype(np.float32)
        if np.array_equal(settled, alive):
            return np.asarray(settled, dtype=np.bool_)
        alive = settled


def _without_oversized(
    boxes: NDArray[np.float64],
    image: NDArray[np.bool_],
    kept: NDArray[np.intp],
    page_size: tuple[float, float],
    settings: FilterSettings,
) -> NDArray[np.intp]:
    """Without image boxes that fill the page, as long as anything remains."""
    pictures = image[kept]
    if not pictures.any():
        return kept
    width, height = page_size
    limit = (settings.oversized_landscape if width > height else settings.oversized_portrait) * width * height
    visible = np.clip(boxes[kept], 0.0, np.array([width, height, width, height]))
    sides = np.maximum(visible[:, 2:] - visible[:, :2], 0.0)
    rest = kept[~pictures | (sides[:, 0] * sides[:, 1] <= limit)]
    return rest if len(rest) else kept


def _uncontained(
    boxes: NDArray[np.float64], classes: NDArray[np.intp], settings: FilterSettings, tables: ClassTables
) -> NDArray[np.bool_]:
    """Which of the boxes, sorted by falling score, stay when those in each other are merged by the mode of their class.

    All classes are judged on the same boxes: a box that is dropped still drops others.
    """
    width, height = _shared_sides(boxes)
    shared = np.maximum(width, 0.0, out=width)
    shared *= np.maximum(height, 0.0, out=height)
    size = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        shared /= size[:, None]
    inside: NDArray[np.bool_] = shared >= settings.contained  # (i, j): i lies in j
    inside &= (size > 0)[:, None]
    inside[tables.never_contained[classes]] = False
    np.fill_diagonal(inside, False)
    if not inside.any():
        return np.ones(len(boxes), dtype=np.bool_)
    drops = inside.T & tables.large[classes][:, None]  # (i, j): i drops j
    small = tables.small[classes]
    if small.any():
        # A box around one of a "small" class goes, unless it lies in another itself; where classes differ in mode, only
        # a box of the same class is spared.
        spared = np.asarray(inside.any(axis=1))[None, :]
        if not tables.one_mode:
            spared = spared & (classes[:, None] == classes[None, :])
        drops |= inside & small[:, None] & ~spared
    if settings.spare_stronger:
        drops &= ~np.tril(drops & drops.T)
    return ~np.asarray(drops.any(axis=0))


def _shared_sides(boxes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Width and height that two boxes share, both of shape (n, n); negative where they lie apart."""
    x1, y1, x2, y2 = np.ascontiguousarray(boxes.T)
    width = np.minimum.outer(x2, x2)
    width -= np.maximum.outer(x1, x1)
    height = np.minimum.outer(y2, y2)
    height -= np.maximum.outer(y1, y1)
    return width, height


def grown(boxes: NDArray[np.float64], ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Boxes (n, 4) grown about their centres by ratios (n, 2) of width and height."""
    low, high = boxes[:, :2], boxes[:, 2:]
    centre, half = (low + high) / 2, (high - low) / 2 * ratios
    return np.concatenate([centre - half, centre + half], axis=1)
