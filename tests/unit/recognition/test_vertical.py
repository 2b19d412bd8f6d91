"""Lines on their side: which squares hold a sign that was not read, and what the reading upright adds."""

import numpy as np
import pytest

from pagemill.recognition.base import RecognizedText
from pagemill.recognition.vertical import stood_up

SIDE = 40


def line_of(*shapes: str) -> np.ndarray:
    """Squares along a line on its side; its upper edge is the right side of the page's column."""
    image = np.full((50, SIDE * len(shapes), 3), 255, np.uint8)
    for index, shape in enumerate(shapes):
        x = SIDE * index
        if shape == "character":
            image[7:43, x + 3 : x + 37] = 0
            image[11:39, x + 7 : x + 33] = 255
            image[20:24, x + 7 : x + 33] = 0
        elif shape == "sign":
            image[8:16, x + 3 : x + 11] = 0
        elif shape == "stroke":
            image[23:27, x + 3 : x + 37] = 0
    return image


def read_of(text: str, *squares: int, count: int) -> RecognizedText:
    centers = tuple((square + 0.5) / count for square in squares)
    return RecognizedText(text=text, confidence=0.99, centers=centers, confidences=(0.99,) * len(text))


SHAPES = ("character",) * 4 + ("sign", "character", "character", "stroke", "character")
READ = (0, 1, 2, 3, 5, 6, 8)


def test_a_sign_and_a_stroke_that_were_left_out_come_back_in_their_places():
    read = read_of("地区の市川タプ", *READ, count=9)
    upright = stood_up(line_of(*SHAPES), read)
    assert upright is not None
    second = RecognizedText(
        text="地区の市、川タ１プ", confidence=0.9, centers=tuple((np.arange(9) + 0.5) / 9), confidences=(0.9,) * 9
    )
    completed, lost = upright.completed(second)
    assert (completed.text, lost) == ("地区の市、川タープ", 0)
    assert len(completed.centers) == len(completed.confidences) == 9
    assert list(completed.centers) == sorted(completed.centers)


def test_the_sign_stands_where_level_text_has_it():
    upright = stood_up(line_of(*SHAPES), read_of("地区の市川タプ", *READ, count=9))
    assert upright is not None
    square = upright.image[:, upright.ends[3] : upright.ends[4], 0] < 128
    rows, columns = np.nonzero(square)
    assert rows.mean() > square.shape[0] / 2
    assert columns.mean() < square.shape[1] / 2


@pytest.mark.parametrize(("comma", "text"), [("，", "市川地区人下流"), ("、", "の市川タプ地区")])
def test_an_apostrophe_in_the_upper_right_is_a_comma(comma, text):
    read = read_of(text[:4] + "’" + text[4:6] + "一" + text[6], *range(9), count=9)
    upright = stood_up(line_of(*SHAPES), read)
    assert upright is not None
    second = RecognizedText(
        text=text[:4] + "’" + text[4:6] + "|" + text[6],
        confidence=0.9,
        centers=tuple((np.arange(9) + 0.5) / 9),
        confidences=(0.9,) * 9,
    )
    assert upright.completed(second)[0].text == f"{text[:4]}{comma}{text[4:6]}ー{text[6]}"


def test_a_full_stop_at_the_very_end_is_found():
    cut = line_of("character", "character", "character", "character", "sign")[:, : 4 * SIDE + 12]
    read = RecognizedText(
        text="市川地区",
        confidence=0.99,
        centers=tuple((np.arange(4) + 0.5) * SIDE / cut.shape[1]),
        confidences=(0.99,) * 4,
    )
    upright = stood_up(cut, read)
    assert upright is not None
    second = RecognizedText(
        text="市川地区。", confidence=0.9, centers=tuple((np.arange(5) + 0.5) / 5), confidences=(0.9,) * 5
    )
    assert upright.completed(second) == (upright.completed(second)[0], 0)
    assert upright.completed(second)[0].text == "市川地区。"


def test_what_is_not_read_upright_either_is_counted():
    read = read_of("地区の市川タプ", *READ, count=9)
    upright = stood_up(line_of(*SHAPES), read)
    assert upright is not None
    second = read_of("地区の市川タプ", *READ, count=9)
    assert upright.completed(second) == (upright.completed(second)[0], 1)


def test_a_line_whose_characters_did_not_lie_on_their_side_stays():
    read = read_of("地区の市川タプ", *READ, count=9)
    upright = stood_up(line_of(*SHAPES), read)
    assert upright is not None
    nonsense = RecognizedText(text="甲乙丙", confidence=0.9, centers=(0.1, 0.5, 0.9), confidences=(0.9,) * 3)
    assert upright.completed(nonsense) == (read, 0)


def test_complete_lines_are_not_read_twice():
    assert stood_up(line_of(*["character"] * 5), read_of("市川地区人", *range(5), count=5)) is None
    assert stood_up(np.full((50, 400, 3), 255, np.uint8), read_of("市川地区人", *range(5), count=5)) is None
