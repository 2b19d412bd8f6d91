"""The settings of model servers, with their defaults and the options that set them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pagemill.config.hardware import AUTO, Dtype, profile_names
from pagemill.config.options import Settings, option
from pagemill.errors import UsageError

SERVING = "Servers started by pagemill"
"""Heading of the help."""
ONE_PER_GPU = -1
"""Number of servers: as many as there are GPUs."""
_MAX_REPLICAS = 65_535
"""Upper bound of servers: the ports of a machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes(Settings):
    """Choices of the user about the size of a server; None leaves one to the profile or the card."""

    HEADING: ClassVar = SERVING

    memory_gib: float | None = option(
        "--memory",
        metavar="GIB",
        above=0,
        maximum=1e6,
        results=False,
        help="Memory of the accelerator.",
        shown_default="detected",
    )
    memory_share: float | None = option(
        "--gpu-mem-util",
        metavar="SHARE",
        above=0,
        maximum=1,
        results=False,
        help="Share of the memory that vLLM claims.",
        shown_default="by the profile",
    )
    max_model_len: int | None = option(
        metavar="TOKENS",
        minimum=1,
        results=False,
        help="Longest request, response included.",
        shown_default="by the card and --max-tokens",
    )
    max_tokens: int | None = option(
        metavar="TOKENS",
        minimum=1,
        results=True,
        help="Longest answer to a request.",
        shown_default="by the model card",
    )
    max_num_seqs: int | None = option(
        minimum=1,
        results=False,
        help="Requests that a server computes at once.",
        shown_default="by the profile and the cache",
    )
    max_num_batched_tokens: int | None = option(
        metavar="TOKENS", minimum=1, results=False, help="Tokens per step of a server.", shown_default="by the profile"
    )
    workers: int | None = option(
        minimum=1, results=False, help="Requests in flight per server.", shown_default="by the profile"
    )
    dtype: Dtype | None = option(
        "--ocr-dtype", results=True, help="Data type of the weights.", shown_default="by the profile"
    )
    sequence_tokens: int | None = option(
        minimum=1, results=False, help="Tokens of a typical request, response included."
    )
    prefill_tokens: int | None = option(
        minimum=1, results=False, help="Tokens of the image and prompt of a typical request."
    )


def _replicas(given: str) -> int:
    """The number, or :data:`ONE_PER_GPU`."""
    if given == AUTO:
        return ONE_PER_GPU
    if not given.isdecimal() or not 0 < int(given) <= _MAX_REPLICAS:
        raise UsageError(f"replicas is {given!r}", remedy=f"It must be {AUTO}, or a number from 1 on.")
    return int(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions(Settings):
    """Which model to serve, and where."""

    HEADING: ClassVar = SERVING

    model: str = option(default="glm-ocr", results=True, help="Model card: a name, or a file CARD.toml.")
    weights: Path | None = option(
        folder_exists=True, results=True, help="Folder of a checkpoint to use instead of the card's."
    )
    profile: str = option(
        default=AUTO,
        results=False,
        help=f"Hardware profile: {AUTO}, {', '.join(profile_names())}, or a file PROFILE.toml.",
    )
    wishes: Wishes = Wishes()
    replicas: int = option(
        default=1,
        metavar="N|auto",
        parse=_replicas,
        results=False,
        help="Number of servers, one per GPU; auto: as many as there are GPUs, on Ray those of all machines.",
    )
    host: str = option(default="127.0.0.1", metavar="ADDRESS", results=False, help="Address to listen on.")
    port: int | None = option(
        minimum=1,
        maximum=65535,
        results=False,
        help="Port of the first server; the others use the following ones.",
        shown_default="8000, or any free port",
    )
    vllm: str | None = option(
        metavar="PATH", results=False, help="Program of vLLM, or the folder of its environment.  [env: PAGEMILL_VLLM]"
    )
    options: tuple[str, ...] = option(
        "--with",
        key="with_options",
        default=(),
        metavar="OPTION",
        results=False,
        help="Optional feature of the card, such as speculative; may be repeated.",
    )
    extra: tuple[str, ...] = ()
    """Further arguments of ``vllm serve``."""
    logs: Path | None = None
    """Folder of the servers' logs; None: the user's state folder."""

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.replicas != ONE_PER_GPU and not 0 < self.replicas <= _MAX_REPLICAS:
            raise UsageError(f"replicas is {self.replicas}", remedy=f"It must be {AUTO}, or a number from 1 on.")
