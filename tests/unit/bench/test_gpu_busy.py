"""The busy share of a GPU that is not there."""

from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")

from pagemill.bench.gpu_busy import GpuBusy  # noqa: E402


def test_without_cuda_there_is_no_share():
    with GpuBusy(torch.device("cpu")) as gpu:
        pass
    assert gpu.share is None


def test_without_the_package_there_is_no_share(monkeypatch: pytest.MonkeyPatch):
    def missing(device: object) -> int:
        raise ModuleNotFoundError("nvidia-ml-py")

    monkeypatch.setattr(torch.cuda, "utilization", missing)
    with GpuBusy(torch.device("cuda")) as gpu:
        pass
    assert gpu.share is None


def test_the_share_is_the_mean_of_what_the_driver_says_in_the_block(monkeypatch: pytest.MonkeyPatch):
    samples = [99]

    def utilization(device: object) -> int:
        samples.append(40 if len(samples) % 2 else 60)
        return 100 if len(samples) == 2 else samples[-1]

    monkeypatch.setattr(torch.cuda, "utilization", utilization)
    with GpuBusy(torch.device("cuda")) as gpu:
        deadline = time.monotonic() + 30
        while len(samples) < 4 and time.monotonic() < deadline:
            time.sleep(0.001)
    assert gpu.share is not None
    assert 0.4 <= gpu.share <= 0.6
