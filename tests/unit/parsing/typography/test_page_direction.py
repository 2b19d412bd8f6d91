"""From which side the text of a page is read."""

import msgspec

from pagemill.document.page import Mark, Span, TextLine, Word
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


def test_code_that_stands_at_the_left_of_a_page_read_from_the_right_is_read_from_the_left():
    lines = [line("דאר באר נהר דאר", 300.0 + 20 * place, 540.0, 60.0 + 16 * place) for place in range(4)]
    for place, (text, end) in enumerate((("run", 78.0), ("build", 90.0), ("stop", 84.0))):
        y = 180.0 + 12 * place
        for part, x1, x2 in ((text, 60.0, end), ("# all", 150.0, 180.0)):
            one = line(part, x1, x2, y)
            lines.append(msgspec.structs.replace(one, spans=(Span(0, len(part), Mark.CODE),)))
    blocks = typographic_blocks(TextLayer(lines=tuple(lines), characters=90, unmapped=0), lines, [], (600, 800), 1)
    assert blocks is not None
    text = "\n".join(block.text or "" for block in blocks)
    assert [row.split() for row in text.splitlines()[-3:]] == [[c, "#", "all"] for c in ("run", "build", "stop")]
