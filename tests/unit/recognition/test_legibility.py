import numpy as np

from pagemill.recognition.base import RecognizedText
from pagemill.recognition.legibility import unread_share


def striped_line(width: int = 400) -> np.ndarray:
    line = np.full((40, width, 3), 255, np.uint8)
    line[10:30, ::8] = 0
    line[10:30, 1::8] = 0
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
