"""``pagemill search``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from click.formatting import wrap_text

from pagemill.app.options import QueryEngineSettings
from pagemill.app.search import Searcher
from pagemill.cli.options import FILE, choice, run_directory, takes
from pagemill.retrieval.hits import Filters, IndexPart, SearchHit
from pagemill.retrieval.marking import Snippet


@click.command(name="search")
@run_directory
@click.argument("query", required=False)
@click.option("--by-image", type=FILE, metavar="FILE", help="Search by an image, with or without words.")
@click.option(
    *("-k", "--limit", "-n", "--top", "top"),
    type=int,
    default=10,
    show_default=True,
    metavar="N",
    help="Maximum number of pages to show.",
)
@click.option("--documents", multiple=True, metavar="GLOB", help="Only documents whose id matches; may be repeated.")
@click.option("--pages", multiple=True, metavar="GLOB", help="Only pages whose page id matches; may be repeated.")
@click.option(
    *("--lang", "languages"), multiple=True, metavar="CODE", help="Only pages in this language; may be repeated."
)
@click.option(
    *("--label", "labels"),
    multiple=True,
    metavar="LABEL",
    help="Only regions with this label, such as table or chart; may be repeated.",
)
@click.option(
    *("--part", "parts"),
    multiple=True,
    type=choice(IndexPart),
    help="Search only these parts of the index; may be repeated  [default: all]",
)
@takes(engines=QueryEngineSettings)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per hit, one per line.")
def command(
    out: Path,
    query: str | None,
    by_image: Path | None,
    top: int,
    parts: tuple[str, ...],
    engines: QueryEngineSettings,
    as_json: bool,
    **filters: tuple[str, ...],
) -> None:
    """Search the pages of a run directory by full text and, if it was embedded, by vector similarity.

    \b
    pagemill search out "한지 체험 교실 수강료"
    pagemill search out "loss of fibre" --label table --documents 'report*' --json
    pagemill search out --by-image photo.jpg
    """  # noqa: D301 - click wants the control character
    with Searcher(out, engines) as searcher:
        hits = searcher.search(query, image=by_image, parts=parts or None, filters=Filters(**filters), top=top)
        behind = searcher.index.behind
    if as_json:
        for hit in hits:
            click.echo(msgspec.json.encode(hit).decode())
    else:
        _print(hits, out)
    if behind:
        click.echo(f"Note: {behind}. To update it: pagemill index {out}", err=True)


def _print(hits: Sequence[SearchHit], out: Path) -> None:
    width = shutil.get_terminal_size().columns
    # Asterisks in a pipe: a program does not want control sequences.
    plain = not sys.stdout.isatty()
    for hit in hits:
        page = (
            f"page {hit.page_number}" if hit.page_number else ""
        )  # where ids count from 0, the id alone identifies it
        where = ", ".join(filter(None, (hit.doc_id, page, (hit.label or "").replace("_", " "))))
        ranks = ", ".join(f"{part} {place.rank}" for part, place in hit.parts.items())
        click.echo(f"{hit.rank:>3}. {click.style(hit.page_id, bold=True)}  {where}  [{hit.score:.4f}: {ranks}]")
        text = Snippet(hit.snippet, hit.marks)
        marked = text.marked("**", "**") if plain else text.marked("\x1b[1;33m", "\x1b[0m")
        click.echo(f"     {marked}" if plain else wrap_text(marked, max(40, width - 4), "     ", "     "))
        if hit.crop:
            click.echo(f"     {out / hit.crop}")
    if not hits:
        click.echo("No page matches.", err=True)
