"""``pagemill embed``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from pagemill.app.embed import EmbedOptions, embed, open_engine
from pagemill.app.options import ImageSources
from pagemill.cli.options import queries_option, quiet_option, run_directory, server_option, takes
from pagemill.cli.progress import ProgressBar, messages, print_failures
from pagemill.cli.wording import number
from pagemill.embedding.base import EngineSettings
from pagemill.embedding.outcome import EmbedOutcome
from pagemill.embedding.vectors import FOLDER, Part, StoredType
from pagemill.evaluation.query_sets import read_query_texts
from pagemill.store.reading import RunReader

_WHAT = ("text", "images", "regions")


def _parts(context: click.Context, parameter: click.Parameter, what: str | None) -> frozenset[Part] | None:
    if what is None:
        return None
    names = [name.strip() for name in what.split(",") if name.strip()]
    if not names or any(name not in _WHAT for name in names):
        raise click.BadParameter(f"some of {', '.join(_WHAT)}, separated by commas")
    return frozenset(part for part in Part if part.choice in names)


@click.command(name="embed")
@run_directory
@click.option(
    *("--what", "parts"),
    metavar="LIST",
    callback=_parts,
    help="Some of text,images,regions  [default: all that the engine can embed]",
)
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
@takes(sources=ImageSources, leave_out=ImageSources.NOT_NEEDED)
@click.option("--fresh", is_flag=True, help="Delete the existing vectors and make all anew.")
@quiet_option
def command(
    out: Path,
    parts: frozenset[Part] | None,
    queries: Path | None,
    engine: str | None,
    dtype: StoredType,
    sources: ImageSources,
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
    options = EmbedOptions(
        parts=parts,
        queries=read_query_texts(queries) if queries else (),
        dtype=dtype,
        dimension=settings["dimension"],
        fresh=fresh,
        sources=sources,
    )
    RunReader.open(out).close()  # before a model is loaded
    console = messages(quiet=quiet)
    with closing(open_engine(engine, EngineSettings(folder=out / FOLDER, **settings))) as chosen:
        with ProgressBar(console) as bar:
            outcome = asyncio.run(embed(out, chosen, options, bar.update))
        for line in _summary(outcome):
            console.note(line)
        console.note(f"by the engine {chosen.name}, in {out / FOLDER}")
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
