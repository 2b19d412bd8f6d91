"""Models of this process: each is loaded once, for all pipelines, documents and threads that use it."""

from __future__ import annotations

import gc
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

Model = TypeVar("Model")

_models: dict[Hashable, Any] = {}
_loading: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
_lock = threading.Lock()


def cached(key: Hashable, load: Callable[[], Model]) -> Model:
    """The model of a key; loaded by the first caller, for whom all others wait. A failure is not kept.

    The model stays in memory until :func:`release_models`, also while nobody uses it: the next document needs it again.

    Args:
        key: All that decides which model it is, and how it computes; see also :func:`version_of`.
        load: Loads it; takes long.

    Raises:
        Exception: Whatever ``load`` raised.
    """
    with _lock:
        if key in _models:
            return _models[key]  # type: ignore[no-any-return]
        # A lock per key: two models load in parallel, while callers of one model wait for its only load.
        loading = _loading[key]
    # Looked up again: another caller may have loaded it in the meantime.
    with loading:
        with _lock:
            if key in _models:
                return _models[key]  # type: ignore[no-any-return]
        model = load()
        with _lock:
            _models[key] = model
        return model


def release_models() -> None:
    """Forget the models that are loaded. The memory of each is freed when nothing uses it any more."""
    with _lock:
        _models.clear()
    empty_caches()


def empty_caches() -> None:
    """Have PyTorch give the memory that it keeps for later back to its device. Does not import it."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    gc.collect()  # modules refer to themselves
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def version_of(path: Path) -> tuple[str, int, int]:
    """A key for the content of a file: its path, size, and time of change in nanoseconds.

    Raises:
        OSError: It cannot be read.
    """
    state = path.stat()
    return str(path.resolve()), state.st_size, state.st_mtime_ns
