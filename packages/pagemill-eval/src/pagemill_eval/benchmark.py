"""What a benchmark is: samples with their truth, a score per sample, and figures over all of them.

A benchmark knows a published file format and its scorer's rules. It does not run engines: predictions are texts, and
the same code scores those of any tool.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import msgspec

from pagemill.errors import CorruptInputError, InputError, unreadable
from pagemill_eval.files import image_bytes, read_json_lines

MAX_PREDICTION_BYTES = 2**24
"""Size of one prediction. The longest page of any benchmark is under 100 KB; a larger file is runaway output."""
FAILURES = "failures.jsonl"
"""Name of the file in a folder of predictions that lists those that failed: ``id`` and ``error`` a line."""


class Rules(StrEnum):
    """Whose rules a score follows."""

    OFFICIAL = "official"
    """The benchmark's own scorer, its oddities included."""
    PAGEMILL = "pagemill"
    """The same metrics without the oddities: every missing or failed prediction counts 0."""


class Kind(StrEnum):
    """Format of a prediction."""

    MARKDOWN = "markdown"
    HTML = "html"
    LATEX = "latex"
    TEXT = "text"
    JSON = "json"


class Status(StrEnum):
    """What became of a prediction."""

    SCORED = "scored"
    MISSING = "missing"
    FAILED = "failed"


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """Location of the image or document of a sample."""

    path: Path
    page: int | None = None
    """1-based page of a PDF; None: the whole file."""
    row: int | None = None
    """0-based row of a Parquet table that holds the image's bytes; None: the file is the image."""
    column: str = ""
    """Column of that row."""

    def read(self) -> bytes:
        """Bytes of the image or document.

        Raises:
            InputError: The file, the row or its bytes cannot be read.
        """
        if self.row is None:
            try:
                return self.path.read_bytes()
            except OSError as error:
                raise unreadable(str(self.path), error) from error
        return image_bytes(self.path, self.row, self.column)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to predict."""

    id: str
    """Unique in the benchmark."""
    truth: Any
    """The expected result, in a form that only the benchmark reads. It can be pickled."""
    input: Input | None = None
    """None if the benchmark's images are missing: predictions can be scored, but not made."""
    prediction_names: tuple[str, ...]
    """Names of the file of its prediction, relative to the folder of predictions; the first that exists counts, and
    predictions are written to the first."""
    prompt: str | None = None
    """The question, if the benchmark has one."""
    schema: dict[str, Any] | None = None
    """JSON Schema of the fields to extract, where the benchmark asks for fields."""
    groups: dict[str, str] = {}
    """Values by which figures are also given, such as ``language``."""


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The text predicted for a sample; neither text nor error: missing."""

    text: str | None = None
    error: str | None = None

    @property
    def status(self) -> Status:
        """Its state; the text of a failed prediction is not scored."""
        if self.error is not None:
            return Status.FAILED
        return Status.MISSING if self.text is None else Status.SCORED

    @property
    def scored_text(self) -> str:
        """The scored text; empty for a missing or failed prediction."""
        return (self.text or "") if self.error is None else ""

    def score(
        self,
        sample: Sample,
        metrics: dict[str, float | None],
        *pairs: Pair,
        terms: dict[str, Any] | None = None,
        note: str = "",
    ) -> SampleScore:
        """The score of a sample that this was predicted for.

        Args:
            sample: The sample.
            metrics: Its values.
            pairs: Details to show.
            terms: Values for figures beside the metrics.
            note: Note about it if it has not failed.
        """
        return SampleScore(
            id=sample.id,
            status=self.status,
            metrics=metrics,
            pairs=list(pairs),
            terms=terms or {},
            groups=sample.groups,
            error=self.error or note,
        )


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the truth and its prediction."""

    kind: Kind
    truth: str
    prediction: str
    metric: str
    score: float
    """0 to 1, higher is better."""
    note: str = ""


class SampleScore(msgspec.Struct, frozen=True, kw_only=True):
    """A sample's values. None: the metric does not apply to it, and it does not count."""

    id: str
    status: Status
    metrics: dict[str, float | None]
    pairs: list[Pair] = []
    """Details to show."""
    terms: dict[str, Any] = {}
    """What :meth:`Benchmark.aggregate` needs beside the metrics; plain JSON."""
    groups: dict[str, str] = {}
    error: str = ""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One number over many samples."""

    value: float | None
    """None: unavailable, for the reason in ``note``."""
    samples: int
    """Number of its values."""
    aggregation: str
    """Unit of the mean: pages, samples or the corpus."""
    note: str = ""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A value that samples have."""

    name: str
    description: str
    higher_is_better: bool = True
    bounded: bool = True
    """Whether its range is 0 to 1."""


class BenchmarkResult(msgspec.Struct, frozen=True, kw_only=True):
    """A complete evaluation: the content of its JSON file."""

    benchmark: str
    rules: Rules
    scorer: str
    """Rules' origin, and the packages and versions that computed the values."""
    samples: int
    missing: list[str]
    """Ids of samples without a prediction."""
    failed: dict[str, str]
    """Errors of failed predictions, by id."""
    figures: dict[str, Figure]
    groups: dict[str, dict[str, dict[str, Figure]]]
    """Figures by group and value: ``groups["language"]["ko"]``."""
    scores: list[SampleScore]


class Benchmark(ABC):
    """A published benchmark.

    Instances can be pickled, and scoring a sample has no side effect, so that samples are scored in parallel processes.
    """

    name: ClassVar[str]
    """Name on the command line."""
    title: ClassVar[str]
    kind: ClassVar[Kind]
    """Format of its predictions."""
    origin: ClassVar[str]
    """Repository and revision of the official scorer whose rules are implemented."""
    hub_id: ClassVar[str | None] = None
    """Dataset on the Hub that holds the published files; None: it is not there."""
    hub_files: ClassVar[tuple[str, ...]] = ()
    """Patterns of the files to fetch from there; none: all."""
    primary: ClassVar[str]
    """The metric of samples by which two results are compared, worst first."""
    metrics: ClassVar[tuple[Metric, ...]]
    """All metrics of samples, the primary one first."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Those that compute its values, beside rapidfuzz."""
    batch: ClassVar[int] = 4
    """Samples that go to a process together: few, so that all cores finish together."""

    @abstractmethod
    def load(self, path: Path) -> list[Sample]:
        """Samples of a local copy of the published files, in their order.

        Args:
            path: The folder or file as published; the benchmark says which in its description.

        Raises:
            InputError: There are no such files, or they are not of this format.
        """

    def prepare(self, batch: Sequence[tuple[Sample, Prediction]]) -> None:  # noqa: B027 - most have nothing to prepare
        """Prepare a batch to speed up its scores; called before them in the same process."""

    @abstractmethod
    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Score one prediction. A missing or failed one gets its values here, too."""

    @abstractmethod
    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Figures over samples, the benchmark's headline first. Any subset can be aggregated."""

    def predictions(self, path: Path, samples: Sequence[Sample]) -> Callable[[Sample], Prediction]:
        """How to get the prediction of each sample from a folder or file of predictions.

        Raises:
            InputError: The path is not there, or not of a form that the benchmark knows.
        """
        if not path.exists():
            raise unreadable(str(path), FileNotFoundError())
        if not path.is_dir():
            raise InputError(f"{path} is not a folder of predictions", remedy=f"Pass a folder of {self.kind} files.")
        return FolderOfPredictions(path)

    def scorer(self) -> str:
        """Stamp of a result: rules' origin, packages and versions."""
        return stamp(self.origin, *self.packages)

    def result(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> BenchmarkResult:
        """The evaluation from the scores of samples."""
        groups: dict[str, dict[str, list[SampleScore]]] = {}
        for score in scores:
            for group, value in score.groups.items():
                groups.setdefault(group, {}).setdefault(value, []).append(score)
        return BenchmarkResult(
            benchmark=self.name,
            rules=rules,
            scorer=self.scorer(),
            samples=len(scores),
            missing=[score.id for score in scores if score.status is Status.MISSING],
            failed={score.id: score.error for score in scores if score.status is Status.FAILED},
            figures=self.aggregate(scores, rules),
            groups={
                group: {value: self.aggregate(members, rules) for value, members in sorted(values.items())}
                for group, values in sorted(groups.items())
            },
            scores=list(scores),
        )


class FolderOfPredictions:
    """Predictions as files in a folder, one a sample, and the failures that :data:`FAILURES` lists."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._failures = _failures(folder / FAILURES)

    def __call__(self, sample: Sample) -> Prediction:
        """The prediction of a sample. What cannot be read as text has failed."""
        for name in sample.prediction_names:
            path = self._folder / contained(name)
            try:
                if not path.is_file():
                    continue
                with path.open("rb") as file:
                    data = file.read(MAX_PREDICTION_BYTES + 1)
            except OSError as error:
                return Prediction(error=f"{name} cannot be read: {error.strerror or error}")
            if len(data) > MAX_PREDICTION_BYTES:
                return Prediction(error=f"{name} has over {MAX_PREDICTION_BYTES // 2**20} MB")
            try:
                return Prediction(text=data.decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                return Prediction(error=f"{name} is not UTF-8: {error.reason} at byte {error.start:,}")
        return Prediction(error=self._failures.get(sample.id))


def contained(name: str) -> PurePosixPath:
    """A relative path that stays in its folder.

    Raises:
        CorruptInputError: It leads out of it.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise CorruptInputError(f"the file name {name!r} leads out of its folder", remedy="Correct the benchmark file.")
    return path


def mean(values: Iterable[float | None], aggregation: str, note: str = "") -> Figure:
    """Arithmetic mean of the values that apply; without any, unavailable."""
    counted = [value for value in values if value is not None]
    if not counted:
        return Figure(value=None, samples=0, aggregation=aggregation, note=note or "no sample has this metric")
    return Figure(value=math.fsum(counted) / len(counted), samples=len(counted), aggregation=aggregation, note=note)


def stamp(origin: str, *packages: str) -> str:
    """Name of a scorer: whose rules, by which pagemill, with which packages."""
    from importlib import metadata

    from pagemill._version import __version__

    versions = [f"{package} {metadata.version(package)}" for package in ("rapidfuzz", *packages)]
    return f"pagemill {__version__} ({', '.join(versions)}), rules of {origin}"


def scores_by_metric(scores: Sequence[SampleScore], name: str) -> list[float | None]:
    """One metric of all samples."""
    return [score.metrics.get(name) for score in scores]


class _Failure(msgspec.Struct):
    id: str
    error: str


def _failures(path: Path) -> dict[str, str]:
    rows = read_json_lines(path, _Failure) if path.exists() else ()
    return {row.id: row.error for row in rows}


def checked_ids(samples: Sequence[Sample], path: Path) -> list[Sample]:
    """The samples, after a check that there is one and that ids are unique.

    Raises:
        CorruptInputError: There is none, or an id appears twice.
    """
    seen: set[str] = set()
    for sample in samples:
        if sample.id in seen:
            raise CorruptInputError(f"{path}: the sample {sample.id!r} appears twice", remedy="Correct the file.")
        seen.add(sample.id)
    if not samples:
        raise CorruptInputError(f"{path} contains no sample", remedy="Pass the published files of the benchmark.")
    return list(samples)
