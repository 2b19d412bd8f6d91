from __future__ import annotations

import pytest

from pagemill.config.hardware import Device, Dtype, Fp8, profile_names
from pagemill.errors import UsageError
from pagemill.serving import detection
from pagemill.serving.detection import Gpu, device_count, gpus, parse_gpus, profile_of, resolve_profile


def test_what_nvidia_smi_prints_is_read_line_by_line():
    answer = "NVIDIA L4, 23034, 8.9\nNVIDIA H100 80GB HBM3, 81559, 9.0\nGraphics, [N/A], 6.1\nrubbish\n,,\n"
    assert parse_gpus(answer) == [
        Gpu("NVIDIA L4", 23034 / 1024, (8, 9)),
        Gpu("NVIDIA H100 80GB HBM3", 81559 / 1024, (9, 0)),
    ]


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
        (Gpu("Something", 200.0, None), Fp8.NO, Dtype.AUTO),
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


def test_no_driver_is_no_accelerator(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == []


def test_an_unknown_profile_names_the_known_ones():
    with pytest.raises(UsageError, match="no hardware profile 'h800'") as caught:
        resolve_profile("h800")
    assert all(name in str(caught.value.remedy) for name in profile_names())


@pytest.mark.parametrize(("visible", "count"), [("0,2,5", 3), ("", 0), ("GPU-1f, GPU-2e", 2)])
def test_visible_devices_are_counted(monkeypatch: pytest.MonkeyPatch, visible: str, count: int):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device_count(resolve_profile("l4")) == count


def test_devices_that_cannot_be_counted_are_not_guessed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(detection, "gpus", list)
    assert device_count(resolve_profile("l4")) is None
    assert resolve_profile("cpu").device is Device.CPU
    assert device_count(resolve_profile("cpu")) is None
