"""The profile of a run: time by stage, and the resource that limited it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from pagemill._version import __version__
from pagemill.profiling.gpu_use import GpuUse
from pagemill.profiling.trace import Figures, Trace
from pagemill.tracing import INPUT, LOAD, WRITE

CPU = "CPU cores"
RESOURCES = {
    "pagemill.compute": "compute threads",
    "pagemill.decode": "image decoding threads",
    "pagemill.layout": "threads of the layout device",
    "pagemill.decoder": "PDF rendering processes",
    "pagemill.store": "writing thread",
    "servers": "servers",
}
"""Display names of pools."""
_NOT_OF_PAGES = frozenset({INPUT, LOAD, WRITE})


class StageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One stage, or one operation of it."""

    name: str
    calls: int
    items: int
    """Pages or lines, in microbatches of several."""
    busy_s: float
    """Time of all calls."""
    cpu_s: float
    """CPU time of our threads in them; that of rendering processes is not in it."""
    mean_ms: float
    p95_ms: float
    concurrency: float
    """Calls that run at once, in the mean over the run: ``busy_s`` by wall time. Their sum is over 1 where stages
    overlap."""
    share: float
    """Share of the busy time of all stages, 0-1."""
    queued_s: float
    """Waiting for a thread."""
    page_s: float | None = None
    """Mean time of a page in the stage, waiting for its microbatch, thread or server included; None for operations."""
    bytes: int = 0


class ResourceFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of workers."""

    name: str
    workers: int | None
    """None if the number of requests is adaptive."""
    busy_s: float
    busy: float | None
    """Share of the time in which a worker is busy, in the mean over all, 0-1."""
    concurrency: float


class Freed(msgspec.Struct, frozen=True, kw_only=True):
    """The gain if a stage took no time, measured with the stored answers of an earlier run of these pages."""

    stage: str
    pages: int
    seconds: float
    """With the stage, models loaded before."""
    freed_s: float
    """With the stage taking no time."""
    next_bottleneck: str

    @property
    def times(self) -> float:
        """Speed-up."""
        return self.seconds / self.freed_s if self.freed_s else 1.0


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """Projection to a larger number of such pages."""

    pages: int
    hours: float
    """At the rate of this run, without loading."""
    stages: dict[str, float]
    """Hours of work by stage, over all workers."""


class Profile(msgspec.Struct, kw_only=True):
    """A profile; ``profile.json``."""

    version: str = __version__
    machine: dict[str, Any]
    schedule: str
    pages: int
    failed: int
    wall_s: float
    """From the start to the last page written."""
    first_page_s: float | None
    pages_per_s: float
    peak_memory_mib: float
    """Peak memory of the parsing process, without rendering processes."""
    resources: list[ResourceFigures]
    stages: list[StageFigures]
    operations: list[StageFigures]
    bottleneck: tuple[str, str] | None
    """The busiest resource, and the stage that takes most of it."""
    gpus: list[GpuUse] = []
    freed: Freed | None = None
    projection: Projection | None = None
    spans_left_out: int = 0
    """Spans that ``trace.json`` lacks, which has the first ones; the figures include all."""

    def project(self, pages: int) -> Projection:
        """Project the time of ``pages`` such pages."""
        done = max(self.pages, 1)
        hours = {stage.name: stage.busy_s / done * pages / 3600 for stage in self.stages if stage.name != LOAD}
        return Projection(pages=pages, hours=pages / max(self.pages_per_s, 1e-9) / 3600, stages=hours)


def make_profile(
    trace: Trace,
    *,
    schedule: str,
    workers: Mapping[str, int],
    cores: int,
    cpu_s: float,
    peak_memory_mib: float,
    machine: dict[str, Any],
    gpus: list[GpuUse],
) -> Profile:
    """The profile of a traced run.

    Args:
        trace: Trace of a finished run.
        schedule: Name of its schedule.
        workers: Workers of the pools, by the names of :data:`RESOURCES`.
        cores: Cores that the process may use.
        cpu_s: CPU time of all processes of the run.
        peak_memory_mib: Peak memory of the parsing process.
        machine: Properties of the machine.
        gpus: Use of the GPUs.
    """
    # To the last page, not to the end of the process: reports and clean-up are not throughput.
    wall = max(trace.last_page - trace.started, 1e-9)
    by_stage: defaultdict[str, Figures] = defaultdict(Figures)
    by_resource: defaultdict[str, float] = defaultdict(float)
    demand: defaultdict[tuple[str, str], float] = defaultdict(float)
    for work, figures in trace.figures.items():
        by_stage[work.stage].merge(figures)
        by_resource[work.resource] += figures.busy
        demand[work.resource, work.stage] += figures.busy
    # A run without work has no shares, and must not divide by zero.
    total = sum(figures.busy for figures in by_stage.values()) or 1.0

    def row(name: str, figures: Figures, **more: Any) -> StageFigures:
        return StageFigures(
            name=name,
            calls=figures.calls,
            items=figures.items,
            busy_s=figures.busy,
            cpu_s=figures.cpu,
            mean_ms=1000 * figures.busy / figures.calls,
            p95_ms=1000 * figures.quantile(0.95),
            concurrency=figures.busy / wall,
            share=figures.busy / total,
            queued_s=figures.queued,
            **more,
        )

    def mean_wait(stage: str) -> float | None:
        waits = trace.waits.get(stage)
        return waits.seconds / waits.pages if waits and waits.pages else None

    # What takes most comes first: readers look for what to make faster.
    by_time = sorted(by_stage.items(), key=lambda item: -item[1].busy)
    stages = [row(name, figures, page_s=mean_wait(name), bytes=trace.bytes[name]) for name, figures in by_time]
    operations = [
        row(f"{work.stage}: {work.operation}", figures)
        for work, figures in sorted(trace.figures.items(), key=lambda item: -item[1].busy)
    ]
    resources = [
        ResourceFigures(
            name=RESOURCES.get(name, name),
            workers=workers.get(name),
            busy_s=busy,
            busy=busy / wall / workers[name] if name in workers else None,
            concurrency=busy / wall,
        )
        for name, busy in sorted(by_resource.items(), key=lambda item: -item[1])
    ]
    cpu = ResourceFigures(name=CPU, workers=cores, busy_s=cpu_s, busy=cpu_s / wall / cores, concurrency=cpu_s / wall)
    return Profile(
        machine=machine,
        schedule=schedule,
        pages=trace.pages,
        failed=trace.failed,
        wall_s=wall,
        first_page_s=trace.first_page and trace.first_page - trace.started,
        pages_per_s=trace.pages / wall,
        peak_memory_mib=peak_memory_mib,
        resources=[cpu, *resources],
        stages=stages,
        operations=operations,
        bottleneck=_bottleneck(demand, workers, wall),
        gpus=gpus,
        spans_left_out=trace.left_out,
    )


def _bottleneck(
    demand: Mapping[tuple[str, str], float], workers: Mapping[str, int], wall: float
) -> tuple[str, str] | None:
    """The resource with the least time to spare, and the stage of pages that takes most of it.

    Servers and devices have no number of workers: they hold up the run if calls were in flight most of the time, while
    no pool of ours was as busy.
    """
    busy: defaultdict[str, float] = defaultdict(float)
    # Capped at 1 for servers, whose calls overlap: many calls in flight do not show that they are the bottleneck.
    for (resource, _), seconds in demand.items():
        busy[resource] += min(seconds / wall, 1.0) if resource not in workers else seconds / wall / workers[resource]
    stages = {place: seconds for place, seconds in demand.items() if place[1] not in _NOT_OF_PAGES}
    candidates = {resource for resource, _ in stages}
    if not candidates:
        return None
    resource = max(candidates, key=lambda name: busy[name])
    return RESOURCES.get(resource, resource), max(
        (place for place in stages if place[0] == resource), key=lambda place: stages[place]
    )[1]
