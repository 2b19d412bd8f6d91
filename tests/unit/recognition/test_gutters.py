"""Lines across the gutter of two columns are cut there; lines of one column never are."""

from collections import Counter

import cv2
import numpy as np

from pagemill.recognition import gutters
from pagemill.recognition.base import DetectedLine
from pagemill.recognition.gutters import cut_at_gutters

LEFT, RIGHT = (20, 300), (316, 600)  # a gutter of 16 pixels between lines of 30


def page_and_lines(rows: int, merged: set[int], inked_at: int | None = None) -> tuple[np.ndarray, list[DetectedLine]]:
    page = np.full((40 * rows + 40, 640, 3), 255, np.uint8)
    found = []
    for row in range(rows):
        y = 20 + 40 * row
        for start, end in (LEFT, RIGHT):
            cv2.putText(page, "abcde fghij klmno"[: 17 - row % 2], (start, y + 22), 0, 0.9, (0, 0, 0), 2)
            page[y : y + 30, end:316] = 255
        if row == inked_at:
            page[y + 8 : y + 22, 200:340] = 0
        pieces = [(LEFT[0], RIGHT[1])] if row in merged else [LEFT, RIGHT]
        found += [
            DetectedLine(polygon=((a, y), (b, y), (b, y + 30), (a, y + 30)), score=0.9)
            for a, b in ((float(a), float(b)) for a, b in pieces)
        ]
    return page, found


def test_merged_lines_between_parted_ones_are_cut():
    page, found = page_and_lines(8, merged={2, 3, 5})
    cut = cut_at_gutters(page, found)
    assert len(cut) == 16
    assert all(line.polygon[1][0] < 316 or line.polygon[0][0] > 290 for line in cut)


def justified(row: int, spaces: list[int]) -> tuple[np.ndarray, list[DetectedLine]]:
    """Two columns, and a line across both with spaces of 16 pixels, one of them in the gutter."""
    page, found = page_and_lines(8, merged={row})
    y = 20 + 40 * row
    page[y : y + 30] = 255
    page[y + 8 : y + 22, 20:600] = 0
    for left in (*spaces, 300):
        page[y : y + 30, left : left + 16] = 255
    return page, found


def test_a_justified_line_is_not_cut_on_a_photograph_at_a_space_that_stands_in_a_gutter():
    page, found = justified(4, [80, 160, 230, 380, 460])
    assert len(cut_at_gutters(page, found)) == len(found) + 2  # the space before it, too
    assert cut_at_gutters(page, found, bends=True) == found
    page, found = page_and_lines(8, merged={2, 3, 5})  # no other blank is so wide
    assert len(cut_at_gutters(page, found, bends=True)) == 16


def test_a_line_with_ink_in_the_gutter_stays_whole():
    page, found = page_and_lines(12, merged={6}, inked_at=6)
    assert cut_at_gutters(page, found) == found


def test_few_rows_are_no_columns():
    page, found = page_and_lines(4, merged={1, 2})
    assert cut_at_gutters(page, found) == found


def test_lines_that_detection_never_parts_stay():
    page, found = page_and_lines(9, merged=set(range(9)))
    assert cut_at_gutters(page, found) == found


def test_nothing_to_cut():
    page = np.full((50, 50, 3), 255, np.uint8)
    assert cut_at_gutters(page, []) == []


def test_the_rows_that_are_looked_at_grow_with_the_page_and_not_with_its_square(monkeypatch):
    looked = Counter()
    monkeypatch.setattr(
        gutters, "_next_row", lambda *given, found=gutters._next_row: looked.update("x") or found(*given)
    )
    counts = []
    for rows in (50, 100):
        looked.clear()
        assert len(cut_at_gutters(*page_and_lines(rows, merged=set(range(3, rows, 7))))) == 2 * rows
        counts.append(looked.total())
    assert counts[1] < 2.5 * counts[0]
