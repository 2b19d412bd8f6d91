"""``pagemill export``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from pagemill.app.export import Exporter
from pagemill.app.export_options import ExportOptions
from pagemill.app.exporters import default_exporters
from pagemill.app.options import ImageSources
from pagemill.cli.options import Name, given, quiet_option, run_directory, takes
from pagemill.cli.progress import ProgressBar, messages, print_failures
from pagemill.cli.wording import short
from pagemill.document.shown import count
from pagemill.errors import ExitCode
from pagemill.export.formats import format_names
from pagemill.sources.items import is_url
from pagemill.store.reading import RunReader
from pagemill.store.repair import refresh
from pagemill.store.rows import PageState

_MAX_DAMAGES = 20


@click.command(name="export")
@run_directory
@takes(
    options=ExportOptions,
    leave_out=ImageSources.NOT_NEEDED,
    changes={
        "format": {"type": click.Choice(format_names())},
        "status": {"type": click.Choice(["done", "failed", "all"])},
    },
)
@click.option(
    *("-o", "--output"),
    type=Name(str),
    metavar="PATH",
    help="File or folder to write, - for standard output; of lance also a URL.  [default: beside OUT]",
)
@quiet_option
def command(out: Path, options: ExportOptions, output: str | None, quiet: bool) -> int:
    """Export the pages of a run directory, also while the run is in progress or unfinished.

    Without --format, brings the files in OUT that are derived from the records up to date: ocr_results.jsonl,
    parsed_texts.jsonl, documents, report.html and run.json. A run does so itself at its end; until then, and after it
    was killed, they may be out of date. Files that were edited are not noticed: pagemill verify finds them.

    \b
    pagemill export out --format parquet
    pagemill export out --format markdown --documents 'report-*' -o texts/
    pagemill export out --format chunks --tokenizer bge-m3/tokenizer.json -o chunks.parquet
    pagemill export out --format lance -o s3://bucket/pages.lance
    pagemill export out --format jsonl --status failed -o - | jq .errors
    """  # noqa: D301 - click wants the control character
    console = messages(quiet=quiet)
    if options.format == "chunks" and output is not None and output.lower().endswith(".parquet"):
        options = replace(options, parquet=True)
    if options.format is None:
        # Without a format the files of the run itself are written, which these options do not change.
        if output or given(ExportOptions):
            raise click.UsageError("these options require --format")
        owner = refresh(out, default_exporters())
        beside = f"; ocr_results.jsonl is written by {owner}" if owner else ""
        # Comparing each file with its records would take as long as writing it.
        console.note(
            f"The files in {out} are up to date, unless they were edited: pagemill verify checks that{beside}."
        )
        return ExitCode.OK
    with RunReader.open(out) as reader:
        states, is_finished = reader.counts(), reader.is_finished
        with ProgressBar(console, states[PageState.DONE] + states[PageState.FAILED]) as bar:
            exporter = Exporter(reader, options, lambda page: bar.advance())
            target = None if output == "-" else output or str(options.default_target(out))
            missing = {}
            if options.traits.to_table is not None:
                if target is None:
                    raise click.UsageError(f"--format {options.format} cannot be written to a stream")
                missing = exporter.to_table(target)
            elif target is not None:
                # As a path it would quietly become a folder named `s3:`.
                if is_url(target):
                    raise click.UsageError(f"--format {options.format} cannot be written to a URL, only lance can")
                exporter.to_path(Path(target))
            else:
                exporter.to_stream(sys.stdout.buffer)
                sys.stdout.flush()
    of = f" of {count(exporter.outcome.documents, 'document')}" if exporter.outcome.documents else ""
    failed = exporter.outcome.failed
    lacking = f", {failed:,} of them failed and without content: pagemill status {out}" if failed else ""
    console.note(f"{count(exporter.outcome.pages, 'page')}{of} to {target or 'standard output'}{lacking}")
    for column, pages in missing.items():
        if pages:
            console.note(f"{count(pages, 'page')} without {column}: embed them with pagemill embed {out}")
    # Looked up before the export: a run that finished meanwhile may have pages that it missed.
    if not is_finished:
        console.note("The run is not finished: pages that are still to come are not in the export.")
    damages = exporter.outcome.damages
    for message in damages[:_MAX_DAMAGES]:
        console.print_line(("damaged", "red"), f" {short(message)}")
    if damages:
        console.print_line(
            f"{count(len(damages), 'piece')} of the run left out of the export. To repair it: pagemill verify --repair"
        )
    for message in exporter.outcome.warnings[:_MAX_DAMAGES]:
        console.print_line(("warning", "yellow"), f" {short(message)}")
    left_out = exporter.outcome.left_out
    print_failures(left_out[:_MAX_DAMAGES], len(left_out), console, mark="left out")
    return int(exporter.outcome.exit_code)
