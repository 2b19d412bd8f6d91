import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from pagemill.errors import TooLargeError
from pagemill_eval import teds as teds_module
from pagemill_eval.teds import reference_teds, teds

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
    "malformed", ["", "<", "<table", "no table", "\0", "<!-- -->", "\ud800", '<?xml version="1.0" encoding="utf-16"?>']
)
def test_without_a_table_the_score_is_zero(malformed: str) -> None:
    assert teds(malformed, TABLE) == 0.0
    assert teds(TABLE, malformed) == 0.0


def test_malformed_spans_count_as_one() -> None:
    assert teds('<table><tr><td colspan="x">a', "<table><tr><td>a</td></tr></table>") == 1.0


def test_too_large_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teds_module, "MAX_NODES", 5)
    with pytest.raises(TooLargeError):
        teds(TABLE, TABLE.replace("</td>", "x</td>"))


def test_agrees_with_the_reference_scorer() -> None:
    root = os.environ.get("PAGEMILL_TEST_DATA")
    if not root:
        pytest.skip("PAGEMILL_TEST_DATA is not set")
    folder = Path(root) / "pubtabnet"
    true, predicted, scores = (
        json.loads((folder / name).read_text()) for name in ("sample_gt.json", "sample_pred.json", "official_teds.json")
    )
    assert any("official" in values for values in scores.values())
    for name, values in scores.items():
        pair = predicted[name], true[name]["html"]
        for key in {"official", "odb_teds"} & set(values):
            assert reference_teds(*pair) == pytest.approx(values[key], abs=1e-9), (name, key)
        assert reference_teds(*pair, structure_only=True) == pytest.approx(values["odb_struct"], abs=1e-9), name
        assert teds(*pair) == pytest.approx(values["odb_teds"], abs=1e-9), name


def test_the_reference_wants_a_table_directly_below_the_body() -> None:
    document = f"<html><body>{TABLE}</body></html>"
    assert reference_teds(document, document) == 1.0
    assert reference_teds(TABLE, document) == 0.0
    assert reference_teds(f"<html><body><div>{TABLE}</div></body></html>", document) == 0.0
    assert reference_teds("", document) == 0.0


def test_the_reference_reads_no_text_of_header_cells() -> None:
    def table(cell: str) -> str:
        return f"<html><body><table><tr>{cell}</tr></table></body></html>"

    assert reference_teds(table("<th>a</th>"), table("<th>b</th>")) == 1.0
    assert reference_teds(table("<th>a</th>"), table("<td>a</td>")) == pytest.approx(0.5)


def test_where_the_reference_scorer_fails_its_score_is_zero() -> None:
    def table(span: str) -> str:
        return f'<html><body><table><tr><td colspan="{span}">a</td></tr></table></body></html>'

    assert reference_teds(table("two"), table("2")) == 0.0
    assert (
        reference_teds("<html><body><table></table></body></html>", "<html><body><table></table></body></html>") == 0.0
    )


def test_tags_and_private_use_characters_are_distinguished() -> None:
    marked, private = (
        "<table><tr><td><b>a</b></td></tr></table>",
        "<table><tr><td>\U000f0000a\U000f0001</td></tr></table>",
    )
    assert teds(marked, private) < 1.0


def test_texts_that_would_take_minutes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teds_module, "MAX_TEXT_STEPS", 3)
    with pytest.raises(TooLargeError):
        teds(TABLE, TABLE.replace("</td>", "x</td>"))


CELLS = st.lists(st.lists(st.text("ab ", max_size=3), max_size=4), max_size=4)


def as_table(rows: list[list[str]]) -> str:
    return "<table>" + "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows) + "</table>"


@given(CELLS, CELLS)
@settings(deadline=None)
def test_identity_symmetry_and_bounds(one: list[list[str]], two: list[list[str]]) -> None:
    first, second = as_table(one), as_table(two)
    assert teds(first, first) == 1.0
    assert teds(first, second) == pytest.approx(teds(second, first))
    assert teds(first, second) <= teds(first, second, structure_only=True) <= 1.0


@given(CELLS, CELLS)
@settings(deadline=None)
def test_it_equals_apted(one: list[list[str]], two: list[list[str]]) -> None:
    apted = pytest.importorskip("apted")
    costs = apted.Config()
    costs.valuecls = float
    costs.rename = lambda a, b: float(a["name"] != b["name"]) or Levenshtein.normalized_distance(a["text"], b["text"])
    costs.children = lambda node: node["children"]

    def tree(rows: list[list[str]]) -> dict[str, object]:
        def node(name: str, text: str = "", children: Sequence[object] = ()) -> dict[str, object]:
            return {"name": name, "text": text, "children": children}

        return node("table", "", [node("tr", "", [node("td", cell) for cell in row]) for row in rows])

    nodes = max(sum(1 + len(row) for row in rows) for rows in (one, two))
    if nodes:
        distance = apted.APTED(tree(one), tree(two), costs).compute_edit_distance()
        assert teds(as_table(one), as_table(two)) == pytest.approx(1 - distance / nodes, abs=1e-9)


def test_equal_tables_are_never_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teds_module, "MAX_NODES", 2)
    table = "<html><body><table><tr><td>a</td><td>b</td></tr></table></body></html>"
    assert teds_module.reference_teds(table, table) == teds_module.teds(table, table) == 1.0


def test_a_scorer_may_give_up_earlier() -> None:
    pair = "<html><body><table><tr><td>a</td></tr></table></body></html>", "<html><body><table></table></body></html>"
    assert reference_teds(*pair) == 0.0
    with pytest.raises(TooLargeError, match="at most 1"):
        reference_teds(*pair, most_nodes=1)
