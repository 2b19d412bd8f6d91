"""``pagemill export``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pagemill.app.export import Exporter, ExportOptions, ExportOutcome, Format
from pagemill.app.exporters import default_exporters
from pagemill.cli.options import choice, quiet_option, run_directory
from pagemill.cli.progress import LenientConsole, ProgressBar, messages
from pagemill.cli.wording import number, short
from pagemill.document.page import Status
from pagemill.errors import ExitCode
from pagemill.export.selection import Selection
from pagemill.store.reading import RunReader
from pagemill.store.refresh import refresh
from pagemill.store.rows import PageState


@click.command(name="export")
@run_directory
@click.option(
    *("-f", "--format", "format_name"),
    type=choice(Format),
    help="What to write  [default: bring the files in OUT itself up to date]",
)
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="PATH",
    help="File or folder to write, - for standard output  [default: beside OUT]",
)
@click.option("--documents", multiple=True, metavar="GLOB", help="Only documents whose id matches; may be repeated.")
@click.option("--pages", multiple=True, metavar="GLOB", help="Only pages whose page id matches; may be repeated.")
@click.option(
    "--status",
    type=click.Choice(["done", "failed", "all"]),
    default="all",
    show_default=True,
    help="Only pages with this status.",
)
@click.option("--single", is_flag=True, help="markdown: write all documents to one file.")
@click.option(
    "--with-crops/--no-crops",
    "crops",
    default=None,
    help="Include the crops  [default: in folders, not in Parquet]",
)
@click.option("--bom", is_flag=True, help="csv-tables: mark the files as UTF-8 for Excel.")
@click.option("--overwrite", is_flag=True, help="Replace the file, or the folder of an earlier export.")
@quiet_option
def command(
    out: Path,
    format_name: str | None,
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
    """Export the pages of a run directory, also while the run is in progress or unfinished.

    Without --format, brings the files in OUT that are derived from the records up to date: ocr_results.jsonl,
    parsed_texts.jsonl, documents, report.html and run.json. A run does so itself at its end; until then, and after it
    was killed, they may be out of date.

    \b
    pagemill export out --format parquet
    pagemill export out --format markdown --documents 'report-*' -o texts/
    pagemill export out --format jsonl --status failed -o - | jq .errors
    """  # noqa: D301 - click wants the control character
    console = messages(quiet=quiet)
    if format_name is None:
        if output or documents or pages or single or bom or overwrite or crops is not None or status != "all":
            raise click.UsageError("these options go with --format")
        owner = refresh(out, default_exporters())
        beside = f"; ocr_results.jsonl is written by {owner}" if owner else ""
        console.note(f"The files in {out} are up to date{beside}.")
        return ExitCode.OK
    options = ExportOptions(
        format=Format(format_name),
        selection=Selection(documents, pages, None if status == "all" else Status(status)),
        single=single,
        crops=crops,
        byte_order_mark=bom,
        overwrite=overwrite,
    )
    with RunReader.open(out) as reader:
        states = reader.counts()
        with ProgressBar(console, states[PageState.DONE] + states[PageState.FAILED]) as bar:
            exporter = Exporter(reader, out, options, lambda page: bar.advance())
            target = None if output == Path("-") else output or options.default_target(out)
            if target is not None:
                exporter.to_path(target)
            else:
                exporter.to_stream(sys.stdout.buffer)
                sys.stdout.flush()
    of = f" of {number(exporter.outcome.documents, 'document')}" if exporter.outcome.documents else ""
    console.note(f"{number(exporter.outcome.pages, 'page')}{of} to {target or 'standard output'}")
    if unfinished := states[PageState.RUNNING] + states[PageState.WAITING]:
        console.note(f"The run is not finished: {number(unfinished, 'page')} in flight or waiting.")
    return _report_damage(exporter.outcome, console)


def _report_damage(outcome: ExportOutcome, console: LenientConsole) -> ExitCode:
    for message in outcome.damages:
        console.say(("damaged", "red"), f" {short(message)}")
    if not outcome.damaged:
        return ExitCode.OK
    if outcome.damaged > len(outcome.damages):
        console.say(f"... and {outcome.damaged - len(outcome.damages):,} more")
    console.say(
        f"{number(outcome.damaged, 'piece')} of the run left out of the export. To repair it: pagemill verify --repair"
    )
    return ExitCode.DAMAGED
