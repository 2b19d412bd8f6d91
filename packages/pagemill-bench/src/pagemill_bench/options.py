"""Options of the benchmarks of model servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pagemill.config.options import Settings, option
from pagemill.errors import UsageError

LEVELS = tuple(2**power for power in range(10))
"""Requests in flight: 1, 2, 4, ... 512."""
_MOST_IN_FLIGHT = 4096


def _several(kind: type[int] | type[float], flag: str, largest: float = float("inf"), **details: Any) -> Any:
    """An option that takes positive numbers, as ``1,2,4`` or as a list, each once."""

    def parse(given: str | Iterable[float]) -> tuple[Any, ...]:
        words = given.split(",") if isinstance(given, str) else [str(value) for value in given]
        try:
            values = tuple(dict.fromkeys(kind(word.strip().replace("_", "")) for word in words))
        except ValueError:
            values = ()
        if not values or not all(0 < value <= largest for value in values):
            most = f", at most {largest:,.0f}" if largest < float("inf") else ""
            raise UsageError(
                f"{given!r} is not a list of numbers", remedy=f"Separate positive numbers by commas{most}."
            )
        return values

    name = "N" if kind is int else "SHARE"
    return option(flag, default=(), metavar=f"{name}[,{name}...]", parse=parse, **details)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions(Settings):
    """The load for a server."""

    HEADING: ClassVar = "Load"
    RESULTS: ClassVar = False

    in_flight: tuple[int, ...] = _several(
        int,
        "--in-flight",
        _MOST_IN_FLIGHT,
        help="Requests in flight, one level after the other.",
        shown_default="1, 2, 4, ... 512",
    )
    requests: int = option(
        default=32, minimum=1, help="Least number of requests of a level; at least four for each in flight are sent."
    )
    seconds: float = option(
        default=60.0, above=0, maximum=86_400, help="Time after which a level sends no more requests."
    )
    max_tokens: int = option(default=512, minimum=1, metavar="TOKENS", help="Longest answer.")
    seed: int = option(default=0, minimum=0, help="Seed of the drawn regions.")
    run: Path | None = option(
        "--from",
        key="from_run",
        metavar="OUT",
        folder_exists=True,
        help="Send the regions of this run, out of its page images, instead of drawn ones.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions(Settings):
    """Varied settings; of several lists every combination is measured."""

    HEADING: ClassVar = "What to try (every combination)"
    RESULTS: ClassVar = False

    max_num_batched_tokens: tuple[int, ...] = _several(
        int, "--max-num-batched-tokens", key="sweep_batched_tokens", help="Tokens per step of the server."
    )
    max_num_seqs: tuple[int, ...] = _several(
        int, "--max-num-seqs", key="sweep_num_seqs", help="Requests that the server computes at once."
    )
    memory_share: tuple[float, ...] = _several(
        float, "--gpu-mem-util", 1, key="sweep_memory_share", help="Share of the memory that vLLM claims."
    )
    max_model_len: tuple[int, ...] = _several(
        int, "--max-model-len", key="sweep_model_len", help="Longest request, response included."
    )
