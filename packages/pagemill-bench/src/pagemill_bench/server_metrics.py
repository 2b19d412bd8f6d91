"""The ``/metrics`` of vLLM servers: queue, caches, preemptions."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable

from pagemill.errors import PagemillError
from pagemill.inference.exchange import AttemptFailedError, Exchange

_TIMEOUT_S = 10.0
_ROW = re.compile(r"^vllm:(\w+)(?:\{.*\})?[ \t]+(\S+)", re.MULTILINE)
"""A row of Prometheus' text format: name, labels, value."""
_LARGEST = frozenset({"kv_cache_usage_perc"})
"""Gauges of which the largest counts; of all others the sum."""


def decode_metrics(texts: Iterable[bytes]) -> dict[str, float]:
    """The values of vLLM's metrics by name, without ``vllm:``; those of several engines and servers together.

    Rows that are not valid are left out, as are those of histograms but for their sum and count.
    """
    found: defaultdict[str, float] = defaultdict(float)
    for text in texts:
        for name, given in _ROW.findall(text.decode("utf-8", "replace")):
            try:
                value = float(given)
            except ValueError:
                continue
            if math.isfinite(value) and not name.endswith("_bucket"):
                # Counts add up over engines; a share of a cache does not: the fullest one is the bottleneck.
                found[name] = max(found[name], value) if name in _LARGEST else found[name] + value
    return dict(found)


async def read_metrics(exchange: Exchange, roots: Iterable[str]) -> dict[str, float] | None:
    """The metrics of servers, together; None if one of them has none, or does not answer."""
    try:
        found = decode_metrics([await exchange.request(f"{root}/metrics", _TIMEOUT_S) for root in roots])
    except (AttemptFailedError, PagemillError):
        return None
    return found or None
