"""What a layout engine is: page pixels in, labelled boxes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pagemill.document.geometry import Box, Point
from pagemill.document.labels import Label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.imaging.types import Pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedRegion:
    """One region as detection gives it, in pixels of the image that was handed in."""

    box: Box
    label: Label
    score: float | None
    """Of the engine, 0-1; None for a region that does not come from a model."""
    source: str
    """Name of the engine, or how the region was found otherwise: ``projection``, ``ruling-lines``, ``pdf-image``."""
    polygon: tuple[Point, ...] | None = None
    order: int | None = None
    """Rank in reading order where the model predicts one."""


class LayoutEngine(Protocol):
    """A model that finds regions. Called from several threads at once; it must be thread-safe."""

    name: str
    max_batch: int
    """Most pages that one call takes; the runtime never sends more."""

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page, one list a page, in any order.

        Boxes lie inside the page; scores are finite. May raise: the runtime then tries the pages one by one.
        """
        ...

    def close(self) -> None:
        """Free the model."""
        ...
