"""Rows of prose and code."""

import re
from math import inf

import pytest

from pagemill.document.page import TextLine, Word
from pagemill.parsing.typography.prose import code_text
from pagemill.parsing.typography.rows import pieces_of, rows_of_pieces


def test_latin_code_on_a_right_to_left_page_keeps_its_spaces_and_its_order():
    placed = [("git", 700, 718), ("clone", 724, 754), ("دار", 664, 694)]
    words = tuple(Word(text, (float(x1), 100.0, float(x2), 112.0)) for text, x1, x2 in placed)
    line = TextLine(text="git clone دار", box=(664.0, 100.0, 754.0, 112.0), words=words, font_size=10.0)
    rows = rows_of_pieces(pieces_of([line], 800.0, right_to_left=True))
    assert code_text(rows, inf, is_known=False) == "git clone دار"


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (("a.very_long_call", "('x')"), "a.very_long_call('x')"),
        (("x = y", "a.very_long_call"), "x = y\na.very_long_call"),
        (("./get-", "snapshots.json"), "./get-snapshots.json"),
        (("./get-", "it"), "./get-\nit"),
        (("the mes\u2010", "sage"), "the message"),
    ],
)
def test_code_that_the_producer_wrapped_inside_a_word_is_one_line(texts, code):
    lines = []
    for place, text in enumerate(texts):
        y, starts = 100.0 + 14 * place, [found.start() for found in re.finditer(r"\S+", text)]
        words = tuple(
            Word(word, (6.0 * start, y, 6.0 * (start + len(word)), y + 12))
            for word, start in zip(text.split(), starts, strict=True)
        )
        box = (0.0, y, 6.0 * len(text), y + 12)
        lines.append(TextLine(text=text, box=box, words=words, font_size=10.0))
    rows = rows_of_pieces(pieces_of(lines, 800.0, right_to_left=False))
    assert code_text(rows, 98.0, is_known=True) == code
