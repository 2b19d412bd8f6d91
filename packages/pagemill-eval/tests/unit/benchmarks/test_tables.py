import json
import os
from pathlib import Path

import pytest

from pagemill.errors import CorruptInputError, InputError
from pagemill_eval.benchmark import Prediction, Rules, Status
from pagemill_eval.benchmarks import create
from pagemill_eval.benchmarks.tables import PubTabNet, table_html


def document(*cells: str) -> str:
    return f"<html><body><table><tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr></table></body></html>"


def annotation(name: str, split: str, *cells: str) -> str:
    structure = ["<tr>", *["<td>", "</td>"] * len(cells), "</tr>"]
    html = {"structure": {"tokens": structure}, "cells": [{"tokens": list(cell)} for cell in cells]}
    return json.dumps({"filename": name, "split": split, "imgid": 1, "html": html})


def test_tokens_become_html() -> None:
    assert table_html(["<tr>", "<td", ' colspan="2"', ">", "</td>", "</tr>"], [["<b>", "a", "<", "</b>"]]) == (
        '<html><body><table><tr><td colspan="2"><b>a&lt;</b></td></tr></table></body></html>'
    )
    with pytest.raises(ValueError, match="more cells"):
        table_html(["<tr>"], [["a"]])


def test_the_validation_split_counts(tmp_path: Path) -> None:
    rows = [annotation("one.png", "train", "a"), annotation("two.png", "val", "b")]
    (tmp_path / "PubTabNet_2.0.0.jsonl").write_text("\n".join(rows))
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "two.png").touch()
    (sample,) = PubTabNet().load(tmp_path)
    assert sample.id == "two.png"
    assert sample.truth == document("b")
    assert sample.input
    assert sample.input.path == tmp_path / "val" / "two.png"


@pytest.mark.parametrize("with_html", [False, True])
def test_html_by_name(tmp_path: Path, with_html: bool) -> None:
    truth, predicted = tmp_path / "gt.json", tmp_path / "pred.json"
    truth.write_text(json.dumps({name: {"html": document("ab")} for name in ("a.png", "b.png")}))
    predicted.write_text(json.dumps({"a.png": {"html": document("ax")} if with_html else document("ax")}))
    benchmark = PubTabNet()
    samples = benchmark.load(truth)
    read = benchmark.predictions(predicted, samples)
    for rules in Rules:
        result = benchmark.result([benchmark.score(sample, read(sample), rules) for sample in samples], rules)
        assert result.missing == ["b.png"]
        assert [score.metrics["teds"] for score in result.scores] == [pytest.approx(0.75), 0.0]
        assert result.figures["teds"].value == pytest.approx(0.375)
        assert result.figures["teds_s"].value == pytest.approx(0.5)


def test_a_folder_of_predictions(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text(json.dumps({"a.png": document("a")}))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.html").write_text("<table><tr><td>a</td></tr></table>")
    benchmark = PubTabNet()
    samples = benchmark.load(tmp_path / "gt.json")
    prediction = benchmark.predictions(tmp_path / "out", samples)(samples[0])
    assert benchmark.score(samples[0], prediction).metrics == {"teds": 1.0, "teds_s": 1.0}
    assert benchmark.score(samples[0], prediction, Rules.OFFICIAL).metrics == {"teds": 0.0, "teds_s": 0.0}


def test_a_failed_prediction_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text(json.dumps({"a.png": document("a")}))
    (sample,) = PubTabNet().load(tmp_path)
    score = PubTabNet().score(sample, Prediction(text=document("a"), error="half of it"))
    assert score.status is Status.FAILED
    assert score.metrics["teds"] == 0.0


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"a": 1}', '{"../a.png": "<table></table>"}', "[" * 100_000, '{"a": "\\ud800"}']
)
def test_files_of_another_format(tmp_path: Path, content: str) -> None:
    file = tmp_path / "gt.json"
    file.write_text(content)
    if "ud800" in content:
        create("teds-test").load(file)
        return
    with pytest.raises(InputError):
        create("teds-test").load(file)


def test_lines_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"filename": "a.png"}\n')
    with pytest.raises(CorruptInputError, match="line 1"):
        PubTabNet().load(tmp_path)


def test_the_published_pairs() -> None:
    root = os.environ.get("PAGEMILL_TEST_DATA")
    if not root:
        pytest.skip("PAGEMILL_TEST_DATA is not set")
    folder = Path(root) / "pubtabnet"
    benchmark = PubTabNet()
    samples = benchmark.load(folder / "sample_gt.json")
    read = benchmark.predictions(folder / "sample_pred.json", samples)
    official = json.loads((folder / "official_teds.json").read_text())
    for sample in samples:
        score = benchmark.score(sample, read(sample), Rules.OFFICIAL)
        assert score.metrics["teds"] == pytest.approx(official[sample.id]["odb_teds"], abs=1e-9)
    assert len(benchmark.load(folder)) == 20
