"""The use of GPUs, with a driver that is made up."""

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from pagemill.profiling.gpu_use import GpuUse, sampled_gpus


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two GPUs; the second does not tell how busy it is."""
    state: dict[str, Any] = {"gpu": 50, "ended": 0}

    def rates(handle: int) -> Any:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(gpu=state["gpu"], memory=20)

    def end() -> None:
        state["ended"] += 1

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", end)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 2)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda handle: f"GPU {handle}")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", rates)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", lambda handle: SimpleNamespace(used=state["gpu"] * 2**30))
    return state


def test_means_and_the_most_memory_since_the_beginning(driver: dict[str, Any]):
    with sampled_gpus() as gpus:
        assert gpus is not None
        gpus.sample()
        gpus.begin()
        assert gpus.use() == ()
        for busy in (80, 40):
            driver["gpu"] = busy
            gpus.sample()
        assert gpus.use() == (
            GpuUse(index=0, name="GPU 0", busy=pytest.approx(0.6), memory_busy=pytest.approx(0.2), memory_gib=80.0),
        )
    assert driver["ended"] == 1


def test_without_a_driver_there_are_none(monkeypatch: pytest.MonkeyPatch):
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    with sampled_gpus() as gpus:
        assert gpus is None
