"""The accuracy benchmark: its options, its rows and its tables."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import pytest

import accuracy
from accuracy import interval, report, score, seeds_of, severities_of, summary
from pages.draw import Page
from pages.layouts import Block

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "The harbour office measured a rise in daily traffic."


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(5, "en", "form", (Block("text", TEXT),), tmp_path)


def _record(text: str, **more: Any) -> dict[str, Any]:
    return {"status": "done", "markdown": text, "regions": [], "errors": []} | more


def test_seeds_and_severities() -> None:
    assert seeds_of("3,8-10") == [3, 8, 9, 10]
    assert severities_of("digital,0,0.50,1") == ["digital", "0", "0.5", "1"]
    with pytest.raises(argparse.ArgumentTypeError):
        severities_of("1.5")


def test_a_page_that_is_read_well(page: Page) -> None:
    row = score(page, "0", _record(TEXT))
    assert (row["cer"], row["failed"], row["silent"], row["language"], row["layout"]) == (0, False, False, "en", "form")


def test_gibberish_without_a_warning_is_silent(page: Page) -> None:
    assert score(page, "0", _record("xk qzj wwvy ggh qqo"))["silent"]
    warned = _record("xk qzj wwvy ggh qqo", errors=[{"category": "poorly_read", "message": "it is not reliable"}])
    row = score(page, "0", warned)
    assert not row["silent"]
    assert (row["warnings"], row["message"]) == (["poorly_read"], "it is not reliable")


def test_a_failed_page_and_a_page_without_record_are_empty(page: Page) -> None:
    failed = score(page, "0", _record(TEXT, status="failed", errors=[{"category": "language", "message": "no engine"}]))
    for row in (failed, score(page, "0", None)):
        assert (row["cer"], row["failed"], row["silent"]) == (1, True, False)


def test_the_interval_holds_the_mean_and_does_not_change() -> None:
    values = [0.0, 0.1, 0.0, 0.4, 0.2, 0.05]
    low, high = interval(values)
    assert 0 < low < sum(values) / len(values) < high < 0.4
    assert interval(values) == (low, high)


def test_means_are_over_pages_and_over_tables(page: Page) -> None:
    rows = [score(page, "0", _record(TEXT)), score(page, "0", None)]
    rows[0]["teds"], rows[1]["teds"] = [1.0, 0.5], [0.0]
    made = summary(rows)
    assert made["cer"]["mean"] == 0.5
    assert made["teds"]["mean"] == 0.5
    assert made["teds"]["count"] == 3
    assert made["failed"] == 1


def test_a_comparison_takes_pages_that_both_have(page: Page) -> None:
    old = {"rows": [score(page, "0", None)], "cpu_s_a_page": {"0": 2.0}}
    new = {"rows": [score(page, "0", _record(TEXT)), score(page, "0.5", None)], "cpu_s_a_page": {"0": 1.0, "0.5": 3.0}}
    text = report(new, old)
    assert "| all | 0 | 1 | 100.0 → 0.0 (0.0–0.0) |" in text
    assert "| all | 0.5 |" not in text
    assert "| 0 | 2.00 → 1.00 |" in text


def test_an_unknown_layout_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy.py", "--layouts", "poster"])
    with pytest.raises(SystemExit):
        accuracy.main()
    assert "poster is neither a language nor a layout" in capsys.readouterr().err


def test_benchmarks_on_public_data_are_those_of_the_tree(tmp_path: Path) -> None:
    scripts, data = tmp_path / "tree" / "benchmarks", tmp_path / "data"
    scripts.mkdir(parents=True)
    sample = data / "olmocr-bench-sample"
    sample.mkdir(parents=True)
    (scripts / "olmocr_bench.py").write_text("import sys\nprint('a page')\nprint('Final Summary', sys.argv[1])\n")
    found = accuracy.data_results(data, tmp_path / "work", tmp_path / "tree", 1, tmp_path / "python")
    assert found == {"olmOCR sample": f"Final Summary {sample}"}


def test_what_a_benchmark_says_when_it_fails_is_shown(tmp_path: Path) -> None:
    scripts, data = tmp_path / "tree" / "benchmarks", tmp_path / "data"
    scripts.mkdir(parents=True)
    (data / "olmocr-bench-sample").mkdir(parents=True)
    (scripts / "olmocr_bench.py").write_text("raise SystemExit('no pages')\n")
    assert accuracy.data_results(data, tmp_path, tmp_path / "tree", 1, tmp_path / "python") == {
        "olmOCR sample": "no pages"
    }
