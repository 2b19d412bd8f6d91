"""What ``pagemill parse`` prints: progress as a bar on a terminal or as plain lines in a log, and the summary of a run.

Apart from :mod:`pagemill.cli.progress`, as it imports the whole pipeline, which other commands start faster without.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pagemill.app.reporting import ParseDisplay, RunOutcome
from pagemill.cli.progress import LenientConsole, ProgressBar, print_failures
from pagemill.cli.wording import counts, description_lines, duration, node_rates, row, shares, short
from pagemill.cluster.nodes import NodeRates
from pagemill.document.page import Status
from pagemill.document.shown import count
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.supervisor import Life, Vitals
from pagemill.store.paths import REPORT

LOG_EVERY_S = 10.0
MAX_FAILURE_LINES = 20
"""Failed pages that are named as they come; the others are counted."""
_MAX_NAMES = 10
"""Skipped tables that are named."""
_INDENT = 10


class ParseProgress(ProgressBar, ParseDisplay):
    """Shows pages, pages/s, time left and failures of ``pagemill parse`` on standard error. A context manager.

    Args:
        console: Console to draw on.
        life: State of this process, which may be one of several of the run.
    """

    def __init__(self, console: LenientConsole, life: Life) -> None:
        super().__init__(console)
        self._console = console
        self._life = life
        self._start = self._last_line = time.monotonic()
        self._pages = self._failed = self._retries = 0
        self._nodes = NodeRates()

    def opened(self, finished_before: int) -> None:
        """Print the number of pages that are already finished; nothing in a process that replaces another."""
        if finished_before and self._life.number == 0:
            self._console.note(f"Resuming: {count(finished_before, 'page')} finished before.")

    def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
        """Count a finished page; a failed one is named at once.

        Skipped pages count as progress, but not as speed: the time left is that of the others.
        """
        self._pages += 1
        if page.node is not None:
            self._nodes.add(page.node)
        if page.record.status is Status.FAILED:
            self._failed += 1
            self._name(self._failed, ("failed", "red"), page)
        now = time.monotonic()
        # Of this process: the pages before a restart took another time, and with it another rate.
        rate = self._pages / max(now - self._start, 1e-9)
        finished = skipped + self._pages
        left = f", {duration((total - finished) / rate)} left" if total else ""
        retried = f", {self._retries} retried" if self._retries else ""
        by_node = f" ({text})" if (text := node_rates(self._nodes.rates())) else ""
        note = f"{rate:.2f} pages/s{by_node}{left}, {self._life.vitals.failed} failed{retried}"
        if self.shown:
            self.update(finished, total, note=note)
        # In a log each line stays: one in ten seconds shows that the run continues.
        elif now - self._last_line >= LOG_EVERY_S:
            self._last_line = now
            of_total = f"/{total}" if total else ""
            self._console.note(f"{finished}{of_total} pages, {note}")

    def postponed(self, page: ParsedPage) -> None:
        """Name a page that failed and will be retried."""
        self._retries += 1
        if not self._console.failures_only:
            self._name(self._retries, ("will be retried", "yellow"), page)

    def hangs(self, *, fresh_process: bool) -> None:
        """Report a computation that hangs, and how the run continues; further ones are not reported."""
        how = "in a new process once the pages in flight are finished" if fresh_process else "without it"
        self._console.note(f"A page hangs in a computation and was given up. The run continues {how}.")

    def stopping(self, in_flight: int) -> None:
        """Report that the run stops early, and restore the terminal: a second signal stops the process at once."""
        self.stop()
        waits = f"{count(in_flight, 'page')} in flight will be finished" if in_flight else "no page is in flight"
        self._console.note(f"Stopping: {waits}. Press Ctrl-C again to quit at once. Either way it can be resumed.")

    def _name(self, failures: int, what: tuple[str, str], page: ParsedPage) -> None:
        if failures <= MAX_FAILURE_LINES:
            name, message, _ = next(page.failures())
            self._console.print_line(what, f" {name}: {short(message)}")
        # Once, so that thousands of failures do not hide what else is printed.
        elif failures == MAX_FAILURE_LINES + 1:
            self._console.print_line("More pages fail; from here on they are only counted.")


def print_summary(outcome: RunOutcome, vitals: Vitals, out: Path, seconds: float) -> None:
    """Print the summary of a run: pages, regions by label, failures by kind, shares of stages, the output directory.

    Args:
        outcome: The outcome of the run; its counts are those of the directory.
        vitals: Counters of this invocation.
        out: The directory.
        seconds: Duration of this time.
    """
    console = LenientConsole(file=sys.stdout)
    summary = outcome.summary
    finished = vitals.done + vitals.failed

    def show(name: str, items: list[str], style: str = "") -> None:
        if items:
            for line in row(name, items, console.width, _INDENT, style):
                console.print_line(*line)

    pages = [f"{summary.pages - summary.failed} done", f"{summary.failed} failed"]
    pages += [f"{summary.skipped} skipped"] if summary.skipped else []
    show("pages", [*pages, count(summary.documents, "document")])
    # Earlier invocations have part in the figures above: say what this one did.
    if finished < summary.pages:
        show("this time", [f"{vitals.done} done", f"{vitals.failed} failed"] if finished else ["nothing to do"])
    rate = f" ({finished / max(seconds, 1e-9):.2f} pages/s)" if finished else ""
    show("time", [f"{duration(seconds)}{rate}"])
    if finished:
        show("regions", [f"{summary.regions} in all", *counts(summary.regions_by_label)] if summary.regions else [])
        show("crops", [str(summary.crops)] if summary.crops else [])
        show("stages", shares(summary.seconds_by_stage))
    show("failures", counts(summary.failures_by_kind), "red")
    if summary.missing:
        what = "page or row" if summary.missing == 1 else "pages or rows"
        show("missing", [f"at least {summary.missing:,} {what} that sources could not give"], "red")
    show("warnings", counts(summary.warnings_by_kind), "yellow")
    if outcome.described is not None:
        show("described", [*description_lines(outcome.described)])
    show("output", [str(out)])
    if (out / REPORT).is_file():
        show("report", [str(out / REPORT)])
    print_failures(outcome.failures, outcome.errors, console, more='; see "errors" of each page in ocr_results.jsonl')
    if outcome.described is not None and finished < summary.pages:
        console.print_line(
            f"Pages finished earlier are as they were; pagemill describe {out} adds what descriptions they lack."
        )
    if summary.interrupted:
        console.print_line("Interrupted. The pages parsed so far are in the output; repeat the command to resume.")
    # Inputs that did not open are tried again anyway, and need no option.
    elif summary.failed > outcome.unopened:
        console.print_line("To retry the failed pages, repeat the command with --retry-failed.")
    elif summary.failed:
        console.print_line("The next run into this output retries them.")


def print_skipped(outcome: RunOutcome, console: LenientConsole) -> None:
    """Report skipped inputs; nothing if there are none."""
    if by_suffix := outcome.skipped_files:
        files = count(sum(by_suffix.values()), "file")
        kinds = "another kind" if files.startswith("1 ") else "other kinds"
        console.note(f"skipped: {files} of {kinds} ({', '.join(counts(by_suffix))})")
    if links := outcome.skipped_links:
        console.note(f"skipped: {count(len(links), 'linked folder')}, read only if named: {_some(links)}")
    if tables := outcome.skipped_tables:
        console.note(f"{count(len(tables), 'table')} without images skipped: {_some(tables)}")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"
