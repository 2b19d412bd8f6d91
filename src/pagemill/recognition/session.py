"""ONNX Runtime as recognition uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


def cpu_session(model: Path | bytes) -> onnxruntime.InferenceSession:
    """Load a model for one compute thread a call; calls from several threads run side by side.

    The memory arena saves a tenth of the detector's time, which went into page faults, and holds less at its peak than
    the C allocator; with inputs of ever new shapes it stays flat. Memory patterns would be planned
    again for each shape.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
