"""ONNX Runtime sessions for the CPU, set up so that parallelism comes from pages and memory stays flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import onnxruntime


def cpu_session(model: Path, threads: int) -> onnxruntime.InferenceSession:
    """Load a model for ``threads`` compute threads a call; calls from several threads run side by side.

    The memory arena is off: with inputs of ever new shapes it only grows.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
