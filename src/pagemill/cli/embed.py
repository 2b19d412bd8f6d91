"""``pagemill embed``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pagemill.cli.options import server_option

if TYPE_CHECKING:
    from pagemill.embedding.vectors import Part, StoredType

_WHAT = ("text", "images", "regions")


@click.command(name="embed", short_help="Make vectors of pages, regions and queries.")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--what", metavar="LIST", help="Some of text,images,regions  [default: what the engine can]")
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Embed queries, too: .jsonl, .parquet, .csv with an id and a text each.",
)
@click.option("--engine", metavar="NAME", help="Installed embedding engine  [default: ngram]")
@click.option("--model", metavar="NAME", help="Model of the engine: a name, a path or a model card.")
@server_option("Server of the engine vllm")
@click.option(
    "--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True, help="Of the files."
)
@click.option(
    "--dimension", type=click.IntRange(min=1), metavar="N", help="Cut vectors to N components  [default: all]"
)
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", help="Most inputs at once  [default: engine's]")
@click.option("--device", metavar="NAME", help="Where the engine computes, as in cuda or cpu.")
@click.option("--input", "inputs", multiple=True, metavar="PATH", help="Where the parsed files lie now, for images.")
@click.option("--image-column", metavar="NAME", help="Image column of a dataset, as for pagemill parse.")
@click.option("--password", envvar="PAGEMILL_PASSWORD", metavar="TEXT", help="Password of encrypted PDFs, for images.")
@click.option("--fresh", is_flag=True, help="Throw away the vectors that are there, and make all anew.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; failures only.")
def command(
    out: Path,
    what: str | None,
    queries: Path | None,
    engine: str | None,
    model: str | None,
    servers: tuple[str, ...],
    dtype: StoredType,
    dimension: int | None,
    batch_size: int | None,
    device: str | None,
    inputs: tuple[str, ...],
    image_column: str | None,
    password: str | None,
    fresh: bool,
    quiet: bool,
) -> int:
    """Make vectors of the pages, regions and queries of a run directory, into OUT/embeddings.

    \b
    pagemill embed out
    pagemill embed out --queries queries.jsonl
    pagemill embed out --engine vllm --model qwen3-vl-embedding-2b --server http://127.0.0.1:8000

    Only what is new or has changed is embedded; what was stopped goes on with the same command.
    """  # noqa: D301 - click wants the control character
    import asyncio

    from pagemill.app.embed import EmbedOptions, embed, open_engine
    from pagemill.cli.embed_progress import EmbedProgress
    from pagemill.embedding.base import EngineSettings
    from pagemill.embedding.queries import read_queries
    from pagemill.embedding.vectors import FOLDER, Part
    from pagemill.sources import SourceOptions
    from pagemill.store.reading import RunReader

    parts = _parts(what)
    if parts is not None and queries is not None:
        parts |= {Part.QUERIES}
    options = EmbedOptions(
        parts=parts,
        queries=read_queries(queries) if queries else (),
        dtype=dtype,
        dimension=dimension,
        fresh=fresh,
        sources=SourceOptions(password=password, image_column=image_column, recursive=True),
        inputs=inputs,
    )
    settings = EngineSettings(
        folder=out / FOLDER,
        model=model,
        servers=servers,
        dimension=dimension,
        batch_size=batch_size,
        device=device,
    )
    RunReader.open(out).close()  # before a model is loaded
    chosen = open_engine(engine, settings)
    try:
        with EmbedProgress(chosen.name, quiet=quiet) as progress:
            outcome = asyncio.run(embed(out, chosen, options, progress))
    finally:
        chosen.close()
    return int(progress.summary(outcome, out / FOLDER))


def _parts(what: str | None) -> frozenset[Part] | None:
    from pagemill.embedding.vectors import Part

    if what is None:
        return None
    names = [name.strip() for name in what.split(",") if name.strip()]
    if not names or any(name not in _WHAT for name in names):
        raise click.BadParameter(f"some of {', '.join(_WHAT)}, separated by commas", param_hint="--what")
    return frozenset(part for part in Part if part.choice in names)
