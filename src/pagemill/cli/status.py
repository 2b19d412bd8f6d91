"""``pagemill status``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

import click
import msgspec
from rich.live import Live
from rich.text import Text

from pagemill.app.status import PageToReview, RunState, RunStatus, bytes_on_disk, pages_to_review, read_status
from pagemill.cli.options import run_directory
from pagemill.cli.progress import LenientConsole
from pagemill.cli.wording import (
    Line,
    counts,
    duration,
    indented_json,
    node_rates,
    printable,
    row,
    shares,
    short,
    size,
)
from pagemill.document.shown import count
from pagemill.store.reading import RunReader

_IN_PROGRESS = (RunState.RUNNING, RunState.DESCRIBING)
_INDENT = 11
_MAX_IN_FLIGHT = 12
_MAX_WARNINGS = 5
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
@click.option("--review", is_flag=True, help="List the pages to review instead, with what speaks against their text.")
def command(out: Path, as_json: bool, watch: bool, interval: float | None, examples: int, review: bool) -> None:
    """Show the status of a run: pages by state, rate, time left, failures by category, pages in flight, size on disk.

    OUT is the output directory of pagemill parse, also while the run is in progress.

    \b
    pagemill status out
    pagemill status out --watch
    pagemill status out --json | jq .failures
    pagemill status out --review
    """  # noqa: D301 - click wants the control character
    console = LenientConsole(file=sys.stdout, highlight=False)
    if review and watch:
        raise click.UsageError("--review lists what is finished now: leave out --watch")
    pause_s = interval or (1.0 if console.is_terminal and not as_json else 10.0)
    with RunReader.open(out) as reader:
        if review:
            for page in pages_to_review(reader):
                if as_json:
                    click.echo(msgspec.json.encode(page))
                else:
                    for line in _review_lines(page):
                        console.print_line(line)
            return
        statuses = _statuses(reader, examples, pause_s, watch=watch)
        if not as_json:
            show(statuses, console, watch=watch)
            return
        for status in statuses:
            click.echo(msgspec.json.encode(status) if watch else indented_json(status))


def _statuses(reader: RunReader, examples: int, pause_s: float, *, watch: bool) -> Iterator[RunStatus]:
    """The status now; when watched, again and again until the run is over."""
    measured = last_running = float("-inf")
    sizes: dict[str, int] = {}
    while True:
        now = time.monotonic()
        # Looking at every file of a large run takes longer than all else here.
        if now - measured >= _SIZES_EVERY_S:
            sizes, measured = bytes_on_disk(reader.path), now
        status = read_status(reader, examples=examples, sizes=sizes)
        yield status
        if status.state in _IN_PROGRESS:
            last_running = now
        if not watch or status.state in (RunState.FINISHED, RunState.INTERRUPTED) or now - last_running > _GRACE_S:
            return
        time.sleep(pause_s)


def _review_lines(page: PageToReview) -> Iterator[str]:
    right = "confidence unknown" if page.confidence is None else f"about {page.confidence:.0%} right"
    shares = [f"{name} {share:.0%}" for name, share in page.signals.items()]
    yield printable(f"{page.page_id}: {', '.join([right, *shares])}")
    for why in page.why[:_MAX_WARNINGS]:
        yield f"  {printable(short(why))}"
    if len(page.why) > _MAX_WARNINGS:
        yield f"  ... and {count(len(page.why) - _MAX_WARNINGS, 'more warning')}"


def show(statuses: Iterable[RunStatus], console: LenientConsole, *, watch: bool) -> None:
    """Print statuses: redrawn in place on a terminal, else a line for each and all of the last one."""
    live = Live(console=console, auto_refresh=False) if watch and console.is_terminal else None
    lines: list[Line] = []
    with live or nullcontext():
        for status in statuses:
            lines = list(status_lines(status, console.width))
            if live:
                # A view that is higher than the terminal cannot be redrawn in place: each update would scroll.
                shown = [Text.assemble(*line) for line in lines[: console.height - 1]]
                live.update(Text("\n").join(shown), refresh=True)
            elif watch:
                console.print_line(_one_line(status))
    for line in [] if live else lines:
        console.print_line(*line)


def status_lines(status: RunStatus, width: int) -> Iterator[Line]:
    """The lines of a status."""
    for name, items, style in _rows(status):
        if items:
            yield from row(name, items, width, _INDENT, style)


def _rows(status: RunStatus) -> Iterator[tuple[str, list[str], str]]:
    yield "run", _state(status), "green" if status.state in _IN_PROGRESS else ""
    yield "pages", _pages(status), ""
    yield "rate", _rates(status), ""
    yield "nodes", [text] if (text := node_rates(status.nodes)) else [], ""
    yield "failures", [f"{kind.category} {kind.pages:,}" for kind in status.failures], "red"
    for kind in status.failures:
        for page in kind.examples:
            tries = "" if page.attempts == 1 else f" ({page.attempts} attempts)"
            yield "", [f"  {page.page_id}: {short(page.message)}{tries}"], ""
        if 0 < len(kind.examples) < kind.pages:
            yield "", [f"  ... and {kind.pages - len(kind.examples):,} more of {kind.category}"], ""
    yield "warnings", counts(status.warnings), "yellow"
    yield "skipped", counts(status.skipped), ""
    more = len(status.in_flight) - _MAX_IN_FLIGHT
    yield "in flight", status.in_flight[:_MAX_IN_FLIGHT] + ([f"and {more} more"] if more > 0 else []), ""
    yield "stages", shares(status.seconds_by_stage), ""
    if status.bytes_on_disk:
        parts = [f"{name} {size(stored)}" for name, stored in status.bytes_on_disk.items()]
        yield "disk", [f"{size(sum(status.bytes_on_disk.values()))} in all", *parts], ""
    if status.state in (RunState.CUT_OFF, RunState.INTERRUPTED):
        yield "", ["Repeat the pagemill parse command to resume."], ""


def _state(status: RunStatus) -> list[str]:
    state = f"{status.path}: {status.state}"
    if (process := status.process) is not None:
        return [state, f"process {process.pid} on {process.host}", f"since {_moment(process.since)}"]
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
    items += [f"{name} {pages:,}" for name, pages in status.pages.items() if pages or name in ("done", "failed")]
    items += [f"to review {status.review:,}"] if status.review else []
    # Pages that no worker has met yet: they are in none of the states.
    if status.total and (unmet := status.total + status.gone - sum(status.pages.values())) > 0:
        items.append(f"to come {unmet:,}")
    return [*items, count(status.documents, "complete document")]


def _rates(status: RunStatus) -> list[str]:
    items = [] if status.rate is None else [f"{status.rate:.2f} pages/s recently"]
    if (last := status.invocation) is not None and last.rate is not None:
        which = "this" if status.state is RunState.RUNNING else "the last"
        done = f"{count(last.pages, 'page')} in {duration(last.seconds)}"
        items.append(f"{last.rate:.2f} pages/s in {which} invocation ({done})")
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
