"""From which side the text of a page is read."""

from __future__ import annotations

from pagemill.document.page import TextLine, Word
from pagemill.imaging.page import TextLayer
from pagemill.parsing.typography.page import typographic_blocks


def line(text: str, x1: float, x2: float, y: float) -> TextLine:
    box = (x1, y, x2, y + 12.0)
    return TextLine(text=text, box=box, words=(Word(text, box),), font_size=10.0)


def test_bullets_do_not_tell_where_lines_of_right_to_left_letters_begin():
    lines = []
    for place, length in enumerate((310.0, 420.0, 350.0, 390.0, 280.0)):
        lines += [line("•", 60.0, 64.0, 100.0 + 16 * place), line("دار", 80.0, length, 100.0 + 16 * place)]
    blocks = typographic_blocks(TextLayer(lines=tuple(lines), characters=20, unmapped=0), lines, [], (600, 800), 1)
    assert blocks is not None
    assert [block.text for block in blocks] == ["\n".join(["• دار"] * 5)]
