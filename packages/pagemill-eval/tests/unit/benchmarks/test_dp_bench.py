import json
import os
from pathlib import Path

import pytest

from pagemill.errors import InputError
from pagemill_eval.benchmark import Prediction, Rules, Status
from pagemill_eval.benchmarks.dp_bench import DpBench, document_scores, with_html_tables

TABLE = "| a | b |\n|---|:-:|\n| 1 | 2 |"


def scores(true: str, predicted: str) -> dict[str, float | None]:
    return document_scores(with_html_tables(true), with_html_tables(predicted))


def test_markdown_tables_become_html() -> None:
    assert with_html_tables(f"x\n{TABLE}\ny") == (
        "x\n<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>\ny"
    )
    assert with_html_tables("a | b\nc | d") == "a | b\nc | d"


def test_rows_of_another_width_are_fitted() -> None:
    wide = with_html_tables("|a|b|c|d|\n|-|-|-|-|\n|1|2|3|\n|x|\n|1|2|3|4|5|")
    assert "<tr><td>1</td><td>2</td><td>2</td><td>3</td></tr>" in wide
    assert "<tr><td>x</td><td></td><td></td><td></td></tr>" in wide
    assert "<tr><td>1</td><td>2</td><td>3</td><td>4</td></tr>" in wide


def test_an_empty_header_is_replaced_by_the_first_row() -> None:
    assert with_html_tables("| | |\n|-|-|\n|1|2|") == "<table><tr><th>1</th><th>2</th></tr></table>"


def test_a_perfect_document() -> None:
    document = f"before\n# One\ntext\n\n{TABLE}"
    assert set(scores(document, document).values()) == {1.0}


def test_what_a_document_lacks_does_not_count() -> None:
    found = scores("plain", "# plain")
    assert (found["teds"], found["mhs"]) == (None, None)
    assert found["overall"] == found["nid"]
    assert scores(f"# a\n{TABLE}", "a") | {"nid": 0, "nid_s": 0, "overall": 0} == {
        "nid": 0,
        "nid_s": 0,
        "overall": 0,
        "teds": 0.0,
        "teds_s": 0.0,
        "mhs": 0.0,
        "mhs_s": 0.0,
    }


def test_headings() -> None:
    # root, heading, content: the heading's text differs by half
    found = scores("# ab\ntext", "## ax\ntext")
    assert found["mhs"] == pytest.approx(1 - 0.5 / 3)
    assert found["mhs_s"] == 1.0
    assert scores("# a\nb", "# a\nb\n# c")["mhs_s"] == pytest.approx(3 / 4)
    assert scores("# a", "  # a")["mhs"] == 0.0


def test_missing_and_runaway_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "markdown").mkdir()
    (tmp_path / "markdown" / "a.md").write_text(f"# a\n{TABLE}")
    benchmark = DpBench()
    (sample,) = benchmark.load(tmp_path)
    missing = benchmark.score(sample, Prediction())
    assert missing.status is Status.MISSING
    assert missing.metrics["overall"] == 0.0
    monkeypatch.setattr("pagemill_eval.teds.MAX_NODES", 5)
    runaway = benchmark.score(sample, Prediction(text=f"# a\n{TABLE}"))
    assert runaway.metrics["overall"] == 0.0
    assert "too large" in runaway.error


def test_a_folder_without_documents(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        DpBench().load(tmp_path)
    with pytest.raises(InputError):
        DpBench().load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "engine", ["docling", *(pytest.param(name, marks=pytest.mark.slow) for name in ("marker", "mineru"))]
)
def test_published_scores(engine: str) -> None:
    root = os.environ.get("PAGEMILL_TEST_DATA")
    if not root:
        pytest.skip("PAGEMILL_TEST_DATA is not set")
    folder = Path(root) / "dp-bench"
    benchmark = DpBench()
    samples = benchmark.load(folder)
    read = benchmark.predictions(folder / "prediction" / engine / "markdown", samples)
    result = benchmark.result([benchmark.score(sample, read(sample)) for sample in samples], Rules.OFFICIAL)
    published = json.loads((folder / "prediction" / engine / "evaluation.json").read_text())
    by_id = {score.id: score.metrics for score in result.scores}
    assert len(by_id) == 200
    for document in published["documents"]:
        assert by_id[document["document_id"]] == pytest.approx(document["scores"], abs=1e-9), document["document_id"]
    for name, value in published["metrics"]["score"].items():
        assert result.figures[name.removesuffix("_mean")].value == pytest.approx(value, abs=1e-9), name
