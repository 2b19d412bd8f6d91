"""Plans a run on a cluster: time, cost, disk and network of ever larger corpora, and which limit is reached first.

All of it is arithmetic on the figures of this module, which name their source.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from pagemill.config.cluster import ClusterOptions
from pagemill.config.hardware import Profile, load_profile

CORPORA = (1_000_000, 100_000_000, 10_000_000_000)
"""Pages."""
RECORD_BYTES = 21_000
"""A record of the reference workload."""
DATABASE_SHARE = 0.29
"""Size of the run's database, with compressed records, to that of the records: ``benchmarks/store.py``."""
CROPS, CROP_BYTES = 8, 60_000
"""Crops of a page of the reference workload, and bytes of one."""
VECTOR_BYTES = 2 * 2048
"""Bytes of a page's vector: 2,048 dimensions of Qwen3-VL-Embedding-2B in float16."""
WRITER_PAGES_S = 500.0
"""Records that the driver writes in a second where workers write the crops. 568 were measured on a busy machine, where
each took 0.49 ms of a processor: ``benchmarks/ray_driver.py``."""
RUN_PAGES = 10_000_000
"""Pages of one run directory: its database takes 60 GB, and planning 10 million references was measured."""
NODE_NETWORK_BYTES_S = 1.25e9
"""10 Gbit/s, what a cloud node with accelerators has at least."""
INDEX_PAGES = 10_000_000
"""Pages of the embedded index: vectors of 40 GB are scanned whole for each query."""
_LEAST = "l4"
"""The profile with the lowest rate that was reported, for those without any."""


class Limit(msgspec.Struct, frozen=True):
    """A bound of the design, and how far a corpus exceeds it."""

    name: str
    load: float
    bound: float
    unit: str
    remedy: str

    @property
    def parts(self) -> int:
        """Into how many parts the work is to be divided."""
        return max(1, math.ceil(self.load / self.bound))


class CorpusPlan(msgspec.Struct, frozen=True):
    """Time, cost and disk of a corpus on the cluster."""

    pages: int
    seconds: float
    gpu_hours: float
    cost: float | None
    """None without a price."""
    source_bytes: float
    database_bytes: float
    crop_bytes: float
    vector_bytes: float
    exceeded: tuple[Limit, ...]
    """The limits that the corpus exceeds, that which is exceeded first at the front."""


class ClusterPlan(msgspec.Struct, frozen=True):
    """A run on a cluster."""

    nodes: int
    gpus: int
    pages_per_second: float
    """Pages per second of one accelerator."""
    rate_reason: str
    cluster_pages_per_second: float
    read_bytes_s: float
    """Sources that a node reads in a second."""
    written_bytes_s: float
    """Crops that a node writes in a second."""
    record_bytes_s: float
    """Records that the driver receives in a second."""
    corpora: tuple[CorpusPlan, ...]


def plan_cluster(options: ClusterOptions, profile: Profile) -> ClusterPlan:
    """Plan runs of :data:`CORPORA` on a cluster.

    Args:
        options: The cluster; ``nodes`` is set.
        profile: Its accelerators.
    """
    nodes = options.nodes or 1
    gpus = nodes * options.gpus_per_node
    rate, reason = _rate(options, profile)
    total = rate * gpus
    return ClusterPlan(
        nodes=nodes,
        gpus=gpus,
        pages_per_second=rate,
        rate_reason=reason,
        cluster_pages_per_second=total,
        read_bytes_s=total / nodes * options.page_mb * 1e6,
        written_bytes_s=total / nodes * CROPS * CROP_BYTES,
        record_bytes_s=total * RECORD_BYTES,
        corpora=tuple(_corpus(pages, options, gpus, total) for pages in CORPORA),
    )


def _rate(options: ClusterOptions, profile: Profile) -> tuple[float, str]:
    """Pages a second of one accelerator, and where the figure is from."""
    if options.pages_per_second is not None:
        return options.pages_per_second, "as given"
    if profile.pages_per_second is not None:
        return profile.pages_per_second, profile.pages_reason or f"of the profile {profile.name}"
    least = load_profile(_LEAST)
    assert least.pages_per_second is not None
    return least.pages_per_second, (
        f"that of an {least.title}, as none was reported for this one: a lower bound. Measure a pilot run, and pass "
        "--pages-per-second"
    )


def _corpus(pages: int, options: ClusterOptions, gpus: int, total: float) -> CorpusPlan:
    seconds = pages / total
    hours = gpus * seconds / 3600
    return CorpusPlan(
        pages=pages,
        seconds=seconds,
        gpu_hours=hours,
        cost=None if options.gpu_hour_price is None else hours * options.gpu_hour_price,
        source_bytes=pages * options.page_mb * 1e6,
        database_bytes=pages * RECORD_BYTES * DATABASE_SHARE,
        crop_bytes=float(pages * CROPS * CROP_BYTES),
        vector_bytes=float(pages * VECTOR_BYTES),
        exceeded=tuple(
            # Rates are exceeded from the first page on, sizes later; of either kind the worst one first.
            sorted(
                (limit for limit in _limits(pages, options, total) if limit.parts > 1),
                key=lambda limit: (limit.unit == "pages", -limit.load / limit.bound),
            )
        ),
    )


def _limits(pages: int, options: ClusterOptions, total: float) -> Iterator[Limit]:
    yield Limit(
        "the driver, which writes all records",
        *(total, WRITER_PAGES_S, "pages/s"),
        "divide the inputs among several runs, each with a driver of its own",
    )
    yield Limit(
        "the database of a run",
        *(pages, RUN_PAGES, "pages"),
        "divide the inputs among several run directories",
    )
    yield Limit(
        "the network of a node",
        total / (options.nodes or 1) * (options.page_mb * 1e6 + CROPS * CROP_BYTES),
        *(NODE_NETWORK_BYTES_S, "bytes/s"),
        "take nodes with a faster network, or fewer accelerators a node",
    )
    yield Limit(
        "the embedded index",
        *(pages, INDEX_PAGES, "pages"),
        "export to Lance and search there: pagemill export OUT --format lance",
    )
