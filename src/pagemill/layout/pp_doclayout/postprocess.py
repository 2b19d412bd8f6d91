"""From the model's raw outputs for a page to its regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pagemill.errors import EngineError
from pagemill.layout.base import DetectedRegion
from pagemill.layout.pp_doclayout.filters import ClassTables, grown, keep_regions
from pagemill.layout.pp_doclayout.polygons import outline
from pagemill.layout.pp_doclayout.reading_graph import decode_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.document.geometry import Point
    from pagemill.document.labels import Label
    from pagemill.layout.pp_doclayout.outputs import RawPage
    from pagemill.layout.pp_doclayout.settings import FilterSettings

_RECTANGLE_SLACK = 2.0  # page pixels; an outline this close to its box is the box


@dataclass(frozen=True, slots=True)
class Detections:
    """What the model proposes for a page, its scores at or above the thresholds; n rows by falling score."""

    boxes: NDArray[np.float32]
    """Shape (n, 4), page pixels; may stick out of the page."""
    scores: NDArray[np.float32]
    """Shape (n,), 0-1."""
    classes: NDArray[np.intp]
    """Shape (n,)."""
    queries: NDArray[np.intp]
    """Shape (n,): the query that each one comes from; a query may propose several classes."""
    order: NDArray[np.intp]
    """Shape (n,): ranks in reading order."""


class PostProcessor:
    """Turns raw outputs into regions by one set of settings. Thread-safe.

    Args:
        settings: Thresholds, merging, growth.
        labels: Our label of every class of the model.
        source: Name of the engine, kept in every region.
        input_side: Side of the model's square input in pixels.
    """

    def __init__(self, settings: FilterSettings, labels: Sequence[Label], source: str, input_side: int = 800) -> None:
        self._settings = settings
        self._labels = tuple(labels)
        self._source = source
        self._input_side = input_side
        self._tables = ClassTables.of(settings, labels)

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
        kept = keep_regions(boxes, found.scores, found.classes, page_size, self._settings, self._tables)
        kept = kept[np.argsort(found.order[kept], kind="stable")]
        final = boxes[kept]
        if self._tables.unclip is not None:
            final = grown(final, self._tables.unclip[found.classes[kept]])
        width, height = page_size
        final = np.clip(final, 0.0, np.array([width, height, width, height], dtype=np.float64))
        visible = (final[:, 0] < final[:, 2]) & (final[:, 1] < final[:, 3])
        return [
            DetectedRegion(
                box=(box[0], box[1], box[2], box[3]),
                label=self._labels[found.classes[i]],
                score=float(found.scores[i]),
                source=self._source,
                polygon=self._polygon(page, found, i, page_size) if self._settings.polygons else None,
                order=int(found.order[i]),
            )
            for i, box in zip(kept[visible], final[visible].tolist(), strict=True)
        ]

    def detections(self, page: RawPage, page_size: tuple[int, int]) -> Detections:
        """The model's proposals above the thresholds, at most one for every query of the model."""
        queries, classes = page.scores.shape
        if classes != len(self._labels) or page.boxes.shape != (queries, 4):
            raise EngineError(f"the layout model answers {page.scores.shape} scores and {page.boxes.shape} boxes")
        sound = np.asarray(np.isfinite(page.scores).all(axis=1) & np.isfinite(page.boxes).all(axis=1))
        if queries and not sound.any():
            raise EngineError(
                "the layout model answers no numbers (NaN)", remedy="Set precision to float32 in the layout settings."
            )
        chosen, of_class = np.nonzero((page.scores >= self._tables.thresholds) & sound[:, None])
        scores = page.scores[chosen, of_class]
        best = np.argsort(-scores, kind="stable")[:queries]
        chosen, of_class = chosen[best], of_class[best]
        width, height = page_size
        with np.errstate(over="ignore"):  # a box that overflows is not finite and goes
            boxes = page.boxes[chosen] * np.array([width, height, width, height], dtype=np.float32)
        return Detections(
            boxes=boxes,
            scores=scores[best],
            classes=of_class,
            queries=chosen,
            order=_ranks(page, chosen),
        )

    def outline(
        self, page: RawPage, found: Detections, index: int, page_size: tuple[int, int]
    ) -> NDArray[np.float64] | None:
        """The outline of a detection in page pixels, shape (n, 2); None where the model tells no more than its box."""
        query = found.queries[index]
        if page.corners is not None:
            return np.asarray(page.corners[query] * np.array(page_size, dtype=np.float64))
        if page.masks is None:
            return None
        packed = page.masks[query]
        return outline(
            lambda rows, columns: np.unpackbits(packed[rows], axis=1)[:, columns].astype(np.bool_),
            (packed.shape[0], packed.shape[1] * 8),
            found.boxes[index],
            page_size,
            self._input_side,
        )

    def _polygon(
        self, page: RawPage, found: Detections, index: int, page_size: tuple[int, int]
    ) -> tuple[Point, ...] | None:
        """The outline of a detection inside the page; None where it is the box."""
        box = found.boxes[index]
        points = self.outline(page, found, index, page_size)
        if points is None or not np.isfinite(points).all() or _is_rectangle(points, box):
            return None
        if self._tables.unclip is not None:
            centre = (box[:2].astype(np.float64) + box[2:]) / 2
            points = centre + (points - centre) * self._tables.unclip[found.classes[index]]
        points = np.clip(points, 0.0, np.array(page_size, dtype=np.float64))
        return tuple((x, y) for x, y in points.tolist())


def _ranks(page: RawPage, queries: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rank in reading order of the queries of detections."""
    if page.order.ndim == 1:
        ranks = np.empty(len(page.order), dtype=np.intp)
        ranks[np.argsort(page.order, kind="stable")] = np.arange(len(page.order))
        return ranks[queries]
    distinct, place = np.unique(queries, return_inverse=True)
    before, successor = page.order[:, distinct[:, None], distinct[None, :]]
    return decode_order(before, successor)[place]


def _is_rectangle(points: NDArray[np.float64], box: NDArray[np.float32]) -> bool:
    """Whether an outline is the four corners of its box."""
    if len(points) != 4:
        return False
    x1, y1, x2, y2 = (float(v) for v in box)
    corners = np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]])
    distance = np.abs(points[:, None] - corners[None, :]).max(axis=2)
    return bool((distance.min(axis=0) <= _RECTANGLE_SLACK).all())
