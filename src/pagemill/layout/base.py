"""What a layout engine is: page pixels in, labelled boxes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pagemill.document.geometry import Box, Point
from pagemill.document.labels import Label
from pagemill.imaging.types import Pixels

GIVEN = "given"
"""``DetectedRegion.source`` of a region that is known, not detected: it is never dissolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedRegion:
    """One region as detection gives it, in pixels of the image that was handed in."""

    box: Box
    label: Label
    score: float | None
    """Score of the engine, 0-1; None for a region that does not come from a model."""
    source: str
    """Name of the engine, or how the region was found otherwise: ``projection``, ``ruling-lines``, ``pdf-image``."""
    polygon: tuple[Point, ...] | None = None
    order: int | None = None
    """Rank in reading order where the model predicts one."""
    part: int | None = None
    """Of regions that are read one after the other, as they are given, the number of what they are part of."""


class DecodedLayout(NamedTuple):
    """A page that a layout engine has decoded, and what it found."""

    pixels: Pixels
    """Pixels of the whole page."""
    regions: list[DetectedRegion]


class LayoutEngine(Protocol):
    """A model that finds regions. Called from several threads at once; it must be thread-safe."""

    name: str
    max_batch: int
    """Most pages that one call takes; the runtime never sends more."""

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page, one list a page, in any order.

        Boxes lie inside the page; scores are finite. May raise: the runtime then tries the pages one by one.
        """

    def close(self) -> None:
        """Free the model."""


class JpegLayoutEngine(LayoutEngine, Protocol):
    """A layout engine whose device decodes JPEGs, too."""

    decodes_jpegs: bool
    """Whether it does here. The runtime asks any engine; one without this attribute does not."""

    def detect_jpegs(self, pages: Sequence[bytes]) -> list[DecodedLayout | None]:
        """Decode JPEGs that are whole, upright, RGB or grey, and find their regions, as :meth:`detect` does.

        None for a page that the device does not decode: the runtime decodes it and calls :meth:`detect`.
        """
