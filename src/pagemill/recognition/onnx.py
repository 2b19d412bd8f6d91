"""ONNX models: their metadata, cutting a classifier down to fewer classes, and ONNX Runtime sessions on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def metadata(model: Path) -> dict[str, str]:
    """What a model file says of itself, without a session being made."""
    import onnx

    return {entry.key: entry.value for entry in onnx.load_model(model).metadata_props}


def with_classes(model: Path, kept: Sequence[int]) -> bytes:
    """Cut a classifier down to some of its classes, in the order given; the rest of the network stays as it is.

    The weights and biases of the last layer are those whose last axis is as long as the model has classes.
    """
    import onnx
    from onnx import numpy_helper

    loaded = onnx.load_model(model)
    axis = loaded.graph.output[0].type.tensor_type.shape.dim[-1]
    for tensor in loaded.graph.initializer:
        if tensor.dims[-1:] == [axis.dim_value]:
            fewer = numpy_helper.to_array(tensor)[..., list(kept)]
            tensor.CopyFrom(numpy_helper.from_array(fewer, tensor.name))
    axis.dim_value = len(kept)
    del loaded.graph.value_info[:]  # shapes inside the graph are inferred again
    return bytes(loaded.SerializeToString())
