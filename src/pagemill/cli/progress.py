"""Progress on a terminal (a bar) or in a log (plain lines), and the summary at the end."""

from __future__ import annotations

import os
import sys
import time
from itertools import groupby
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from pagemill.cli.wording import duration, number, packed, printable, shares, short
from pagemill.document.page import Status
from pagemill.runtime.supervisor import Life

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pagemill.app.parse import RunOutcome
    from pagemill.parsing.page import ParsedPage
    from pagemill.runtime.supervisor import Vitals
    from pagemill.store.summary import RunSummary

Row = tuple[str, str, list[str]]
"""Name, style and items of a row of the summary."""

LOG_EVERY_S = 10.0
MAX_FAILURE_LINES = 20
"""Failed pages that are named as they come; the others are counted."""
_MAX_LABELS = 30


class LenientConsole(Console):
    """A console that goes quiet when it cannot be written to: a run must not end because nobody reads its log."""

    def say(self, *parts: str | tuple[str, str]) -> None:
        """Print one line as it is: no markup, no wrapping. Parts are texts, or texts with a style."""
        text = Text.assemble(*parts)
        text.plain = printable(text.plain)
        try:
            self.print(text, soft_wrap=True)
        except OSError:  # a full disk behind a redirection
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Send all further output nowhere, also what Python flushes at its end."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


class ProgressDisplay:
    """Shows pages, pages/s, ETA and failures on standard error.

    Args:
        quiet: Name failed pages, and show nothing else.
        life: Of the process, one of several in which the run may go on.
        console: Where to draw; standard error by default.
    """

    def __init__(self, *, quiet: bool = False, life: Life | None = None, console: LenientConsole | None = None) -> None:
        self._console = console or LenientConsole(stderr=True)
        self._quiet = quiet
        self._life = life or Life()
        self._start = self._last_line = time.monotonic()
        self._pages = self._failed = self._retries = 0
        self._bar: Bar | None = None
        if not quiet and self._console.is_terminal:
            self._bar = Bar(
                SpinnerColumn(),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TextColumn("{task.fields[failures]}"),
                console=self._console,
                transient=True,
                expand=True,
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

    def opened(self, ended_before: int) -> None:
        """Say how many pages need not be parsed again; a process that takes over from another says nothing."""
        if ended_before and not self._quiet and self._life.number == 0:
            self._console.say(f"Resuming: {number(ended_before, 'page')} ended before.")

    def page(self, page: ParsedPage, *, total: int | None, passed_over: int) -> None:
        """Count a page that has ended; a failed one is named at once.

        Pages that were passed over count as progress, but not as speed: the time left is that of the others.
        """
        self._pages += 1
        if page.record.status is Status.FAILED:
            self._failed += 1
            self._say(self._failed, ("failed", "red"), page)
        if self._quiet:
            return
        now = time.monotonic()
        rate = self._pages / max(now - self._start, 1e-9)
        ended = passed_over + self._pages
        left = f", {duration((total - ended) / rate)} left" if total else ""
        if self._bar:
            counts = [f"[red]{self._failed} failed"] if self._failed else []
            counts += [f"[yellow]{self._retries} retried"] if self._retries else []
            self._bar.update(
                self._task,
                completed=ended,
                total=total,
                rate=f"{rate:.1f} pages/s{left}",
                failures=" ".join(counts),
            )
        elif now - self._last_line >= LOG_EVERY_S:
            self._last_line = now
            of_total = f"/{total}" if total else ""
            retried = f", {self._retries} retried" if self._retries else ""
            self._console.say(
                f"{ended}{of_total} pages, {rate:.2f} pages/s{left}, {self._life.vitals.failed} failed{retried}"
            )

    def postponed(self, page: ParsedPage) -> None:
        """Name a page that failed and will be tried again."""
        self._retries += 1
        if not self._quiet:
            self._say(self._retries, ("again later", "yellow"), page)

    def hangs(self, *, fresh_process: bool) -> None:
        """Say that a computation hangs and how the run goes on; those that hang later are not told."""
        if not self._quiet:
            goes_on = "in a fresh process once the pages under way have ended" if fresh_process else "without it"
            self._console.say(f"A page hangs in a computation and was given up. The run goes on {goes_on}.")

    def stopping(self, under_way: int) -> None:
        """Say that the run ends early, and leave the terminal as it was: a second signal ends the process at once."""
        if self._bar:
            self._bar.stop()
            self._bar = None
        if not self._quiet:
            waits = f"{number(under_way, 'page')} under way will be finished" if under_way else "no page is under way"
            self._console.say(f"Stopping: {waits}. Once more (Ctrl-C) quits at once. Either way it can be resumed.")

    def _say(self, count: int, what: tuple[str, str], page: ParsedPage) -> None:
        if count <= MAX_FAILURE_LINES:
            self._console.say(what, f" {page.record.page_id}: {short(page.record.errors[0].message)}")
        elif count == MAX_FAILURE_LINES + 1:
            self._console.say("More pages fail; they are only counted from here on.")


def print_summary(
    outcome: RunOutcome, vitals: Vitals, out: Path, seconds: float, console: LenientConsole | None = None
) -> None:
    """Print what a run amounts to: pages, regions by label, failures by kind, shares of stages, where to look.

    Args:
        outcome: How the run ended; its counts are those of the directory.
        vitals: What was done this time.
        out: The directory.
        seconds: That it took this time.
        console: Where to print; standard output by default.
    """
    console = console or LenientConsole(file=sys.stdout)
    summary = outcome.summary
    ended = vitals.done + vitals.failed
    pages = [f"{summary.pages - summary.failed} done", f"{summary.failed} failed"]
    pages += [f"{summary.skipped} skipped"] if summary.skipped else []
    rows: list[Row] = [("pages", "", [*pages, number(summary.documents, "document")])]
    if ended < summary.pages:
        rows.append(
            ("this time", "", [f"{vitals.done} done", f"{vitals.failed} failed"] if ended else ["nothing to do"])
        )
    rate = f" ({ended / max(seconds, 1e-9):.2f} pages/s)" if ended else ""
    rows.append(("time", "", [f"{duration(seconds)}{rate}"]))
    if ended:
        rows += _details(summary)
    if summary.failures_by_kind:
        rows.append(("failures", "red", _counts(_largest_first(summary.failures_by_kind))))
    if summary.missing:
        what = "page or row" if summary.missing == 1 else "pages or rows"
        rows.append(("missing", "red", [f"at least {summary.missing:,} {what} that sources could not give"]))
    if summary.warnings_by_kind:
        rows.append(("warnings", "yellow", _counts(_largest_first(summary.warnings_by_kind))))
    rows.append(("output", "", [str(out)]))
    for name, style, items in rows:
        for index, line in enumerate(packed(items, console.width - 10)):
            console.say(("" if index else name).ljust(10), (line, style))
    _print_failures(outcome, console)
    if summary.interrupted:
        console.say("Interrupted: what was parsed until then is in the output. The same command goes on.")
    elif summary.failed > outcome.unopened:
        console.say("The same command with --retry-failed tries failed pages again.")
    elif summary.failed:
        console.say("The next run into this output tries them again.")


def _details(summary: RunSummary) -> list[Row]:
    """What is on the pages, and where the time went."""
    rows: list[Row] = []
    if summary.regions:
        rows.append(("regions", "", [f"{summary.regions} in all", *_counts(_largest_first(summary.regions_by_label))]))
    if summary.crops:
        rows.append(("crops", "", [str(summary.crops)]))
    if stages := shares(summary.seconds_by_stage):
        rows.append(("stages", "", stages))
    return rows


def _print_failures(outcome: RunOutcome, console: LenientConsole) -> None:
    """The first failures, those with one remedy together."""
    order = {remedy: position for position, (_, _, remedy) in reversed(list(enumerate(outcome.failures)))}
    for remedy, failures in groupby(sorted(outcome.failures, key=lambda failure: order[failure[2]]), lambda f: f[2]):
        for page_id, message, _ in failures:
            console.say(f"  {page_id}: {short(message)}")
        if remedy:
            console.say(f"      {remedy}")
    hidden = outcome.errors - len(outcome.failures)
    if hidden > 0:
        console.say(f'  ... and {hidden} more; see "errors" of each page in ocr_results.jsonl')


def _largest_first(counts: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(counts.items(), key=lambda item: -item[1])[:_MAX_LABELS])


def _counts(counts: dict[str, Any]) -> list[str]:
    return [f"{name} {count}" for name, count in counts.items()]
