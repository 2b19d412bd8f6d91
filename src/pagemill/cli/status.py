"""``pagemill status``."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

import click
import msgspec
from rich.live import Live
from rich.text import Text

from pagemill.app.status import RunState, bytes_on_disk, read_status
from pagemill.cli.options import run_directory
from pagemill.cli.progress import LenientConsole
from pagemill.cli.wording import counts, duration, number, printable, row, shares, short, size
from pagemill.store.reading import RunReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from pagemill.app.status import RunStatus

_Line = tuple[str, tuple[str, str]]
"""The name of a row, and text with its style."""
_INDENT = 11
_MAX_IN_FLIGHT = 12
_SIZES_EVERY_S = 30.0
_GRACE_S = 5.0
"""A supervisor may restart a run whose process died: only after this time the run is over."""


@click.command(name="status")
@run_directory
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead; with --watch, one object a line.")
@click.option("-w", "--watch", is_flag=True, help="Update until the run finishes.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Time between updates with --watch  [default: 1 on a terminal, else 10]",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of failed pages to name per category.",
)
def command(out: Path, as_json: bool, watch: bool, interval: float | None, examples: int) -> None:
    """Show the status of a run: pages by state, rate, time left, failures by category, pages in flight, size on disk.

    OUT is the output directory of pagemill parse, also while the run is in progress.

    \b
    pagemill status out
    pagemill status out --watch
    pagemill status out --json | jq .failures
    """  # noqa: D301 - click wants the control character
    with RunReader.open(out) as reader, StatusDisplay(as_json=as_json, watch=watch) as display:
        for status in _statuses(reader, examples, interval or display.interval_s, watch=watch):
            display.show(status)


def _statuses(reader: RunReader, examples: int, interval_s: float, *, watch: bool) -> Iterator[RunStatus]:
    """The status now; when watched, again and again until the run is over."""
    measured = last_running = float("-inf")
    sizes: dict[str, int] = {}
    while True:
        now = time.monotonic()
        if now - measured >= _SIZES_EVERY_S:
            sizes, measured = bytes_on_disk(reader.path), now
        status = read_status(reader, examples=examples, sizes=sizes)
        yield status
        if status.state is RunState.RUNNING:
            last_running = now
        if not watch or status.state in (RunState.FINISHED, RunState.INTERRUPTED) or now - last_running > _GRACE_S:
            return
        time.sleep(interval_s)


class StatusDisplay:
    """Prints statuses on standard output.

    Args:
        as_json: As JSON, one object a line.
        watch: More than one status will be shown.
        console: Where to print; standard output by default.
    """

    def __init__(self, *, as_json: bool = False, watch: bool = False, console: LenientConsole | None = None) -> None:
        self._console = console or LenientConsole(file=sys.stdout, highlight=False)
        self._as_json = as_json
        self._watch = watch
        self._live: Live | None = None
        self._last: RunStatus | None = None
        if watch and not as_json and self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)

    @property
    def interval_s(self) -> float:
        """Default number of seconds between two statuses."""
        return 1.0 if self._live else 10.0

    def show(self, status: RunStatus) -> None:
        """Show one status."""
        self._last = status
        if self._as_json:
            encoded = msgspec.json.encode(status)
            click.echo(encoded if self._watch else msgspec.json.format(encoded, indent=2))
        elif self._live:
            lines = [Text.assemble(*line) for line in status_lines(status, self._console.width)]
            self._live.update(Text("\n").join(lines[: self._console.height - 1]), refresh=True)
        elif self._watch:
            self._console.say(_one_line(status))
        else:
            self._say_all(status)

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if self._live:
            self._live.stop()
        elif self._watch and not self._as_json and self._last is not None and kind is None:
            self._say_all(self._last)

    def _say_all(self, status: RunStatus) -> None:
        for line in status_lines(status, self._console.width):
            self._console.say(*line)


def status_lines(status: RunStatus, width: int) -> Iterator[_Line]:
    """The lines of a status."""
    yield from _styled("run", _state(status), width, "green" if status.state is RunState.RUNNING else "")
    yield from _styled("pages", _pages(status), width)
    if rates := _rates(status):
        yield from _styled("rate", rates, width)
    if status.failures:
        yield from _styled("failures", [f"{kind.category} {kind.pages:,}" for kind in status.failures], width, "red")
        for kind in status.failures:
            for page in kind.examples:
                tries = "" if page.attempts == 1 else f" ({page.attempts} attempts)"
                yield _line("", f"  {page.page_id}: {short(page.message)}{tries}")
            if kind.examples and kind.pages > len(kind.examples):
                yield _line("", f"  ... and {kind.pages - len(kind.examples):,} more of {kind.category}")
    if status.warnings:
        yield from _styled("warnings", counts(status.warnings), width, "yellow")
    if status.skipped:
        yield from _styled("skipped", counts(status.skipped), width)
    if status.in_flight:
        more = len(status.in_flight) - _MAX_IN_FLIGHT
        ids = status.in_flight[:_MAX_IN_FLIGHT] + ([f"and {more} more"] if more > 0 else [])
        yield from _styled("in flight", ids, width)
    if stages := shares(status.seconds_by_stage):
        yield from _styled("stages", stages, width)
    if status.bytes_on_disk:
        parts = [f"{name} {size(count)}" for name, count in status.bytes_on_disk.items()]
        yield from _styled("disk", [f"{size(sum(status.bytes_on_disk.values()))} in all", *parts], width)
    if status.state in (RunState.CUT_OFF, RunState.INTERRUPTED):
        yield _line("", "Repeat the pagemill parse command to resume.")


def _state(status: RunStatus) -> list[str]:
    state = f"{status.path}: {status.state}"
    if status.process is not None:
        process = status.process
        doubt = "" if process.certain else " (if it is still running)"
        return [state, f"process {process.pid} on {process.host}{doubt}", f"since {_moment(process.since)}"]
    if status.finished is None:
        return [state, f"started {_moment(status.started)}"]
    return [f"{state} {_moment(status.finished)}"]


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _pages(status: RunStatus) -> list[str]:
    items = [f"{status.completed:,} finished"]
    if whole := _whole(status):
        items = [f"{status.completed:,} of {whole:,} finished ({status.completed / whole:.0%})"]
    elif status.total:
        items.append(f"{status.total:,} in the input now")
    items += [f"{name} {count:,}" for name, count in status.pages.items() if count or name in ("done", "failed")]
    if status.total and (unmet := status.total + status.gone - sum(status.pages.values())) > 0:
        items.append(f"to come {unmet:,}")
    return [*items, number(status.documents, "complete document")]


def _rates(status: RunStatus) -> list[str]:
    items = []
    if status.rate is not None:
        items.append(f"{status.rate:.2f} pages/s recently")
    if status.invocation is not None and status.invocation.rate is not None:
        which = "this" if status.state is RunState.RUNNING else "the last"
        done = f"{number(status.invocation.pages, 'page')} in {duration(status.invocation.seconds)}"
        items.append(f"{status.invocation.rate:.2f} pages/s in {which} invocation ({done})")
    if status.seconds_left is not None:
        items.append(f"about {duration(status.seconds_left)} left")
    return items


def _whole(status: RunStatus) -> int | None:
    """Pages in the input, unless more are finished: parsed documents may have been removed from it."""
    return None if status.total is None or status.completed > status.total else status.total


def _one_line(status: RunStatus) -> str:
    whole = _whole(status)
    total = f" of {whole:,}" if whole else ""
    rate = "" if status.rate is None else f", {status.rate:.2f} pages/s"
    left = "" if status.seconds_left is None else f", {duration(status.seconds_left)} left"
    return f"{status.state}: {status.completed:,}{total} pages{rate}{left}, {status.pages['failed']:,} failed"


def _styled(name: str, items: list[str], width: int, style: str = "") -> Iterator[_Line]:
    for label, line in row(name, items, width, _INDENT):
        yield label, (printable(line), style)


def _line(name: str, text: str, style: str = "") -> _Line:
    return name.ljust(_INDENT), (printable(text), style)
