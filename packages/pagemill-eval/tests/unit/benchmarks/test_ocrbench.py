import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pagemill.errors import InputError
from pagemill_eval.benchmark import Prediction
from pagemill_eval.benchmarks.ocrbench import OcrBench, is_correct


def question(
    answers: Any, kind: str = "Regular Text Recognition", dataset: str = "IIIT5K", **more: Any
) -> dict[str, Any]:
    return {"dataset_name": "IIIT5K", "type": kind, "question": "what is written?", "answers": answers, **more}


@pytest.mark.parametrize(
    ("said", "answers", "dataset", "expected"),
    [
        ("It says\nMILL.", ["mill"], "x", True),
        ("pa per", ["paper"], "x", False),
        ("a", ["b", "A"], "x", True),
        ("\\frac { a } b", ["\\frac{a}b"], "HME100k", True),
        ("\\frac{A}b", ["\\frac{a}b"], "HME100k", False),
        ("", ["x"], "x", False),
    ],
)
def test_rules(said: str, answers: list[str], dataset: str, expected: bool) -> None:
    assert is_correct(said, answers, dataset) is expected


def test_points(tmp_path: Path) -> None:
    questions = [
        question("mill", predict="a mill"),
        question(["12"], predict=None),
        question(7, "Scene Text-centric VQA", predict="7"),
    ]
    (tmp_path / "OCRBench.json").write_text(json.dumps(questions))
    benchmark = OcrBench()
    samples = benchmark.load(tmp_path)
    assert samples[0].prompt == "what is written?"
    read = benchmark.predictions(tmp_path / "OCRBench.json", samples)
    result = benchmark.result([benchmark.score(sample, read(sample)) for sample in samples])
    assert result.missing == ["1"]
    assert result.figures["text"].value == 0.5
    assert result.figures["final_score"].value == 2


def test_a_missing_prediction_is_wrong_whatever_the_answer(tmp_path: Path) -> None:
    (tmp_path / "OCRBench.json").write_text(json.dumps([question("")]))
    (sample,) = OcrBench().load(tmp_path)
    assert OcrBench().score(sample, Prediction()).metrics["correct"] == 0.0


def test_the_table(tmp_path: Path) -> None:
    row = {"dataset": ["SVT"], "question": ["q"], "question_type": ["Digit String Recognition"], "answer": [["a"]]}
    pq.write_table(pa.table({**row, "image": [{"bytes": b"png", "path": None}]}), tmp_path / "test.parquet")
    (sample,) = OcrBench().load(tmp_path)
    assert sample.truth == ["a"]
    assert sample.input is not None
    assert sample.input.read() == b"png"


def test_predictions_of_other_questions(tmp_path: Path) -> None:
    (tmp_path / "OCRBench.json").write_text(json.dumps([question("a")]))
    (tmp_path / "other.json").write_text(json.dumps([question("a"), question("b")]))
    samples = OcrBench().load(tmp_path / "OCRBench.json")
    with pytest.raises(InputError, match="2 questions"):
        OcrBench().predictions(tmp_path / "other.json", samples)


def test_images_as_they_are_published(tmp_path: Path) -> None:
    """Two downloads: the JSON file in a folder of its own, and the images beside that."""
    image = tmp_path / "OCRBench_Images" / "IIIT5K" / "1.png"
    image.parent.mkdir(parents=True)
    image.touch()
    (tmp_path / "OCRBench").mkdir()
    (tmp_path / "OCRBench" / "OCRBench.json").write_text(json.dumps([question("a", image_path="IIIT5K/1.png")]))
    for given in (tmp_path, tmp_path / "OCRBench", tmp_path / "OCRBench" / "OCRBench.json"):
        (sample,) = OcrBench().load(given)
        assert sample.input is not None and sample.input.path == image
