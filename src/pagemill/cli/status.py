"""``pagemill status``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pagemill.app.status import RunStatus
    from pagemill.store.reading import RunReader

_SIZES_EVERY_S = 30.0
_GRACE_S = 5.0
"""A run whose process died may be started anew by its supervisor: only after this time it is over."""


@click.command(name="status", short_help="Show how a run stands.")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead; with --watch, one object a line.")
@click.option("-w", "--watch", is_flag=True, help="Go on showing it until the run ends.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="How often with --watch  [default: 1 on a terminal, else 10]",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Failed pages to name of each kind.",
)
def command(out: Path, as_json: bool, watch: bool, interval: float | None, examples: int) -> None:
    """Show how a run stands: pages by state, rate, time left, failures by kind, pages under way, size on disk.

    OUT is the output directory of pagemill parse, also while the run goes on.

    \b
    pagemill status out
    pagemill status out --watch
    pagemill status out --json | jq .failures
    """  # noqa: D301 - click wants the control character
    from pagemill.cli.status_display import StatusDisplay
    from pagemill.store.reading import RunReader

    with RunReader.open(out) as reader, StatusDisplay(as_json=as_json, watch=watch) as display:
        for status in _statuses(reader, examples, interval or display.interval_s, watch=watch):
            display.show(status)


def _statuses(reader: RunReader, examples: int, interval_s: float, *, watch: bool) -> Iterator[RunStatus]:
    """How the run stands now; when watched, again and again until it is over."""
    from pagemill.app.status import RunState, bytes_on_disk, read_status

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
