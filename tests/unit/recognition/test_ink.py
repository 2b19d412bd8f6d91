import cv2
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from pagemill.recognition.base import RecognizedText
from pagemill.recognition.ink import holds_writing, letter_groups, letter_height, letters_of, share_inside, unread_share


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


FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
X_HEIGHT = 0.547  # of DejaVu Sans, in ems


def page_of_text(em: int, shape: tuple[int, int] = (1400, 1000), lines: int = 12) -> np.ndarray:
    image = Image.new("RGB", shape[::-1], "white")
    draw = ImageDraw.Draw(image)
    for row in range(lines):
        text = "the mill turns slowly in spring when water is high"
        draw.text((40, 40 + 1.4 * em * row), text, font=ImageFont.truetype(FONT, em), fill=(30, 30, 30))
    noisy = np.asarray(image, np.float32) + np.random.default_rng(0).normal(0, 8, (*shape, 1))
    return noisy.clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("em", [14, 24, 36])
def test_the_height_of_lower_case_letters(em):
    assert letter_height(letters_of(page_of_text(em))) == pytest.approx(X_HEIGHT * em, rel=0.25)


def test_a_page_larger_than_what_is_measured_tells_its_own_pixels():
    assert letter_height(letters_of(page_of_text(28, (5120, 1000)))) == pytest.approx(X_HEIGHT * 28, rel=0.25)


def test_a_long_receipt_keeps_its_letters():
    assert letter_height(letters_of(page_of_text(17, (12000, 600)))) == pytest.approx(X_HEIGHT * 17, rel=0.25)


def test_pages_with_too_little_text_do_not_tell():
    assert letter_height(letters_of(np.full((900, 700, 3), 255, np.uint8))) is None
    assert letter_height(letters_of(np.zeros((1, 1, 3), np.uint8))) is None
    assert letter_height(letters_of(page_of_text(24, lines=2))) is None


def test_letters_that_stand_together_are_a_group():
    page = np.full((3000, 2000, 3), 255, np.uint8)
    page[500:530, 400:600] = np.tile(striped_line(200)[5:35], (1, 1, 1))
    page[2900:2930, 1900:2000] = striped_line(100)[5:35]
    page[100, 0:2000] = 0  # a rule is no letter
    (left, top, right, bottom), (*_, right_most, lowest) = letter_groups(page)
    assert 300 < left < 400 < 600 < right < 700
    assert 400 < top < 500 < 530 < bottom < 600
    assert right_most == 2000
    assert lowest <= 3000
    page[::200, ::200] = 0
    page[10::200, 10::200] = 0
    assert len(letter_groups(page)) == 2  # specks are no letters


def test_groups_whose_boxes_overlap_are_one():
    page = np.full((3000, 2000, 3), 255, np.uint8)
    for step in range(5):
        page[500 + 50 * step : 530 + 50 * step, 400 + 100 * step : 500 + 100 * step] = striped_line(100)[5:35]
    page[500:530, 850:900] = striped_line(50)[5:35]  # in the empty corner of the stair
    page[2500:2530, 400:500] = striped_line(100)[5:35]
    stair, below = letter_groups(page)
    assert stair[1] < 500 < 900 < stair[2]
    assert below[1] > 2400


def test_a_page_full_of_shapes_has_no_groups_of_letters():
    page = np.full((3000, 2000, 3), 255, np.uint8)
    for row in range(100, 2900, 300):
        page[row : row + 20, 100:1900:300] = 0
        page[row : row + 20, 105:1900:300] = 0
    page = cv2.erode(page, np.ones((1, 15), np.uint8))
    assert letter_groups(page) == []


def test_letters_are_inside_the_lines_around_them():
    page = page_of_text(24)
    letters, size = letters_of(page), (page.shape[1], page.shape[0])
    upper = ((0.0, 0.0), (1000.0, 0.0), (1000.0, 40 + 1.4 * 24 * 6), (0.0, 40 + 1.4 * 24 * 6))
    assert share_inside(letters, [], size) == 0.0
    assert share_inside(letters, [upper], size) == pytest.approx(0.5, abs=0.05)
    assert share_inside(letters[:100], [], size) == 1.0  # too few to tell
