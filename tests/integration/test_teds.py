import json
import os
from pathlib import Path

import pytest

import teds as teds_module
from pagemill.errors import TooLargeError
from teds import teds

pytest.importorskip("apted")

ROW = "<tr><td>a</td><td>b</td></tr>"
TABLE = f"<table>{ROW}{ROW}</table>"


def test_a_table_equals_itself() -> None:
    assert teds(TABLE, TABLE) == 1.0


def test_a_missing_row_costs_its_nodes() -> None:
    # 3 of the larger table's 6 nodes below <table> are deleted.
    assert teds(f"<table>{ROW}</table>", TABLE) == pytest.approx(0.5)


def test_a_row_too_many_costs_its_nodes_too() -> None:
    assert teds(TABLE, f"<table>{ROW}</table>") == pytest.approx(0.5)


def test_text_costs_its_normalised_distance() -> None:
    predicted = "<table><tr><td>abcd</td></tr></table>"
    true = "<table><tr><td>abcx</td></tr></table>"
    assert teds(predicted, true) == pytest.approx(1 - 0.25 / 2)
    assert teds(predicted, true, structure_only=True) == 1.0


def test_inline_tags_are_tokens_and_count_as_nodes() -> None:
    predicted = "<table><tr><td>ab</td></tr></table>"
    true = "<table><tr><td><b>ab</b></td></tr></table>"
    assert teds(predicted, true) == pytest.approx(1 - (2 / 4) / 3)


def test_spans_must_agree() -> None:
    predicted = '<table><tr><td colspan="2">a</td></tr></table>'
    true = "<table><tr><td>a</td></tr></table>"
    assert teds(predicted, true) == pytest.approx(0.5)


def test_header_cells_count_as_cells() -> None:
    assert teds(TABLE.replace("td", "th"), TABLE) == 1.0


@pytest.mark.parametrize(
    "malformed",
    ["", "<", "<table", "no table", "\0", "<!-- -->", "\ud800", '<?xml version="1.0" encoding="utf-16"?>'],
)
def test_without_a_table_the_score_is_zero(malformed: str) -> None:
    assert teds(malformed, TABLE) == 0.0
    assert teds(TABLE, malformed) == 0.0


def test_malformed_spans_count_as_one() -> None:
    assert teds('<table><tr><td colspan="x">a', "<table><tr><td>a</td></tr></table>") == 1.0


def test_too_large_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teds_module, "MAX_NODES", 5)
    with pytest.raises(TooLargeError):
        teds(TABLE, TABLE)


def test_agrees_with_the_reference_scorer() -> None:
    root = os.environ.get("PAGEMILL_TEST_DATA")
    if not root:
        pytest.skip("PAGEMILL_TEST_DATA is not set")
    folder = Path(root) / "pubtabnet"
    true, predicted, scores = (
        json.loads((folder / name).read_text()) for name in ("sample_gt.json", "sample_pred.json", "official_teds.json")
    )
    official = {name: values["official"] for name, values in scores.items() if "official" in values}
    assert official
    for name, value in official.items():
        assert teds(predicted[name], true[name]["html"]) == pytest.approx(value, abs=1e-9), name
