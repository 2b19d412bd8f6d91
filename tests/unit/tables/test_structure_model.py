"""What the table model's output becomes, whatever it holds; the model's file."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pagemill.errors import MissingDependencyError
from pagemill.tables import structure_model
from pagemill.tables.structure_model import SlanetPlus, decode

TOKENS = ["sos", "<thead>", "</thead>", "<tr>", "</tr>", "<td", ">", "</td>", ' colspan="2"', "<td></td>", "eos"]
CELL = "<td></td>"


def decoded(*tokens: str, boxes: np.ndarray | None = None, size: tuple[int, int] = (200, 100)):
    steps = [*tokens, "eos"]
    scores = np.zeros((len(steps), len(TOKENS)), np.float32)
    for step, token in enumerate(steps):
        scores[step, TOKENS.index(token)] = 1.0
    if boxes is None:
        boxes = np.tile(np.array([0.1, 0.1, 0.2, 0.1, 0.2, 0.2, 0.1, 0.2], np.float32), (len(steps), 1))
    return decode(boxes, scores, TOKENS, size)


def test_tokens_become_cells_with_spans_and_boxes():
    head = ("<thead>", "<tr>", "<td", ' colspan="2"', ">", "</td>", "</tr>", "</thead>")
    structure = decoded(*head, "<tr>", CELL, CELL, "</tr>")
    assert structure is not None
    assert (structure.rows, structure.columns, structure.header_rows) == (2, 2, 1)
    assert [(c.row, c.column, c.row_span, c.column_span) for c in structure.cells] == [
        (0, 0, 1, 2),
        (1, 0, 1, 1),
        (1, 1, 1, 1),
    ]
    # Shares are of the longer side: the picture is padded to a square.
    assert structure.cells[0].box == pytest.approx((20.0, 20.0, 40.0, 40.0))


@pytest.mark.parametrize("value", [np.nan, np.inf, -5.0])
def test_boxes_that_are_none_are_left_out(value):
    structure = decoded("<tr>", CELL, "</tr>", boxes=np.full((4, 8), value, np.float32))
    assert structure is not None
    assert structure.cells[0].box is None


def test_boxes_end_with_the_picture():
    boxes = np.tile(np.array([-1, -1, 9, -1, 9, 9, -1, 9], np.float32), (4, 1))
    structure = decoded("<tr>", CELL, "</tr>", boxes=boxes)
    assert structure is not None
    assert structure.cells[0].box == (0.0, 0.0, 200.0, 100.0)


@pytest.mark.parametrize(
    "tokens", [(), ("</tr>", ">"), ("<td",), ("<thead>",), ("<tr>", "</tr>"), ("sos", "sos"), (' colspan="2"',)]
)
def test_tokens_that_are_no_table(tokens):
    assert decoded(*tokens) is None


def test_cells_beyond_the_limits_are_no_table():
    assert decoded(*(("<tr>", *([CELL] * 500), "</tr>") * 50)) is None


def test_scores_that_are_not_numbers_do_not_matter():
    assert decode(np.zeros((3, 8), np.float32), np.full((3, 11), np.nan, np.float32), TOKENS, (10, 10)) is None


def test_a_file_that_is_missing_or_no_model_is_reported_with_a_remedy(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"none")
    for name in ("absent.onnx", "broken.onnx"):
        with pytest.raises(MissingDependencyError, match=name) as failure:
            SlanetPlus(tmp_path / name)
        assert "install" in str(failure.value.remedy)


def test_the_model_is_loaded_once_for_all_threads(monkeypatch):
    made = []
    monkeypatch.setattr(structure_model, "SlanetPlus", lambda: made.append(1) or object())
    with ThreadPoolExecutor(8) as threads:
        models = list(threads.map(lambda _: structure_model.packaged_model(), range(32)))
    assert len(made) == 1
    assert len(set(map(id, models))) == 1
