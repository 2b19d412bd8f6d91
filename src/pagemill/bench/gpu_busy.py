"""How much of the time a GPU computes, as its driver says (NVML)."""

from __future__ import annotations

import statistics
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import torch

_INTERVAL_S = 0.05


class GpuBusy:
    """Samples a GPU's utilization while the block runs.

    The driver tells the share of its last period (1/6 s to 1 s, by the product) in which a kernel ran, of any process.
    """

    def __init__(self, device: torch.device) -> None:
        """Sample this device; nothing where it is no CUDA device or ``nvidia-ml-py`` is not installed."""
        self.share: float | None = None
        """Mean of the samples, 0-1; None without any. Known after the block."""
        self._device = device
        self._samples: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pagemill.bench.gpu", daemon=True)

    def __enter__(self) -> Self:
        if self._device.type == "cuda" and self._sample():
            self._samples.clear()  # of before the block
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._samples:
            self.share = statistics.mean(self._samples) / 100

    def _watch(self) -> None:
        while not self._ended.wait(_INTERVAL_S) and self._sample():
            pass

    def _sample(self) -> bool:
        """Take a sample; whether the driver gave one."""
        import torch

        try:
            self._samples.append(torch.cuda.utilization(self._device))
        except Exception:  # nvidia-ml-py is missing, or its driver is; its errors have no base that is there without it
            return False
        return True
