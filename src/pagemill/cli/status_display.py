"""Shows how a run stands: once, or again and again in place on a terminal and line by line elsewhere."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Self

import click
import msgspec
from rich.live import Live
from rich.text import Text

from pagemill.app.status import RunState
from pagemill.cli.progress import LenientConsole
from pagemill.cli.wording import duration, number, packed, printable, shares, short, size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from pagemill.app.status import RunStatus

_Line = tuple[str, tuple[str, str]]
"""The name of a row, and text with its style."""
_INDENT = 11
_MAX_UNDER_WAY = 12


class StatusDisplay:
    """Prints statuses on standard output.

    Args:
        as_json: As JSON, one object a line.
        watch: More than one status is going to be shown.
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
        """Seconds between two statuses that suit the place where they are shown."""
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()
        elif self._watch and not self._as_json and self._last is not None and kind is None:
            self._say_all(self._last)

    def _say_all(self, status: RunStatus) -> None:
        for line in status_lines(status, self._console.width):
            self._console.say(*line)


def status_lines(status: RunStatus, width: int) -> Iterator[_Line]:
    """A status as lines of text."""
    yield from _row("run", _state(status), width, "green" if status.state is RunState.RUNNING else "")
    yield from _row("pages", _pages(status), width)
    if rates := _rates(status):
        yield from _row("rate", rates, width)
    if status.failures:
        yield from _row("failures", [f"{kind.category} {kind.pages:,}" for kind in status.failures], width, "red")
        for kind in status.failures:
            for page in kind.examples:
                tries = "" if page.attempts == 1 else f" ({page.attempts} attempts)"
                yield _line("", f"  {page.page_id}: {short(page.message)}{tries}")
            if kind.examples and kind.pages > len(kind.examples):
                yield _line("", f"  ... and {kind.pages - len(kind.examples):,} more of {kind.category}")
    if status.warnings:
        yield from _row("warnings", _counts(status.warnings), width, "yellow")
    if status.skipped:
        yield from _row("skipped", _counts(status.skipped), width)
    if status.under_way:
        more = len(status.under_way) - _MAX_UNDER_WAY
        ids = status.under_way[:_MAX_UNDER_WAY] + ([f"and {more} more"] if more > 0 else [])
        yield from _row("under way", ids, width)
    if stages := shares(status.seconds_by_stage):
        yield from _row("stages", stages, width)
    if status.bytes_on_disk:
        parts = [f"{name} {size(count)}" for name, count in status.bytes_on_disk.items()]
        yield from _row("disk", [f"{size(sum(status.bytes_on_disk.values()))} in all", *parts], width)
    if status.state in (RunState.CUT_OFF, RunState.INTERRUPTED):
        yield _line("", "The same pagemill parse command goes on where it stopped.")


def _state(status: RunStatus) -> list[str]:
    state = f"{status.path}: {status.state}"
    if status.process is not None:
        process = status.process
        doubt = "" if process.certain else " (if it is still there)"
        return [state, f"process {process.pid} on {process.host}{doubt}", f"since {_moment(process.since)}"]
    if status.finished is None:
        return [state, f"started {_moment(status.started)}"]
    return [f"{state} {_moment(status.finished)}"]


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _pages(status: RunStatus) -> list[str]:
    items = [f"{status.ended:,} ended"]
    if whole := _whole(status):
        items = [f"{status.ended:,} of {whole:,} ended ({status.ended / whole:.0%})"]
    elif status.total:
        items.append(f"{status.total:,} in the input now")
    items += [f"{name} {count:,}" for name, count in status.pages.items() if count or name in ("done", "failed")]
    if status.total and (unmet := status.total + status.gone - sum(status.pages.values())) > 0:
        items.append(f"to come {unmet:,}")
    return [*items, number(status.documents, "complete document")]


def _rates(status: RunStatus) -> list[str]:
    items = []
    if status.rate is not None:
        items.append(f"{status.rate:.2f} pages/s of late")
    if status.sitting is not None and status.sitting.rate is not None:
        which = "this" if status.state is RunState.RUNNING else "the last"
        done = f"{number(status.sitting.pages, 'page')} in {duration(status.sitting.seconds)}"
        items.append(f"{status.sitting.rate:.2f} pages/s in {which} sitting ({done})")
    if status.seconds_left is not None:
        items.append(f"about {duration(status.seconds_left)} left")
    return items


def _whole(status: RunStatus) -> int | None:
    """Pages in the input, unless more have ended: it may have lost documents that were parsed."""
    return None if status.total is None or status.ended > status.total else status.total


def _one_line(status: RunStatus) -> str:
    whole = _whole(status)
    total = f" of {whole:,}" if whole else ""
    rate = "" if status.rate is None else f", {status.rate:.2f} pages/s"
    left = "" if status.seconds_left is None else f", {duration(status.seconds_left)} left"
    return f"{status.state}: {status.ended:,}{total} pages{rate}{left}, {status.pages['failed']:,} failed"


def _counts(counts: dict[str, int]) -> list[str]:
    return [f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]


def _row(name: str, items: list[str], width: int, style: str = "") -> Iterator[_Line]:
    for index, line in enumerate(packed(items, width - _INDENT)):
        yield _line("" if index else name, line, style)


def _line(name: str, text: str, style: str = "") -> _Line:
    return name.ljust(_INDENT), (printable(text), style)
