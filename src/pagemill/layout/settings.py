"""What a user can choose about layout detection."""

from __future__ import annotations

from pathlib import Path

import msgspec


class LayoutSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Choices for a layout engine."""

    model_path: Path | None = None
    """The user's own model, as the engine takes it: an ONNX file, a folder of weights, a settings file that names one;
    None for the engine's own."""
    max_batch: int | None = None
    """Most pages in one microbatch; None for what suits the engine's device. An engine that takes pages one by one, as
    the embedded one does, has no use for it."""
