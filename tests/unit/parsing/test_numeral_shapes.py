"""Roman numerals are told by their strokes from letters, figures and each other."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from pagemill.parsing.numeral_shapes import numeral_of

HEIGHT = 40
PITCH = 14


def drawn(letters: str, serifs: int) -> np.ndarray:
    """A numeral of strokes, ``I`` upright and ``V`` leaning, with serifs at the top and bottom of each."""
    image = Image.new("L", (400, HEIGHT + 20), 0)
    draw = ImageDraw.Draw(image)
    x, top, bottom = 30, 10, 10 + HEIGHT - 1
    for letter in letters:
        if letter == "I":
            draw.rectangle((x - 2, top, x + 2, bottom), fill=255)
        else:
            draw.line((x, top, x + 9, bottom), fill=255, width=5)
            draw.line((x + 18, top, x + 9, bottom), fill=255, width=5)
        ends = (x,) if letter == "I" else (x, x + 18)
        for end in ends:
            draw.rectangle((end - 2 - serifs, top, end + 2 + serifs, top + 1), fill=255)
        if letter == "I":
            draw.rectangle((x - 2 - serifs, bottom - 1, x + 2 + serifs, bottom), fill=255)
        x += PITCH if letter == "I" else PITCH + 18
    return cropped(image)


def cropped(image: Image.Image) -> np.ndarray:
    ink = np.asarray(image) > 128
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


@pytest.mark.parametrize("serifs", [0, 3, 5])
@pytest.mark.parametrize(
    ("letters", "sign"),
    [("I", "Ⅰ"), ("II", "Ⅱ"), ("III", "Ⅲ"), ("IV", "Ⅳ"), ("V", "Ⅴ"), ("VI", "Ⅵ"), ("VII", "Ⅶ"), ("VIII", "Ⅷ")],
)
def test_numerals_with_and_without_serifs(letters: str, sign: str, serifs: int):
    assert numeral_of(drawn(letters, serifs)) == sign


def test_a_figure_1_is_no_numeral_and_two_of_them_are_none():
    image = Image.new("L", (200, HEIGHT + 20), 0)
    draw = ImageDraw.Draw(image)
    for count in (1, 2):
        x = 30 + 26 * count
        draw.rectangle((x - 2, 10, x + 2, 9 + HEIGHT), fill=255)
        draw.line((x - 10, 16, x, 10), fill=255, width=4)
        assert numeral_of(cropped(image)) is None


def test_other_shapes_are_none():
    for shape in (np.ones((40, 40), bool), np.zeros((40, 40), bool), np.eye(40, dtype=bool), np.ones((1, 1), bool)):
        assert numeral_of(shape) is None
