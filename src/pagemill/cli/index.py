"""``pagemill index``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pagemill.cli.wording import number

if TYPE_CHECKING:
    from pagemill.retrieval.building import IndexReport


@click.command(name="index", short_help="Make a run searchable.")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; errors only.")
def command(out: Path, quiet: bool) -> int:
    """Make the search index of a run directory, or bring it up to date: words, and vectors where there are any.

    Only pages that are new or changed are put in. OUT may be a run that still goes on. The index is in OUT/index/.

    \b
    pagemill index out
    pagemill search out "power of the wheel"
    """  # noqa: D301 - click wants the control character
    from pagemill.cli.progress import LenientConsole
    from pagemill.errors import ExitCode
    from pagemill.retrieval.building import build_index

    console = LenientConsole(stderr=True, highlight=False)
    with console.status("indexing") if console.is_terminal and not quiet else _Nothing() as shown:
        report = build_index(out, tell=lambda done, total: shown.update(f"indexing: {done:,} of {total:,} pages"))
    for message in report.damages[:20]:
        console.print(f"left out: {message}", markup=False, soft_wrap=True)
    if not quiet:
        console.print(_summary(report), markup=False, soft_wrap=True)
    return ExitCode.DAMAGED if report.damages else ExitCode.OK


class _Nothing:
    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, _: str) -> None:
        """Shows nothing."""


def _summary(report: IndexReport) -> str:
    lines = [
        f"{number(report.pages, 'page')}, {number(report.regions, 'region')}:"
        f" {number(report.added, 'page')} added or renewed,"
        f" {report.removed:,} removed"
    ]
    if report.failed:
        lines.append(f"left out: {number(report.failed, 'failed page')}")
    for part, count in report.parts.items():
        line = f"{number(count.vectors, 'vector')} of {part.plural}, {count.dimension:,} components, by {count.engine}"
        lines.append(line + (f"; {count.missing:,} missing: pagemill embed" if count.missing else ""))
    if not report.parts:
        lines.append("no vectors: search goes by words alone (pagemill embed makes vectors)")
    if report.damages:
        lines.append(f"left out: {number(len(report.damages), 'damaged record')}: pagemill verify --repair")
    return "\n".join(lines)
