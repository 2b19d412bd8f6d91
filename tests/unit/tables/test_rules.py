"""Rules of tables, drawn here."""

import cv2
import numpy as np

from pagemill.tables.rules import find_rules

TEXT = 30.0


def upright_strokes(*strokes: tuple[int, int, int]) -> np.ndarray:
    """A page with upright strokes (x, y1, y2)."""
    page = np.full((300, 400), 255, np.uint8)
    for x, y1, y2 in strokes:
        cv2.line(page, (x, y1), (x, y2), 0, 2)
    return page


def test_a_rule_right_before_the_words_of_narrow_cells_is_one() -> None:
    words = np.array([(102.0, top, 180.0, top + TEXT) for top in (51, 81, 111, 141, 171)])
    rules = find_rules(upright_strokes((100, 50, 200)), TEXT, words)
    assert [abs(rule.position - 100) < 2 for rule in rules.vertical] == [True]


def test_the_stems_of_first_letters_are_no_rule() -> None:
    tops = (52, 88, 124, 160)
    words = np.array([(103.0, top, 180.0, top + TEXT) for top in tops])
    assert not find_rules(upright_strokes(*((101, top + 2, top + 28) for top in tops)), TEXT, words).vertical
