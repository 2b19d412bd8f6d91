"""``pagemill extract``."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from pagemill.app.extract import (
    ExtractOptions,
    ExtractOutcome,
    extract,
    is_run,
    parse_and_extract,
    read_results,
    results_folder,
)
from pagemill.app.options import DirectoryOptions, ImageSources, ParseOptions
from pagemill.cli.options import FILE, GroupedCommand, Name, given, quiet_option, takes, under
from pagemill.cli.progress import LenientConsole, ProgressBar, messages, print_failures
from pagemill.config.headings import INPUT, OUTPUT
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.shown import count
from pagemill.extraction.result import ExtractionStatus
from pagemill.extraction.schema import ExtractionSchema

_OF_RUNS = ("password", "image_column")
"""Options of parsing that also read the images of a finished run."""


@click.command(name="extract", cls=GroupedCommand)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=Name(str))
@click.option(
    *("--schema", "schema_file"),
    type=FILE,
    required=True,
    metavar="FILE",
    help="JSON Schema of the values.",
    **under(ExtractOptions.HEADING),
)
@click.option(
    *("-o", "--output"),
    type=Name(Path),
    help="Directory to parse documents into. Without it, the results alone are printed.",
    **under(OUTPUT),
)
@takes(options=ExtractOptions, leave_out=())
@click.option(
    "--input",
    "moved",
    multiple=True,
    metavar="PATH",
    help="For a run: current path of the parsed files, to read page images.",
    **under(INPUT),
)
@takes(parsing=ParseOptions, directory=DirectoryOptions, leave_out=("strict",))
@click.option("--json", "as_json", is_flag=True, help="Print the results, one JSON object a line.", **under(OUTPUT))
@quiet_option
def command(
    inputs: tuple[str, ...],
    schema_file: Path,
    output: Path | None,
    moved: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    options: ExtractOptions,
    parsing: ParseOptions,
    directory: DirectoryOptions,
) -> int:
    """Extract the values that a JSON Schema describes, each with its page and box.

    INPUT is what `pagemill parse` takes, or a run directory, which is not parsed again. A model behind --server reads
    the text, layout and images of the pages. Each value is looked for on them, and is marked if it is on none.

    \b
    pagemill extract invoice.pdf --schema invoice.json --server http://127.0.0.1:8000
    pagemill extract invoices/ --schema invoice.json --server http://127.0.0.1:8000 -o out
    pagemill extract out --schema invoice.json --server http://127.0.0.1:8000
    """  # noqa: D301 - click wants the control character
    schema = ExtractionSchema.load(schema_file)
    console = messages(quiet=quiet)
    # A run is used as it is; anything else is parsed first, also a folder of documents.
    if len(inputs) == 1 and is_run(inputs[0]):
        out = Path(inputs[0])
        _refuse_for_run(output)
        sources = ImageSources(inputs=moved, options=parsing.source)
        with ProgressBar(console) as bar:
            running = extract(out, schema, parsing.settings.recognition, options, sources, bar.update)
            outcome = asyncio.run(running)
        return _report(outcome, out, schema, console, is_kept=True, as_json=as_json)
    if moved:
        raise click.UsageError("--input is for a run directory: documents are read from INPUT")
    with tempfile.TemporaryDirectory(prefix="pagemill-extract-") as temporary:
        out = output or Path(temporary) / "run"
        if output is None:
            # The run is deleted with the temporary folder, and nobody would read its report.
            directory = dataclasses.replace(directory, report=False)
        with ProgressBar(console) as bar:
            outcome = parse_and_extract(
                inputs, out, schema, parsing, directory, options, quiet=quiet or output is None, report=bar.update
            )
        return _report(outcome, out, schema, console, is_kept=output is not None, as_json=as_json or output is None)


def _refuse_for_run(output: Path | None) -> None:
    """Refuse options without effect: the documents of a run are parsed already."""
    # Options of the same settings that say how to read pages, not which model to ask.
    of_parsing = {"recognition_engine", "reading", "footnotes", "escalate", "escalate_from"}
    model = given(RecognitionSettings).keys() - of_parsing
    allowed = {*_OF_RUNS, *model}
    parsed = {**given(ParseOptions), **given(DirectoryOptions)}
    flags = [option.flags[-1] for key, (option, _) in parsed.items() if key not in allowed and key != "strict"]
    flags += ["--output"] if output is not None else []
    if flags:
        raise click.UsageError(f"{' and '.join(flags)} would parse again: a run directory is used as it is")


def _report(
    outcome: ExtractOutcome,
    out: Path,
    schema: ExtractionSchema,
    console: LenientConsole,
    *,
    is_kept: bool,
    as_json: bool,
) -> int:
    folder = results_folder(out, schema)
    if as_json:
        for result in read_results(folder):
            click.echo(msgspec.json.encode(result).decode())
    for line in _summary(outcome):
        console.note(line)
    if is_kept:
        console.note(f"in {folder}")
    print_failures(outcome.failures, outcome.problems, console)
    return int(outcome.exit_code)


def _summary(outcome: ExtractOutcome) -> Iterator[str]:
    counts = [f"{outcome.count(status):,} {status}" for status in ExtractionStatus if outcome.count(status)]
    yield f"{count(len(outcome.results), 'document')}: {', '.join(counts)}"
    unfounded = f", {outcome.unfounded:,} of them on no page" if outcome.unfounded else ""
    yield f"{count(outcome.values, 'value')}{unfounded}"
    tokens = f", {outcome.tokens:,} tokens" if outcome.tokens else ""
    yield f"{count(outcome.requests, 'request')}, {count(outcome.attempts, 'attempt')}{tokens}"
