import cv2
import numpy as np
import pytest

from pagemill.recognition.base import RecognizedText
from pagemill.recognition.legibility import holds_writing, unread_share


def striped_line(width: int = 400) -> np.ndarray:
    """Letters as bars of two strokes, one above the other."""
    line = np.full((40, width, 3), 255, np.uint8)
    for x in (0, 1):
        line[10:30, x::8] = 0
        line[18:22, x::8] = 255
    return line


def read(text: str, centers: tuple[float, ...]) -> RecognizedText:
    return RecognizedText(text=text, confidence=0.9, centers=centers)


def test_ink_with_characters_all_along_is_read():
    centers = tuple(float(x) for x in np.linspace(0.02, 0.98, 25))
    assert unread_share(striped_line(), read("a" * 25, centers)) == 0.0


def test_ink_without_characters_is_unread():
    assert unread_share(striped_line(), read("", ())) == 1.0
    assert unread_share(striped_line(), read(".", (0.5,))) > 0.8


def test_half_a_line_is_half_read():
    centers = tuple(float(x) for x in np.linspace(0.02, 0.48, 12))
    assert 0.4 < unread_share(striped_line(), read("a" * 12, centers)) < 0.55


def test_a_blank_line_has_nothing_to_read():
    assert unread_share(np.full((40, 400, 3), 250, np.uint8), read("", ())) == 0.0
    assert unread_share(np.zeros((2, 2, 3), np.uint8), read("", ())) == 0.0


def test_greek_from_a_dictionary_of_symbols_counts_as_unread():
    centers = tuple(float(x) for x in np.linspace(0.02, 0.98, 25))
    assert unread_share(striped_line(), read("λιινιγναελεισιαιααεινσιαα", centers)) == 1.0
    assert unread_share(striped_line(), read("the angles αβ" + "a" * 12, centers)) == 0.0


def drawn(points: list[tuple[int, int]], *, closed: bool = False) -> np.ndarray:
    line = np.full((40, 400, 3), 255, np.uint8)
    cv2.polylines(line, [np.array(points, np.int32)], closed, (0, 0, 0), 2)
    return line


def dashes() -> np.ndarray:
    line = np.full((40, 400, 3), 255, np.uint8)
    for x in range(5, 390, 20):
        line[18:22, x : x + 12] = 0
    return line


STROKES = {
    "rule": drawn([(0, 20), (399, 22)]),
    "dashes": dashes(),
    "hatching": np.minimum.reduce([drawn([(x, 32), (x + 8, 8)]) for x in range(0, 390, 14)]),
    "staff": np.minimum.reduce([drawn([(0, y), (399, y)]) for y in range(6, 38, 8)]),
    "zigzag": drawn([(x, 10 if x % 60 else 30) for x in range(0, 400, 30)]),
}


@pytest.mark.parametrize("strokes", STROKES.values(), ids=STROKES)
def test_strokes_are_no_unread_writing(strokes: np.ndarray):
    assert unread_share(strokes, read("", ())) == 0.0
    assert not holds_writing(strokes)


def test_a_rule_behind_a_label_is_no_unread_writing():
    line = striped_line()
    line[:, 200:] = STROKES["rule"][:, 200:]
    centers = tuple(float(x) for x in np.linspace(0.02, 0.48, 12))
    assert unread_share(line, read("a" * 12, centers)) == 0.0
    assert holds_writing(line)


def test_writing_without_contrast_may_be_anything():
    assert holds_writing(np.full((40, 400, 3), 250, np.uint8))
