"""Regions in the making: boxes with the text lines that belong to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pagemill.document.labels import Label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pagemill.layout.base import DetectedRegion

PICTURES = frozenset({Label.IMAGE, Label.CHART, Label.HEADER_IMAGE, Label.FOOTER_IMAGE, Label.SEAL})
FORMULAS = frozenset({Label.DISPLAY_FORMULA, Label.INLINE_FORMULA})
FLOWING = frozenset({Label.TEXT, Label.ABSTRACT, Label.REFERENCE_CONTENT, Label.CONTENT, Label.FOOTNOTE})
"""Running text, which may fall apart into columns and paragraphs."""


@dataclass(slots=True)
class Draft:
    """A region in the making."""

    label: Label
    box: NDArray[np.float64]
    """Shape (4,), page pixels."""
    origin: DetectedRegion | None
    """The model's region; None for one found from text lines."""
    lines: list[int] = field(default_factory=list)
    """Indices of its text lines."""
    background: bool = False
    """A picture behind text: its lines are regions of their own."""

    @property
    def textual(self) -> bool:
        """Whether it is nothing without text lines."""
        return self.label not in PICTURES and self.label not in FORMULAS and self.label is not Label.TABLE


def frame_of(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smallest box, shape (4,), around boxes of shape (n, 4), n > 0."""
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
