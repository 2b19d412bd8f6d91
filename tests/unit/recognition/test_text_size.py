"""The height of letters from pixels alone."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from pagemill.recognition.text_size import letter_height

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
    assert letter_height(page_of_text(em)) == pytest.approx(X_HEIGHT * em, rel=0.25)


def test_a_page_larger_than_what_is_measured_tells_its_own_pixels():
    assert letter_height(page_of_text(28, (5120, 1000))) == pytest.approx(X_HEIGHT * 28, rel=0.25)


def test_pages_with_too_little_text_do_not_tell():
    assert letter_height(np.full((900, 700, 3), 255, np.uint8)) is None
    assert letter_height(np.zeros((1, 1, 3), np.uint8)) is None
    assert letter_height(page_of_text(24, lines=2)) is None
