"""Rules for devices, with a stand-in for PyTorch: Apple's MPS, where nothing of CUDA may be called."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pagemill import model_cache
from pagemill.checkpoints import devices
from pagemill.checkpoints.devices import choose_device, choose_dtype, free_memory
from pagemill.config.model_cards import load_card
from pagemill.config.modes import TorchDevice, TorchDtype
from pagemill.errors import UsageError
from pagemill.recognition.local import generation

SOURCE = Path(model_cache.__file__).parent


class Mps:
    """PyTorch on a Mac: whatever of CUDA is called beyond asking whether it is there is not there."""

    bfloat16, float16, float32 = "bfloat16", "float16", "float32"

    def __init__(self, macos: int = 15) -> None:
        self.emptied = 0
        self.cuda = SimpleNamespace(is_available=lambda: False, is_initialized=lambda: False)
        newer = SimpleNamespace(is_available=lambda: True, is_macos_or_newer=lambda major, minor: macos >= major)
        self.backends = SimpleNamespace(mps=newer)
        self.mps = SimpleNamespace(
            recommended_max_memory=lambda: 12 * 2**30,
            driver_allocated_memory=lambda: 2 * 2**30,
            empty_cache=self._empty,
        )

    def device(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(type=name)

    def _empty(self) -> None:
        self.emptied += 1


@pytest.fixture
def mac(monkeypatch):
    torch = Mps()
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_a_mac_computes_on_its_gpu_in_bfloat16(mac):
    device = choose_device(TorchDevice.AUTO, "--recognition-device")
    assert device.type == "mps"
    assert choose_dtype(TorchDtype.AUTO, device) == "bfloat16"
    assert choose_dtype(TorchDtype.FLOAT16, device) == "float16"
    assert free_memory(device) == 10 * 2**30
    with pytest.raises(UsageError, match="no cuda device") as caught:
        choose_device(TorchDevice.CUDA, "--recognition-device")
    assert "--recognition-device" in caught.value.remedy


def test_an_older_mac_computes_in_float32(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", Mps(macos=13))
    assert choose_dtype(TorchDtype.AUTO, choose_device(TorchDevice.MPS, "")) == "float32"


def test_the_cpu_computes_in_float32(mac):
    device = choose_device(TorchDevice.CPU, "")
    assert choose_dtype(TorchDtype.AUTO, device) == "float32"
    assert (free_memory(device) or 1) > 0


def test_released_models_give_their_memory_back(mac, monkeypatch):
    monkeypatch.setattr(model_cache, "_models", {"key": object()})
    model_cache.release_models()
    assert mac.emptied == 1


def planned(device: str, monkeypatch, free: int | None) -> int:
    """Requests in a batch of GLM-OCR, of 64 KiB of cache per token in 16 bits."""
    text = SimpleNamespace(num_hidden_layers=16, num_key_value_heads=8, head_dim=128, max_position_embeddings=131_072)
    model = SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: text))
    monkeypatch.setattr(generation, "free_memory", lambda _: free)
    local = SimpleNamespace(device=SimpleNamespace(type=device), dtype=SimpleNamespace(itemsize=2), model=model)
    return generation._planned_batch(local, load_card("glm-ocr"))


@pytest.mark.parametrize(
    ("device", "gib", "batch"),
    [("cuda", 500, 64), ("cuda", 16, 12), ("cuda", 1, 1), ("mps", 100, 4), ("mps", 3, 2), ("cpu", 100, 8)],
)
def test_batches_fit_the_free_memory(device, gib, batch, monkeypatch):
    assert planned(device, monkeypatch, gib * 2**30) == batch


def test_where_the_memory_is_not_known_batches_have_the_most_of_the_device(monkeypatch):
    assert planned("mps", monkeypatch, None) == 4


@pytest.mark.parametrize("folder", ["recognition", "tables", "runtime", "parsing"])
def test_nothing_of_cuda_is_called_outside_of_the_rules(folder):
    calls = re.compile(r"torch\.cuda\.|\.cuda\(")
    assert [path.name for path in (SOURCE / folder).rglob("*.py") if calls.search(path.read_text())] == []


@pytest.mark.parametrize("order", [(1, 6, 1), (6, 1), (1, 1)])
def test_the_model_that_wants_most_threads_decides_whichever_is_loaded_first(order, monkeypatch):
    numbers = []
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=numbers.append))
    monkeypatch.setattr(devices, "_most_threads", 1)
    for threads in order:
        devices.compute_with(threads, SimpleNamespace(type="cpu"))
    assert numbers[-1] == max(order)
    devices.compute_with(64, SimpleNamespace(type="cuda"))
    assert numbers[-1] == max(order)


def test_threads_of_pytorch_are_set_in_one_place():
    setters = [path.name for path in SOURCE.rglob("*.py") if "set_num_threads" in path.read_text()]
    assert setters == ["devices.py"]
