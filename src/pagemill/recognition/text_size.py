"""How small the letters of a page are, from its pixels alone, before any text is looked for.

The detector cannot tell: of type that was shrunk too far it sees whole columns as one line, or nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from pagemill.imaging.types import Pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSizeThresholds:
    """What counts as a letter, in pixels of the measured image."""

    long_side: int = 2560
    """Larger pages are shrunk to this before measuring: 20 ms for A4, at most 100 ms for the largest pages. Letters of
    6.5 point type on a newspaper page are 8 pixels high then."""
    window: int = 31
    """Side of the square whose mean a stroke must be darker than."""
    contrast: int = 20
    """Grey levels by which it must be darker; grain of a scan has a standard deviation of 5 to 10."""
    least_height: int = 5
    """Smaller blobs are dots, commas and the texture of photographs."""
    most_height: int = 200
    least_fill: float = 0.15
    """Share of its box that a letter fills; less is a frame or a curve."""
    widest: int = 12
    """Times its height: words whose letters touch count, rules do not."""
    least_letters: int = 200
    quantile: float = 0.4
    """Of the heights: on 70 pages of all kinds within a fifth of the height of a lower-case letter."""


def letter_height(page: Pixels, thresholds: TextSizeThresholds | None = None) -> float | None:
    """Height in pixels of the page's lower-case letters; None where it holds too few to tell.

    Args:
        page: Shape (height, width, 3), uint8 RGB. Dark letters on light ground are measured.
        thresholds: What counts as a letter.
    """
    limits = thresholds or TextSizeThresholds()
    height, width = page.shape[:2]
    scale: float = min(1.0, limits.long_side / max(height, width))
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        page = np.asarray(cv2.resize(page, size, interpolation=cv2.INTER_AREA), np.uint8)
    grey = cv2.cvtColor(page, cv2.COLOR_RGB2GRAY)
    ink = cv2.adaptiveThreshold(
        grey, 1, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, limits.window, limits.contrast
    )
    _, _, blobs, _ = cv2.connectedComponentsWithStats(ink, connectivity=8, ltype=cv2.CV_32S)
    widths, heights, areas = blobs[1:, cv2.CC_STAT_WIDTH], blobs[1:, cv2.CC_STAT_HEIGHT], blobs[1:, cv2.CC_STAT_AREA]
    letters = heights[
        (heights >= limits.least_height)
        & (heights <= limits.most_height)
        & (widths <= limits.widest * heights)
        & (areas >= limits.least_fill * widths * heights)
    ]
    if len(letters) < limits.least_letters:
        return None
    return float(np.quantile(letters, limits.quantile)) / scale
