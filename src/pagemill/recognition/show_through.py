"""Text that shines through from the back of a sheet: pale, blurred, in a mirror, between and across the lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pagemill.imaging.types import Pixels
from pagemill.late import cv2

_CORE = 2
"""Percentile of a line's lightness that is the core of its strokes: ink covers a tenth of a line."""
_PALER = 0.75
"""Largest darkness of the back over that of the front: the ends of the front's strokes are as pale as half of it."""


def is_paler(back: Sequence[Pixels], front: Sequence[Pixels]) -> bool:
    """Whether the ink of some lines is clearly paler than that of others."""
    return bool(back) and bool(front) and _back_ink(back) < _PALER * _front_ink(front)


def without_back(page: Pixels, back: Sequence[Pixels], front: Sequence[Pixels]) -> Pixels:
    """The page without ink as pale as the back's; what is darker is stretched to its full darkness.

    Args:
        page: Its pixels.
        back: Images of lines that shine through.
        front: Images of darker lines, which read well.
    """
    behind, ink = _back_ink(back), _front_ink(front)
    values = np.arange(256)[:, None]
    darkness = np.median(page[::8, ::8].reshape(-1, 3), axis=0) - values  # of each value, by channel
    kept = np.clip((darkness - behind) / (ink - behind), 0, 1) * ink
    table = np.where(darkness > 0, values + darkness - kept, values)
    return np.asarray(cv2.LUT(page, np.clip(table, 0, 255).astype(np.uint8)[None]), dtype=np.uint8)


def _back_ink(lines: Sequence[Pixels]) -> float:
    """Darkness of nearly all ink of the back."""
    return float(np.quantile([_darkness(line) for line in lines], 0.9))


def _front_ink(lines: Sequence[Pixels]) -> float:
    return float(np.median([_darkness(line) for line in lines]))


def _darkness(line: Pixels) -> float:
    grey = line[..., 1]
    return float(np.median(grey)) - float(np.percentile(grey, _CORE))
