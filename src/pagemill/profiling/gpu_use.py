"""The use of the NVIDIA GPUs of this machine over time, as their driver (NVML) reports it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pynvml

_GIB = 2**30


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one GPU over a period."""

    index: int
    name: str
    busy: float
    """Mean share of the time in which a kernel ran, 0-1: the driver's "SM" or "GPU utilization"."""
    memory_busy: float
    """Mean share of the time in which its memory was read or written, 0-1."""
    memory_gib: float
    """Peak memory in use."""


class GpuSample(NamedTuple):
    """Use of a GPU at one time, in the units of :class:`GpuUse`."""

    time: float
    """From :func:`time.perf_counter`."""
    busy: float
    memory_busy: float
    memory_gib: float
    watts: float | None
    """None for a GPU that does not report its power."""


@dataclass(slots=True)
class Gpus:
    """Samples the use of GPUs; :meth:`begin` clears the samples."""

    _handles: list[Any]
    _samples: defaultdict[int, list[GpuSample]] = field(default_factory=lambda: defaultdict(list))

    def begin(self) -> None:
        """Forget the samples."""
        self._samples.clear()

    def sample(self) -> None:
        """Take a sample from the driver, in some milliseconds; skip a GPU that does not answer."""
        for index, handle in enumerate(self._handles):
            with suppress(pynvml.NVMLError):  # for example a MIG slice, which does not report its utilization
                rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
                used = pynvml.nvmlDeviceGetMemoryInfo(handle).used
                # Apart from the rest: many cards report utilization and no power.
                watts = None
                with suppress(pynvml.NVMLError):
                    watts = pynvml.nvmlDeviceGetPowerUsage(handle) / 1000
                now = time.perf_counter()
                self._samples[index].append(GpuSample(now, rates.gpu / 100, rates.memory / 100, used / _GIB, watts))

    def use(self) -> tuple[GpuUse, ...]:
        """The use of each GPU since :meth:`begin`, without those that gave no sample."""
        return tuple(self._use(index, samples) for index, samples in sorted(self._samples.items()))

    def samples(self) -> dict[str, list[GpuSample]]:
        """The samples since :meth:`begin`, by the GPU's name."""
        return {
            f"GPU {index} ({pynvml.nvmlDeviceGetName(self._handles[index])})": list(samples)
            for index, samples in sorted(self._samples.items())
        }

    def _use(self, index: int, samples: list[GpuSample]) -> GpuUse:
        return GpuUse(
            index=index,
            name=pynvml.nvmlDeviceGetName(self._handles[index]),
            busy=sum(sample.busy for sample in samples) / len(samples),
            memory_busy=sum(sample.memory_busy for sample in samples) / len(samples),
            memory_gib=max(sample.memory_gib for sample in samples),
        )


@contextmanager
def sampled_gpus() -> Iterator[Gpus | None]:
    """The GPUs of this machine, for the block; None without any, or without a driver that works."""
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        handles = []
    try:
        yield Gpus(handles) if handles else None
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
