"""``pagemill index``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from pagemill.cli.options import quiet_option, run_directory
from pagemill.cli.progress import ProgressBar, messages
from pagemill.document.shown import count
from pagemill.errors import ExitCode
from pagemill.retrieval.building import IndexReport, build_index

_MAX_DAMAGES = 20


@click.command(name="index")
@run_directory
@quiet_option
def command(out: Path, quiet: bool) -> int:
    """Build or update the search index of a run directory: full text, and vectors if there are any.

    Only new and changed pages are added. OUT may be a run that is still in progress. The index is in OUT/index/.

    \b
    pagemill index out
    pagemill search out "power of the wheel"
    """  # noqa: D301 - click wants the control character
    console = messages(quiet=quiet)
    with ProgressBar(console, what="indexing") as bar:
        report = build_index(out, progress=bar.update)
    for message in report.damages[:_MAX_DAMAGES]:
        console.print_line(f"left out: {message}")
    for line in _summary(report):
        console.note(line)
    return ExitCode.DAMAGED if report.damages else ExitCode.OK


def _summary(report: IndexReport) -> Iterator[str]:
    yield (
        f"{count(report.pages, 'page')}, {count(report.regions, 'region')}:"
        f" {count(report.added, 'page')} added or updated, {report.removed:,} removed"
    )
    if not report.is_finished:
        yield "the run is not finished: pages that are still to come are not in the index"
    if report.failed:
        yield f"left out: {count(report.failed, 'failed page')}"
    for part, made in report.parts.items():
        line = f"{count(made.vectors, 'vector')} of {part.plural}, {made.dimension:,} components, by {made.engine}"
        yield line + (f"; {made.missing:,} missing: run pagemill embed" if made.missing else "")
    if not report.parts:
        yield "no vectors: search uses full text only (pagemill embed makes vectors)"
    if report.damages:
        yield f"left out: {count(len(report.damages), 'damaged record')}: run pagemill verify --repair"
