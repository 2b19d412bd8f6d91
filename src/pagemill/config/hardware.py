"""Hardware profiles: the properties of a kind of machine and its defaults, as data. One TOML file each."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pagemill.config.builtin import builtin
from pagemill.errors import UsageError

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
    note: str | None = None
    """A remark for the user."""


def profile_names() -> list[str]:
    """Names of the built-in profiles, sorted."""
    return list(builtin("profiles"))


def load_profile(name: str) -> Profile:
    """A profile by its name.

    Raises:
        UsageError: There is no such profile.
    """
    profiles = builtin("profiles")
    if name not in profiles:
        raise UsageError(f"there is no hardware profile {name!r}", remedy=f"Known: {AUTO}, {', '.join(profiles)}.")
    return msgspec.toml.decode(profiles[name], type=Profile)
