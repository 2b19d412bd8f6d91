"""``pagemill export``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pagemill.app.export import Exporter

_FORMATS = ("jsonl", "parquet", "markdown", "docjson", "html", "csv-tables")


@click.command(name="export", short_help="Export a run to another format.")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("-f", "--format", "format_name", type=click.Choice(_FORMATS), required=True, help="What to write.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="PATH",
    help="File or folder to write, - for standard output  [default: beside OUT]",
)
@click.option("--documents", multiple=True, metavar="GLOB", help="Only documents with such an id; may be repeated.")
@click.option("--pages", multiple=True, metavar="GLOB", help="Only pages with such a page id; may be repeated.")
@click.option(
    "--status",
    type=click.Choice(["done", "failed", "all"]),
    default="all",
    show_default=True,
    help="Only pages that ended so.",
)
@click.option("--single", is_flag=True, help="markdown: one file of all documents.")
@click.option(
    "--with-crops/--no-crops",
    "crops",
    default=None,
    help="Take the pictures along  [default: into folders, not into Parquet]",
)
@click.option("--bom", is_flag=True, help="csv-tables: mark the files as UTF-8 for Excel.")
@click.option("--overwrite", is_flag=True, help="Replace the file, or the folder of an earlier export.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; errors only.")
def command(
    out: Path,
    format_name: str,
    output: Path | None,
    documents: tuple[str, ...],
    pages: tuple[str, ...],
    status: str,
    single: bool,
    crops: bool | None,
    bom: bool,
    overwrite: bool,
    quiet: bool,
) -> int:
    """Export what a run directory holds, page by page: also of a run that is unfinished or still going on.

    \b
    pagemill export out --format parquet
    pagemill export out --format markdown --documents 'report-*' -o texts/
    pagemill export out --format jsonl --status failed -o - | jq .errors
    """  # noqa: D301 - click wants the control character
    from pagemill.app.export import Exporter, ExportOptions, Format
    from pagemill.cli.export_progress import ExportProgress
    from pagemill.document.page import Status
    from pagemill.export.selection import Selection
    from pagemill.store.reading import RunReader

    options = ExportOptions(
        format=Format(format_name),
        selection=Selection(documents, pages, None if status == "all" else Status(status)),
        single=single,
        crops=crops,
        byte_order_mark=bom,
        overwrite=overwrite,
    )
    with RunReader.open(out) as reader, ExportProgress(reader, quiet=quiet) as progress:
        exporter = Exporter(reader, out, options, progress.page)
        target = None if output == Path("-") else output or options.default_target(out)
        if target is not None:
            exporter.to_path(target)
        else:
            _to_stdout(exporter)
    return int(progress.summary(exporter.outcome, target))


def _to_stdout(exporter: Exporter) -> None:
    try:
        exporter.to_stream(sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough; Python would complain once more at its end
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
