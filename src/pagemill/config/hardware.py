"""Hardware profiles: the properties of a kind of machine and its defaults, as data. One TOML file each."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path

import msgspec

from pagemill.config.builtin import builtin
from pagemill.errors import UsageError

_COUNTS = (
    *("memory_gib", "batch_size", "workers", "max_num_seqs", "max_num_batched_tokens", "encoder_cache_tokens"),
    "max_model_len",
)
AUTO = "auto"
"""The name for the profile of this machine."""


class Device(StrEnum):
    """The kind of device."""

    CUDA = "cuda"
    MPS = "mps"
    CPU = "cpu"


class Fp8(StrEnum):
    """How the hardware uses fp8 weights."""

    NATIVE = "native"  # multiplies in fp8: compute capability 8.9 and later
    WEIGHTS = "weights"  # stores weights in fp8 and multiplies in bf16 (vLLM's Marlin kernels): 7.5 to 8.8
    NO = "no"


class Dtype(StrEnum):
    """Data type of a model's weights: ``--ocr-dtype``."""

    FP8 = "fp8"  # quantised while loading, with dynamic scales
    BF16 = "bf16"
    AUTO = "auto"  # that of the checkpoint


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of machine, with one accelerator."""

    name: str
    title: str
    device: Device
    match: tuple[str, ...] = ()
    """Words in the device name reported by the driver, by which ``auto`` recognizes it."""
    memory_gib: float | None = None
    """Memory of one accelerator; None: that of this machine."""
    compute_capability: tuple[int, int] | None = None
    fp8: Fp8 = Fp8.NO
    memory_share: float
    """Share of the memory that vLLM claims; the rest is for the layout model, the driver and others."""
    batch_size: int
    """Pages per call of the layout model."""
    workers: int
    """Requests in flight per server."""
    dtype: Dtype
    max_num_seqs: int
    """Maximum number of sequences that the server computes at once."""
    max_num_batched_tokens: int
    """Maximum number of tokens per step of the server."""
    batched_tokens_reason: str
    """Why that many."""
    encoder_cache_tokens: int
    """Minimum size of vLLM's encoder cache, in image tokens."""
    max_model_len: int | None = None
    """Longest request of a recognition model, response included, in tokens; None: that of its card."""
    measured: bool = False
    """Whether the profile was measured: then the number of sequences is not lowered to what the cache should hold, and
    a run has ``workers`` requests in flight."""
    pages_per_second: float | None = None
    """Pages of the reference workload that one accelerator parses per second; None if not reported."""
    pages_reason: str | None = None
    """Source of that figure."""
    note: str | None = None
    """A remark for the user."""

    def __post_init__(self) -> None:
        """Check what types do not express; msgspec adds where it is."""
        if not 0 < self.memory_share <= 1:
            raise ValueError("memory_share must be larger than 0 and at most 1")
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be larger than 0")


def profile_names() -> list[str]:
    """Names of the built-in profiles, sorted."""
    return list(builtin("profiles"))


def load_profile(name: str) -> Profile:
    """A profile by its name, or from a TOML file such as ``pagemill bench sweep --write-profile`` writes.

    Raises:
        UsageError: There is no such profile, or the file is not valid; the message names the field.
    """
    profiles = builtin("profiles")
    if name in profiles:
        return msgspec.toml.decode(profiles[name], type=Profile)
    if not name.endswith(".toml"):
        known = f"Known: {AUTO}, {', '.join(profiles)}; or pass the path of your own, PROFILE.toml."
        raise UsageError(f"there is no hardware profile {name!r}", remedy=known)
    try:
        return msgspec.toml.decode(Path(name).read_bytes(), type=Profile)
    except OSError as error:
        why = f"the hardware profile {name} cannot be read: {error.strerror or error}"
        raise UsageError(why, remedy="Check --profile.") from error
    except msgspec.DecodeError as error:
        raise UsageError(
            f"the hardware profile {name} is not valid: {error}", remedy="See those in pagemill/config/profiles."
        ) from error


def profile_text(profile: Profile) -> str:
    """A profile as TOML, which :func:`load_profile` reads."""
    # Strings, numbers and lists in JSON are also valid TOML.
    fields = msgspec.to_builtins(profile)
    return "".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items() if value is not None
    )
