"""Scores predictions for a benchmark on all cores, and keeps the results in a folder."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

from pagemill.config.model_files import hub_errors
from pagemill.errors import CorruptInputError, MissingInputError, UsageError, WorkerCrashError, unreadable
from pagemill.sources.hub import DatasetAddress
from pagemill.store import paths
from pagemill.store.files import output_errors, write_whole
from pagemill.store.lock import RunLock
from pagemill_eval.benchmark import Benchmark, BenchmarkResult, Prediction, Rules, Sample, SampleScore

RESULT = "result.json"
SCORES = "scores.jsonl"
TABLE = "scores.csv"
PARTIAL = "scores.partial.jsonl"
_FEW = 8
"""Samples that are scored in this process: starting others takes longer."""
_MAX_LINE = 2**28

Report = Callable[[int, int, str], object]


class Evaluation(BenchmarkResult, frozen=True, kw_only=True):
    """The file ``result.json``; scores of samples are in ``scores.jsonl``."""

    data: str
    """The benchmark's files."""
    predictions: str
    """The folder or file of predictions."""
    engine: dict[str, Any] | None = None
    """Settings of the run that made them; None for those of another tool."""
    scoring_seconds: float
    reused: int = 0
    """Samples whose score an earlier, equal evaluation had computed."""


class _KeptScore(SampleScore, frozen=True, kw_only=True):
    """A line of ``scores.jsonl``."""

    key: str
    """SHA-256 of all inputs of the score."""


def benchmark_data(benchmark: Benchmark, given: str | None, note: Callable[[str], object]) -> Path:
    """The local folder or file with a benchmark's data; data on the Hub is fetched into the Hub's cache.

    Args:
        benchmark: The benchmark.
        given: A path, or ``hf://datasets/OWNER/NAME``; None: the published dataset.
        note: Called with what is fetched.

    Raises:
        UsageError: The benchmark is not on the Hub, and no path is given.
        MissingInputError: There is nothing at that place.
        NetworkError: The Hub cannot be reached.
    """
    if given is None and benchmark.hub_id is None:
        raise UsageError(
            f"{benchmark.title} is not a dataset on the Hub", remedy="Pass the path of its files after its name."
        )
    address = DatasetAddress.parse(given or f"hf://datasets/{benchmark.hub_id}")
    if address is None:
        path = Path(given or "").expanduser()
        if not path.exists():
            raise unreadable(str(path), FileNotFoundError())
        return path.absolute()
    with hub_errors(address.name):
        from huggingface_hub import snapshot_download

        note(f"data of {benchmark.title}: {address.root}")
        patterns = list(benchmark.hub_files) or None
        folder = Path(
            snapshot_download(address.name, repo_type="dataset", revision=address.revision, allow_patterns=patterns)
        )
    path = folder / address.place if address.place else folder
    if not path.exists():
        raise MissingInputError(f"{address.root} has no {address.place}", remedy="Check the path in the dataset.")
    return path


@contextmanager
def evaluation_folder(out: Path) -> Iterator[None]:
    """A folder for results, which one process works on at a time.

    Raises:
        LockedError: Another process works on it.
        OutputError: It cannot be made.
    """
    lock = out / paths.EVALUATION_LOCK
    with output_errors(out):
        lock.parent.mkdir(parents=True, exist_ok=True)
    with RunLock(lock):
        yield


def evaluate(
    benchmark: Benchmark,
    samples: Sequence[Sample],
    read: Callable[[Sample], Prediction],
    out: Path,
    *,
    rules: Rules,
    jobs: int,
    data: Path,
    predictions: Path,
    engine: dict[str, Any] | None = None,
    report: Report = lambda *_: None,
) -> Evaluation:
    """Score all predictions, and write the result, the scores and their table.

    Scores of an earlier evaluation in the same folder are taken where prediction, truth and rules are the same, also if
    it was stopped.

    Args:
        benchmark: The benchmark.
        samples: Samples of the benchmark.
        read: Gives their predictions.
        out: The folder of the results; it exists.
        rules: The benchmark's own, or those with missing predictions counted.
        jobs: Processes.
        data: Source of the samples, for the record.
        predictions: Source of the predictions, for the record.
        engine: Engine that made them, if it was pagemill's.
        report: Called with the number of samples that are scored, that of all, and what they are.

    Raises:
        MissingDependencyError: A metric needs a package.
        WorkerCrashError: A process died. To resume, repeat the command.
        OutputError: A file cannot be written.
    """
    start = time.perf_counter()
    known = {kept.key: kept for name in (SCORES, PARTIAL) for kept in _kept(out / name)}
    scores: dict[str, _KeptScore] = {}
    keys: dict[str, str] = {}
    waiting: list[tuple[Sample, Prediction]] = []
    stamp = f"{benchmark.name}\n{rules}\n{benchmark.scorer()}"
    for sample in samples:
        prediction = read(sample)
        key = keys[sample.id] = _key(stamp, sample, prediction)
        if (earlier := known.get(key)) is not None:
            scores[sample.id] = earlier
        else:
            waiting.append((sample, prediction))
    reused = len(scores)
    report(reused, len(samples), "scoring")
    with output_errors(out / PARTIAL), (out / PARTIAL).open("ab") as partial:
        for score in _scored(benchmark, rules, waiting, jobs):
            kept = scores[score.id] = _KeptScore(**msgspec.structs.asdict(score), key=keys[score.id])
            partial.write(msgspec.json.encode(kept) + b"\n")
            partial.flush()
            report(len(scores), len(samples), "scoring")
    ordered: list[SampleScore] = [scores[sample.id] for sample in samples]
    result = benchmark.result(ordered, rules)
    fields = {name: getattr(result, name) for name in BenchmarkResult.__struct_fields__}
    evaluation = Evaluation(
        **fields | {"scores": ordered},
        data=str(data),
        predictions=str(predictions),
        engine=engine,
        scoring_seconds=round(time.perf_counter() - start, 3),
        reused=reused,
    )
    write_whole(out / SCORES, (msgspec.json.encode(score) + b"\n" for score in ordered))
    write_whole(out / TABLE, [_table(benchmark, ordered).encode("utf-8", "replace")])
    shown = msgspec.structs.replace(evaluation, scores=[])
    write_whole(out / RESULT, [msgspec.json.format(msgspec.json.encode(shown)), b"\n"])
    (out / PARTIAL).unlink(missing_ok=True)
    return evaluation


def read_evaluation(folder: Path) -> Evaluation:
    """An evaluation that :func:`evaluate` has written.

    Raises:
        InputError: There is none, or it is damaged.
    """
    path = folder / RESULT
    try:
        evaluation = msgspec.json.decode(path.read_bytes(), type=Evaluation)
    except OSError as error:
        raise unreadable(str(path), error) from error
    except msgspec.DecodeError as error:
        raise CorruptInputError(f"{path} is not a result of pagemill eval run: {error}", remedy=_AGAIN) from error
    scores: list[SampleScore] = [*_kept(folder / SCORES)]
    if len(scores) != evaluation.samples:
        raise CorruptInputError(f"{folder / SCORES} does not belong to {path}", remedy=_AGAIN)
    return msgspec.structs.replace(evaluation, scores=scores)


_AGAIN = "Run pagemill eval run again with the same -o."


def _key(stamp: str, sample: Sample, prediction: Prediction) -> str:
    truth = msgspec.json.encode([sample.id, sample.truth], order="deterministic", enc_hook=repr)
    answer = msgspec.json.encode([prediction.text, prediction.error])
    return sha256(b"\0".join((stamp.encode(), truth, answer))).hexdigest()


def _kept(path: Path) -> Iterator[_KeptScore]:
    """Lines of a file of scores; a process that was killed leaves a torn one, which the next continues from."""
    with suppress(OSError), path.open("rb") as file:
        while line := file.readline(_MAX_LINE):
            with suppress(msgspec.DecodeError):
                yield msgspec.json.decode(line, type=_KeptScore)


def _table(benchmark: Benchmark, scores: Iterable[SampleScore]) -> str:
    scores = list(scores)
    metrics = [metric.name for metric in benchmark.metrics]
    groups = sorted({group for score in scores for group in score.groups})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "status", *metrics, *groups, "error"])
    for score in scores:
        values = [score.metrics.get(name) for name in metrics]
        shown = ["" if value is None else f"{value:.6f}" for value in values]
        writer.writerow([score.id, score.status.value, *shown, *(score.groups.get(g, "") for g in groups), score.error])
    return text.getvalue()


def _scores(benchmark: Benchmark, rules: Rules, batch: Sequence[tuple[Sample, Prediction]]) -> Iterator[SampleScore]:
    benchmark.prepare(batch)
    for sample, prediction in batch:
        yield benchmark.score(sample, prediction, rules)


def _listed_scores(benchmark: Benchmark, rules: Rules, batch: Sequence[tuple[Sample, Prediction]]) -> list[SampleScore]:
    return list(_scores(benchmark, rules, batch))  # a generator cannot come back from another process


def _scored(
    benchmark: Benchmark, rules: Rules, waiting: Sequence[tuple[Sample, Prediction]], jobs: int
) -> Iterator[SampleScore]:
    """Scores in the order in which they are ready."""
    size = benchmark.batch
    batches = [waiting[start : start + size] for start in range(0, len(waiting), size)]
    if jobs == 1 or len(waiting) <= _FEW:
        for batch in batches:
            yield from _scores(benchmark, rules, batch)
        return
    # Forked from a process without threads.
    pool = ProcessPoolExecutor(min(jobs, len(batches)), mp_context=get_context("forkserver"))
    try:
        running: set[Future[list[SampleScore]]] = set()
        while batches or running:
            while batches and len(running) < 2 * jobs:
                running.add(pool.submit(_listed_scores, benchmark, rules, batches.pop(0)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield from future.result()
    except BrokenProcessPool as error:
        raise WorkerCrashError(
            "a scoring process died", remedy="Probably memory is short: repeat the command with --jobs 1 to resume."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
