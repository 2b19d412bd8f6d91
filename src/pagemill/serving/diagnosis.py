"""Diagnosis of a server that exited, from its log."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from enum import Enum


class StartFailure(Enum):
    """Why a server exited: cause, remedy, and substrings of log lines that show it. The first match counts."""

    DEVICE_MEMORY = (
        "not enough memory on the accelerator",
        "Stop other programs on the accelerator, or lower --gpu-mem-util; 'pagemill plan' shows the budget.",
        *("cuda out of memory", "outofmemoryerror", "is less than desired gpu memory utilization", "hip out of memory"),
    )
    CACHE_MEMORY = (
        "no memory is left for the key-value cache",
        "Lower --max-model-len or raise --gpu-mem-util; 'pagemill plan' shows the budget.",
        "no available memory for the cache blocks",
        "larger than the available kv cache memory",
        "is less than desired cpu memory utilization",
    )
    PORT = (
        "its port is in use",
        "Choose another with --port, or leave it out to get a free one.",
        "address already in use",
    )
    ARGUMENT = (
        "unknown option",
        "Check the arguments after --, and whether this vLLM is new enough.",
        *("unrecognized arguments", "error: argument "),
    )
    MODEL = (
        "the model was not found or may not be read",
        "Check the name; fetch it with 'pagemill models download', or give its folder with --weights. For a model "
        "behind an agreement: accept it on its page, then log in with 'hf auth login'.",
        "is not a local folder and is not a valid model identifier",
        *("repository not found", "repositorynotfounderror", "gated repo", "cannot access gated"),
        *("401 client error", "403 client error", "cannot find the requested files in the disk cache"),
        *("cannot find an appropriate cached snapshot", "localentrynotfounderror"),
        *("invalid repository id or local directory", "couldn't find them in the cached files"),
    )
    NETWORK = (
        "the model could not be fetched",
        "Check the network, or fetch the model elsewhere and give its folder with --weights.",
        *("we couldn't connect to", "name resolution", "max retries exceeded", "network is unreachable"),
    )
    DTYPE = (
        "the hardware does not support the kind of weights",
        "Use --ocr-dtype auto, or --ocr-dtype bf16 where the accelerator has it.",
        *("bfloat16 is only supported on gpus", "minimum capability", "quantization method is not supported"),
        *("not supported for the current gpu", "quantization is currently not supported"),
    )
    DEVICE = (
        "no accelerator was found",
        "Check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES; on a machine without a GPU, vLLM's CPU build and "
        "--profile cpu.",
        *("no cuda gpus are available", "failed to infer device type", "found no nvidia driver", "no accelerator"),
    )
    DISK = (
        "the disk is full",
        "Free some space in the model cache or the temporary folder.",
        "no space left on device",
    )
    HOST_MEMORY = (
        "it was killed, possibly because the machine ran out of memory",
        "Check the system log for an out-of-memory kill.",
    )
    SILENT = ("it printed nothing", "Is it vLLM that --vllm or PAGEMILL_VLLM names? Try it: PROGRAM serve --help.")
    UNKNOWN = ("see its log", "Read the end of its log above; the full log is in the file named there.")

    def __init__(self, cause: str, remedy: str, *signs: str) -> None:
        self.cause = cause
        self.remedy = remedy
        self.signs = signs


def exceptions(log: Sequence[str]) -> list[str]:
    """The lines of a log with an exception and its message, oldest first, each once."""
    return list(dict.fromkeys(line for line in log if any(map(_names_exception, line.split()))))


def _names_exception(word: str) -> bool:
    """Whether a word is the name of a raised exception; a quoted one is only mentioned."""
    return word.endswith(("Error:", "Exception:")) and word[:-1].replace(".", "").replace("_", "").isalnum()


def diagnose(log: Sequence[str], status: int | None = None) -> StartFailure:
    """Find the cause in the last lines of a log; the line nearest to the end decides.

    Args:
        log: The lines, oldest first.
        status: The exit status, negative for a signal; None if the process did not exit.
    """
    # From the end: a server that recovers from one error and dies of another has both in its log.
    for line in map(str.casefold, reversed(log)):
        for failure in StartFailure:
            if any(sign in line for sign in failure.signs):
                return failure
    # The kernel logs an out-of-memory kill where only root reads it; the process itself cannot print anything.
    if status == -signal.SIGKILL:
        return StartFailure.HOST_MEMORY
    return StartFailure.UNKNOWN if log or status is None else StartFailure.SILENT
