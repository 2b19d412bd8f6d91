"""Rows and their pieces."""

from pagemill.document.page import Mark, Span, TextLine
from pagemill.parsing.typography.rows import Piece, give_body_size


def test_a_line_with_small_code_in_it_stands_where_text_of_its_size_stands():
    text = "Run make test now"
    line = TextLine(text=text, box=(0, 0, 200, 20), font_size=14, spans=(Span(4, 13, Mark.CODE),))
    piece = Piece(line, 0, 200, ((text, 0, 200),))
    assert piece.baseline == 20 - 0.25 * 14  # also for those who ask before
    give_body_size([piece], 16)
    assert (piece.size, piece.baseline) == (16, 20 - 0.25 * 16)
