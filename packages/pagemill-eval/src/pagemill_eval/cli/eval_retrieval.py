"""``pagemill eval retrieval``."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from pagemill._version import __version__
from pagemill.app.options import QueryEngineSettings
from pagemill.app.queries import AUTO, places_of
from pagemill.app.search import Searcher
from pagemill.cli.options import FILE, QueriesType, choice, json_option, run_directory, takes
from pagemill.cli.progress import ProgressBar, messages
from pagemill.errors import CorruptInputError, InputError, OutputError
from pagemill.store.files import write_whole
from pagemill_eval import retrieval as scoring
from pagemill_eval.judged_queries import QueryFormat, judged_queries
from pagemill_eval.retrieval import Comparison, RetrievalResult

_EXAMPLES = 3
_TABLE_WIDTH = 116


@click.command("retrieval", short_help="Score search results.")
@run_directory
@click.option(
    *("--queries", "queries_from"),
    required=True,
    type=QueriesType(),
    metavar="FILE|auto",
    help="File of queries; auto: those of the dataset whose pages were parsed.",
)
@click.option(
    *("--format", "query_format"),
    type=choice(QueryFormat),
    help="Format of the queries.  [default: sds-kopub for a .parquet or .arrow, beir with --qrels, else jsonl]",
)
@click.option("--qrels", type=FILE, metavar="FILE", help="beir: file of the relevant pages.")
@click.option(
    "--near-duplicate",
    "similarity",
    type=click.FloatRange(0.5, 1.0),
    metavar="COSINE",
    default=0.98,
    show_default=True,
    help="Minimum cosine similarity of the vectors of near-duplicate pages.",
)
@takes(engines=QueryEngineSettings)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the result to this file as JSON."
)
@click.option("--compare", type=FILE, metavar="FILE", help="Compare with an earlier result (-o), query by query.")
@json_option
def retrieval(
    out: Path,
    queries_from: str,
    query_format: str | None,
    qrels: Path | None,
    similarity: float,
    engines: QueryEngineSettings,
    output: Path | None,
    compare: Path | None,
    as_json: bool,
) -> None:
    """Search the index of a run for queries and score the results: recall, nDCG, reciprocal rank.

    Each part of the index is scored on its own, and all of them fused as by pagemill search.

    \b
    pagemill eval retrieval out --queries queries.jsonl -o today.json
    pagemill eval retrieval out --queries auto
    pagemill eval retrieval out --queries queries.jsonl --compare yesterday.json
    """  # noqa: D301 - click wants the control character
    other = None
    if compare:
        try:
            other = msgspec.json.decode(compare.read_bytes(), type=scoring.RetrievalResult)
        except msgspec.DecodeError as error:
            raise CorruptInputError(
                f"{compare} is not a result of pagemill eval retrieval: {error}", remedy="Name a file written by -o."
            ) from error
    if output and not output.absolute().parent.is_dir():  # before the work begins
        raise OutputError(f"cannot write {output}: no such folder", remedy="Create it, or name another file.")
    chosen = QueryFormat(query_format) if query_format else None
    queries, where = judged_queries(queries_from, chosen, qrels, places_of(out), out)
    if queries_from == AUTO:
        click.echo(f"queries: {len(queries):,}, from {where}", err=True)
    with Searcher(out, engines) as searcher:
        index = searcher.index
        pages = index.page_ids()
        if queries_from == AUTO and not {page for query in queries for page in query.relevant}.intersection(pages):
            raise InputError(
                f"no page of {out} answers any query of {where}",
                remedy="Name the queries of these pages, or parse and index the pages of these queries.",
            )
        if index.behind:
            click.echo(f"Note: {index.behind}. To update it: pagemill index {out}", err=True)
        with ProgressBar(messages(), len(queries), "searching") as bar:
            result = scoring.evaluate(
                queries,
                lambda query: _ranked_names(searcher, query.query),
                index=_description(searcher),
                known_pages=pages,
                duplicates_of=lambda page: index.near_duplicates(page, similarity=similarity),
                report=lambda done: bar.update(done, len(queries)),
            )
    comparisons = scoring.compare(result, other) if other else []
    if as_json:
        click.echo(msgspec.json.encode({"result": result, "comparison": comparisons} if other else result).decode())
    else:
        _print(result, comparisons)
    if output:  # last: if it cannot be written, the result has been printed
        write_whole(output, [msgspec.json.format(msgspec.json.encode(result))])


def _ranked_names(searcher: Searcher, query: str) -> dict[str, list[str]]:
    """Page ids found for a text query by each part of the index, and by all of them fused."""
    index, rankings = searcher.index, searcher.rankings(query)
    pages = {str(part): [ranked.page for ranked in found[: scoring.DEPTH]] for part, found in rankings.items()}
    pages[scoring.FUSED] = [page for page, _ in index.fused(query, rankings, top=scoring.DEPTH)]
    return {name: index.names(found) for name, found in pages.items()}


def _description(searcher: Searcher) -> dict[str, Any]:
    """What the result depends on."""
    index = searcher.index
    return {
        "path": str(index.path),
        "pagemill": __version__,
        "pages": len(index.page_ids()),
        "vectors": {part: msgspec.to_builtins(info) for part, info in index.vectors.items()},
    }


def _print(result: RetrievalResult, comparisons: list[Comparison]) -> None:
    console = Console(highlight=False, width=max(_TABLE_WIDTH, shutil.get_terminal_size().columns))
    fused = result.parts[scoring.FUSED]
    rows = {part: found.overall for part, found in result.parts.items()}
    if result.near_duplicates:
        rows["fused, near-duplicates counted"] = fused.duplicates_counted
    rows |= {f"fused, type {name}": scores for name, scores in fused.by_type.items()}
    rows |= {f"fused, domain {name}": scores for name, scores in fused.by_domain.items()}
    scored = [
        (name, f"{scores.queries:,}", *(f"{scores.means[measure]:.3f}" for measure in scoring.MEASURES))
        for name, scores in rows.items()
    ]
    title = f"{result.queries:,} queries, {result.index['pages']:,} pages; mean over queries"
    console.print(_table(title, ("", "queries", *scoring.MEASURES), scored))
    if comparisons:
        compared = [
            (
                *(
                    f"{comparison.part}, {comparison.measure}",
                    f"{comparison.mean:.3f}",
                    f"{comparison.other:.3f}",
                    f"{comparison.difference:+.3f}",
                ),
                *(f"{comparison.p_value:.4f}", str(comparison.better), str(comparison.worse)),
            )
            for comparison in comparisons
        ]
        columns = ("", "this", "other", "difference", "p", "better", "worse")
        console.print(_table("Compared query by query: paired randomisation test", columns, compared))
    for line in _notes(result):
        console.print(line, markup=False, soft_wrap=True)


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of figures; the first column names the rows."""
    table = Table(title=title, box=None)
    for name in columns:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _notes(result: RetrievalResult) -> list[str]:
    notes = [f"scorer: {result.scorer}; depth {result.depth} pages; queries without a result count as 0"]
    duplicates = [
        f"{near_duplicate.page_id} ({', '.join(near_duplicate.duplicates[:_EXAMPLES])})"
        for near_duplicate in result.near_duplicates
    ]
    for what, pages in (
        ("that have near-duplicates", duplicates),
        ("that are not in the index", result.unknown_pages),
    ):
        if pages:
            notes.append(f"relevant pages {what}: {len(pages):,}: {', '.join(pages[:_EXAMPLES])}")
    return notes
