"""Which of several grids is taken: what rules draw, what the text's places tell, what a (fake) model predicts."""

import cv2
import numpy as np
import pytest
from drawn_tables import HEIGHT, blank, line_at, print_lines, ruled_page, texts

from pagemill.document.page import TextLine, Word
from pagemill.tables.agreement import agreement
from pagemill.tables.grid import GridCell
from pagemill.tables.recognize import recognize_table
from pagemill.tables.rules import Rule, Rules
from pagemill.tables.structure_model import PredictedCell, Structure
from pagemill.tables.words import TableWord


class Model:
    """Says what it is given to say, in pixels of the page, and counts how often it is asked."""

    name = "fake"

    def __init__(self, cells=(), rows=0, columns=0, header_rows=0, origin=(0.0, 0.0)):
        self.cells, self.rows, self.columns, self.header_rows = cells, rows, columns, header_rows
        self.origin, self.asked, self.seen = origin, 0, None

    def __call__(self):
        return self

    def predict(self, pixels):
        self.asked += 1
        if self.seen is None:
            self.seen = pixels
        if not self.cells:
            return None
        x, y = self.origin
        cells = [
            PredictedCell(row, column, row_span, column_span, (x1 - x, y1 - y, x2 - x, y2 - y))
            for row, column, row_span, column_span, (x1, y1, x2, y2) in self.cells
        ]
        return Structure(cells, self.rows, self.columns, self.header_rows)


def wrapped_page() -> tuple[np.ndarray, list[TextLine]]:
    """Two rows without rules whose second cells wrap; the first ones stand at half of their height."""
    page = blank()
    lines = [line_at("Kind", 50, 50), line_at("What it is about", 300, 50)]
    for top, kind in ((110, "First"), (220, "Second")):
        lines.append(line_at(kind, 50, top + 28))
        lines.append(line_at("Some long description", 300, top))
        lines.append(line_at("That goes on in a 2nd", 300, top + 28))
        lines.append(line_at("Line, and in a third", 300, top + 56))
    print_lines(page, lines)
    return page, lines


BOX = (40.0, 40.0, 640.0, 310.0)
WRAPPED = Model(
    [
        (row, column, 1, 1, (x1, y1, x2, y2))
        for row, (y1, y2) in enumerate([(50, 74), (110, 190), (220, 300)])
        for column, (x1, x2) in enumerate([(50, 130), (300, 620)])
    ],
    rows=3,
    columns=2,
    header_rows=1,
    origin=(28.0, 28.0),
)


def test_the_model_tells_wrapped_lines_from_rows() -> None:
    page, lines = wrapped_page()
    table = recognize_table(page, BOX, lines, WRAPPED)
    assert table is not None
    assert table.method == "fake"
    assert texts(table)[1:] == [
        [kind, "Some long description That goes on in a 2nd Line, and in a third"] for kind in ("First", "Second")
    ]
    assert table.header_rows == 1


def test_rules_that_draw_the_whole_grid_need_no_model() -> None:
    page, lines = ruled_page()
    model = Model()
    table = recognize_table(page, (40, 40, 660, 300), lines, model)
    assert table is not None
    assert (table.method, model.asked) == ("rules", 0)


def test_places_that_leave_no_doubt_need_no_model() -> None:
    page, model = blank(), Model()
    lines = [line_at(f"{row}{column} x", 50 + 250 * column, 50 + 60 * row) for row in range(4) for column in range(3)]
    print_lines(page, lines)
    table = recognize_table(page, (40, 40, 720, 280), lines, model)
    assert table is not None
    assert (table.method, model.asked) == ("text", 0)


def test_the_model_is_asked_where_it_is_preferred() -> None:
    page, lines = ruled_page()
    model = Model()
    table = recognize_table(page, (40, 40, 660, 300), lines, model, prefer_model=True)
    assert table is not None
    assert table.method == "rules", "the model sees no table"
    assert model.asked


def test_a_prediction_that_contradicts_the_words_is_not_taken() -> None:
    page, lines = wrapped_page()
    cells = [(0, column, 1, 1, (700, 500, 720, 520)) for column in range(2)]
    table = recognize_table(page, BOX, lines, Model(cells, rows=1, columns=2))
    assert table is not None
    assert table.method == "text"


@pytest.mark.parametrize(("rows", "columns"), [(400, 2), (3, 5000)])
def test_a_prediction_with_more_rows_or_columns_than_there_is_room_for(rows: int, columns: int) -> None:
    page, lines = wrapped_page()
    cells = [(r, c, 1, 1, (50, 50, 60, 60)) for r in range(min(rows, 3)) for c in range(2)]
    cells += [(rows - 1, columns - 1, 1, 1, (50, 50, 60, 60))]
    table = recognize_table(page, BOX, lines, Model(cells, rows=rows, columns=columns))
    assert table is not None
    assert table.method == "text"


def test_rows_of_a_right_to_left_table_begin_at_the_right() -> None:
    page = blank()
    grid = [["שם", "שנה"], ["ספר ראשון", "2020"], ["ספר שני", "2021"]]
    lines = []
    for row, (first, second) in enumerate(grid):
        y = 50.0 + 60 * row
        words, end = [], 700.0
        for token in first.split():  # from right to left
            words.append(Word(token, (end - 60, y, end, y + HEIGHT)))
            end -= 70
        lines.append(TextLine(text=first, box=(end + 10, y, 700, y + HEIGHT), words=tuple(words)))
        lines.append(TextLine(text=second, box=(200, y, 250, y + HEIGHT), words=()))
    print_lines(page, lines)
    model = Model()
    table = recognize_table(page, (190, 40, 710, 220), lines, model, prefer_model=True)
    assert texts(table) == grid
    assert model.seen is not None
    assert model.seen[:, : model.seen.shape[1] // 2].mean() < model.seen[:, model.seen.shape[1] // 2 :].mean(), (
        "the first column is on the left of what the model sees"
    )


def word(text: str, x: float, y: float, line: int = 0) -> TableWord:
    return TableWord(text, x, x + 10.0 * len(text), y, y + 20.0, line)


def cells_of(*rows: list[list[TableWord]]) -> list[GridCell]:
    return [GridCell(r, c, words=words) for r, row in enumerate(rows) for c, words in enumerate(row)]


BARE = Rules((), ())


def test_agreement_of_a_grid_with_its_words() -> None:
    a, b = word("aaa", 0, 0), word("bbb", 200, 0)
    c, d = word("ccc", 0, 60), word("ddd", 200, 60)
    assert agreement(cells_of([[a], [b]], [[c], [d]]), BARE, 20.0) == 1.0
    # Two columns in one cell.
    assert agreement(cells_of([[a, b], []], [[c], [d]]), BARE, 20.0) < 0.8
    # A figure below a figure is a row of its own.
    figures = cells_of([[a], [word("1.2", 200, 0), word("3.4", 200, 30)]])
    assert agreement(figures, BARE, 20.0) < 0.8
    # A row without a word.
    assert agreement([*cells_of([[a], [b]]), GridCell(1, 0), GridCell(1, 1)], BARE, 20.0) < 0.5
    # Words without a gap in two cells.
    torn = cells_of([[a], [word("next", 32, 0)]], [[c], [d]])
    assert agreement(torn, BARE, 20.0) == pytest.approx(0.5)


def test_a_rule_between_words_parts_cells() -> None:
    a, b, c = word("aaa", 0, 0), word("bbb", 35, 0), word("ccc", 0, 40)
    cells = cells_of([[a, b, c], [word("ddd", 200, 0)]])
    free = agreement(cells, BARE, 20.0)
    assert agreement(cells, Rules((), (Rule(32.0, -5.0, 25.0),)), 20.0) == free - 0.25
    assert agreement(cells, Rules((Rule(30.0, -5.0, 80.0),), ()), 20.0) <= free
    apart = cells_of([[a], [b]], [[c], [word("ddd", 35, 40)]])
    assert agreement(apart, BARE, 20.0) < agreement(apart, Rules((), (Rule(32.0, -5.0, 65.0),)), 20.0)


def test_a_line_below_a_full_one_in_a_row_with_empty_cells_wraps() -> None:
    def grid(x: float) -> list[GridCell]:
        rows = [[word("abcdefgh", x, 0)], [word("1", 300, 0)]], [[word("ijkl", 0, 22)], []]
        return cells_of(*rows, [[word("abcdefghij", 0, 100)], [word("2", 300, 100)]])

    assert agreement(grid(0), BARE, 20.0) < 0.9 - 0.25 / 6


def test_lines_as_far_apart_as_rows_speak_against_a_cell() -> None:
    def grid(step: float) -> list[GridCell]:
        rows = [[word("abcdefgh", 0, y), word("ijklmnop", 0, y + step)] for y in (0.0, 100.0, 200.0)]
        return cells_of(*([row, [word("xyz", 300, row[0].y1)]] for row in rows))

    assert agreement(grid(25.0), BARE, 20.0) == 1.0
    assert agreement(grid(100.0), BARE, 20.0) < 1.0


def test_a_page_of_ruled_paper_costs_no_prediction() -> None:
    page, model = blank(), Model()
    for y in range(50, 550, 40):
        cv2.line(page, (30, y), (870, y), (120, 120, 120), 1)
    lines = [line_at("words on lined paper that go on", 50, y + 8.0) for y in range(50, 500, 40)]
    print_lines(page, lines)
    assert recognize_table(page, (30, 40, 870, 560), lines, model) is None


def test_labels_in_the_middle_of_several_rows_span_them_where_no_row_is_left_without():
    def grid(labels: dict[float, str]) -> list[tuple[int, int, str]]:
        lines = [line(text, 100.0, 200 + 40 * y) for y, text in labels.items()]
        lines += [line(f"{y}{x}.5", 100 + 200 * x, 200 + 40 * y) for y in range(7) for x in (1, 2)]
        lines += [line(head, 100 + 200 * x, 160.0) for x, head in enumerate(("Name", "Total", "Share"))]
        table = recognize_table(blank(), (80, 150, 680, 480), lines)
        assert table is not None
        return [(cell.row, cell.row_span, cell.text) for cell in table.cells if cell.column == 0 and cell.text]

    def line(text: str, x: float, y: float) -> TextLine:
        return TextLine(text=text, box=(x, y, x + 14 * len(text), y + 20), confidence=1.0)

    assert grid({0.5: "north", 2: "south", 3: "east", 5: "west"}) == [
        (0, 1, "Name"), (1, 2, "north"), (3, 1, "south"), (4, 1, "east"), (5, 3, "west")
    ]  # fmt: skip
    assert {span for _, span, _ in grid({0: "north", 2: "south", 3: "east", 5: "west"})} == {1}
