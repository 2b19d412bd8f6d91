"""The accuracy benchmark: its options, its rows and its tables."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from accuracy import interval, score, severities_of, summary
from pages.draw import Page
from pages.layouts import Block

TEXT = "The harbour office measured a rise in daily traffic."


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(5, "en", "form", (Block("text", TEXT),), tmp_path)


def _record(text: str, **more: Any) -> dict[str, Any]:
    return {"status": "done", "markdown": text, "regions": [], "errors": []} | more


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


def test_severities_may_name_a_scene_of_the_camera() -> None:
    assert severities_of("digital,0,0.50,0.5:hand") == ["digital", "0", "0.5", "0.5:hand"]
    for wrong in ("0.5:sea", "2:hand", "0.5:"):
        with pytest.raises(argparse.ArgumentTypeError):
            severities_of(wrong)
