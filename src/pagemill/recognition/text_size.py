"""How small the letters of a page are, from its pixels alone, before any text is looked for.

The detector cannot tell: of type that was shrunk too far it sees whole columns as one line, or nothing at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from pagemill.imaging.transforms import fit

if TYPE_CHECKING:
    from pagemill.imaging.types import Pixels


_LONG_SIDE = 2560
"""Larger pages are shrunk to this before measuring: 20 ms for A4, at most 100 ms for the largest pages. Letters of
6.5 point type on a newspaper page are 8 pixels high then. The following are pixels of that image."""
_WINDOW, _CONTRAST = 31, 20
"""Side of the square whose mean a stroke must be darker than, and the grey levels by which; grain of a scan has a
standard deviation of 5 to 10."""
_LEAST_HEIGHT, _MOST_HEIGHT = 5, 200
"""Smaller blobs are dots, commas and the texture of photographs."""
_LEAST_FILL = 0.15
"""Share of its box that a letter fills; less is a frame or a curve."""
_WIDEST = 12
"""Times its height: words whose letters touch count, rules do not."""
_LEAST_LETTERS = 200
_QUANTILE = 0.4
"""Of the heights: on 70 pages of all kinds within a fifth of the height of a lower-case letter."""


def letter_height(page: Pixels) -> float | None:
    """Height in pixels of the page's lower-case letters; None where it holds too few to tell.

    Args:
        page: Shape (height, width, 3), uint8 RGB. Dark letters on light ground are measured.
    """
    scale: float = min(1.0, _LONG_SIDE / max(page.shape))
    grey = cv2.cvtColor(fit(page, _LONG_SIDE), cv2.COLOR_RGB2GRAY)
    ink = cv2.adaptiveThreshold(grey, 1, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, _WINDOW, _CONTRAST)
    _, _, blobs, _ = cv2.connectedComponentsWithStats(ink, connectivity=8, ltype=cv2.CV_32S)
    widths, heights, areas = blobs[1:, cv2.CC_STAT_WIDTH], blobs[1:, cv2.CC_STAT_HEIGHT], blobs[1:, cv2.CC_STAT_AREA]
    letters = heights[
        (heights >= _LEAST_HEIGHT)
        & (heights <= _MOST_HEIGHT)
        & (widths <= _WIDEST * heights)
        & (areas >= _LEAST_FILL * widths * heights)
    ]
    if len(letters) < _LEAST_LETTERS:
        return None
    return float(np.quantile(letters, _QUANTILE)) / scale
