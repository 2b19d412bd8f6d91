"""Progress on a terminal (a bar) or in a log (plain lines), and the summary at the end."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from pagemill.document.page import Status

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pagemill.parsing.page import ParsedPage
    from pagemill.run import RunOutcome

LOG_EVERY_S = 10.0


class ProgressDisplay:
    """Shows pages, pages/s, ETA and failures on standard error.

    Args:
        quiet: Show nothing.
        console: Where to draw; standard error by default.
    """

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._quiet = quiet
        self._start = self._last_line = time.monotonic()
        self._pages = self._failed = 0
        self._bar: Bar | None = None
        if not quiet and self._console.is_terminal:
            self._bar = Bar(
                SpinnerColumn(),
                TextColumn("[bold]parsing"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[failures]}"),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("parsing", total=None, rate="", failures="")

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def page(self, page: ParsedPage, total: int | None) -> None:
        """Count a finished page; a failed one is named at once."""
        self._pages += 1
        record = page.record
        if self._quiet:
            return
        if record.status is Status.FAILED:
            self._failed += 1
            self._console.print(
                f"[red]failed[/] {escape(record.page_id)}: {escape(record.errors[0].message)}", soft_wrap=True
            )
        now = time.monotonic()
        rate = self._pages / max(now - self._start, 1e-9)
        if self._bar:
            failures = f"[red]{self._failed} failed" if self._failed else ""
            self._bar.update(
                self._task, completed=self._pages, total=total, rate=f"{rate:.1f} pages/s", failures=failures
            )
        elif now - self._last_line >= LOG_EVERY_S:
            self._last_line = now
            of_total = f"/{total}" if total else ""
            eta = f", {_duration((total - self._pages) / rate)} left" if total else ""
            self._console.print(
                f"{self._pages}{of_total} pages, {rate:.2f} pages/s{eta}, {self._failed} failed", soft_wrap=True
            )


def print_summary(outcome: RunOutcome, out: Path, seconds: float, console: Console | None = None) -> None:
    """Print what a run amounts to: pages, regions by label, failures by kind, seconds by stage, where to look."""
    console = console or Console(file=sys.stdout)
    summary = outcome.summary
    rate = summary.pages / max(seconds, 1e-9)
    done = summary.pages - summary.failed
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("pages", f"{done} done, {summary.failed} failed, {summary.documents} documents")
    table.add_row("time", f"{_duration(seconds)} ({rate:.2f} pages/s)")
    if summary.regions_by_label:
        table.add_row("regions", f"{summary.regions}: {_counts(summary.regions_by_label)}")
    if summary.crops:
        table.add_row("crops", str(summary.crops))
    if summary.seconds_by_stage:
        stages = sorted(summary.seconds_by_stage.items(), key=lambda item: -item[1])
        table.add_row("stage seconds", ", ".join(f"{stage} {value:.1f}" for stage, value in stages))
    if summary.failures_by_kind:
        table.add_row("failures", _counts(summary.failures_by_kind), style="red")
    if summary.warnings_by_kind:
        table.add_row("warnings", _counts(summary.warnings_by_kind), style="yellow")
    table.add_row("output", str(out))
    console.print(table, soft_wrap=True)
    for page_id, message, remedy in outcome.failures:
        console.print(f"  {escape(page_id)}: {escape(message)}", soft_wrap=True)
        if remedy:
            console.print(f"      {escape(remedy)}", soft_wrap=True)
    hidden = summary.failed - len(outcome.failures)
    if hidden > 0:
        console.print(f"  ... and {hidden} more; see the status of each page in ocr_results.jsonl", soft_wrap=True)
    if summary.interrupted:
        console.print("Interrupted: what was parsed until then is in the output.", soft_wrap=True)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def _duration(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
