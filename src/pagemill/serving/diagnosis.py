"""Diagnosis of a server that exited, from its log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class StartFailure(StrEnum):
    """Why a server exited."""

    DEVICE_MEMORY = "not enough memory on the accelerator"
    CACHE_MEMORY = "no memory is left for the key-value cache"
    PORT = "its port is in use"
    MODEL = "the model was not found or may not be read"
    NETWORK = "the model could not be fetched"
    DTYPE = "the hardware does not support the kind of weights"
    DEVICE = "no accelerator was found"
    ARGUMENT = "unknown option"
    DISK = "the disk is full"
    HOST_MEMORY = "it was killed, possibly because the machine ran out of memory"
    SILENT = "it said nothing"
    UNKNOWN = "its log says why"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A cause and its remedy."""

    cause: StartFailure
    remedy: str


_SIGNS: tuple[tuple[StartFailure, tuple[str, ...], str], ...] = (
    (
        StartFailure.DEVICE_MEMORY,
        ("cuda out of memory", "outofmemoryerror", "is less than desired gpu memory utilization", "hip out of memory"),
        "Stop other programs on the accelerator, or lower --gpu-mem-util; 'pagemill plan' shows the budget.",
    ),
    (
        StartFailure.CACHE_MEMORY,
        (
            "no available memory for the cache blocks",
            "larger than the available kv cache memory",
            "is less than desired cpu memory utilization",
        ),
        "Lower --max-model-len or raise --gpu-mem-util; 'pagemill plan' shows the budget.",
    ),
    (
        StartFailure.PORT,
        ("address already in use",),
        "Choose another with --port, or leave it out to get a free one.",
    ),
    (
        StartFailure.ARGUMENT,
        ("unrecognized arguments", "error: argument "),
        "Check the arguments after --, and whether this vLLM is new enough.",
    ),
    (
        StartFailure.MODEL,
        (
            "is not a local folder and is not a valid model identifier",
            "repository not found",
            "repositorynotfounderror",
            "gated repo",
            "cannot access gated",
            "401 client error",
            "403 client error",
            "cannot find the requested files in the disk cache",
            "cannot find an appropriate cached snapshot",
            "localentrynotfounderror",
            "invalid repository id or local directory",
            "couldn't find them in the cached files",
        ),
        "Check the name; fetch it with 'pagemill models download', or give its folder with --weights. For a model "
        "behind an agreement: accept it on its page, then log in with 'hf auth login'.",
    ),
    (
        StartFailure.NETWORK,
        ("we couldn't connect to", "name resolution", "max retries exceeded", "network is unreachable"),
        "Check the network, or fetch the model elsewhere and give its folder with --weights.",
    ),
    (
        StartFailure.DTYPE,
        (
            "bfloat16 is only supported on gpus",
            "minimum capability",
            "quantization method is not supported",
            "not supported for the current gpu",
            "quantization is currently not supported",
        ),
        "Use --ocr-dtype auto, or --ocr-dtype bf16 where the accelerator has it.",
    ),
    (
        StartFailure.DEVICE,
        ("no cuda gpus are available", "failed to infer device type", "found no nvidia driver", "no accelerator"),
        "Check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES; on a machine without a GPU, vLLM's CPU build and "
        "--profile cpu.",
    ),
    (
        StartFailure.DISK,
        ("no space left on device",),
        "Free some space in the model cache or the temporary folder.",
    ),
)
_KILLED = -9


def exceptions(log: Sequence[str]) -> list[str]:
    """The lines of a log with an exception and its message, oldest first, each once."""
    return list(dict.fromkeys(line for line in log if any(map(_names_exception, line.split()))))


def _names_exception(word: str) -> bool:
    """Whether a word is the name of a raised exception; a quoted one is only mentioned."""
    return word.endswith(("Error:", "Exception:")) and word[:-1].replace(".", "").replace("_", "").isalnum()


def diagnose(log: Sequence[str], status: int | None = None) -> Diagnosis:
    """Find the cause in the last lines of a log; the line nearest to the end decides.

    Args:
        log: The lines, oldest first.
        status: The exit status, negative for a signal; None if the process did not exit.
    """
    for line in reversed(log):
        lowered = line.casefold()
        for cause, signs, remedy in _SIGNS:
            if any(sign in lowered for sign in signs):
                return Diagnosis(cause, remedy)
    if status == _KILLED:
        return Diagnosis(StartFailure.HOST_MEMORY, "Check the system log for an out-of-memory kill.")
    if not log and status is not None:
        return Diagnosis(
            StartFailure.SILENT, "Is it vLLM that --vllm or PAGEMILL_VLLM names? Try it: PROGRAM serve --help."
        )
    return Diagnosis(StartFailure.UNKNOWN, "Read the end of its log above; the full log is in the file named there.")
