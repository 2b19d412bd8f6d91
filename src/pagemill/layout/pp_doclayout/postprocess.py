"""From the model's raw outputs for a page to its regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Point, as_boxes
from pagemill.document.labels import Label
from pagemill.errors import EngineError
from pagemill.imaging.types import Floats, Indices
from pagemill.layout.base import DetectedRegion
from pagemill.layout.filters import BoxFilter
from pagemill.layout.pp_doclayout.outputs import RawPage
from pagemill.layout.pp_doclayout.polygons import outline
from pagemill.layout.pp_doclayout.reading_graph import decode_order
from pagemill.layout.pp_doclayout.settings import FilterSettings

_RECTANGLE_SLACK = 2.0  # page pixels; an outline this close to its box is the box


@dataclass(frozen=True, slots=True)
class Detections:
    """What the model proposes for a page, its scores at or above the thresholds; n rows by falling score."""

    boxes: NDArray[np.float32]
    """Shape (n, 4), page pixels; may stick out of the page."""
    scores: NDArray[np.float32]
    """Shape (n,), 0-1."""
    classes: Indices
    """Shape (n,)."""
    queries: Indices
    """Shape (n,): the query that each one comes from; a query may propose several classes."""
    order: Indices
    """Shape (n,): ranks in reading order."""


class PostProcessor:
    """Converts raw model outputs to regions. Thread-safe.

    Args:
        settings: Thresholds, merging, growth.
        labels: Our label of every class of the model.
        source: Name of the engine, kept in every region.
    """

    def __init__(self, settings: FilterSettings, labels: Sequence[Label], source: str) -> None:
        self._polygons = settings.polygons
        self._labels = tuple(labels)
        self._source = source
        self._filter = BoxFilter(settings, labels)
        lowest = [settings.thresholds.get(label, settings.threshold) for label in labels]
        self._thresholds = np.array(lowest, dtype=np.float32)
        unclips = [settings.unclips.get(label, settings.unclip) for label in labels]
        self._growth = np.array(unclips, dtype=np.float64).reshape(-1, 1, 2) - 1.0
        """Shape (classes, 1, 2): by how much of its distance from the centre a point moves outwards, in x and y."""

    def regions(self, page: RawPage, page_size: tuple[int, int]) -> list[DetectedRegion]:
        """The regions of a page in reading order, inside the page.

        Args:
            page: Raw outputs.
            page_size: Width and height in pixels.

        Raises:
            EngineError: The model gave no number at all, or numbers of the wrong shape.
        """
        found = self.detections(page, page_size)
        boxes = found.boxes.astype(np.float64)
        kept = self._filter.keep(boxes, found.scores, found.classes, page_size)
        kept = kept[np.argsort(found.order[kept], kind="stable")]
        corners = boxes[kept].reshape(-1, 2, 2)
        centres = corners.mean(axis=1, keepdims=True)
        final = self._clipped(corners, centres, found.classes[kept], page_size).reshape(-1, 4)
        visible = (final[:, 0] < final[:, 2]) & (final[:, 1] < final[:, 3])
        return [
            DetectedRegion(
                box=box,
                label=self._labels[found.classes[i]],
                score=float(found.scores[i]),
                source=self._source,
                polygon=self._polygon(page, found, i, page_size) if self._polygons else None,
                order=int(found.order[i]),
            )
            for i, box in zip(kept[visible], as_boxes(final[visible]), strict=True)
        ]

    def detections(self, page: RawPage, page_size: tuple[int, int]) -> Detections:
        """The model's proposals above the thresholds, at most one for every query of the model."""
        queries, classes = page.scores.shape
        if classes != len(self._labels) or page.boxes.shape != (queries, 4):
            raise EngineError(f"the layout model returned {page.scores.shape} scores and {page.boxes.shape} boxes")
        sound = np.asarray(np.isfinite(page.scores).all(axis=1) & np.isfinite(page.boxes).all(axis=1))
        if queries and not sound.any():
            raise EngineError(
                "the layout model returned NaN", remedy="Set precision to float32 in the layout settings."
            )
        chosen, of_class = np.nonzero((page.scores >= self._thresholds) & sound[:, None])
        scores = page.scores[chosen, of_class]
        best = np.argsort(-scores, kind="stable")[:queries]
        chosen, of_class = chosen[best], of_class[best]
        with np.errstate(over="ignore"):  # a box that overflows is not finite and goes
            boxes = page.boxes[chosen] * np.array(page_size * 2, dtype=np.float32)
        return Detections(boxes, scores[best], of_class, chosen, _ranks(page, chosen))

    def outline(self, page: RawPage, found: Detections, index: int, page_size: tuple[int, int]) -> Floats | None:
        """The outline of a detection in page pixels, shape (n, 2); None if the model gives only its box."""
        query = found.queries[index]
        if page.corners is not None:
            return np.asarray(page.corners[query] * np.array(page_size, dtype=np.float64))
        return None if page.masks is None else outline(page.masks[query], found.boxes[index], page_size)

    def _polygon(
        self, page: RawPage, found: Detections, index: int, page_size: tuple[int, int]
    ) -> tuple[Point, ...] | None:
        """The outline of a detection inside the page; None where it is the four corners of the box."""
        points = self.outline(page, found, index, page_size)
        if points is None or not np.isfinite(points).all():
            return None
        box = found.boxes[index].astype(np.float64)
        corners = box[[[0, 1], [2, 1], [2, 3], [0, 3]]]
        distance = np.abs(points[:, None] - corners).max(axis=2)
        if len(points) == 4 and (distance.min(axis=0) <= _RECTANGLE_SLACK).all():
            return None
        points = self._clipped(points, (box[:2] + box[2:]) / 2, found.classes[[index]], page_size)[0]
        return tuple((x, y) for x, y in points.tolist())

    def _clipped(
        self,
        points: Floats,
        centres: Floats,
        classes: Indices,
        page_size: tuple[int, int],
    ) -> Floats:
        """Points, shape (regions, n, 2), grown from the centres of their regions by class, inside the page."""
        grown = points + (points - centres) * self._growth[classes]
        return np.clip(grown, 0.0, np.array(page_size, dtype=np.float64))


def _ranks(page: RawPage, queries: Indices) -> Indices:
    """Rank in reading order of the queries of detections."""
    if page.order.ndim == 1:
        return np.argsort(np.argsort(page.order, kind="stable"))[queries]
    distinct, place = np.unique(queries, return_inverse=True)
    before, successor = page.order[:, distinct[:, None], distinct[None, :]]
    return decode_order(before, successor)[place]
