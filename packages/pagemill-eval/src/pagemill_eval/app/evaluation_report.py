"""HTML of an evaluation, or of two side by side: truth and predictions, the worst samples first.

One self-contained file without a script. Everything that the truth, a prediction or a name says is escaped text; of a
table in HTML only rows, cells, spans and text are kept. A content security policy lets only the one style and the
images in the file take effect.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby

from rapidfuzz.distance import Indel

from pagemill.errors import PagemillError
from pagemill.export.html import html_head
from pagemill.imaging.decode import decode_image
from pagemill.imaging.encode import encode_preview
from pagemill.tables.html import parse_table
from pagemill.tables.table import Table
from pagemill_eval.app.evaluate import Evaluation
from pagemill_eval.benchmark import Benchmark, Figure, Kind, Pair, Sample, SampleScore, Status
from pagemill_eval.comparing import ResultComparison

MAX_SAMPLES = 200
MAX_IMAGE_BYTES = 60 * 2**20
_OPEN = 3
"""Samples that are unfolded at first."""
_MAX_PAIRS = 20
"""Pairs of a sample that are shown, the worst ones."""
_MAX_TEXT = 20_000
"""Characters of a text that are compared."""
_MAX_MARKDOWN = 200_000
"""Maximum characters of a page that are searched for tables."""
_MAX_ID = 200
_TOKEN = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|.", re.DOTALL)
"""A word; of Chinese, Japanese and Korean a character."""
_PIPES = re.compile(r"\s{0,3}\|.*\|\s*")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_BLANKS = re.compile(r"\n{3,}")
_STYLE = files("pagemill_eval.app") / "evaluation_template" / "style.css"

Images = Callable[[str], bytes | None]
"""Gives a small WebP of a sample's image, by the sample's id."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the displayed evaluations."""

    name: str
    scores: Mapping[str, SampleScore]


def evaluation_html(benchmark: Benchmark, evaluation: Evaluation, images: Images) -> Iterator[str]:
    """An evaluation, in pieces to be written one after the other."""
    yield _head(f"{benchmark.title}: {evaluation.predictions.rsplit('/', 1)[-1]}")
    yield f"<h1>{_text(benchmark.title)}</h1>\n<p class=soft>{_text(evaluation.predictions)}</p>\n"
    yield f"<p class='soft small'>{_text(evaluation.scorer)}; {evaluation.rules.value} rules</p>\n"
    yield _figures(["value", "values", "of"], ((name, _figure(each)) for name, each in evaluation.figures.items()))
    for group, values in evaluation.groups.items():
        yield f"<h2>By {_text(group)}</h2>\n"
        names = [name for name in evaluation.figures if any(value[name].value is not None for value in values.values())]
        rows = ((value, [_number(figures[name].value) for name in names]) for value, figures in values.items())
        yield _figures(names, rows)
    counts = f"{len(evaluation.missing):,} missing, {len(evaluation.failed):,} failed"
    metric = next(metric for metric in benchmark.metrics if metric.name == benchmark.primary)
    sign = 1 if metric.higher_is_better else -1
    scored = [score for score in evaluation.scores if score.metrics.get(benchmark.primary) is not None]
    ordered = sorted(scored, key=lambda each: sign * (each.metrics[benchmark.primary] or 0.0))
    shown = ordered[:MAX_SAMPLES]
    yield f"<h2>Samples</h2>\n<p class=soft>{evaluation.samples:,} in all: {counts}. {_order(len(shown), len(scored))} "
    yield f"by {_text(benchmark.primary)}. {_LEGEND}</p>\n"
    side = _Side("prediction", {each.id: each for each in shown})
    ids = [(each.id, f"<span>{_number(each.metrics[benchmark.primary])}</span>") for each in shown]
    yield from _samples(ids, [side], images)
    yield "</main>\n</body>\n</html>\n"


def comparison_html(
    benchmark: Benchmark,
    comparison: ResultComparison,
    first: Evaluation,
    second: Evaluation,
    names: tuple[str, str],
    images: Images,
) -> Iterator[str]:
    """Two evaluations side by side, in pieces to be written one after the other."""
    better = {metric.name: 1 if metric.higher_is_better else -1 for metric in benchmark.metrics}
    yield _head(f"{benchmark.title}: {names[1]} against {names[0]}")
    yield f"<h1>{_text(benchmark.title)}: {_text(names[1])} against {_text(names[0])}</h1>\n"
    yield f"<p class='soft small'>{_text(second.scorer)}; {second.rules.value} rules</p>\n"
    head = [names[0], names[1], "difference", f"{comparison.confidence:.0%} interval", "better", "worse", "samples"]
    rows = []
    for each in comparison.metrics:
        gain = each.difference * better[each.metric]
        colour = ("good" if gain > 0 else "bad") if each.is_significant else "soft"
        rows.append(
            (
                each.metric,
                [
                    *(f"{each.first:.4f}", f"{each.second:.4f}"),
                    f"<b class={colour}>{each.difference:+.4f}</b>",
                    f"{each.low:+.4f} to {each.high:+.4f}",
                    *(f"{each.better:,}", f"{each.worse:,}", f"{each.samples:,}"),
                ],
            )
        )
    yield _figures(head, rows)
    yield f"<p class='soft small'>Means over samples. Interval: paired bootstrap, {comparison.resamples:,} resamples. "
    yield "A difference in grey is within chance.</p>\n"
    for name, only in ((names[0], comparison.only_first), (names[1], comparison.only_second)):
        if only:
            yield f"<p class=bad>{len(only):,} samples are in {_text(name)} only, such as {_text(only[0])}.</p>\n"
    changed = [sample for sample in comparison.samples if sample.difference]
    shown = changed[:MAX_SAMPLES]
    yield f"<h2>Samples that differ</h2>\n<p class=soft>{_order(len(shown), len(changed))} by the loss in "
    yield f"{_text(comparison.primary)}. {_LEGEND}</p>\n"
    ids = []
    for sample in shown:
        gain = sample.difference * better[comparison.primary]
        values = f"{sample.first:.4f} → {sample.second:.4f}"
        colour = "good" if gain > 0 else "bad"
        ids.append((sample.id, f"<span>{values}</span><span class={colour}>{sample.difference:+.4f}</span>"))
    sides = [
        _Side(name, {score.id: score for score in of.scores}) for name, of in zip(names, (first, second), strict=True)
    ]
    yield from _samples(ids, sides, images)
    yield "</main>\n</body>\n</html>\n"


_LEGEND = "<del>In the truth only</del> <ins>in the prediction only</ins>."


def sample_images(samples: Sequence[Sample]) -> Images:
    """Small images of samples whose file is an image or a page of a PDF; None for the others."""
    inputs = {sample.id: sample.input for sample in samples if sample.input is not None}

    def image(sample_id: str) -> bytes | None:
        source = inputs.get(sample_id)
        if source is None:
            return None
        try:
            data = source.read()
            if b"%PDF-" in data[:1024]:
                return None
            return encode_preview(decode_image(data, name=sample_id).pixels)
        except PagemillError:  # the report compares texts; a deleted image is shown as missing
            return None

    return image


def _samples(ids: Sequence[tuple[str, str]], sides: Sequence[_Side], images: Images) -> Iterator[str]:
    left = MAX_IMAGE_BYTES
    for number, (sample_id, values) in enumerate(ids):
        image = images(sample_id) if left > 0 else None
        left -= len(image or b"") * 4 // 3
        is_open = " open" if number < _OPEN else ""
        yield f"<details class=sample{is_open}>\n<summary><b>{_text(sample_id[:_MAX_ID])}</b>{values}</summary>\n"
        yield f"<div class='inside{' with-image' if image else ''}'>\n"
        if image:
            data = base64.b64encode(image).decode("ascii")
            yield f"<figure><img src='data:image/webp;base64,{data}' alt='Image of the sample'></figure>\n"
        yield "<div class=pairs>\n"
        yield from _pairs(sample_id, sides)
        yield "</div>\n</div>\n</details>\n"


def _pairs(sample_id: str, sides: Sequence[_Side]) -> Iterator[str]:
    """The parts of a sample, each with what every side predicted for it; the worst ones of the last side first."""
    scores = [side.scores.get(sample_id) for side in sides]
    rows: dict[tuple[str, str, int], list[Pair | None]] = {}
    for place, score in enumerate(scores):
        seen: dict[tuple[str, str], int] = {}
        for pair in score.pairs if score is not None else ():
            count = seen[pair.truth, pair.metric] = seen.get((pair.truth, pair.metric), 0) + 1
            rows.setdefault((pair.truth, pair.metric, count), [None] * len(sides))[place] = pair
    for side, score in zip(sides, scores, strict=True):
        if score is not None and score.status is not Status.SCORED:
            reason = f": {score.error}" if score.error else ""
            yield f"<p class=bad>{_text(side.name)}: {score.status.value}{_text(reason[:500])}</p>\n"
    ordered = sorted(rows.values(), key=lambda row: min(pair.score for pair in row[-1:] + row if pair is not None))
    if not ordered:
        yield "<p class=none>This benchmark shows no parts of this sample.</p>\n"
    for row in ordered[:_MAX_PAIRS]:
        yield _pair(row, sides)
    if len(ordered) > _MAX_PAIRS:
        yield f"<p class=note>{len(ordered) - _MAX_PAIRS:,} parts with better scores are not shown.</p>\n"


def _pair(row: Sequence[Pair | None], sides: Sequence[_Side]) -> str:
    known = next(pair for pair in row if pair is not None)
    truth = known.truth
    columns = [f"<div><h3>truth</h3>{_shown(known.kind, truth)}</div>"]
    for side, pair in zip(sides, row, strict=True):
        score = f"<span>{_text(pair.metric)} {pair.score:.4f}</span>" if pair is not None else ""
        body = _predicted(pair, truth) if pair is not None else "<p class=none>no such part</p>"
        columns.append(f"<div><h3>{_text(side.name)} {score}</h3>{body}</div>")
    three = " three" if len(columns) == 3 else ""
    return f"<div class=pair><div class='columns{three}'>{''.join(columns)}</div></div>\n"


def _shown(kind: Kind, text: str) -> str:
    if not text.strip():
        return "<p class=none>empty</p>"
    if kind is Kind.HTML and (table := parse_table(text)) is not None:
        return f"<div class=scroll>{table.to_html()}</div>"
    shown = canonical(text) if kind is Kind.MARKDOWN else text
    return f"<div class='text{_code(kind)}'>{_text(shown[:_MAX_TEXT])}</div>{_cut(shown)}{_rendered(kind, text)}"


def canonical(markdown: str) -> str:
    """Markdown whose tables, in whatever notation, are lines of cells, so that only content is compared."""
    lines: list[str] = []
    for piece, table in _pieces(markdown):
        if table is not None:
            lines += _rows(table)
            continue
        for line in piece.split("\n"):
            if not _is_rule(line):
                cells = line.strip().strip("|").split("|") if _PIPES.fullmatch(line) else [line]
                lines.append(" | ".join(" ".join(_BREAK.sub(" ", cell).split()) for cell in cells))
    return _BLANKS.sub("\n\n", "\n".join(lines)).strip()


def _pieces(markdown: str) -> Iterator[tuple[str, Table | None]]:
    """Markdown in order, its HTML tables apart."""
    markdown = markdown[:_MAX_MARKDOWN]
    lower, place = markdown.lower(), 0
    while (start := lower.find("<table", place)) >= 0 and (end := lower.find("</table>", start)) >= 0:
        end += len("</table>")
        table = parse_table(markdown[start:end])
        yield markdown[place : start if table is not None else end].removesuffix("\n"), None
        if table is not None:
            yield markdown[start:end], table
        place = end
    yield markdown[place:].removeprefix("\n"), None


def _is_rule(line: str) -> bool:
    """Whether this is the line between the head and the body of a table."""
    return "-" in line and "|" in line and not line.strip("-:| \t")


def _rows(table: Table) -> list[str]:
    rows: dict[int, list[str]] = {}
    for cell in table.cells:
        rows.setdefault(cell.row, []).append(" ".join(cell.text.split()))
    return [" | ".join(row) for row in rows.values()]


def _rendered(kind: Kind, markdown: str) -> str:
    """The tables in Markdown, folded."""
    if kind is not Kind.MARKDOWN:
        return ""
    tables: list[str] = []
    for piece, table in _pieces(markdown):
        if table is not None:
            tables.append(table.to_html())
            continue
        for is_table, lines in groupby(piece.split("\n"), key=lambda line: bool(_PIPES.fullmatch(line))):
            rows = [line.strip().strip("|").split("|") for line in lines if is_table and not _is_rule(line)]
            if len(rows) > 1:
                shown = ("".join(f"<td>{_text(cell.strip())}</td>" for cell in row) for row in rows)
                tables.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in shown)}</table>")
    if not tables:
        return ""
    word = "table" if len(tables) == 1 else "tables"
    body = "".join(f"<div class=scroll>{table}</div>" for table in tables[:_MAX_PAIRS])
    return f"<details class=tables><summary>{len(tables)} {word}</summary>{body}</details>"


def _predicted(pair: Pair, truth: str) -> str:
    note = f"<p class=note>{_text(pair.note)}</p>" if pair.note else ""
    if not pair.prediction.strip():
        return f"<p class=none>empty</p>{note}"
    if pair.kind is Kind.HTML and (table := parse_table(pair.prediction)) is not None:
        return f"<div class=scroll>{_table_difference(parse_table(truth), table)}</div>{note}"
    expected, predicted = truth, pair.prediction
    if pair.kind is Kind.MARKDOWN:
        expected, predicted = canonical(truth), canonical(pair.prediction)
    body = difference_html(expected[:_MAX_TEXT], predicted[:_MAX_TEXT])
    tables = _rendered(pair.kind, pair.prediction)
    return f"<div class='text{_code(pair.kind)}'>{body}</div>{_cut(predicted)}{tables}{note}"


def difference_html(truth: str, prediction: str) -> str:
    """A prediction with missing and added words marked."""
    expected, predicted = _TOKEN.findall(truth), _TOKEN.findall(prediction)
    pieces = []
    for operation in Indel.opcodes(expected, predicted):
        lost = "".join(expected[operation.src_start : operation.src_end])
        new = "".join(predicted[operation.dest_start : operation.dest_end])
        if operation.tag == "equal":
            pieces.append(_text(new))
            continue
        pieces.append(f"<del>{_text(lost)}</del>" if lost else "")
        pieces.append(f"<ins>{_text(new)}</ins>" if new else "")
    return "".join(pieces)


def _table_difference(truth: Table | None, table: Table) -> str:
    """A table, with the cells marked whose text differs from the truth."""
    expected = {(cell.row, cell.column): cell.text for cell in truth.cells} if truth is not None else {}
    rows: dict[int, list[str]] = {}
    for cell in table.cells:
        text = difference_html(expected.get((cell.row, cell.column), ""), cell.text)
        rows.setdefault(cell.row, []).append(cell.to_html(text))
    body = "".join(f"<tr>{''.join(rows.get(row, ()))}</tr>" for row in range(table.rows))
    return f"<table>{body}</table>"


def _code(kind: Kind) -> str:
    return " code" if kind in (Kind.LATEX, Kind.JSON, Kind.HTML) else ""


def _cut(text: str) -> str:
    return f"<p class=note>{len(text) - _MAX_TEXT:,} more characters</p>" if len(text) > _MAX_TEXT else ""


def _order(shown: int, total: int) -> str:
    return f"The {shown:,} worst of {total:,}" if shown < total else f"All {total:,}, the worst first"


def _figure(figure: Figure) -> list[str]:
    note = f" ({_text(figure.note)})" if figure.note else ""
    return [_number(figure.value), f"{figure.samples:,}", _text(figure.aggregation) + note]


def _number(value: float | None) -> str:
    return "unavailable" if value is None else f"{value:.4f}"


def _figures(head: Sequence[str], rows: Iterator[tuple[str, list[str]]] | Sequence[tuple[str, list[str]]]) -> str:
    """A table of figures; the cells are HTML."""
    heads = "".join(f"<th>{_text(each)}</th>" for each in ["", *head])
    body = "".join(
        f"<tr><td>{_text(name)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for name, cells in rows
    )
    return f"<div class=scroll><table class=figures><tr>{heads}</tr>{body}</table></div>\n"


def _head(title: str) -> str:
    return html_head(title, "en", _STYLE.read_text(encoding="utf-8"), "img-src data:") + "<main>\n"


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


def _text(text: str) -> str:
    return escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))
