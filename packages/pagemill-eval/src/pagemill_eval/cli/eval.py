"""``pagemill eval``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.cli.options import FOLDER, GroupedCommand, Name, choice, given, quiet_option, takes, under
from pagemill.cli.progress import LenientConsole, ProgressBar, messages
from pagemill.cli.wording import indented_json
from pagemill.config.headings import OUTPUT
from pagemill.config.machine import available_cores
from pagemill.config.options import options_of
from pagemill.document.shown import count
from pagemill.errors import ExitCode, PagemillError
from pagemill.sources.options import SourceOptions
from pagemill.store.files import encoded, write_whole
from pagemill_eval import benchmarks
from pagemill_eval.app.evaluate import Evaluation, benchmark_data, evaluate, evaluation_folder, read_evaluation
from pagemill_eval.app.evaluation_report import comparison_html, evaluation_html, sample_images
from pagemill_eval.benchmark import Benchmark, Figure, Rules, Status
from pagemill_eval.cli.eval_retrieval import retrieval
from pagemill_eval.comparing import ResultComparison, compare

_WIDTH = 110
_REPORT = "report.html"
_NAMED = 5
_SHOWN = 10
_SCORING = "Scoring"
_NOT_HERE = (*(each.key for each in options_of(SourceOptions)), "report", "strict", "crops", "resume")
"""Options of parsing that a benchmark decides."""


@click.group(name="eval")
def command() -> None:
    """Score results against ground truth."""


command.add_command(retrieval)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_benchmarks(as_json: bool) -> None:
    """List the benchmarks that `pagemill eval run` knows."""
    known = [benchmarks.create(name) for name in benchmarks.names()]
    if as_json:
        click.echo(indented_json([_described(each) for each in known]))
        return
    table = Table(box=None)
    for name in ("name", "benchmark", "predictions", "by", "data on the Hub"):
        table.add_column(name)
    for each in known:
        table.add_row(each.name, each.title, each.kind.value, each.primary, each.hub_id or "")
    _console().print(table)


def _described(benchmark: Benchmark) -> dict[str, object]:
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "kind": benchmark.kind,
        "metrics": list(benchmark.metrics),
        "primary": benchmark.primary,
        "rules": benchmark.origin,
        "hub_id": benchmark.hub_id,
    }


@command.command("run", cls=GroupedCommand)
@click.argument("benchmark_name", metavar="BENCH", type=click.Choice(benchmarks.names()))
@click.argument("data", required=False)
@click.option(*("-o", "--output"), type=Name(Path), required=True, help="Folder for the results.", **under(OUTPUT))
@click.option(
    "--predictions",
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    help="Score these predictions, of any tool, instead of parsing the benchmark's files.",
    **under(_SCORING),
)
@click.option(
    "--rules",
    type=choice(Rules),
    default=Rules.PAGEMILL.value,
    show_default=True,
    help="pagemill: every missing or failed prediction counts 0; official: as the benchmark's own scorer.",
    **under(_SCORING),
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Scoring processes.  [default: one per core]", **under(_SCORING)
)
@click.option(
    "--first", type=click.IntRange(min=1), metavar="N", help="Take the first N samples only.", **under(_SCORING)
)
@takes(
    options=ParseOptions,
    directory=DirectoryOptions,
    leave_out=_NOT_HERE,
    aliases={"recognition_engine": "--engine"},
)
@click.option("--html/--no-html", default=True, help="Write report.html.  [default: on]", **under(OUTPUT))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.", **under(OUTPUT))
@quiet_option
def run_benchmark(
    benchmark_name: str,
    data: str | None,
    output: Path,
    predictions: Path | None,
    rules: str,
    jobs: int | None,
    first: int | None,
    options: ParseOptions,
    directory: DirectoryOptions,
    html: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Score pagemill, or the predictions of any tool, on a benchmark.

    BENCH is one of `pagemill eval list`. DATA is the path of its published files, or hf://datasets/OWNER/NAME; without
    it the published dataset is fetched. The options of parsing are those of `pagemill parse`.

    \b
    pagemill eval run pubtabnet pubtabnet/ -o scores
    pagemill eval run olmocr-bench data/ -o scores-of-glm --engine vlm --model glm-ocr --server http://127.0.0.1:8000
    pagemill eval run dp-bench dp-bench/ -o scores-of-tool --predictions tool/

    To resume, repeat the command.
    """  # noqa: D301 - click wants the control character
    console = messages(quiet=quiet)
    if predictions is not None and (parsing := _flags_of_parsing()):
        raise click.UsageError(f"--predictions parses nothing: leave out {' and '.join(parsing)}")
    benchmark = benchmarks.create(benchmark_name)
    place = benchmark_data(benchmark, data, console.note)
    samples = benchmark.load(place)[:first]
    with evaluation_folder(output):
        engine = None
        if predictions is None:
            from pagemill_eval.app.predictions import predict  # with all of parsing

            predictions, engine = predict(benchmark, samples, output, options, directory, quiet=quiet)
        read = benchmark.predictions(predictions, samples)
        with ProgressBar(console) as bar:
            result = evaluate(
                benchmark,
                samples,
                read,
                output,
                rules=Rules(rules),
                jobs=jobs or available_cores(),
                data=place,
                predictions=predictions.absolute(),
                engine=engine,
                report=bar.update,
            )
            if html:
                pieces = evaluation_html(benchmark, result, sample_images(samples))
                write_whole(output / _REPORT, (each for piece in pieces for each in encoded(piece)))
    if as_json:
        click.echo(indented_json(msgspec.structs.replace(result, scores=[])))
    elif not quiet:
        _print_result(benchmark, result)
    console.note(f"in {output}")
    _print_unscored(result, console)
    is_complete = not (result.missing or result.failed or _not_in_full(result))
    return ExitCode.OK if is_complete else ExitCode.PAGES_FAILED


def _flags_of_parsing() -> list[str]:
    return [option.flags[-1] for kind in (ParseOptions, DirectoryOptions) for option, _ in given(kind).values()]


def _print_result(benchmark: Benchmark, result: Evaluation) -> None:
    console = _console()
    title = f"{benchmark.title}, {count(result.samples, 'sample')}, {result.rules.value} rules"
    console.print(
        _figures(title, ["value", "values", "of"], ((name, _row(each)) for name, each in result.figures.items()))
    )
    for group, values in result.groups.items():
        names = list(result.figures)
        rows = ((value, [_value(figures[name]) for name in names]) for value, figures in values.items())
        console.print(_figures(f"by {group}", names, rows))
    seconds = max(result.scoring_seconds, 1e-3)
    reused = (
        f"; {result.reused:,} known from before" if result.reused else f", {result.samples / seconds:,.1f} a second"
    )
    console.print(f"{result.scorer}\nscored in {seconds:.1f} s{reused}", markup=False, soft_wrap=True)


def _not_in_full(result: Evaluation) -> dict[str, str]:
    """Reasons by sample: a prediction that is too long or has a table too large for its metric."""
    return {score.id: score.error for score in result.scores if score.status is Status.SCORED and score.error}


def _print_unscored(result: Evaluation, console: LenientConsole) -> None:
    partly = _not_in_full(result)
    if partly:
        example = next(iter(partly))
        console.print_line(
            f"{count(len(partly), 'prediction')} not scored in full, such as {example}: {partly[example]}"
        )
    for what, ids in (("missing", result.missing), ("failed", list(result.failed))):
        if ids:
            more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
            reason = f": {result.failed[ids[0]]}" if what == "failed" and len(ids) == 1 else ""
            console.print_line(f"{count(len(ids), 'prediction')} {what}: {', '.join(ids[:_NAMED])}{more}{reason}")


@command.command("compare")
@click.argument("first", metavar="A", type=FOLDER)
@click.argument("second", metavar="B", type=FOLDER)
@click.option("-o", "--output", type=Name(Path), metavar="FILE", help="Write an HTML page with both side by side.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def compare_results(first: Path, second: Path, output: Path | None, as_json: bool) -> None:
    """Compare two results of `pagemill eval run`, sample by sample.

    A and B are their folders. The interval of a difference is a paired bootstrap over samples, with a fixed seed.

    \b
    pagemill eval compare before after
    pagemill eval compare before after -o difference.html
    """  # noqa: D301 - click wants the control character
    results = read_evaluation(first), read_evaluation(second)
    benchmark = benchmarks.create(results[0].benchmark)
    comparison = compare(benchmark, *results)
    if output is not None:
        try:
            images = sample_images(benchmark.load(Path(results[1].data)))
        except PagemillError as error:
            click.echo(f"Note: no images: {error.message}", err=True)
            images = sample_images([])
        names = _short_names(first, second)
        pieces = comparison_html(benchmark, comparison, *results, names, images)
        write_whole(output, (each for piece in pieces for each in encoded(piece)))
    if as_json:
        click.echo(indented_json(comparison))
    else:
        _print_comparison(comparison, _short_names(first, second))


def _short_names(first: Path, second: Path) -> tuple[str, str]:
    names = first.resolve().name, second.resolve().name
    return names if names[0] != names[1] else (str(first), str(second))


def _print_comparison(comparison: ResultComparison, names: tuple[str, str]) -> None:
    console = _console()
    head = [*names, "difference", f"{comparison.confidence:.0%} interval", "better", "worse", "samples"]
    rows = (
        (
            metric.metric,
            [
                *(f"{metric.first:.4f}", f"{metric.second:.4f}", f"{metric.difference:+.4f}"),
                f"{metric.low:+.4f} to {metric.high:+.4f}",
                *(f"{metric.better:,}", f"{metric.worse:,}", f"{metric.samples:,}"),
            ],
        )
        for metric in comparison.metrics
    )
    console.print(_figures(f"{comparison.benchmark}: means over samples, paired bootstrap", head, rows))
    worst = [sample for sample in comparison.samples if sample.difference][:_SHOWN]
    if worst:
        values = ((each.id, [f"{each.first:.4f}", f"{each.second:.4f}", f"{each.difference:+.4f}"]) for each in worst)
        console.print(_figures(f"largest losses, {comparison.primary}", [*names, "difference"], values))
    for name, only in zip(names, (comparison.only_first, comparison.only_second), strict=True):
        if only:
            click.echo(f"{count(len(only), 'sample')} in {name} only: {', '.join(only[:_NAMED])}", err=True)


def _console() -> Console:
    return Console(highlight=False, markup=False, width=max(_WIDTH, shutil.get_terminal_size().columns))


def _row(figure: Figure) -> list[str]:
    return [_value(figure), f"{figure.samples:,}", figure.aggregation + (f" ({figure.note})" if figure.note else "")]


def _value(figure: Figure) -> str:
    return "unavailable" if figure.value is None else f"{figure.value:.4f}"


def _figures(title: str, head: Sequence[str], rows: Iterator[tuple[str, list[str]]]) -> Table:
    """A table of figures; the first column names the rows."""
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("")
    for name in head:
        table.add_column(name, justify="left" if name == "of" else "right")
    for name, cells in rows:
        table.add_row(name, *cells)
    return table
