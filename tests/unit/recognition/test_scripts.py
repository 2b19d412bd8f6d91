"""The detector of scripts: its border to the rest. How well it tells: tests/integration/test_scripts.py."""

import cv2
import numpy as np
import pytest

from pagemill.recognition.languages import ALPHABETS, LANGUAGE_OF_SCRIPT, TESSDATA_NAMES, scripts_of_language
from pagemill.recognition.scripts import FIGURES, FLIPPED, HEIGHT, ink_of, script_shares


def line(text="Printed words", height=48, *, paper=255, ink=0):
    image = np.full((height, 16 * len(text), 3), paper, np.uint8)
    cv2.putText(image, text, (4, height - 14), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (ink, ink, ink), 2)
    return image


def test_every_script_that_is_told_is_read_or_has_a_language_to_install():
    told = set(script_shares([line()])) - {FIGURES}
    upright = {name for name in told if name[0] != FLIPPED}
    assert {FLIPPED + name for name in upright} == told - upright
    assert upright == LANGUAGE_OF_SCRIPT.keys() | {"LATIN", "CJK", "HIRAGANA"}
    for script, language in LANGUAGE_OF_SCRIPT.items():
        assert language in TESSDATA_NAMES and language in ALPHABETS
        assert script == "VIETNAMESE" or script in scripts_of_language(language)


def test_shares_are_probabilities_of_all_lines_together():
    shares = script_shares([line(), line("other words", 30)])
    assert sum(shares.values()) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("paper", [255, 30])
def test_paper_without_ink_has_no_script(paper):
    blank = np.full((40, 300, 3), paper, np.uint8)
    assert ink_of(blank) is None
    assert script_shares([blank]) == {}
    assert script_shares([blank, line()]) == script_shares([line()])


def test_light_letters_on_dark_paper_are_ink_too():
    dark, light = ink_of(line(paper=0, ink=255)), ink_of(line())
    assert dark is not None and light is not None
    assert dark.shape[0] == HEIGHT
    assert np.abs(dark - light).mean() < 0.02


@pytest.mark.parametrize("shape", [(1, 1), (2, 900), (900, 2), (48, 20_000)])
def test_lines_of_any_shape_are_looked_at(shape):
    chance = np.random.default_rng(3)
    shares = script_shares([chance.integers(0, 255, (*shape, 3), np.uint8)])
    assert not shares or sum(shares.values()) == pytest.approx(1, abs=1e-3)
