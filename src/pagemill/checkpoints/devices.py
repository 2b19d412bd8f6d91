"""Devices of PyTorch: which one computes, in which data type, and how much memory it has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pagemill.config.modes import TorchDevice, TorchDtype
from pagemill.errors import UsageError

if TYPE_CHECKING:
    import torch


def choose_device(wanted: TorchDevice, option: str) -> torch.device:
    """The device to run on: ``wanted``, or for ``auto`` the first available of CUDA, MPS and CPU.

    Args:
        wanted: The setting.
        option: The command line option for it, named in the remedy.

    Raises:
        UsageError: PyTorch has no such device.
    """
    import torch

    there = {
        TorchDevice.CUDA: torch.cuda.is_available(),
        TorchDevice.MPS: torch.backends.mps.is_available(),
        TorchDevice.CPU: True,
    }
    if wanted is TorchDevice.AUTO:
        wanted = next(kind for kind, available in there.items() if available)
    if not there[wanted]:
        raise UsageError(
            f"PyTorch sees no {wanted.value} device here",
            remedy=f"Set {option} to auto, or install a build of PyTorch for it (pytorch.org).",
        )
    return torch.device(wanted.value)


def choose_dtype(wanted: TorchDtype, device: torch.device) -> torch.dtype:
    """The data type of weights and activations.

    Language models are published in bfloat16; float16 has too small a range for some. So AUTO is bfloat16 where the
    device computes in it, float32 elsewhere: on the CPU, where bfloat16 is slow without special instructions, on CUDA
    before Ampere, and on MPS before macOS 14.
    """
    import torch

    if wanted is not TorchDtype.AUTO:
        dtype: torch.dtype = getattr(torch, wanted.value)
        return dtype
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    if device.type == "mps":
        return torch.bfloat16 if torch.backends.mps.is_macos_or_newer(14, 0) else torch.float32
    return torch.float32


_most_threads = 1


def compute_with(threads: int, device: torch.device) -> None:
    """Set the number of threads with which a loaded model computes on the CPU.

    PyTorch has one number for the whole process, so the model that wants most decides, whichever was loaded first: 1 is
    for models whose pages run in parallel in threads of ours; a language model computes one batch at a time, with all
    cores, and takes most of the time where there is one.

    Args:
        threads: Threads for this model.
        device: Device that computes; a no-op unless it is the CPU.
    """
    global _most_threads
    if device.type == "cpu":
        import torch

        _most_threads = max(_most_threads, threads)
        torch.set_num_threads(_most_threads)


def free_memory(device: torch.device) -> int | None:
    """Bytes of free memory; None where the system does not report it."""
    import torch

    if device.type == "cuda":
        # PyTorch keeps freed blocks for itself: the driver counts them as used, and we can still use them.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + kept)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # macOS, Windows
        return None
