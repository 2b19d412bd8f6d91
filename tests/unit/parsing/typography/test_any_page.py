"""Whatever stands on a page: the rules end, and no letter is lost."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.document.page import Style, TextLine, Word
from pagemill.imaging.page import TextLayer
from pagemill.parsing.typography.page import typographic_blocks

WIDTH, HEIGHT = 800, 1000
STYLES = (
    Style(family="Serif", size=11.0, characters=900),
    Style(family="Serif", size=16.0, bold=True, characters=90),
    Style(family="Mono", size=10.0, fixed_pitch=True, characters=60),
)
WORDS = [
    *("vat", "mould", "felt,", "Paper.", "1", "12", "3.", "①", "⁷", "•", "-", "(a)", "iv"),
    *("종이", "は", "ورق", "x=1", "#", "|"),
]
PLACES = st.tuples(st.integers(0, 7), st.integers(0, 40), st.integers(-2, 2))
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9)
LINES = st.lists(st.tuples(PLACES, TEXTS, st.integers(0, 2)), max_size=40)


def line_of(place: tuple[int, int, int], words: list[str], style: int) -> TextLine:
    column, row, off = place
    size = 2 * STYLES[style].size
    left, top = 40.0 + 90 * column + off, 20.0 + 23 * row + off
    found, x = [], left
    for word in words:
        found.append(Word(word, (x, top, x + 0.5 * size * len(word), top + size)))
        x += 0.5 * size * (len(word) + 1)
    box = (left, top, found[-1].box[2], top + size)
    return TextLine(text=" ".join(words), box=box, font_size=size, style=style, words=tuple(found), engine="text-layer")


@settings(max_examples=150)
@given(lines=LINES)
def test_no_letter_is_lost(lines):
    drawn = [line_of(*each) for each in lines]
    characters = sum(len(line.text) for line in drawn)
    layer = TextLayer(lines=tuple(drawn), characters=characters, unmapped=0, styles=STYLES)
    blocks = typographic_blocks(layer, drawn, [], (WIDTH, HEIGHT), 1)
    if blocks is None:
        return
    kept = [id(line) for block in blocks for line in block.lines]
    assert Counter(letters(drawn)) - Counter(letters([line for block in blocks for line in block.lines])) == {}
    assert kept or not drawn


def letters(lines: list[TextLine]) -> str:
    return "".join(char for line in lines for char in line.text if char.isalpha())
