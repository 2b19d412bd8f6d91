"""Running text against the text of tables."""

from drawn_tables import line_at

from pagemill.tables.prose import prose_share
from pagemill.tables.thresholds import TABLES


def test_columns_of_paragraphs_are_prose():
    lines = [line_at("some words of a sentence that", x, 50 + 30 * row) for x in (50, 500) for row in range(8)]
    assert prose_share(lines) > TABLES.prose
    turned = [line_at("שלום עולם זה משפט ארוך מאוד", x, 50 + 30 * row) for x in (50, 500) for row in range(8)]
    assert prose_share(turned) > TABLES.prose


def test_cells_are_not_prose():
    assert prose_share([]) == prose_share([line_at("a", 0, 0)]) == 0.0
    numbers = [line_at("1,234 5.6 78", 200 * column, 50 + 30 * row) for column in range(4) for row in range(10)]
    labels = [line_at("abc de fg"[: 3 + row % 7], 900, 50 + 30 * row) for row in range(10)]
    assert prose_share(labels) < TABLES.prose
    far = [line_at("some words of a sentence that", 50, 50 + 90 * row) for row in range(8)]
    assert prose_share(far) == 0.0
    assert prose_share(numbers[:4] + labels) < TABLES.prose


def test_cells_that_wrap_are_not_prose():
    lines = []
    for row in range(6):
        y = 50 + 100 * row
        lines += [line_at("some words of a cell that", 50, y), line_at("wraps into a second", 50, y + 28)]
        lines.append(line_at("and one more column", 500, y))
    assert prose_share(lines) < TABLES.prose
