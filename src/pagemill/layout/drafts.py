"""Regions in the making: boxes with the text lines that belong to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pagemill.document.labels import FORMULAS, PICTURES, Label

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pagemill.layout.base import DetectedRegion


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
