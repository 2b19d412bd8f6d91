"""``pagemill rebuild``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pagemill.app.rebuild import Change, Rebuilt, rebuild
from pagemill.cli.options import json_option, run_directory, takes
from pagemill.cli.progress import LenientConsole
from pagemill.cli.wording import indented_json
from pagemill.config.chunking import ChunkSettings
from pagemill.document.json_text import json_text
from pagemill.document.shown import count
from pagemill.errors import ExitCode, OutputError
from pagemill.store.files import write_whole


@click.command(name="rebuild")
@run_directory
@click.option(
    "--changes",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="New file for the chunks that were added, changed or deleted, one JSON object a line.",
)
@takes(chunks=ChunkSettings)
@json_option
def command(out: Path, changes: Path | None, chunks: ChunkSettings, as_json: bool) -> int:
    """Derive the structure of the documents in OUT again, as this version of pagemill does.

    Headings and their levels, running heads, joined paragraphs and tables, and anchors come from facts of the pages
    that are stored in OUT: nothing is decoded or recognized, and no input is needed. Records stay as they are;
    Markdown, DocJSON and the report are written again. 'pagemill index' brings its own index up to date; for an index
    elsewhere, --changes lists the ids of 'pagemill export --format chunks' with the same options.

    \b
    pagemill rebuild out
    pagemill rebuild out --changes changes.jsonl --max-tokens 400
    """  # noqa: D301 - click wants the control character
    if changes is not None and changes.exists():  # maybe the list of a rebuild that was cut off
        raise OutputError(
            f"{changes} exists", remedy="Choose another file, or delete this one once its changes are applied."
        )

    def keep(found: Rebuilt) -> None:
        if changes is not None:
            write_whole(changes, (f"{json_text(change)}\n".encode() for change in found.changes))

    done = rebuild(out, chunks, keep)
    counts = done.counts()
    if as_json:
        counted = {"documents": done.documents, "chunks": done.chunks, **{kind.value: counts[kind] for kind in Change}}
        click.echo(indented_json(counted))
        return int(ExitCode.OK)
    what = ", ".join(f"{counts[kind]:,} {kind}" for kind in Change)
    LenientConsole(file=sys.stdout).print_line(
        f"{count(done.documents, 'document')} rebuilt: {count(done.chunks, 'chunk')}, {what}"
    )
    return int(ExitCode.OK)
