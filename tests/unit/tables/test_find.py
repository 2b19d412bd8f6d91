"""Tables ruled across alone, on pages drawn here."""

import cv2
import numpy as np

from pagemill.document.page import TextLine
from pagemill.tables.find import find_tables

TEXT = 20.0

Texts = list[tuple[str, float, float]]
Rules = list[tuple[int, int, int]]


def page_with(texts: Texts, rules: Rules) -> tuple[np.ndarray, list[TextLine]]:
    """A page with (text, x, y) and horizontal rules (y, x1, x2), and its lines."""
    page = np.full((1000, 900, 3), 255, np.uint8)
    lines = []
    for text, x, y in texts:
        cv2.putText(page, text, (int(x), int(y + TEXT)), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (0, 0, 0), 1)
        lines.append(TextLine(text=text, box=(x, y, x + 11 * len(text), y + TEXT + 4)))
    for y, x1, x2 in rules:
        cv2.line(page, (x1, y), (x2, y), (90, 90, 90), 1)
    return page, lines


def ruled_rows(rows: int, *, second_x: float = 400) -> tuple[Texts, Rules]:
    texts, rules = [], [(100, 60, 820)]
    for row in range(rows):
        top = 100 + 50 * row
        texts += [(f"kind {row}", 70, top + 12), ("what it is for", second_x, top + 12)]
        rules.append((top + 50, 60, 820))
    return texts, rules


def test_rows_between_rules_are_a_table() -> None:
    page, lines = page_with(*ruled_rows(4))
    (box,) = find_tables(page, lines)
    assert np.allclose(box, (60, 100, 820, 300), atol=4)


def test_text_between_rules_without_a_second_column_is_no_table() -> None:
    texts, rules = ruled_rows(4)
    assert find_tables(*page_with([text for text in texts if text[1] == 70], rules)) == []


def test_two_rules_are_no_table() -> None:
    texts, rules = ruled_rows(4)
    assert find_tables(*page_with(texts, [rules[0], rules[-1]])) == []


def test_columns_of_text_between_rules_are_no_table() -> None:
    texts = [(f"a line of text number {row}", x, 110 + 30 * row) for row in range(28) for x in (70, 480)]
    rules = [(100, 60, 820), (385, 60, 820), (675, 60, 820), (960, 60, 820)]
    assert find_tables(*page_with(texts, rules)) == []


def test_columns_that_do_not_stand_below_one_another_are_no_table() -> None:
    texts, rules = ruled_rows(4)
    texts += [("and words that lie across all of it", 150, 212)]
    assert find_tables(*page_with(texts, rules)) == []


def test_rules_under_the_figures_of_a_wider_table_are_left_to_its_lines() -> None:
    texts, rules = [], [(100, 400, 820)]
    for row in range(4):
        top = 100 + 50 * row
        texts += [(f"kind {row}", 70, top + 12), (f"1,20{row}", 420, top + 12), (f"88{row}", 700, top + 12)]
        rules.append((top + 50, 400, 820))
    assert find_tables(*page_with(texts, rules)) == []
    assert len(find_tables(*page_with([text for text in texts if text[1] > 100], rules))) == 1


def test_tables_side_by_side() -> None:
    left_texts, left_rules = ruled_rows(3, second_x=230)
    texts = [(text, x + shift, y) for shift in (0, 420) for text, x, y in left_texts]
    rules = [(y, 60 + shift, 400 + shift) for shift in (0, 420) for y, _, _ in left_rules]
    boxes = find_tables(*page_with(texts, rules))
    assert [round(box[0], -1) for box in boxes] == [60, 480]


def test_a_drawing_of_thousands_of_dashes_is_no_table() -> None:
    page = np.full((1000, 900, 3), 255, np.uint8)
    lines = [TextLine(text="a", box=(x, y + 2, x + 9, y + 4)) for x in (5, 30) for y in range(0, 1000, 6)]
    for y in range(0, 1000, 6):
        for x in range(0, 900, 60):
            cv2.line(page, (x, y), (x + 45, y), (0, 0, 0), 1)
    assert find_tables(page, lines) == []


def small_grid() -> tuple[np.ndarray, list[TextLine]]:
    """Three rows of two narrow columns, ruled both ways."""
    texts: Texts = [
        (text, 70 + 75 * (i % 2), 102 + 40 * (i // 2)) for i, text in enumerate(("City", "M", "X", "21", "Y", "24"))
    ]
    page, lines = page_with(texts, [(y, 60, 200) for y in (95, 135, 175, 215)])
    for x in (60, 135, 200):
        cv2.line(page, (x, 95), (x, 215), (90, 90, 90), 1)
    return page, lines


def test_a_small_ruled_grid_with_text_in_its_cells_is_a_table() -> None:
    page, lines = small_grid()
    (box,) = find_tables(page, lines)
    assert np.allclose(box, (60, 95, 200, 215), atol=4)


def test_strokes_of_large_letters_are_no_table() -> None:
    page, lines = small_grid()
    letter = TextLine(text="囲", box=(60, 95, 200, 215))
    assert find_tables(page, [letter, *(line for line in lines if line.text == "City")]) == []
