import json
import pickle
from pathlib import Path

import msgspec
import pytest

from pagemill.errors import CorruptInputError, MissingInputError, UsageError
from pagemill_eval import benchmark as module
from pagemill_eval.benchmark import (
    BenchmarkResult,
    FolderOfPredictions,
    Input,
    Prediction,
    Sample,
    Status,
    checked_ids,
    contained,
    mean,
)
from pagemill_eval.benchmarks import create, names


def sample(name: str = "a", *files: str) -> Sample:
    return Sample(id=name, truth="", prediction_names=files or (f"{name}.md",))


def test_predictions_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("\ufefftext", encoding="utf-8")
    (tmp_path / "empty.md").touch()
    (tmp_path / "bytes.md").write_bytes(b"\xff")
    (tmp_path / "failures.jsonl").write_text(json.dumps({"id": "bad", "error": "no server"}) + "\n\n")
    read = FolderOfPredictions(tmp_path)
    assert read(sample("a", "a.md", "b.md")) == Prediction(text="text")
    assert read(sample("empty")).status is Status.SCORED
    assert read(sample("gone")).status is Status.MISSING
    assert read(sample("bad")) == Prediction(error="no server")
    assert "not UTF-8" in (read(sample("bytes")).error or "")


def test_a_huge_prediction_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PREDICTION_BYTES", 3)
    (tmp_path / "a.md").write_text("four")
    assert FolderOfPredictions(tmp_path)(sample()).status is Status.FAILED


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/../../b", "", "a\0b"])
def test_names_stay_in_their_folder(name: str) -> None:
    with pytest.raises(CorruptInputError):
        contained(name)


def test_ids_are_unique() -> None:
    with pytest.raises(CorruptInputError, match="twice"):
        checked_ids([sample(), sample()], Path("x"))
    with pytest.raises(CorruptInputError, match="no sample"):
        checked_ids([], Path("x"))


def test_a_mean_of_nothing_is_unavailable() -> None:
    assert mean([None], "mean").value is None
    assert mean([None, 0.5], "mean").samples == 1


def test_an_input_that_is_gone() -> None:
    with pytest.raises(MissingInputError):
        Input(path=Path("/nowhere/a.png")).read()


def test_unknown_benchmarks() -> None:
    with pytest.raises(UsageError, match="pubtab"):
        create("pubtab")


@pytest.mark.parametrize("name", names())
def test_every_benchmark(name: str) -> None:
    benchmark = create(name)
    assert benchmark.name == name
    assert benchmark.metrics[0].name == benchmark.primary
    pickle.loads(pickle.dumps(benchmark))
    result = benchmark.result([])
    assert not result.missing
    assert all(figure.value is None for figure in result.figures.values())
    assert msgspec.json.decode(msgspec.json.encode(result), type=BenchmarkResult) == result
    assert "rules of" in result.scorer
