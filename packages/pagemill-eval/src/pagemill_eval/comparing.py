"""Two evaluations of the same samples: differences sample by sample, with a bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from pagemill.errors import InputError
from pagemill_eval.benchmark import Benchmark, BenchmarkResult

RESAMPLES = 10_000
CONFIDENCE = 0.95
_SEED = 20_261
_BLOCK = 2**22
"""Numbers that are drawn at once."""


class SampleDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A sample in both evaluations. The difference is that of the second from the first."""

    id: str
    first: float
    second: float

    @property
    def difference(self) -> float:
        """Above 0 where the second value is larger."""
        return self.second - self.first


class MetricComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the samples that have it in both evaluations."""

    metric: str
    samples: int
    first: float
    """Mean over these samples."""
    second: float
    difference: float
    low: float
    """Level of the percentile interval of the difference, by a paired bootstrap over samples."""
    high: float
    better: int
    """Samples in which the second evaluation is better; for an error, where it is lower."""
    worse: int

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


class ResultComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two evaluations."""

    benchmark: str
    primary: str
    metrics: list[MetricComparison]
    """The primary one first."""
    samples: list[SampleDifference]
    """By the primary metric, those first in which the second evaluation loses most."""
    only_first: list[str]
    """Ids of samples that the other evaluation lacks."""
    only_second: list[str]
    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE


def compare(benchmark: Benchmark, first: BenchmarkResult, second: BenchmarkResult) -> ResultComparison:
    """Compare two evaluations.

    Raises:
        InputError: They have different benchmarks or rules, or have no sample in common.
    """
    if (first.benchmark, first.rules) != (second.benchmark, second.rules):
        raise InputError(
            f"the first result is for {first.benchmark} by {first.rules} rules, the second for {second.benchmark} by "
            f"{second.rules} rules",
            remedy="Compare results of one benchmark and the same --rules.",
        )
    ours = {score.id: score for score in first.scores}
    theirs = {score.id: score for score in second.scores}
    common = [name for name in ours if name in theirs]
    if not common:
        raise InputError("the results have no sample in common", remedy="Compare results of the same data.")
    # Only samples of both: the means would otherwise compare different data.
    comparisons, differences = [], []
    for metric in benchmark.metrics:
        values = [
            SampleDifference(id=each, first=a, second=b)
            for each in common
            if (a := ours[each].metrics.get(metric.name)) is not None
            and (b := theirs[each].metrics.get(metric.name)) is not None
        ]
        # Errors are better where they are lower: the sign makes all metrics comparable.
        sign = 1.0 if metric.higher_is_better else -1.0
        if metric.name == benchmark.primary:
            differences = sorted(values, key=lambda value: (sign * value.difference, sign * value.second))
        if values:
            comparisons.append(_compared(metric.name, values, sign))
    comparisons.sort(key=lambda each: each.metric != benchmark.primary)
    return ResultComparison(
        benchmark=first.benchmark,
        primary=benchmark.primary,
        metrics=comparisons,
        samples=differences,
        only_first=[name for name in ours if name not in theirs],
        only_second=[name for name in theirs if name not in ours],
    )


def _compared(name: str, values: Sequence[SampleDifference], sign: float) -> MetricComparison:
    differences = np.array([value.difference for value in values])
    low, high = bootstrap_interval(differences)
    return MetricComparison(
        metric=name,
        samples=len(values),
        first=float(np.mean([value.first for value in values])),
        second=float(np.mean([value.second for value in values])),
        difference=float(differences.mean()),
        low=low,
        high=high,
        better=int((sign * differences > 0).sum()),
        worse=int((sign * differences < 0).sum()),
    )


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """Percentile interval of the mean, by resampling with a fixed seed: the same values give the same interval."""
    draw = np.random.default_rng(_SEED)
    block = max(1, _BLOCK // len(values))
    means = []
    for start in range(0, RESAMPLES, block):
        chosen = draw.integers(0, len(values), size=(min(block, RESAMPLES - start), len(values)))
        means.append(values[chosen].mean(axis=1))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail])
    return float(low), float(high)
