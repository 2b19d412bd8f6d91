"""Output shared by commands: messages, a progress bar, events of servers, failures."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from pagemill.cli import discard
from pagemill.cli.wording import printable, short
from pagemill.serving.spec import Event, What

SERVER_LOG_EVERY_S = 5.0


class LenientConsole(Console):
    """A console that goes quiet when it cannot be written to: a closed pipe must not stop a run.

    Args:
        failures_only: Leave out the notes (``--quiet``).
        **options: Arguments of :class:`rich.console.Console`.
    """

    def __init__(self, *, failures_only: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.failures_only = failures_only

    def print_line(self, *parts: str | tuple[str, str]) -> None:
        """Print one line as it is: no markup, no wrapping. Parts are texts, or texts with a style."""
        text = Text.assemble(*parts)
        # Names of files and messages of libraries may hold sequences that control the terminal.
        text.plain = printable(text.plain)
        try:
            self.print(text, soft_wrap=True)
        except OSError:  # a full disk behind a redirection
            self.on_broken_pipe()

    def note(self, *parts: str | tuple[str, str]) -> None:
        """Print a line that ``--quiet`` leaves out."""
        if not self.failures_only:
            self.print_line(*parts)

    def on_broken_pipe(self) -> None:
        """Discard all further output, also what Python flushes when it exits."""
        self.quiet = True
        discard(self.file)


def messages(*, quiet: bool = False) -> LenientConsole:
    """Standard error."""
    return LenientConsole(stderr=True, highlight=False, failures_only=quiet)


class _LogLines(logging.Handler):
    """Prints log records through a console, as lines that do not disturb its progress bar."""

    def __init__(self, console: LenientConsole) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        name = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        # Of a traceback each line is one; a message of several lines would pass for several messages.
        self._console.print_line(name, " ".join(record.getMessage().split()))
        for line in logging.Formatter().formatException(record.exc_info).splitlines() if record.exc_info else ():
            self._console.print_line(line)


def print_log(console: LenientConsole, verbosity: int) -> None:
    """Print what pagemill logs about its decisions from now on: with 1 the decisions, with 2 their details."""
    if verbosity:
        logger = logging.getLogger("pagemill")
        logger.addHandler(_LogLines(console))
        logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)


class ProgressBar:
    """A progress bar on a terminal; nothing elsewhere or with ``--quiet``. A context manager.

    Args:
        console: Console to draw on.
        total: Steps; None where they are not known yet.
        what: Shown before the bar.
        size: Steps are bytes.
    """

    def __init__(
        self, console: LenientConsole, total: int | None = None, what: str = "", *, size: bool = False
    ) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            DownloadColumn() if size else MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            expand=True,
            disable=console.failures_only or not console.is_terminal,
        )
        self._task = self._bar.add_task(what, total=total, note="")

    def advance(self, steps: int = 1) -> None:
        """Advance the bar."""
        self._bar.advance(self._task, steps)

    def update(self, done: int, total: int | None, what: str | None = None, note: str = "") -> None:
        """Set the number of finished steps, and the total or the description if they change."""
        self._bar.update(self._task, completed=done, total=total, description=what, note=note)

    @property
    def shown(self) -> bool:
        """Whether there is a bar."""
        return not self._bar.disable

    def stop(self) -> None:
        """Remove the bar permanently. Idempotent."""
        self._bar.stop()
        self._bar.disable = True

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


_EVENTS = {
    What.STARTING: "Starting {url}: {text}",
    What.PROGRESS: "{passed:4.0f} s  {text}",
    What.READY: "Ready after {passed:.0f} s: {url} ({text})",
    What.REUSED: "Using a running server: {url} ({text})",
    What.DIED: "Server {url}: {text}",
    What.GIVEN_UP: "Server {url}: given up.",
}
_TROUBLE = (What.DIED, What.GIVEN_UP)
"""Also shown with ``--quiet``."""


class ServerDisplay:
    """Prints the events of servers; lines of their logs now and then, to show that a start continues.

    An instance is what :class:`pagemill.serving.servers.ModelServers` calls.
    """

    def __init__(self, console: LenientConsole) -> None:
        self._console = console
        self._starts: dict[str, float] = {}
        self._last_progress = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Print an event."""
        now = time.monotonic()
        if event.what is What.STARTING:
            self._starts[event.url] = self._last_progress = now
        elif event.what is What.PROGRESS:
            # vLLM logs hundreds of lines as it starts.
            if now - self._last_progress < SERVER_LOG_EVERY_S:
                return
            self._last_progress = now
        passed = now - self._starts.get(event.url, now)
        show = self._console.print_line if event.what in _TROUBLE else self._console.note
        for line in _EVENTS[event.what].format(url=event.url, text=event.text, passed=passed).splitlines():
            show(line)


def print_failures(
    failures: Sequence[tuple[str, str, str | None]],
    total: int,
    console: LenientConsole,
    *,
    mark: str = "",
    more: str = "",
) -> None:
    """Print the first failures, those with one remedy together.

    Args:
        failures: Name, message and remedy of each failure.
        total: Number of all failures.
        console: Console to print to.
        mark: Printed before each, in red.
        more: Hint where to find the others.
    """
    alike: dict[str | None, list[tuple[str, str]]] = {}
    for name, message, remedy in failures:
        alike.setdefault(remedy, []).append((name, message))
    for remedy, group in alike.items():
        for name, message in group:
            console.print_line((mark, "red"), f"{' ' if mark else '  '}{name}: {short(message)}")
        if remedy:
            console.print_line(f"      {short(remedy)}")
    if total > len(failures):
        console.print_line(f"  ... and {total - len(failures):,} more{more}")
