"""Sets of table images with their HTML: PubTabNet and TEDS_TEST."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import msgspec

from pagemill.errors import CorruptInputError, InputError, TooLargeError
from pagemill_eval import benchmark as base
from pagemill_eval.benchmark import Figure, Prediction, Rules, Sample, SampleScore
from pagemill_eval.files import one_file, read_json, read_json_lines
from pagemill_eval.teds import reference_teds, teds

_VALIDATION = "val"


class _Cell(msgspec.Struct):
    tokens: list[str] = []


class _Structure(msgspec.Struct):
    tokens: list[str]


class _Annotation(msgspec.Struct):
    cells: list[_Cell]
    structure: _Structure


class _Row(msgspec.Struct):
    """A line of PubTabNet's annotations, or of a set that has whole HTML."""

    filename: str
    html: _Annotation | str
    split: str = ""


class _TableBenchmark(base.Benchmark):
    """Images of tables and their HTML.

    Truth: a JSON object of HTML by image name (``{name: html}`` or ``{name: {"html": …}}``), or JSON lines of
    ``filename`` and ``html`` (whole, or PubTabNet's structure and cells). Predictions: such an object, or a folder of
    ``STEM.html``.
    """

    kind = base.Kind.HTML
    origin = "ibm-aur-nlp/PubTabNet 8ffde90"
    primary = "teds"
    packages = ("lxml",)
    metrics = (
        base.Metric(name="teds", description="Tree edit distance similarity of structure and content"),
        base.Metric(name="teds_s", description="Tree edit distance similarity of the structure"),
    )
    annotations: ClassVar[tuple[str, ...]]

    def load(self, path: Path) -> list[Sample]:
        """Tables of a folder with annotations and images, or of a file of annotations.

        Where rows have a split and some belong to the validation split, only those count.
        """
        file = one_file(path, self.annotations, "annotations")
        rows = list(_rows(file))
        if any(split == _VALIDATION for _, _, split in rows):
            rows = [row for row in rows if row[2] == _VALIDATION]
        samples = [
            Sample(
                id=name,
                truth=html,
                input=_image(file.parent, name, split),
                prediction_names=tuple(dict.fromkeys(f"{each}.html" for each in (_stem(name), name))),
            )
            for name, html, split in rows
        ]
        return base.checked_ids(samples, file)

    def predictions(self, path: Path, samples: Sequence[Sample]) -> Callable[[Sample], Prediction]:
        """HTML from a JSON object by the image's name or its stem, or from a folder."""
        if not path.is_file():
            return super().predictions(path, samples)
        tables = _html_by_name(path)
        return lambda sample: Prediction(text=tables.get(sample.id, tables.get(_stem(sample.id))))

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """TEDS and TEDS-S; 0 without a prediction or without a table in it."""
        score, note = reference_teds if rules is Rules.OFFICIAL else teds, ""
        metrics: dict[str, float | None] = {"teds": 0.0, "teds_s": 0.0}
        if text := prediction.scored_text:
            try:
                metrics = {
                    "teds": score(text, sample.truth),
                    "teds_s": score(text, sample.truth, structure_only=True),
                }
            except TooLargeError as error:
                note = error.message
        pair = base.Pair(
            kind=base.Kind.HTML,
            truth=sample.truth,
            prediction=prediction.text or "",
            metric="teds",
            score=min(1.0, max(0.0, metrics["teds"] or 0.0)),
            note=note,
        )
        return prediction.score(sample, metrics, pair, note=note)

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Means over tables."""
        return {name: base.mean(base.scores_by_metric(scores, name), "mean over tables") for name in ("teds", "teds_s")}


class PubTabNet(_TableBenchmark):
    """PubTabNet: tables of scientific articles."""

    name = "pubtabnet"
    title = "PubTabNet"
    annotations = ("PubTabNet_2*.jsonl", "PubTabNet*.jsonl", "*.jsonl", "*.json")


class TedsTest(_TableBenchmark):
    """TEDS_TEST: a second set of tables, scored as PubTabNet."""

    name = "teds-test"
    title = "TEDS_TEST"
    annotations = ("*.jsonl", "*.json")


def table_html(structure: Iterable[str], cells: Iterable[Sequence[str]]) -> str:
    """The HTML of PubTabNet's tokens: each cell's content goes into the structure's cells, in order.

    Raises:
        ValueError: There are fewer cells in the structure than contents.
    """
    contents = iter(cells)
    parts = []
    for token in structure:
        if token == "</td>":
            # Only markup has tokens of several characters: a "<" of its own is text.
            parts += [escape(each) if len(each) == 1 else each for each in next(contents, ())]
        parts.append(token)
    if next(contents, None) is not None:
        raise ValueError("there are more cells than the structure has")
    return f"<html><body><table>{''.join(parts)}</table></body></html>"


def _rows(file: Path) -> Iterable[tuple[str, str, str]]:
    """Name, HTML and split of each table."""
    if file.suffix.lower() != ".jsonl":
        yield from ((name, html, "") for name, html in _html_by_name(file).items())
        return
    for row in read_json_lines(file, _Row):
        if isinstance(row.html, str):
            html = row.html
        else:
            try:
                html = table_html(row.html.structure.tokens, (cell.tokens for cell in row.html.cells))
            except ValueError as error:
                raise CorruptInputError(f"{file}: {row.filename}: {error}") from error
        yield row.filename, html, row.split


def _html_by_name(file: Path) -> dict[str, str]:
    class WithHtml(msgspec.Struct):
        html: str

    found: dict[str, Any] = read_json(file, dict[str, str | WithHtml])
    if not found:
        raise InputError(f"{file} contains no table")
    return {name: value if isinstance(value, str) else value.html for name, value in found.items()}


def _image(folder: Path, name: str, split: str) -> base.Input | None:
    relative = base.contained(name)
    for place in (folder, folder / "images", *((folder / split,) if split in ("train", "val", "test") else ())):
        if (place / relative).is_file():
            return base.Input(path=place / relative)
    return None


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))
