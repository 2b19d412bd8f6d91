"""Rows of prose and code."""

from __future__ import annotations

from pagemill.document.page import TextLine, Word
from pagemill.parsing.typography.prose import code_text
from pagemill.parsing.typography.rows import pieces_of, rows_of_pieces


def test_latin_code_on_a_right_to_left_page_keeps_its_spaces_and_its_order():
    placed = [("git", 700, 718), ("clone", 724, 754), ("دار", 664, 694)]
    words = tuple(Word(text, (float(x1), 100.0, float(x2), 112.0)) for text, x1, x2 in placed)
    line = TextLine(text="git clone دار", box=(664.0, 100.0, 754.0, 112.0), words=words, font_size=10.0)
    rows = rows_of_pieces(pieces_of([line], 800.0, right_to_left=True))
    assert code_text(rows) == "git clone دار"
