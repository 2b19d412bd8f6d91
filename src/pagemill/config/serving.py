"""The settings of model servers, with their defaults and the options that set them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from pagemill.config.hardware import AUTO, Dtype, profile_names
from pagemill.config.options import option
from pagemill.errors import UsageError

SERVING = "Servers started by pagemill"
"""Heading of the help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user decides about a server's size; None leaves it to the profile or the card."""

    memory_gib: float | None = option(
        "--memory", heading=SERVING, metavar="GIB", above=0, help="Memory of the accelerator.", shown_default="detected"
    )
    memory_share: float | None = option(
        "--gpu-mem-util",
        heading=SERVING,
        metavar="SHARE",
        help="Share of the memory that vLLM claims.",
        shown_default="by the profile",
    )
    max_model_len: int | None = option(
        heading=SERVING,
        metavar="TOKENS",
        minimum=1,
        help="Longest request, response included.",
        shown_default="by the card",
    )
    workers: int | None = option(
        heading=SERVING,
        metavar="N",
        minimum=1,
        help="Requests in flight per server.",
        shown_default="by the profile",
    )
    batch_size: int | None = None
    """Pages per call of the layout model."""
    dtype: Dtype | None = option(
        "--ocr-dtype", heading=SERVING, help="Data type of the weights.", shown_default="by the profile"
    )
    sequence_tokens: int | None = option(
        heading=SERVING, metavar="N", minimum=1, help="Tokens of a typical request, response included."
    )
    prefill_tokens: int | None = option(
        heading=SERVING, metavar="N", minimum=1, help="Tokens of the image and prompt of a typical request."
    )

    def __post_init__(self) -> None:
        if self.memory_gib is not None and not 0 < self.memory_gib < math.inf:
            raise UsageError("the memory must be larger than 0 GiB and finite", remedy="Check --memory.")
        if self.memory_share is not None and not 0 < self.memory_share <= 1:
            raise UsageError(
                "the share of the memory must be larger than 0 and at most 1", remedy="Check --gpu-mem-util."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """Which model to serve, and where."""

    model: str = option(
        default="glm-ocr", heading=SERVING, metavar="NAME", help="Model card: a name, or a file CARD.toml."
    )
    weights: Path | None = option(
        heading=SERVING, metavar="PATH", exists=True, help="Folder of a checkpoint to use instead of the card's."
    )
    profile: str = option(
        default=AUTO,
        heading=SERVING,
        metavar="NAME",
        help=f"Hardware profile: {AUTO}, {', '.join(profile_names())}.",
    )
    wishes: Wishes = Wishes()
    replicas: int = option(default=1, heading=SERVING, metavar="N", minimum=1, help="Number of servers, one per GPU.")
    host: str = option(default="127.0.0.1", heading=SERVING, metavar="ADDRESS", help="Address to listen on.")
    port: int | None = option(
        heading=SERVING,
        metavar="N",
        minimum=1,
        maximum=65535,
        help="Port of the first server; the others use the following ones.",
        shown_default="8000, or any free port",
    )
    vllm: str | None = option(
        heading=SERVING,
        metavar="PATH",
        help="Program of vLLM, or the folder of its environment.  [env: PAGEMILL_VLLM]",
    )
    options: tuple[str, ...] = option(
        "--with",
        key="with_options",
        default=(),
        heading=SERVING,
        metavar="OPTION",
        help="Optional feature of the card, such as speculative; may be repeated.",
    )
    extra: tuple[str, ...] = ()
    """Further arguments of ``vllm serve``."""
    logs: Path | None = None
    """Folder of the servers' logs; None: the user's state folder."""
