"""Metrics of a run and of a worker for Ray's dashboard and Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from ray.util.metrics import Counter, Gauge


class WorkerMetrics:
    """Counts the pages of one worker. Ray adds which machine and process it is. Used on one event loop."""

    def __init__(self) -> None:
        self._pages = Counter(
            "pagemill_pages",
            description="Pages that workers have parsed; one that is tried again counts each time.",
            tag_keys=("status",),
        )
        self._in_flight = Gauge("pagemill_pages_in_flight", description="Pages of the units that workers parse.")
        self._count = 0

    def admitted(self, pages: int) -> None:
        """Count the pages of a unit as in flight; a negative number removes some."""
        self._count += pages
        self._in_flight.set(self._count)

    def parsed(self, status: str) -> None:
        """A page has been parsed, or has failed."""
        self._pages.inc(tags={"status": status})
        self.admitted(-1)


class RunMetrics:
    """The pages of a run, as its driver counts them: each once."""

    def __init__(self) -> None:
        self._pages = Gauge(
            "pagemill_run_pages",
            description="Pages of the run: done and failed since its driver was started, and in flight.",
            tag_keys=("state",),
        )

    def show(self, counts: Mapping[str, int]) -> None:
        """Set the number of pages in each state."""
        for state, pages in counts.items():
            self._pages.set(pages, tags={"state": state})
