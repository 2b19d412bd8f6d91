"""Which of a model's boxes are regions: suppression, containment, page-filling images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import areas, intersection_matrix
from pagemill.document.labels import FIGURES, Label
from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.layout.pp_doclayout.settings import FilterSettings, Merge


class BoxFilter:
    """One set of rules for the classes of one model. Thread-safe.

    Args:
        settings: The rules.
        labels: Our label of every class of the model.
        text_in_figures: A figure drops no text inside it: its lines distinguish a real figure from a misread page.
    """

    def __init__(self, settings: FilterSettings, labels: Sequence[Label], *, text_in_figures: bool = False) -> None:
        self._settings = settings
        modes = [settings.merges.get(label, settings.merge) for label in labels]
        self._large = np.array([mode is Merge.LARGE for mode in modes], dtype=np.bool_)
        self._small = np.array([mode is Merge.SMALL for mode in modes], dtype=np.bool_)
        self._image = np.array([label is Label.IMAGE for label in labels], dtype=np.bool_)
        figure = np.array([label in FIGURES for label in labels], dtype=np.bool_)
        never_contained = np.array([label in settings.never_contained for label in labels], dtype=np.bool_)
        self._may_lie_in = ~never_contained[:, None] & ~(text_in_figures & ~figure[:, None] & figure)
        """Shape (classes, classes), inner and outer."""

    def keep(
        self,
        boxes: Floats,
        scores: NDArray[np.floating[Any]],
        classes: Indices,
        page_size: tuple[float, float],
    ) -> Indices:
        """Indices of the boxes that are regions, by falling score (equal scores in input order).

        Boxes or scores that are not finite never are. The order of the steps is that of the GLM-OCR pipeline:
        suppression, page-filling images, containment.

        Args:
            boxes: Shape (n, 4), page pixels; may stick out of the page or be inverted.
            scores: Shape (n,).
            classes: Shape (n,), indices into the labels.
            page_size: Width and height in pixels.
        """
        kept: Indices = np.argsort(-scores, kind="stable")
        kept = kept[(np.isfinite(boxes).all(axis=1) & np.isfinite(scores))[kept]]
        boxes, classes = boxes[kept], classes[kept]
        stays = np.ones(len(kept), dtype=np.bool_)
        if self._settings.nms:
            self._suppress(stays, boxes, classes)
        self._drop_oversized(stays, boxes, classes, page_size)
        self._merge(stays, boxes, classes)
        return kept[stays]

    def _suppress(self, stays: Flags, boxes: Floats, classes: Indices) -> None:
        """Greedy non-maximum suppression over boxes sorted by falling score.

        Boxes cover their last pixel, so that a side is ``x2 - x1 + 1`` long.
        """
        covering = boxes + np.array([0.0, 0.0, 1.0, 1.0])
        shared, size = intersection_matrix(covering, covering), areas(covering)
        with np.errstate(divide="ignore", invalid="ignore"):  # inverted boxes have no area
            iou = shared / (size[:, None] + size - shared)
        same = classes[:, None] == classes
        conflict = iou >= np.where(same, self._settings.same_class_iou, self._settings.other_class_iou)
        for i in range(len(boxes)):
            if stays[i]:
                stays[i + 1 :] &= ~conflict[i, i + 1 :]

    def _drop_oversized(
        self,
        stays: Flags,
        boxes: Floats,
        classes: Indices,
        page_size: tuple[float, float],
    ) -> None:
        """Drop image boxes that fill the page, as long as anything remains."""
        width, height = page_size
        share = self._settings.oversized_landscape if width > height else self._settings.oversized_portrait
        visible = areas(np.clip(boxes, 0.0, np.array([width, height, width, height])))
        rest = stays & ~(self._image[classes] & (visible > share * width * height))
        if rest.any():
            stays[:] = rest

    def _merge(self, stays: Flags, boxes: Floats, classes: Indices) -> None:
        """Merge boxes in each other by the modes of their classes.

        All classes are judged on the same boxes: a box that is dropped still drops others.
        """
        shared, size = intersection_matrix(boxes, boxes), areas(boxes)[:, None]
        share = np.divide(shared, size, out=np.zeros_like(shared), where=size > 0)
        inside = (share >= self._settings.contained) & self._may_lie_in[np.ix_(classes, classes)]
        inside &= stays[:, None] & stays & ~np.eye(len(boxes), dtype=np.bool_)
        # A box of a "large" class drops those inside it. One of a "small" class drops those around it, unless they lie
        # in another themselves; where classes differ in mode, only a box of the same class is spared so.
        alike = (classes[:, None] == classes) | (not self._settings.merges)
        around = inside & ~(alike & inside.any(axis=1))
        drops = (self._large[classes][:, None] & inside.T) | (self._small[classes][:, None] & around)
        if self._settings.spare_stronger:
            drops &= ~np.triu(drops).T
        stays &= ~drops.any(axis=0)
