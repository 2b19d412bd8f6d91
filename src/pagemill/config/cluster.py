"""Options of ``pagemill plan --nodes``: a cluster, and its pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pagemill.config.options import Settings, option

CLUSTER = "Clusters"
"""Heading of the help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions(Settings):
    """A cluster of equal nodes, and the size of its pages."""

    HEADING: ClassVar = CLUSTER
    RESULTS: ClassVar = False

    nodes: int | None = option(minimum=1, help="Plan time, cost, disk and network of a run on N nodes.")
    gpus_per_node: int = option(default=8, minimum=1, help="Accelerators of a node.")
    pages_per_second: float | None = option(
        metavar="RATE",
        above=0,
        maximum=1e6,
        help="Pages that one accelerator parses in a second: measure it with a pilot run.",
        shown_default="by the profile",
    )
    gpu_hour_price: float | None = option(
        metavar="PRICE", minimum=0, maximum=1e6, help="Price of an accelerator for an hour, in any currency."
    )
    page_mb: float = option(default=1.0, metavar="MB", above=0, maximum=1e6, help="Size of a page in its source.")
