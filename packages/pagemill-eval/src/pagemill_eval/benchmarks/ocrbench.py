"""OCRBench v1: questions about images, right if an answer is contained in the prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pagemill.errors import InputError, MissingInputError
from pagemill_eval import benchmark as base
from pagemill_eval.benchmark import Figure, Prediction, Rules, Sample, SampleScore
from pagemill_eval.files import one_file, parquet_rows, read_json

RECOGNITION = (
    "Regular Text Recognition",
    "Irregular Text Recognition",
    "Artistic Text Recognition",
    "Handwriting Recognition",
    "Digit String Recognition",
    "Non-Semantic Text Recognition",
)
"""Types of questions that make "OCRBench (Text)"."""
_HANDWRITTEN_FORMULAS = "HME100k"
_IMAGES = "OCRBench_Images"
"""Folder that the published images unpack to, beside that of ``OCRBench.json``."""


class _Question(msgspec.Struct):
    dataset_name: str
    type: str
    answers: str | int | float | list[str | int | float]
    question: str = ""
    image_path: str = ""
    predict: str | int | float | None = None


class OcrBench(base.Benchmark):
    """OCRBench v1: 1,000 questions of ten types, 300 of them text recognition."""

    name = "ocrbench"
    title = "OCRBench v1"
    kind = base.Kind.TEXT
    origin = "Yuliang-Liu/MultimodalOCR 794c36d"
    hub_id = "echo840/OCRBench"
    primary = "correct"
    metrics = (base.Metric(name="correct", description="1 if an answer is contained in the prediction, else 0"),)

    def load(self, path: Path) -> list[Sample]:
        """Questions of ``OCRBench.json`` or of a Parquet table."""
        if not path.exists():
            raise MissingInputError(f"{path} does not exist", remedy="Check the path.")
        tables = [path] if path.suffix == ".parquet" else sorted(path.rglob("*.parquet")) if path.is_dir() else []
        if tables:
            return base.checked_ids(list(_table_samples(tables)), path)
        file = one_file(path, ("OCRBench.json", "OCRBench/OCRBench.json", "*.json"), "questions")
        folders = (file.parent, file.parent / _IMAGES, file.parent.parent / _IMAGES)
        samples = []
        for number, question in enumerate(read_json(file, list[_Question])):
            name = base.contained(question.image_path or "-")
            image = next((folder / name for folder in folders if (folder / name).is_file()), None)
            samples.append(_sample(number, question, base.Input(path=image) if image else None))
        return base.checked_ids(samples, file)

    def predictions(self, path: Path, samples: Sequence[Sample]) -> Callable[[Sample], Prediction]:
        """Answers in a folder, or in a copy of ``OCRBench.json`` as ``predict``."""
        if not path.is_file():
            return super().predictions(path, samples)
        questions = read_json(path, list[_Question])
        if len(questions) != len(samples):
            raise InputError(
                f"{path} has {len(questions)} questions, and the benchmark {len(samples)}",
                remedy="Pass a file with an answer to each question, in their order.",
            )
        answers = [None if question.predict is None else str(question.predict) for question in questions]
        return lambda sample: Prediction(text=answers[int(sample.id)])

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Right or wrong."""
        text = prediction.scored_text
        is_scored = prediction.status is base.Status.SCORED
        correct = float(is_scored and is_correct(text, sample.truth, sample.groups["dataset"]))
        answers = " | ".join(sample.truth)
        pair = base.Pair(kind=self.kind, truth=answers, prediction=text, metric="correct", score=correct)
        return prediction.score(sample, {"correct": correct}, pair)

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Share of right answers to the recognition questions, and points of all."""
        recognition = [score for score in scores if score.groups.get("type") in RECOGNITION]
        points = base.mean(base.scores_by_metric(scores, "correct"), "points, one for each right answer")
        final = points.value * points.samples if points.value is not None else None
        return {
            "text": base.mean(base.scores_by_metric(recognition, "correct"), "share of the recognition questions"),
            "correct": base.mean(base.scores_by_metric(scores, "correct"), "share of all questions"),
            "final_score": msgspec.structs.replace(points, value=final),
        }


def is_correct(prediction: str, answers: Sequence[str], dataset: str) -> bool:
    """Whether an answer is contained: case is ignored, but for handwritten formulas, in which white space is."""

    def normal(text: str) -> str:
        text = text.strip().replace("\n", " ")
        return text.replace(" ", "") if dataset == _HANDWRITTEN_FORMULAS else text.lower()

    predicted = normal(prediction)
    return any(normal(answer) in predicted for answer in answers)


def _sample(number: int, question: _Question, image: base.Input | None) -> Sample:
    answers = question.answers if isinstance(question.answers, list) else [question.answers]
    return Sample(
        id=str(number),
        truth=[str(answer) for answer in answers],
        input=image,
        prediction_names=(f"{number}.txt",),
        prompt=question.question or None,
        groups={"type": question.type, "dataset": question.dataset_name},
    )


def _table_samples(files: Sequence[Path]) -> Iterator[Sample]:
    number = 0
    for file in files:
        for row, values in enumerate(parquet_rows(file, ["dataset", "question", "question_type", "answer"])):
            answer: Any = values.get("answer")
            question = _Question(
                dataset_name=str(values.get("dataset") or ""),
                type=str(values.get("question_type") or ""),
                answers=answer if isinstance(answer, list) else str(answer or ""),
                question=str(values.get("question") or ""),
            )
            yield _sample(number, question, base.Input(path=file, row=row, column="image"))
            number += 1
