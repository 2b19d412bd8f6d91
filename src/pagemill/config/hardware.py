"""Hardware profiles: what a kind of machine has, and the defaults that suit it, as data. One TOML file each."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from importlib.resources import files

import msgspec

from pagemill.errors import UsageError

AUTO = "auto"
"""The name that asks for the machine at hand."""


class Device(StrEnum):
    """What computes."""

    CUDA = "cuda"
    MPS = "mps"
    CPU = "cpu"


class Fp8(StrEnum):
    """What the hardware does with weights in fp8."""

    NATIVE = "native"  # multiplies in fp8: compute capability 8.9 and later
    WEIGHTS = "weights"  # keeps weights in fp8 and multiplies in bf16 (vLLM's Marlin kernels): 7.5 to 8.8
    NO = "no"


class Dtype(StrEnum):
    """How a model's weights are held: ``--ocr-dtype``."""

    FP8 = "fp8"  # quantised while they are loaded, with dynamic scales
    BF16 = "bf16"
    AUTO = "auto"  # as the checkpoint says


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of machine, one accelerator of it."""

    name: str
    title: str
    device: Device
    match: tuple[str, ...] = ()
    """Words of the name that the driver gives, by which ``auto`` knows it."""
    memory_gib: float | None = None
    """Of one accelerator; None: the memory of the machine at hand."""
    compute_capability: tuple[int, int] | None = None
    fp8: Fp8 = Fp8.NO
    memory_share: float
    """Of the memory that vLLM claims; the rest is for the layout model, the driver and others."""
    batch_size: int
    """Pages of one call of the layout model."""
    workers: int
    """Requests in flight a server."""
    dtype: Dtype
    max_num_seqs: int
    """Most sequences that the server computes at once."""
    max_num_batched_tokens: int
    """Most tokens of one step of the server."""
    batched_tokens_reason: str
    """Why so many."""
    encoder_cache_tokens: int
    """Image tokens that the encoder cache of vLLM holds when nothing else makes it larger."""
    note: str | None = None
    """What else one should know."""


def profile_names() -> list[str]:
    """Names of the profiles that come with pagemill, sorted."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in files("pagemill.config").joinpath("profiles").iterdir()
        if entry.name.endswith(".toml")
    )


def load_profile(name: str) -> Profile:
    """A profile by its name.

    Raises:
        UsageError: There is no such profile.
    """
    if name not in profile_names():
        raise UsageError(
            f"there is no hardware profile {name!r}", remedy=f"Known: {AUTO}, {', '.join(profile_names())}."
        )
    text = files("pagemill.config").joinpath("profiles", f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Profile, strict=True)
