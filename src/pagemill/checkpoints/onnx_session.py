"""ONNX Runtime on the CPU."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.errors import MissingDependencyError
from pagemill.installation import reinstall
from pagemill.model_cache import cached, version_of

if TYPE_CHECKING:
    import onnxruntime


_importing = threading.Lock()
"""Held during the import of ONNX Runtime, which is not safe from two threads at once."""


def cpu_session(model: Path, *, fixed_shape: bool = False) -> onnxruntime.InferenceSession:
    """A model that computes on one thread per call; calls from several threads run in parallel. Cached.

    Args:
        model: The file.
        fixed_shape: All inputs have one shape.

    Raises:
        MissingDependencyError: There is no such file, as when a wheel was built without its models.
        Exception: One of ONNX Runtime's private types, or OSError.
    """
    require(model)
    return cached((cpu_session, version_of(model), fixed_shape), lambda: load(str(model), fixed_shape=fixed_shape))


def require(model: Path) -> None:
    """Check that a model of this installation is there.

    Raises:
        MissingDependencyError: There is no such file, as when a wheel was built without its models.
    """
    if not model.is_file():
        raise MissingDependencyError(
            f"the model {model.name} is missing from this installation", remedy=f"Reinstall: {reinstall()}"
        )


def load(model: str | bytes, *, fixed_shape: bool = False) -> onnxruntime.InferenceSession:
    """Load a session from a path or the content of a file, without the cache of :func:`cpu_session`.

    The memory arena saves a tenth of the text detector's time, which went into page faults, and holds less at its peak
    than the C allocator; with inputs of ever new shapes it stays flat.
    """
    with _importing:
        import onnxruntime

    options = onnxruntime.SessionOptions()
    # Pages run in parallel on our own threads; and sums do not depend on how many threads share them.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # A memory plan is made per input shape: with shapes that change it would be made for each call.
    options.enable_mem_pattern = fixed_shape
    # Errors are raised anyway, and exported models warn about their shapes on every load.
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
