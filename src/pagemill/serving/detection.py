"""This machine: its accelerators, as NVML reports them, and its memory."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pynvml

from pagemill.config.hardware import AUTO, Dtype, Fp8, Profile, load_profile, profile_names
from pagemill.errors import MissingDependencyError

_DRIVER = "Check the driver, or describe the machine with --profile (cpu works without a GPU)."
_NATIVE_FP8 = (8, 9)
_WEIGHTS_FP8 = (7, 5)
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Gpu:
    """An accelerator as its driver describes it."""

    name: str
    memory_gib: float
    compute_capability: tuple[int, int]


def gpus() -> list[Gpu]:
    """The machine's NVIDIA GPUs, as NVML reports them; empty without a driver.

    Raises:
        MissingDependencyError: The driver is installed and does not work.
    """
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [
            Gpu(
                pynvml.nvmlDeviceGetName(handle),
                pynvml.nvmlDeviceGetMemoryInfo(handle).total / _GIB,
                tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
            )
            for handle in handles
        ]
    except pynvml.NVMLError_LibraryNotFound:
        return []
    except pynvml.NVMLError as error:
        raise MissingDependencyError(f"the NVIDIA driver does not work: {error}", remedy=_DRIVER) from error
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def machine_memory_gib() -> float:
    """Memory of the machine, or of its control group if that is less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # Inside a container the machine has more than the process may use.
    with suppress(OSError, ValueError):  # no limit ("max"), or no control groups
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return memory / _GIB


def resolve_profile(name: str) -> Profile:
    """The profile of this name, with the machine's own memory if the profile names none.

    Args:
        name: Name of a profile, or ``auto`` for the machine at hand.

    Raises:
        UsageError: There is no such profile.
    """
    profile = _detected() if name == AUTO else load_profile(name)
    if profile.memory_gib is None:
        profile = msgspec.structs.replace(profile, memory_gib=machine_memory_gib())
    return profile


def profile_of(gpu: Gpu) -> Profile:
    """The profile of an accelerator, by its name or else by its memory size, with its own memory."""
    known = (load_profile(name) for name in profile_names())
    fitting = next((profile for profile in known if any(_names(word, gpu.name) for word in profile.match)), None)
    if fitting is not None:
        return msgspec.structs.replace(fitting, memory_gib=gpu.memory_gib, note=None)  # the note is about the memory
    # An unknown accelerator: batch sizes of the profile nearest in memory, which decides them. Not measured.
    base = load_profile("h100" if gpu.memory_gib >= 70 else "l4" if gpu.memory_gib >= 20 else "rtx4060")
    capability = gpu.compute_capability
    fp8 = Fp8.NATIVE if capability >= _NATIVE_FP8 else Fp8.WEIGHTS if capability >= _WEIGHTS_FP8 else Fp8.NO
    return msgspec.structs.replace(
        base,
        name=AUTO,
        title=gpu.name,
        memory_gib=gpu.memory_gib,
        compute_capability=gpu.compute_capability,
        fp8=fp8,
        dtype=Dtype.FP8 if fp8 is Fp8.NATIVE else Dtype.AUTO,
        note=f"No profile knows this accelerator: the defaults are those of {base.name}, memory and fp8 its own.",
    )


def visible_devices() -> list[str] | None:
    """The devices that ``CUDA_VISIBLE_DEVICES`` names; None if it is not set."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    return None if value is None else [device.strip() for device in value.split(",") if device.strip()]


def _detected() -> Profile:
    found = gpus()
    # One plan for all servers: it must fit the smallest accelerator.
    if found:
        return profile_of(min(found, key=lambda gpu: gpu.memory_gib))
    return load_profile("mps" if platform.system() == "Darwin" and platform.machine() == "arm64" else "cpu")


def _names(word: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", name) is not None
