"""Borders between columns without vertical rules."""

from pagemill.tables.columns import find_separators
from pagemill.tables.words import TableWord

ROWS = [[(0, 90), (130, 220), (300, 400)]] * 4 + [[(0, 220), (300, 400)]] * 3 + [[(130, 220)]] * 5


def test_lines_of_cells_that_wrap_do_not_hide_a_border():
    rows = [[TableWord("x", x1, x2, 30.0 * y, 30.0 * y + 20, y) for x1, x2 in row] for y, row in enumerate(ROWS)]
    assert find_separators(rows, 20.0, []) == [110.0, 260.0]
