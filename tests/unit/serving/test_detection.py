from types import SimpleNamespace

import pynvml
import pytest

from pagemill.config.hardware import Dtype, Fp8, profile_names
from pagemill.errors import MissingDependencyError, UsageError
from pagemill.serving import detection
from pagemill.serving.detection import Gpu, gpus, profile_of, resolve_profile, visible_devices


class Nvml:
    """Answers like NVML, for the devices given as (name, bytes, compute capability)."""

    def __init__(self, *devices: tuple[str, int, tuple[int, int]], error: Exception | None = None) -> None:
        self.devices = devices
        self.error = error

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("Init", "Shutdown"):
            monkeypatch.setattr(pynvml, f"nvml{name}", self.init if name == "Init" else lambda: None)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: len(self.devices))
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: self.devices[index])
        monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda device: device[0])
        monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", lambda device: SimpleNamespace(total=device[1]))
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCudaComputeCapability", lambda device: device[2])

    def init(self) -> None:
        if self.error:
            raise self.error


def test_accelerators_are_listed_as_nvml_reports_them(monkeypatch: pytest.MonkeyPatch):
    Nvml(("NVIDIA L4", 24 * 2**30, (8, 9)), ("NVIDIA H100", 80 * 2**30, (9, 0))).install(monkeypatch)
    assert gpus() == [Gpu("NVIDIA L4", 24.0, (8, 9)), Gpu("NVIDIA H100", 80.0, (9, 0))]


def test_no_driver_is_no_accelerator(monkeypatch: pytest.MonkeyPatch):
    Nvml(error=pynvml.NVMLError_LibraryNotFound()).install(monkeypatch)
    assert gpus() == []


def test_a_driver_that_does_not_work_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch):
    Nvml(error=pynvml.NVMLError_DriverNotLoaded()).install(monkeypatch)
    with pytest.raises(MissingDependencyError, match="driver") as caught:
        gpus()
    assert "--profile" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA B200", "b200"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 PCIe", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", "rtx4060"),
    ],
)
def test_an_accelerator_is_known_by_its_name_and_has_its_own_memory(name: str, profile: str):
    found = profile_of(Gpu(name, 12.5, (9, 0)))
    assert (found.name, found.memory_gib) == (profile, 12.5)


@pytest.mark.parametrize(
    ("gpu", "fp8", "dtype"),
    [
        (Gpu("NVIDIA L40S", 45.0, (8, 9)), Fp8.NATIVE, Dtype.FP8),
        (Gpu("NVIDIA A10", 22.5, (8, 6)), Fp8.WEIGHTS, Dtype.AUTO),
        (Gpu("Tesla P100", 16.0, (6, 0)), Fp8.NO, Dtype.AUTO),
        (Gpu("Something", 200.0, (3, 5)), Fp8.NO, Dtype.AUTO),
    ],
)
def test_one_that_no_profile_knows_is_taken_for_what_it_says_of_itself(gpu: Gpu, fp8: Fp8, dtype: Dtype):
    found = profile_of(gpu)
    assert (found.name, found.title, found.memory_gib) == ("auto", gpu.name, gpu.memory_gib)
    assert (found.fp8, found.dtype) == (fp8, dtype)


def test_auto_takes_the_smallest_accelerator(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(detection, "gpus", lambda: [Gpu("NVIDIA L4", 22.5, (8, 9)), Gpu("NVIDIA H100", 79.6, (9, 0))])
    assert resolve_profile("auto").name == "l4"


@pytest.mark.parametrize(
    ("system", "machine", "name"), [("Darwin", "arm64", "mps"), ("Darwin", "x86_64", "cpu"), ("Linux", "x86_64", "cpu")]
)
def test_auto_without_an_accelerator(monkeypatch: pytest.MonkeyPatch, system: str, machine: str, name: str):
    monkeypatch.setattr(detection, "gpus", list)
    monkeypatch.setattr(detection.platform, "system", lambda: system)
    monkeypatch.setattr(detection.platform, "machine", lambda: machine)
    profile = resolve_profile("auto")
    assert profile.name == name
    assert profile.memory_gib is not None


def test_an_unknown_profile_names_the_known_ones():
    with pytest.raises(UsageError, match="no hardware profile 'h800'") as caught:
        resolve_profile("h800")
    assert all(name in str(caught.value.remedy) for name in profile_names())


@pytest.mark.parametrize(
    ("visible", "devices"), [("0,2,5", ["0", "2", "5"]), ("", []), ("GPU-1f, GPU-2e", ["GPU-1f", "GPU-2e"])]
)
def test_visible_devices_are_named(monkeypatch: pytest.MonkeyPatch, visible: str, devices: list[str]):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert visible_devices() == devices
