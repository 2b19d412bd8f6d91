"""Progress on a terminal (a bar) or in a log (plain lines), for all commands, and the summary of a run."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from pagemill.cli.wording import counts, duration, number, printable, row, shares, short
from pagemill.document.page import Status
from pagemill.runtime.supervisor import Life
from pagemill.serving.spec import What

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pagemill.app.parse import RunOutcome
    from pagemill.parsing.page import ParsedPage
    from pagemill.runtime.supervisor import Vitals
    from pagemill.serving.spec import Event
    from pagemill.store.summary import RunSummary

LOG_EVERY_S = 10.0
SERVER_LOG_EVERY_S = 15.0
MAX_FAILURE_LINES = 20
"""Failed pages that are named as they come; the others are counted."""
_INDENT = 10
_ERASE_LINE = "\r\x1b[2K"


class LenientConsole(Console):
    """A console that goes quiet when it cannot be written to: a run must not stop because nobody reads its log."""

    def say(self, *parts: str | tuple[str, str]) -> None:
        """Print one line as it is: no markup, no wrapping. Parts are texts, or texts with a style."""
        text = Text.assemble(*parts)
        text.plain = printable(text.plain)
        try:
            self.print(text, soft_wrap=True)
        except OSError:  # a full disk behind a redirection
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Discard all further output, also what Python flushes when it exits."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def messages() -> LenientConsole:
    """Standard error."""
    return LenientConsole(stderr=True, highlight=False)


class ProgressBar:
    """A bar on a terminal while the block lasts; nothing elsewhere. A context manager.

    Args:
        total: Steps; None where they are not known yet.
        what: Shown before the bar.
        quiet: Show nothing.
        size: Steps are bytes.
        console: Where to draw; standard error by default.
    """

    def __init__(
        self,
        total: int | None = None,
        what: str = "",
        *,
        quiet: bool = False,
        size: bool = False,
        console: LenientConsole | None = None,
    ) -> None:
        console = console or messages()
        self._bar: Progress | None = None
        if not quiet and console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                DownloadColumn() if size else MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeRemainingColumn(),
                console=console,
                transient=True,
                expand=True,
            )
            self._task = self._bar.add_task(what, total=total, note="")

    def begin(self, what: str, total: int) -> None:
        """Restart the bar for something else."""
        if self._bar:
            self._bar.reset(self._task, total=total, description=what)

    def advance(self, steps: int = 1) -> None:
        """Some steps are done."""
        if self._bar:
            self._bar.advance(self._task, steps)

    def update(self, done: int, total: int | None, note: str = "") -> None:
        """So many steps are done."""
        if self._bar:
            self._bar.update(self._task, completed=done, total=total, note=note)

    @property
    def shown(self) -> bool:
        """Whether there is a bar."""
        return self._bar is not None

    def stop(self) -> None:
        """Remove the bar for good. Idempotent."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class ParseProgress:
    """Shows pages, pages/s, time left and failures of ``pagemill parse`` on standard error. A context manager.

    Args:
        quiet: Name failed pages, and show nothing else.
        life: What this process knows of the run, in which it may be one of several.
        console: Where to draw; standard error by default.
    """

    def __init__(self, *, quiet: bool = False, life: Life | None = None, console: LenientConsole | None = None) -> None:
        self._console = console or LenientConsole(stderr=True)
        self._quiet = quiet
        self._life = life or Life()
        self._start = self._last_line = time.monotonic()
        self._pages = self._failed = self._retries = 0
        self._bar = ProgressBar(quiet=quiet, console=self._console)

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def opened(self, finished_before: int) -> None:
        """Say how many pages need not be parsed again; a process that takes over from another says nothing."""
        if finished_before and not self._quiet and self._life.number == 0:
            self._console.say(f"Resuming: {number(finished_before, 'page')} finished before.")

    def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
        """Count a finished page; a failed one is named at once.

        Skipped pages count as progress, but not as speed: the time left is that of the others.
        """
        self._pages += 1
        if page.record.status is Status.FAILED:
            self._failed += 1
            self._name(self._failed, ("failed", "red"), page)
        if self._quiet:
            return
        now = time.monotonic()
        rate = self._pages / max(now - self._start, 1e-9)
        finished = skipped + self._pages
        left = f", {duration((total - finished) / rate)} left" if total else ""
        if self._bar.shown:
            notes = [f"{rate:.1f} pages/s{left}"]
            notes += [f"[red]{self._failed} failed[/red]"] if self._failed else []
            notes += [f"[yellow]{self._retries} retried[/yellow]"] if self._retries else []
            self._bar.update(finished, total, " ".join(notes))
        elif now - self._last_line >= LOG_EVERY_S:
            self._last_line = now
            of_total = f"/{total}" if total else ""
            retried = f", {self._retries} retried" if self._retries else ""
            self._console.say(
                f"{finished}{of_total} pages, {rate:.2f} pages/s{left}, {self._life.vitals.failed} failed{retried}"
            )

    def postponed(self, page: ParsedPage) -> None:
        """Name a page that failed and will be retried."""
        self._retries += 1
        if not self._quiet:
            self._name(self._retries, ("will be retried", "yellow"), page)

    def hangs(self, *, fresh_process: bool) -> None:
        """Report a computation that hangs, and how the run continues; further ones are not reported."""
        if not self._quiet:
            how = "in a new process once the pages in flight are finished" if fresh_process else "without it"
            self._console.say(f"A page hangs in a computation and was given up. The run continues {how}.")

    def stopping(self, in_flight: int) -> None:
        """Report that the run stops early, and restore the terminal: a second signal stops the process at once."""
        self._bar.stop()
        if not self._quiet:
            waits = f"{number(in_flight, 'page')} in flight will be finished" if in_flight else "no page is in flight"
            self._console.say(f"Stopping: {waits}. Press Ctrl-C again to quit at once. Either way it can be resumed.")

    def _name(self, count: int, what: tuple[str, str], page: ParsedPage) -> None:
        if count <= MAX_FAILURE_LINES:
            name, message, _ = next(page.failures())
            self._console.say(what, f" {name}: {short(message)}")
        elif count == MAX_FAILURE_LINES + 1:
            self._console.say("More pages fail; from here on they are only counted.")


class ServerDisplay:
    """Shows the events of servers on standard error: a changing line on a terminal, plain lines in a log.

    An instance is what :class:`pagemill.serving.servers.ModelServers` calls.

    Args:
        quiet: Show only what went wrong.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._starts: dict[str, float] = {}
        self._last_progress = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event.what:
            case What.STARTING:
                self._starts[event.url] = self._last_progress = time.monotonic()
                self.note(f"Starting {event.url}: {event.text}")
            case What.PROGRESS:
                self._progress(event)
            case What.READY:
                self.note(f"Ready after {self._seconds(event):.0f} s: {event.url} ({event.text})")
            case What.REUSED:
                self.note(f"Using a running server: {event.url} ({event.text})")
            case What.DIED:
                self._say(f"Server {event.url}: {event.text}")
            case What.GIVEN_UP:
                self._say(f"Server {event.url}: given up.")
            case What.CLEARED:
                self._say(f"Killed {event.text}: its pagemill process was killed.")

    def note(self, text: str) -> None:
        """Print something that is not a problem."""
        if not self._quiet:
            self._say(text)

    def _progress(self, event: Event) -> None:
        if self._quiet:
            return
        passed = f"{self._seconds(event):4.0f} s  {event.text}"
        if self._terminal:
            self._write(_ERASE_LINE + passed[: shutil.get_terminal_size().columns - 1])
        elif time.monotonic() - self._last_progress >= SERVER_LOG_EVERY_S:
            self._last_progress = time.monotonic()
            self._write(passed + "\n")

    def _seconds(self, event: Event) -> float:
        """Since the server of an event was started."""
        return time.monotonic() - self._starts.get(event.url, self._last_progress)

    def _say(self, text: str) -> None:
        self._write((_ERASE_LINE if self._terminal else "") + text + "\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it: no reason to stop a server
            sys.stderr.write(text)
            sys.stderr.flush()


def print_summary(
    outcome: RunOutcome, vitals: Vitals, out: Path, seconds: float, console: LenientConsole | None = None
) -> None:
    """Print the summary of a run: pages, regions by label, failures by kind, shares of stages, the output directory.

    Args:
        outcome: The outcome of the run; its counts are those of the directory.
        vitals: What was done this time.
        out: The directory.
        seconds: Duration of this time.
        console: Where to print; standard output by default.
    """
    console = console or LenientConsole(file=sys.stdout)
    summary = outcome.summary
    finished = vitals.done + vitals.failed
    pages = [f"{summary.pages - summary.failed} done", f"{summary.failed} failed"]
    pages += [f"{summary.skipped} skipped"] if summary.skipped else []
    rows: list[tuple[str, str, list[str]]] = [("pages", "", [*pages, number(summary.documents, "document")])]
    if finished < summary.pages:
        rows.append(
            ("this time", "", [f"{vitals.done} done", f"{vitals.failed} failed"] if finished else ["nothing to do"])
        )
    rate = f" ({finished / max(seconds, 1e-9):.2f} pages/s)" if finished else ""
    rows.append(("time", "", [f"{duration(seconds)}{rate}"]))
    if finished:
        rows += _details(summary)
    if summary.failures_by_kind:
        rows.append(("failures", "red", counts(summary.failures_by_kind)))
    if summary.missing:
        what = "page or row" if summary.missing == 1 else "pages or rows"
        rows.append(("missing", "red", [f"at least {summary.missing:,} {what} that sources could not give"]))
    if summary.warnings_by_kind:
        rows.append(("warnings", "yellow", counts(summary.warnings_by_kind)))
    rows.append(("output", "", [str(out)]))
    for name, style, items in rows:
        for label, line in row(name, items, console.width, _INDENT):
            console.say(label, (line, style))
    print_failures(outcome.failures, outcome.errors, console, more='; see "errors" of each page in ocr_results.jsonl')
    if summary.interrupted:
        console.say("Interrupted. The pages parsed so far are in the output; repeat the command to resume.")
    elif summary.failed > outcome.unopened:
        console.say("To retry the failed pages, repeat the command with --retry-failed.")
    elif summary.failed:
        console.say("The next run into this output retries them.")


def print_skipped_files(by_suffix: Mapping[str, int], console: LenientConsole | None = None) -> None:
    """Name the files of input folders that were not read; nothing where there are none.

    Args:
        by_suffix: How many files have which suffix.
        console: Where to print; standard error by default.
    """
    if by_suffix:
        files = number(sum(by_suffix.values()), "file")
        kinds = "another kind" if files.startswith("1 ") else "other kinds"
        (console or messages()).say(f"skipped: {files} of {kinds} ({', '.join(counts(by_suffix))})")


def _details(summary: RunSummary) -> list[tuple[str, str, list[str]]]:
    """What is on the pages, and where the time went."""
    rows: list[tuple[str, str, list[str]]] = []
    if summary.regions:
        rows.append(("regions", "", [f"{summary.regions} in all", *counts(summary.regions_by_label)]))
    if summary.crops:
        rows.append(("crops", "", [str(summary.crops)]))
    if stages := shares(summary.seconds_by_stage):
        rows.append(("stages", "", stages))
    return rows


def print_failures(
    failures: Iterable[tuple[str, str, str | None]],
    total: int,
    console: LenientConsole,
    *,
    mark: str = "",
    more: str = "",
) -> None:
    """Print the first failures, those with one remedy together.

    Args:
        failures: What failed, the message and the remedy of each.
        total: Number of all failures.
        console: Where to print.
        mark: Printed before each, in red.
        more: Where to find the others.
    """
    shown = list(failures)
    order = {remedy: position for position, (_, _, remedy) in reversed(list(enumerate(shown)))}
    for remedy, group in groupby(sorted(shown, key=lambda failure: order[failure[2]]), lambda failure: failure[2]):
        for name, message, _ in group:
            console.say((mark, "red"), f"{' ' if mark else '  '}{name}: {short(message)}")
        if remedy:
            console.say(f"      {short(remedy)}")
    if total > len(shown):
        console.say(f"  ... and {total - len(shown):,} more{more}")
