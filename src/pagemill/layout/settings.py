"""What a user can choose about layout detection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutSettings:
    """Choices for a layout engine."""

    model_path: Path | None = None
    """The user's own model, an ONNX file or a folder of weights; None for the engine's own."""
    config_path: Path | None = None
    """Settings file of an engine that has more to choose; None for its defaults."""
    threads: int = 1
    """Threads of one inference. Pages already run in parallel, so more only helps single pages."""
    score_threshold: float | None = None
    """Lowest score of a region, 0-1; None for the model's own default."""
