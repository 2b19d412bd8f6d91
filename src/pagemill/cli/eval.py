"""``pagemill eval``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pagemill.cli.options import server_option

if TYPE_CHECKING:
    from pagemill.app.search import Searcher
    from pagemill.evaluation.retrieval import Comparison, Query, RetrievalResult, Scores

_EXAMPLES = 3
_TABLE_WIDTH = 116


@click.group(name="eval", short_help="Score what pagemill finds.")
def command() -> None:
    """Score what pagemill finds against what is true."""


@command.command("retrieval", short_help="Queries against the pages that answer them.")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--queries",
    "queries_file",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The queries.",
)
@click.option(
    "--format",
    "query_format",
    type=click.Choice(["jsonl", "beir", "sds-kopub"]),
    default="jsonl",
    show_default=True,
    help="How they are written.",
)
@click.option(
    "--qrels",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="beir: the pages that answer.",
)
@click.option(
    "--near-duplicate",
    "similarity",
    type=click.FloatRange(0.5, 1.0),
    metavar="COSINE",
    default=0.98,
    show_default=True,
    help="Least cosine of two pages' vectors from which they are near-duplicates.",
)
@server_option("Embeds the queries, where a server made the vectors")
@click.option("--model", metavar="PATH", help="The vectors' model, where it lies elsewhere on this machine.")
@click.option("--device", metavar="NAME", help="Where the model computes, as in cuda or cpu.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the result as JSON.")
@click.option(
    "--compare",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Compare with an earlier result (-o), query by query.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
def retrieval(
    out: Path,
    queries_file: Path,
    query_format: str,
    qrels: Path | None,
    similarity: float,
    servers: tuple[str, ...],
    model: str | None,
    device: str | None,
    output: Path | None,
    compare: Path | None,
    as_json: bool,
) -> None:
    """Put queries to the index of a run and score the pages that come: recall, nDCG, reciprocal rank.

    Each part of the index is scored by itself and all of them fused, as pagemill search fuses them.

    \b
    pagemill eval retrieval out --queries queries.jsonl -o today.json
    pagemill eval retrieval out --queries SDS-KoPub-QA.parquet --format sds-kopub
    pagemill eval retrieval out --queries queries.jsonl --compare yesterday.json
    """  # noqa: D301 - click wants the control character
    import msgspec

    from pagemill.app.search import QueryEngineSettings, Searcher
    from pagemill.cli.progress import LenientConsole
    from pagemill.errors import CorruptInputError, OutputError
    from pagemill.evaluation import retrieval as scoring
    from pagemill.evaluation.query_sets import QueryFormat, read_queries
    from pagemill.store.files import write_whole

    other = None
    if compare:
        try:
            other = msgspec.json.decode(compare.read_bytes(), type=scoring.RetrievalResult)
        except msgspec.DecodeError as error:
            raise CorruptInputError(
                f"{compare} is no result of pagemill eval retrieval: {error}", remedy="Name a file that -o wrote."
            ) from error
    if output and not output.absolute().parent.is_dir():  # before the work begins
        raise OutputError(f"cannot write {output}: there is no such folder", remedy="Make it, or name another place.")
    scoring.scorer()  # before the work begins: is what computes the measures there?
    queries = read_queries(queries_file, QueryFormat(query_format), qrels)
    with Searcher(out, QueryEngineSettings(servers=servers, model=model, device=device)) as searcher:
        index = searcher.index
        if index.behind:
            click.echo(f"Note: {index.behind}. Bring it up to date: pagemill index {out}", err=True)
        console = LenientConsole(stderr=True, highlight=False)
        with console.status("searching") if console.is_terminal else _Nothing() as shown:
            result = scoring.evaluate(
                queries,
                lambda query: _rank(searcher, query),
                index=_index_of(searcher),
                known_pages=index.page_ids(),
                duplicates_of=lambda page: index.near_duplicates(page, similarity=similarity),
                tell=lambda done: shown.update(f"searching: {done:,} of {len(queries):,} queries"),
            )
    comparisons = scoring.compare(result, other) if other else []
    if as_json:
        click.echo(msgspec.json.encode({"result": result, "comparison": comparisons} if other else result).decode())
    else:
        _print(result, comparisons)
    if output:  # last: what cannot be kept has been seen
        write_whole(output, [msgspec.json.format(msgspec.json.encode(result))])


class _Nothing:
    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, _: str) -> None:
        """Shows nothing."""


def _rank(searcher: Searcher, query: Query) -> dict[str, list[str]]:
    from pagemill.evaluation.retrieval import DEPTH, FUSED

    rankings = searcher.rankings(query.query)
    named = {
        str(part): searcher.index.names([ranked.page for ranked in found[:DEPTH]]) for part, found in rankings.items()
    }
    fused = searcher.index.fused(query.query, rankings, top=DEPTH)
    return {FUSED: searcher.index.names([page for page, _ in fused]), **named}


def _index_of(searcher: Searcher) -> dict[str, Any]:
    import msgspec

    from pagemill._version import __version__

    vectors = {part: msgspec.to_builtins(info) for part, info in searcher.index.vectors.items()}
    return {
        "path": str(searcher.index.path),
        "pagemill": __version__,
        "pages": len(searcher.index.page_ids()),
        "vectors": vectors,
    }


def _print(result: RetrievalResult, comparisons: list[Comparison]) -> None:
    from rich.console import Console
    from rich.table import Table

    from pagemill.evaluation.retrieval import FUSED, MEASURES

    console = Console(highlight=False, width=max(_TABLE_WIDTH, shutil.get_terminal_size().columns))
    table = Table(title=f"{result.queries:,} queries, {result.index['pages']:,} pages; mean over queries", box=None)
    table.add_column("", no_wrap=True)
    for name in ("queries", *MEASURES):
        table.add_column(name, justify="right")

    def add(name: str, scores: Scores) -> None:
        table.add_row(name, f"{scores.queries:,}", *(f"{scores.means[measure]:.3f}" for measure in MEASURES))

    for part, found in result.parts.items():
        add(part, found.overall)
    if result.near_duplicates:
        add("fused, near-duplicates counted", result.parts[FUSED].duplicates_counted)
    for kind, groups in (("type", result.parts[FUSED].by_type), ("domain", result.parts[FUSED].by_domain)):
        for name, scores in groups.items():
            add(f"fused, {kind} {name}", scores)
    console.print(table)
    if comparisons:
        compared = Table(title="Compared query by query: paired randomisation test", box=None)
        for name in ("", "measure", "this", "other", "difference", "p", "better", "worse"):
            compared.add_column(name, justify="left" if name in ("", "measure") else "right")
        for each in comparisons:
            compared.add_row(
                each.part,
                each.measure,
                f"{each.mean:.3f}",
                f"{each.other:.3f}",
                f"{each.difference:+.3f}",
                f"{each.p_value:.4f}",
                str(each.better),
                str(each.worse),
            )
        console.print(compared)
    for line in _notes(result):
        console.print(line, markup=False, soft_wrap=True)


def _notes(result: RetrievalResult) -> list[str]:
    notes = [f"scorer: {result.scorer}; depth {result.depth} pages; queries without an answer count 0"]
    if result.near_duplicates:
        examples = ", ".join(
            f"{each.page_id} ({', '.join(each.duplicates[:_EXAMPLES])})" for each in result.near_duplicates[:_EXAMPLES]
        )
        notes.append(f"pages that answer and have near-duplicates: {len(result.near_duplicates):,}: {examples}")
    if result.unknown_pages:
        examples = ", ".join(result.unknown_pages[:_EXAMPLES])
        notes.append(f"pages that answer and are not in the index: {len(result.unknown_pages):,}: {examples}")
    return notes
