"""Rows, columns and spans out of what Table Transformer sees; the engine as a page uses it."""

import sys

import numpy as np
import pytest

from pagemill.config.settings import ParseSettings, TableEngineSettings
from pagemill.errors import EngineError, MissingDependencyError, MissingInputError, UsageError
from pagemill.tables.structure_model import CheckedModel, PredictedCell, Structure, TableFinder
from pagemill.tables.table_transformer import Detected, TableTransformer, create, find_structure_weights, structure_of


def row(number: int, score: float = 0.9, shift: float = 0.0) -> Detected:
    return Detected("table row", score, (0.0, 20.0 * number + shift, 300.0, 20.0 * number + 20 + shift))


def column(number: int, score: float = 0.9) -> Detected:
    return Detected("table column", score, (100.0 * number, 0.0, 100.0 * number + 100, 80.0))


GRID = [row(1), row(0), column(2), column(0), row(2), column(1), row(3)]


def spans(structure: Structure) -> dict[tuple[int, int], tuple[int, int]]:
    return {(c.row, c.column): (c.row_span, c.column_span) for c in structure.cells if c.row_span * c.column_span > 1}


def test_rows_and_columns_make_a_grid():
    structure = structure_of(GRID)
    assert (structure.rows, structure.columns, structure.header_rows) == (4, 3, 0)
    assert spans(structure) == {}
    assert {(c.row, c.column): c.box for c in structure.cells}[1, 2] == (200.0, 20.0, 300.0, 40.0)


def test_a_row_that_is_seen_twice_is_one():
    assert structure_of([*GRID, row(1, score=0.6, shift=6)]).rows == 4


def test_spans_take_the_rows_and_columns_that_they_cover_and_the_surer_one_wins():
    found = [
        *GRID,
        Detected("table spanning cell", 0.9, (0.0, 0.0, 195.0, 22.0)),
        Detected("table spanning cell", 0.8, (105.0, 0.0, 300.0, 20.0)),  # shares a slot with the first
        Detected("table projected row header", 0.7, (0.0, 40.0, 90.0, 60.0)),
        Detected("table spanning cell", 0.6, (0.0, 60.0, 100.0, 80.0)),  # covers one slot: no span
        Detected("table column header", 0.9, (0.0, 0.0, 300.0, 39.0)),
    ]
    structure = structure_of(found)
    assert spans(structure) == {(0, 0): (1, 2), (2, 0): (1, 3)}
    assert structure.header_rows == 2
    CheckedModel(Fixed(structure)).predict(np.zeros((1, 1, 3), np.uint8))


@pytest.mark.parametrize("found", [[], [row(0)], [column(0)], [Detected("table", 0.9, (0, 0, 1, 1))]])
def test_without_rows_and_columns_there_is_no_grid(found):
    assert structure_of(found) is None


def test_a_header_in_the_middle_is_none():
    structure = structure_of([*GRID, Detected("table column header", 0.9, (0.0, 40.0, 300.0, 60.0))])
    assert structure.header_rows == 0


class Fixed:
    name = "fixed"

    def __init__(self, structure: Structure | None) -> None:
        self.structure = structure

    def predict(self, pixels):
        return self.structure


def test_cells_of_an_engine_that_do_not_tile_a_grid_are_an_error():
    torn = Structure([PredictedCell(0, 0, 1, 1, None)], 1, 2, 0)
    with pytest.raises(EngineError, match="'fixed' predicted cells"):
        CheckedModel(Fixed(torn)).predict(np.zeros((1, 1, 3), np.uint8))
    assert CheckedModel(Fixed(None)).predict(np.zeros((1, 1, 3), np.uint8)) is None


def test_the_engine_finds_tables_where_it_has_a_model_for_them():
    class Detector:
        def detect(self, images, least):
            return [[Detected("table", 0.95, (1, 2, 3, 4)), Detected("table rotated", 0.95, (5, 6, 7, 8))]]

    page = np.zeros((10, 10, 3), np.uint8)
    assert TableTransformer(Detector(), Detector()).find(page) == [(1, 2, 3, 4)]
    assert TableTransformer(Detector()).find(page) == []
    assert isinstance(TableTransformer(Detector()), TableFinder)


def test_without_weights_the_command_that_downloads_them_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("pagemill.tables.table_transformer.find_model", lambda card: None)
    with pytest.raises(MissingInputError, match="not on this machine") as caught:
        find_structure_weights(None)
    assert "pagemill models download table-transformer-structure" in caught.value.remedy
    with pytest.raises(MissingInputError, match="no checkpoint in"):
        find_structure_weights(str(tmp_path))


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="table-transformer needs torch") as caught:
        create(TableEngineSettings(name="table-transformer"))
    assert "[gpu]" in caught.value.remedy


def test_options_that_do_not_go_together_are_refused():
    with pytest.raises(UsageError, match="requires a table engine"):
        TableEngineSettings(model="folder")
    with pytest.raises(UsageError, match="asks no table engine"):
        ParseSettings(tables="rules", table_choice=TableEngineSettings(name="table-transformer"))
