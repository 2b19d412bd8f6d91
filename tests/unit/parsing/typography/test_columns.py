"""Columns of text, and cells of tables, which stand beside each other."""

from __future__ import annotations

import pytest

from pagemill.document.page import TextLine
from pagemill.parsing.typography.columns import is_level
from pagemill.parsing.typography.rows import PageRow, Piece


def _row(baseline: float, size: float) -> PageRow:
    bottom = baseline + 0.25 * size
    line = TextLine(text="gate", box=(0, bottom - size, 90, bottom), font_size=size)
    return PageRow([Piece(line, 0, 90, (("gate", 0, 90),))])


@pytest.mark.parametrize(("size", "higher", "level"), [(29, 3, True), (29, 4, False), (23, 4, True), (23, 9, False)])
def test_smaller_code_in_the_middle_of_a_row_stands_a_little_higher(size, higher, level):
    assert is_level(_row(200 - higher, size), _row(200, 29)) is level
    assert is_level(_row(200, 29), _row(200 - higher, size)) is level
