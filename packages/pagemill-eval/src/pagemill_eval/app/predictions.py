"""Predictions of pagemill's engines for the samples of a benchmark: their inputs parsed, as files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from pagemill.app.options import DirectoryOptions, ImageSources, ParseOptions
from pagemill.app.parse import parse_into
from pagemill.app.parse_process import parse_inputs
from pagemill.app.reporting import ParseDisplay
from pagemill.config.machine import RuntimeSettings
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.document.labels import FORMULAS, Label
from pagemill.document.page import ContentFormat, PageResult, Status
from pagemill.errors import InputError, UnsupportedInputError, UsageError, unreadable
from pagemill.export.markdown import plain_content
from pagemill.imaging.formats import HEAD_BYTES, sniff
from pagemill.imaging.types import Pixels
from pagemill.layout.base import GIVEN, DetectedRegion
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources.base import EncodedImage, PdfPage
from pagemill.store.files import output_errors, write_whole
from pagemill.store.reading import RunReader
from pagemill_eval.benchmark import FAILURES, Benchmark, Kind, Sample, contained

PREDICTIONS = "predictions"
_STAGED = "inputs"
_LABELS = {Kind.HTML: Label.TABLE, Kind.LATEX: Label.DISPLAY_FORMULA, Kind.TEXT: Label.TEXT}
"""Kinds of predictions whose inputs are images of one thing, not pages."""
_RUN = "run"


def predict(
    benchmark: Benchmark,
    samples: Sequence[Sample],
    out: Path,
    options: ParseOptions,
    directory: DirectoryOptions,
    *,
    quiet: bool,
    report: Callable[[int, int, str], object] = lambda *_: None,
) -> tuple[Path, dict[str, Any]]:
    """Parse the inputs of all samples with pagemill, and write their predictions.

    An earlier run in the same folder is resumed.

    Args:
        benchmark: The benchmark.
        samples: Samples of the benchmark.
        out: The folder of the evaluation; it exists.
        options: Options of parsing. For fields (KIE), its recognition settings name the model.
        directory: How to treat an earlier run.
        quiet: Show failures only.
        report: Called with numbers of what is done and of all, and what they are.

    Returns:
        The folder of predictions, and the settings of the run.

    Raises:
        UsageError: The images of the benchmark are not there, or it needs a model and none is named.
        PagemillError: Parsing did not finish.
    """
    if without := [sample.id for sample in samples if sample.input is None]:
        raise UsageError(
            f"{len(without):,} of {len(samples):,} samples have no image, such as {without[0]}",
            remedy="Add the images of the benchmark to its folder, or score predictions with --predictions.",
        )
    if benchmark.kind is Kind.JSON and not options.settings.recognition.servers:
        raise UsageError(
            f"{benchmark.title} asks for fields, which a model behind a server extracts",
            remedy="Pass it with --server URL and --model, or score predictions with --predictions.",
        )
    folder = out / PREDICTIONS
    failures: dict[str, str] = {}
    settings: dict[str, Any] = {}
    for number, members in enumerate(_by_schema(samples)):
        name = f"-{number}" if number else ""
        staged = _stage(members, out / f"{_STAGED}{name}", failures, report)
        if not staged:
            continue
        run = out / f"{_RUN}{name}"
        _parse(benchmark.kind, out / f"{_STAGED}{name}", run, options, replace(directory, report=False), quiet, report)
        with RunReader.open(run) as reader:
            settings = reader.summary.settings
            if benchmark.kind is Kind.JSON:
                texts = _fields(run, members, staged, options, failures, report)
            else:
                texts = _texts(benchmark.kind, reader, members, staged, failures)
            for done, (sample, text) in enumerate(texts, start=1):
                path = folder / contained(sample.prediction_names[0])
                with output_errors(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, [text.encode("utf-8", "replace")])
                report(done, len(members), "predictions")
    with output_errors(folder):
        folder.mkdir(exist_ok=True)
    for sample in samples:
        if sample.id in failures:  # of an earlier run, which had read it
            (folder / contained(sample.prediction_names[0])).unlink(missing_ok=True)
    lines = (msgspec.json.encode({"id": key, "error": error}) + b"\n" for key, error in failures.items())
    write_whole(folder / FAILURES, lines)
    return folder, settings


def _parse(
    kind: Kind,
    folder: Path,
    run: Path,
    options: ParseOptions,
    directory: DirectoryOptions,
    quiet: bool,
    report: Callable[[int, int, str], object],
) -> None:
    """Parse pages with the whole pipeline; images of one table, formula or text as a page with one region."""
    if kind not in _LABELS:
        parse_inputs([folder], run, options, directory, quiet=quiet)
        return
    settings = replace(options.settings, preview_pages=0, crops=False)
    pipeline = Pipeline(_CropServices(settings, options.runtime, options.layout, label=_LABELS[kind]))
    asyncio.run(parse_into(run, [folder], options, directory, pipeline=pipeline, progress=_Progress(report)))


class _CropServices(Services):
    """Takes every image as one region."""

    def __init__(
        self, settings: ParseSettings, runtime: RuntimeSettings, layout: LayoutChoice, *, label: Label
    ) -> None:
        super().__init__(settings, runtime, layout)
        self._label = label

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        """The whole image."""
        height, width = pixels.shape[:2]
        return [DetectedRegion(box=(0.0, 0.0, width, height), label=self._label, score=1.0, source=GIVEN)]

    async def decode_with_regions(self, payload: PdfPage | EncodedImage) -> None:
        """None: decoded on the CPU."""


class _Progress(ParseDisplay):
    def __init__(self, report: Callable[[int, int, str], object]) -> None:
        self._report = report
        self._done = 0

    def opened(self, finished_before: int) -> None:
        self._done = finished_before

    def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
        self._done += 1
        self._report(self._done, total or self._done, "images")


def _by_schema(samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """Samples with the same fields."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        schema = msgspec.json.encode(sample.schema, order="deterministic")
        groups.setdefault(sha256(schema).hexdigest(), []).append(sample)
    return iter(groups.values())


@dataclass(frozen=True, slots=True)
class _Place:
    """The page of a run that a sample became."""

    document: str
    page: int


def _stage(
    samples: Sequence[Sample], folder: Path, failures: dict[str, str], report: Callable[[int, int, str], object]
) -> dict[str, _Place]:
    """Put the inputs of samples into a folder under unique names: links to files, and bytes of tables."""
    with output_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, _Place] = {}
    documents: dict[Path, str] = {}
    for number, sample in enumerate(samples):
        source = sample.input
        assert source is not None
        name = f"{number:07d}"
        try:
            if source.row is not None:
                data = source.read()
                write_whole(folder / (name + _suffix(data[:HEAD_BYTES], "")), [data])
            elif source.path in documents:  # another page of the same file
                name = documents[source.path]
            else:
                documents[source.path] = name
                _link(source.path, folder / (name + _suffix(_head(source.path), source.path.suffix)))
        except InputError as error:
            failures[sample.id] = error.message
            continue
        places[sample.id] = _Place(name, source.page or 1)
        report(number + 1, len(samples), "inputs")
    return places


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise unreadable(str(path), error) from error


def _suffix(head: bytes, given: str) -> str:
    file_format = sniff(head)
    if file_format is None and not given:
        raise UnsupportedInputError("it is not an image that pagemill reads")
    return given or f".{file_format}"


def _link(source: Path, target: Path) -> None:
    if target.is_symlink() and target.readlink() == source.absolute():
        return
    with output_errors(target):
        target.unlink(missing_ok=True)
        target.symlink_to(source.absolute())


def _texts(
    kind: Kind, reader: RunReader, samples: Sequence[Sample], places: Mapping[str, _Place], failures: dict[str, str]
) -> Iterator[tuple[Sample, str]]:
    """The predictions of pages that were read; of the others the reasons go to ``failures``."""
    for sample in samples:
        if (place := places.get(sample.id)) is None:
            continue
        page = next((each for each in reader.document(place.document) if (each.page_number or 1) == place.page), None)
        if page is None:
            failures[sample.id] = f"page {place.page} is not in the input"
        elif page.status is Status.FAILED:
            failures[sample.id] = page.errors[0].message if page.errors else "the page failed"
        else:
            yield sample, prediction_of(kind, page)


def prediction_of(kind: Kind, page: PageResult) -> str:
    """A page as a prediction of some kind."""
    if kind is Kind.MARKDOWN:
        return page.markdown
    if kind is Kind.HTML:
        tables = (region.content or "" for region in page.regions if region.content_format is ContentFormat.HTML)
        return next(tables, "")
    if kind is Kind.LATEX:
        formulas = [region.content or "" for region in page.regions if region.label in FORMULAS]
        if found := [formula for formula in formulas if formula]:
            return "\n".join(found)
    return "\n".join(filter(None, map(plain_content, page.regions)))


def _fields(
    run: Path,
    samples: Sequence[Sample],
    places: Mapping[str, _Place],
    options: ParseOptions,
    failures: dict[str, str],
    report: Callable[[int, int, str], object],
) -> Iterator[tuple[Sample, str]]:
    """Fields that a model extracted."""
    from pagemill.app.extract import ExtractOptions, extract, read_results, results_folder
    from pagemill.extraction.result import ExtractionStatus
    from pagemill.extraction.schema import ExtractionSchema

    schema = ExtractionSchema("fields", samples[0].schema or {})
    asyncio.run(extract(run, schema, options.settings.recognition, ExtractOptions(), ImageSources(), report))
    results = {result.doc_id: result for result in read_results(results_folder(run, schema))}
    for sample in samples:
        result = results.get(places[sample.id].document) if sample.id in places else None
        if result is not None and result.status is not ExtractionStatus.FAILED:
            yield sample, msgspec.json.encode(result.values).decode()
        elif sample.id in places:
            problems = result.problems if result is not None else []
            failures[sample.id] = problems[0].message if problems else "there is no result"
