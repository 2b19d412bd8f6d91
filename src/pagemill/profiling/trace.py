"""The record of a run's work: figures of every operation, and the first spans one by one."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pagemill.tracing import Span

if TYPE_CHECKING:
    from pagemill.profiling.gpu_use import GpuSample

MAX_SPANS = 300_000
"""Spans that are stored individually: some 60 MB, which a trace viewer opens. A run of 15,000 pages on the CPU has as
many."""
_STEP = math.log(1.05)
"""Durations are counted in classes 5 % apart, so that a percentile of any number of spans is known that well."""


class Work(NamedTuple):
    """Key of the figures: each combination is counted separately."""

    resource: str
    stage: str
    operation: str


@dataclass(slots=True)
class Figures:
    """Figures of one kind of work; times in seconds."""

    calls: int = 0
    items: int = 0
    busy: float = 0.0
    cpu: float = 0.0
    queued: float = 0.0
    longest: float = 0.0
    classes: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, span: Span) -> None:
        """Count a span."""
        seconds = span.ended - span.started
        self.calls += 1
        self.items += span.items
        self.busy += seconds
        self.cpu += span.cpu
        self.queued += span.started - span.queued
        self.longest = max(self.longest, seconds)
        # The logarithm of 0 does not exist, and clocks have steps.
        self.classes[math.floor(math.log(max(seconds, 1e-7)) / _STEP)] += 1

    def merge(self, other: Figures) -> None:
        """Add the figures of another object."""
        self.calls += other.calls
        self.items += other.items
        self.busy += other.busy
        self.cpu += other.cpu
        self.queued += other.queued
        self.longest = max(self.longest, other.longest)
        for place, count in other.classes.items():
            self.classes[place] += count

    def quantile(self, share: float) -> float:
        """The duration that this share of the calls does not exceed, within 5 %."""
        left = share * self.calls
        for place in sorted(self.classes):
            left -= self.classes[place]
            if left <= 0:
                return min(math.exp((place + 1) * _STEP), self.longest)
        return self.longest


@dataclass(slots=True)
class PageWaits:
    """Pages of one stage, and their time in it, waiting included."""

    pages: int = 0
    seconds: float = 0.0


class Trace:
    """Listens to a run (:class:`pagemill.tracing.Listener`). Thread-safe."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.spans: list[Span] = []
        self.left_out = 0
        """Spans beyond :data:`MAX_SPANS`, which are only counted in the figures."""
        self.figures: defaultdict[Work, Figures] = defaultdict(Figures)
        self.waits: defaultdict[str, PageWaits] = defaultdict(PageWaits)
        self.pages = self.failed = 0
        self.first_page: float | None = None
        """When the first page was written."""
        self.last_page = self.started
        self.bytes: defaultdict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def work(self, span: Span) -> None:
        """Record a span."""
        with self._lock:
            self.figures[Work(span.resource, span.stage, span.operation)].add(span)
            # The first ones, not a sample: a trace viewer needs consecutive spans to show what waits for what.
            if len(self.spans) < MAX_SPANS:
                self.spans.append(span)
            else:
                self.left_out += 1

    def waited(self, stage: str, page: str, started: float, ended: float) -> None:
        """Record that a page has left a stage."""
        with self._lock:
            waits = self.waits[stage]
            waits.pages += 1
            waits.seconds += ended - started

    def moved(self, stage: str, size: int) -> None:
        """Record bytes that went through a stage."""
        with self._lock:
            self.bytes[stage] += size

    def ended(self, page: str, *, failed: bool) -> None:
        """Record that a page was written."""
        with self._lock:
            self.pages += 1
            self.failed += failed
            self.last_page = time.perf_counter()
            self.first_page = self.first_page or self.last_page

    def chrome(self, gpus: dict[str, list[GpuSample]]) -> Iterator[str]:
        """The spans in the Trace Event Format, which Perfetto and Chrome open, with one track per worker.

        Spans of servers overlap and are shown on as many tracks as it takes.

        Args:
            gpus: Samples by the name of their GPU, shown as counters.
        """
        yield '{"displayTimeUnit":"ms","traceEvents":[\n'
        named: set[tuple[str, int]] = set()
        resources: dict[str, int] = {}
        for track, span in tracks(self.spans):
            process = resources.setdefault(span.resource, len(resources) + 1)
            if (span.resource, track) not in named:
                named.add((span.resource, track))
                yield _event("M", "process_name", process, track, args={"name": span.resource})
                yield _event("M", "thread_name", process, track, args={"name": f"{span.resource} {track}"})
            details = {"operation": span.operation, "queued_ms": round(1000 * (span.started - span.queued), 3)}
            details |= {"page": span.page} if span.page else {"items": span.items}
            micros = {"ts": self._micros(span.started), "dur": round(1e6 * (span.ended - span.started), 1)}
            yield _event("X", span.stage, process, track, cat=span.resource, args=details, **micros)
        for name, samples in gpus.items():
            for sample in samples:
                values = {"SM %": 100 * sample.busy, "memory %": 100 * sample.memory_busy, "GiB": sample.memory_gib}
                if sample.watts is not None:
                    values["W"] = sample.watts
                for counter, value in values.items():
                    args = {counter: round(value, 2)}
                    yield _event("C", f"{name} {counter}", 0, 0, ts=self._micros(sample.time), args=args)
        # The empty object takes the comma of the last event, which JSON does not allow.
        yield "{}]}\n"

    def _micros(self, moment: float) -> float:
        return round(1e6 * (moment - self.started), 1)


def tracks(spans: list[Span]) -> Iterator[tuple[int, Span]]:
    """Spans by time, each with a track of its resource on which no spans overlap."""
    ends: defaultdict[str, list[float]] = defaultdict(list)
    places: dict[tuple[str, int], int] = {}
    counts: defaultdict[str, int] = defaultdict(int)
    for span in sorted(spans, key=lambda span: span.started):
        if span.worker:
            place = (span.resource, span.worker)
            if place not in places:
                places[place] = counts[span.resource]
                counts[span.resource] += 1
            yield places[place], span
            continue
        # Spans of servers have no thread: each takes the first track that is free, as few as there were at once.
        free = ends[span.resource]
        track = next((at for at, ended in enumerate(free) if ended <= span.started), len(free))
        if track == len(free):
            free.append(span.ended)
        free[track] = span.ended
        yield track, span


def _event(phase: str, name: str, process: int, thread: int, **more: Any) -> str:
    return json.dumps({"ph": phase, "name": name, "pid": process, "tid": thread} | more, ensure_ascii=True) + ",\n"
