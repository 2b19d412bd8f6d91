"""``pagemill embed``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pagemill.cli.options import (
    NOT_FOR_IMAGES,
    input_option,
    queries_option,
    quiet_option,
    run_directory,
    server_option,
    takes,
)
from pagemill.cli.wording import number
from pagemill.sources.options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pagemill.embedding.outcome import EmbedOutcome
    from pagemill.embedding.vectors import Part, StoredType

_WHAT = ("text", "images", "regions")


@click.command(name="embed")
@run_directory
@click.option("--what", metavar="LIST", help="Some of text,images,regions  [default: all that the engine can embed]")
@queries_option()
@click.option("--engine", metavar="NAME", help="Installed embedding engine  [default: ngram]")
@click.option("--model", metavar="NAME", help="Model of the engine: a name, a path or a model card.")
@server_option("Server of the engine vllm")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float16"]),
    default="float32",
    show_default=True,
    help="Data type of the files.",
)
@click.option(
    "--dimension", type=click.IntRange(min=1), metavar="N", help="Truncate vectors to N components  [default: all]"
)
@click.option(
    "--batch-size", type=click.IntRange(min=1), metavar="N", help="Maximum batch size  [default: by the engine]"
)
@click.option("--device", metavar="NAME", help="Device of the engine, such as cuda or cpu.")
@input_option
@takes(sources=SourceOptions, leave_out=NOT_FOR_IMAGES)
@click.option("--fresh", is_flag=True, help="Delete the existing vectors and make all anew.")
@quiet_option
def command(
    out: Path,
    what: str | None,
    queries: Path | None,
    engine: str | None,
    dtype: StoredType,
    inputs: tuple[str, ...],
    sources: SourceOptions,
    fresh: bool,
    quiet: bool,
    **settings: Any,
) -> int:
    """Make vectors of the pages, regions and queries of a run directory, in OUT/embeddings.

    \b
    pagemill embed out
    pagemill embed out --queries queries.jsonl
    pagemill embed out --engine vllm --model qwen3-vl-embedding-2b --server http://127.0.0.1:8000

    Only new and changed pages are embedded. To resume, repeat the command.
    """  # noqa: D301 - click wants the control character
    import asyncio
    from dataclasses import replace

    from pagemill.app.embed import EmbedOptions, embed, open_engine
    from pagemill.cli.progress import ProgressBar, messages, print_failures
    from pagemill.embedding.base import EngineSettings
    from pagemill.embedding.queries import read_queries
    from pagemill.embedding.vectors import FOLDER, Part
    from pagemill.store.reading import RunReader

    parts = _parts(what)
    if parts is not None and queries is not None:
        parts |= {Part.QUERIES}
    options = EmbedOptions(
        parts=parts,
        queries=read_queries(queries) if queries else (),
        dtype=dtype,
        dimension=settings["dimension"],
        fresh=fresh,
        sources=replace(sources, recursive=True),
        inputs=inputs,
    )
    RunReader.open(out).close()  # before a model is loaded
    chosen = open_engine(engine, EngineSettings(folder=out / FOLDER, **settings))
    console = messages()
    try:
        with ProgressBar(quiet=quiet, console=console) as bar:
            outcome = asyncio.run(embed(out, chosen, options, bar))
    finally:
        chosen.close()
    if not quiet:
        for line in _summary(outcome):
            console.say(line)
        console.say(f"by the engine {chosen.name}, in {out / FOLDER}")
    print_failures(outcome.failures, outcome.failed, console, mark="failed")
    return int(outcome.exit_code)


def _summary(outcome: EmbedOutcome) -> Iterator[str]:
    for part, each in outcome.parts.items():
        counts = [f"{each.embedded:,} new"]
        counts += [f"{each.gone:,} removed"] if each.gone else []
        counts += [f"{each.failed:,} failed"] if each.failed else []
        yield f"{part}.npy  {number(each.rows, 'vector')} of {part.plural} ({', '.join(counts)})"
    if outcome.cut_texts:
        yield f"{number(outcome.cut_texts, 'text')} truncated to the maximum length of the model"


def _parts(what: str | None) -> frozenset[Part] | None:
    from pagemill.embedding.vectors import Part

    if what is None:
        return None
    names = [name.strip() for name in what.split(",") if name.strip()]
    if not names or any(name not in _WHAT for name in names):
        raise click.BadParameter(f"some of {', '.join(_WHAT)}, separated by commas", param_hint="--what")
    return frozenset(part for part in Part if part.choice in names)
