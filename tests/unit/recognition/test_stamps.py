"""Drawn lines that a stamp crosses."""

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from pagemill.recognition.base import RecognizedText
from pagemill.recognition.stamps import inks_of, without_frame, without_stamps

PAPER = (232, 238, 226)
BLACK, RED, BLUE = (24, 24, 28), (205, 60, 80), (40, 70, 190)


def drawn(words: str, colour: tuple[int, int, int], place: tuple[int, int], size: int = 32) -> Image.Image:
    image = Image.new("RGB", (620, 60), (255, 255, 255))
    ImageDraw.Draw(image).text(place, words, colour, font=ImageFont.load_default(size))
    return image


def line(*layers: Image.Image) -> np.ndarray:
    """Inks printed over each other on paper."""
    image = Image.new("RGB", (620, 60), PAPER)
    for layer in layers:
        image = ImageChops.multiply(image, layer)
    return np.asarray(image)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Share of the pixels that clearly differ in lightness."""
    return float((np.abs(a.astype(int).mean(axis=2) - b.astype(int).mean(axis=2)) > 60).mean())


@pytest.mark.parametrize("colour", [RED, BLUE])
def test_each_ink_is_read_without_the_other(colour):
    text, stamp = drawn("Given on the ninth of June", BLACK, (8, 2)), drawn("RECEIVED", colour, (200, 22), 34)
    found = inks_of(line(text, stamp))
    assert found is not None
    # What lies under black ink is gone.
    for ink, alone, most in zip(found, (line(text), line(stamp)), (0.01, 0.05), strict=True):
        left, top, right, bottom = np.round(np.multiply(ink.place, (620, 60, 620, 60))).astype(int)
        assert distance(ink.image, alone[top:bottom, left:right]) < most
    assert 180 < found[1].place[0] * 620 < 205
    quad = found[1].quad_in(((100.0, 10.0), (720.0, 10.0), (720.0, 70.0), (100.0, 70.0)))
    assert quad[0] == pytest.approx((100 + 620 * found[1].place[0], 10 + 60 * found[1].place[1]))


@pytest.mark.parametrize(
    "layers",
    [
        [drawn("Given on the ninth of June", BLACK, (8, 12))],
        [drawn("Given on the ninth of June", RED, (8, 12))],
        [drawn("Given on the", BLACK, (8, 12)), drawn("ninth of June", BLUE, (230, 12))],
        [drawn("return", RED, (8, 22), 16), drawn("total(row)", BLACK, (60, 22), 16)],
    ],
    ids=["black", "coloured", "a coloured part", "code"],
)
def test_a_line_without_a_stamp_is_left_as_it_is(layers):
    assert inks_of(line(*layers)) is None


def test_black_ink_on_coloured_paper_is_no_stamp():
    yellow = Image.new("RGB", (620, 60), (255, 250, 195))
    blurred = drawn("Given on the ninth", BLACK, (8, 12)).filter(ImageFilter.GaussianBlur(1))
    text = np.asarray(ImageChops.multiply(blurred, yellow))
    assert inks_of(text) is None


def test_the_signs_of_a_ring_do_not_count():
    read = RecognizedText(text="(PAID 9)", confidence=0.98, centers=tuple(n / 8 for n in range(8)))
    assert without_frame(read).text == "PAID 9"
    assert without_frame(read).centers == read.centers[1:-1]
    assert without_frame(RecognizedText(text="()", confidence=0.98, centers=(0.1, 0.9))).text == ""


def test_the_edge_of_the_next_line_is_no_part_of_the_text():
    text, stamp = drawn("Given on the ninth of June", BLACK, (8, 0), 20), drawn("RECEIVED", RED, (60, 2), 40)
    alone, both = inks_of(line(text, stamp)), inks_of(line(text, stamp, drawn("and the next", BLACK, (8, 50), 20)))
    assert alone is not None and both is not None and both[0].place == alone[0].place


def page_with(*layers: Image.Image) -> np.ndarray:
    """A page of text, 1,000 pixels high, with layers over it."""
    image = Image.new("RGB", (800, 1000), PAPER)
    draw = ImageDraw.Draw(image)
    for row in range(20):
        draw.text((40, 30 + 40 * row), "Given at the toll house on the ninth of June, before noon", BLACK,
                  font=ImageFont.load_default(26))  # fmt: skip
    for layer in layers:
        image = ImageChops.multiply(image, layer)
    return np.asarray(image)


def ring(colour: tuple[int, int, int], box: tuple[int, int, int, int]) -> Image.Image:
    image = Image.new("RGB", (800, 1000), (255, 255, 255))
    ImageDraw.Draw(image).ellipse(box, outline=colour, width=4)
    return image


@pytest.mark.parametrize("colour", [RED, BLUE])
def test_a_ring_is_taken_off_the_page(colour):
    page, alone = page_with(ring(colour, (300, 200, 440, 340))), page_with()
    cleaned, sheet = without_stamps(page)
    assert sheet is not None
    assert distance(cleaned, alone) < 0.0005 < distance(page, alone)
    assert not distance(sheet[:150], np.full_like(sheet[:150], PAPER))
    assert distance(sheet[200:340, 300:440], np.full((140, 140, 3), PAPER)) > 0.03


def panel(colour: tuple[int, int, int]) -> Image.Image:
    image = Image.new("RGB", (800, 1000), (255, 255, 255))
    ImageDraw.Draw(image).rectangle((20, 100, 780, 300), fill=colour)
    return image


@pytest.mark.parametrize(
    "layers",
    [[], [panel((255, 225, 140))], [ring(RED, (300, 850, 440, 990))]],
    ids=["black", "a coloured ground", "beside the text"],
)
def test_a_page_without_stamps_over_its_text_is_left_as_it_is(layers):
    page = page_with(*layers)
    cleaned, sheet = without_stamps(page)
    assert sheet is None and cleaned is page


def test_a_coloured_page_is_a_picture():
    layers = [ring(RED, (100 + 30 * n, 100, 600, 700)) for n in range(4)]
    assert without_stamps(page_with(*layers))[1] is None
