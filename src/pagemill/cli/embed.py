"""``pagemill embed``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from pagemill.app.embed import EmbedOptions, embed
from pagemill.app.embedding_engine import open_engine
from pagemill.app.options import ImageSources
from pagemill.app.queries import AUTO, places_of, query_texts
from pagemill.cli.options import queries_option, quiet_option, run_directory, takes
from pagemill.cli.progress import ProgressBar, messages, print_failures
from pagemill.document.shown import count
from pagemill.embedding.base import EngineSettings
from pagemill.embedding.outcome import EmbedOutcome
from pagemill.embedding.vectors import FOLDER
from pagemill.store.reading import RunReader


@click.command(name="embed")
@run_directory
@queries_option()
@takes(options=EmbedOptions, settings=EngineSettings, leave_out=ImageSources.NOT_NEEDED)
@quiet_option
def command(out: Path, queries: str | None, options: EmbedOptions, settings: EngineSettings, quiet: bool) -> int:
    """Make vectors of the pages, regions and queries of a run directory, in OUT/embeddings.

    \b
    pagemill embed out
    pagemill embed out --queries auto
    pagemill embed out --engine vllm --model qwen3-vl-embedding-2b --server http://127.0.0.1:8000

    Only new and changed pages are embedded. To resume, repeat the command.
    """  # noqa: D301 - click wants the control character
    console = messages(quiet=quiet)
    RunReader.open(out).close()  # before a model is loaded
    if queries:
        # Before the engine is opened: a model takes minutes to load, and a file may be wrong.
        texts, where = query_texts(queries, places_of(out), out)
        options = replace(options, queries=texts)
        if queries == AUTO:
            console.note(f"queries: {len(texts):,}, from {where}")
    with closing(open_engine(replace(settings, folder=out / FOLDER))) as chosen:
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
        yield f"{part}.npy  {count(each.rows, 'vector')} of {part.plural} ({', '.join(counts)})"
    if outcome.lost_queries:
        yield "queries.npy  deleted: the texts have changed too much; create it again with --queries"
    if outcome.cut_texts:
        yield f"{count(outcome.cut_texts, 'text')} truncated to the maximum length of the model"
