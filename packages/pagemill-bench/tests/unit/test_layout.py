"""The busy share of a GPU that is not there."""

import time

import pytest

torch = pytest.importorskip("torch")

from pagemill_bench.layout import gpu_samples  # noqa: E402


def test_without_cuda_there_is_no_share():
    with gpu_samples(torch.device("cpu")) as samples:
        pass
    assert samples == []


def test_without_the_package_there_is_no_share(monkeypatch: pytest.MonkeyPatch):
    def missing(device: object) -> int:
        raise ModuleNotFoundError("nvidia-ml-py")

    monkeypatch.setattr(torch.cuda, "utilization", missing)
    with gpu_samples(torch.device("cuda")) as samples:
        pass
    assert samples == []


def test_what_the_driver_says_in_the_block(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "utilization", lambda device: 40)
    with gpu_samples(torch.device("cuda")) as samples:
        deadline = time.monotonic() + 30
        while len(samples) < 3 and time.monotonic() < deadline:
            time.sleep(0.001)
    assert set(samples) == {40}
