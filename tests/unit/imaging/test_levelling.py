"""Lines of text and rules that the network left bent are level afterwards."""

import numpy as np
import pytest

from pagemill.imaging.levelling import levelled, rule_curves
from pagemill.imaging.unwarping import Sheet

WIDTH, HEIGHT, TEXT_HEIGHT = 600, 800, 20.0
TEXT = (50.0, 50.0, 550.0, 750.0)
SHEET = Sheet(np.array([[(0, 0), (WIDTH, 0)], [(0, HEIGHT), (WIDTH, HEIGHT)]], np.float32), WIDTH, HEIGHT)


def bow(x: np.ndarray, most: float) -> np.ndarray:
    """How much lower a row of the page is than it should be."""
    return most * np.sin(3 * np.pi * x / WIDTH)


def page(most: float, *, upright: bool = False) -> np.ndarray:
    """Rules, bent by up to so many pixels."""
    pixels = np.full((WIDTH, HEIGHT, 3) if upright else (HEIGHT, WIDTH, 3), 255, np.uint8)
    x = np.arange(50, 550)
    for top in range(100, 720, 60):
        y = np.round(top + bow(x, most)).astype(int)
        for thick in range(3):
            pixels[y + thick, x] = 20
    return pixels


def positions(pixels: np.ndarray) -> np.ndarray:
    """The middle of the rules at some columns, shape (rules, columns)."""
    dark = pixels[:, 60:540:40, 0] < 140
    rows = np.arange(len(pixels))
    found = [[rows[start:end][dark[start:end, i]].mean() for i in range(dark.shape[1])] for start, end in SPACES]
    return np.array(found)


SPACES = [(top - 28, top + 31) for top in range(100, 720, 60)]


def test_bent_rules_are_level_and_stay_where_they_are():
    bent = page(8.0)
    before, after = positions(bent), positions(levelled(SHEET, bent, [], TEXT, TEXT_HEIGHT).flatten(bent))
    assert np.ptp(before, axis=1).max() > 14
    assert np.ptp(after, axis=1).max() <= 2
    assert np.abs(after.mean(axis=1) - before.mean(axis=1)).max() < 3


def test_bent_upright_rules_are_plumb():
    bent = np.ascontiguousarray(page(8.0).transpose(1, 0, 2))
    sheet = Sheet(SHEET.nodes[..., ::-1].transpose(1, 0, 2).copy(), HEIGHT, WIDTH)
    text = (TEXT[1], TEXT[0], TEXT[3], TEXT[2])
    flat = levelled(sheet, bent, [], text, TEXT_HEIGHT).flatten(bent)
    assert np.ptp(positions(flat.transpose(1, 0, 2)), axis=1).max() <= 2


def test_lines_of_text_show_how_a_page_bends():
    bent = page(8.0)
    x = np.linspace(60, 540, 25)
    lines = [np.column_stack([x, top + bow(x, 8.0)]) for top in range(100, 720, 60)]
    flat = levelled(SHEET, bent, lines, (60, 600, 540, 601), TEXT_HEIGHT).flatten(bent)  # no rule is looked for there
    assert np.ptp(positions(flat), axis=1).max() <= 2


def test_a_line_that_disagrees_with_all_others_bends_nothing():
    level = page(0.0)
    x = np.linspace(60, 540, 25)
    slanted = np.column_stack([x, 400 + 0.05 * x])
    flat = levelled(SHEET, level, [slanted], TEXT, TEXT_HEIGHT).flatten(level)
    assert np.ptp(positions(flat), axis=1).max() < 6


@pytest.mark.parametrize("lines", [pytest.param([], id="nothing found"), pytest.param(None, id="level lines")])
def test_a_level_page_stays_as_it_is(lines):
    level = page(0.0) if lines is None else np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    given = [np.array([(60.0, 90.0), (300.0, 90.0), (540.0, 90.0)])] if lines is None else lines
    assert levelled(SHEET, level, given, TEXT, TEXT_HEIGHT) is SHEET


def test_letters_and_what_lies_beyond_the_text_are_no_rules():
    pixels = page(8.0)[..., 0]
    assert len(rule_curves(pixels, TEXT_HEIGHT, TEXT)) == 11
    assert len(rule_curves(pixels, TEXT_HEIGHT, (50, 50, 550, 250))) == 4
    assert rule_curves(pixels, TEXT_HEIGHT, (590, 790, 590, 790)) == []
    letters = np.full((HEIGHT, WIDTH), 255, np.uint8)
    for left in range(60, 540, 30):
        letters[100:103, left : left + 20] = 20
        letters[100:120, left : left + 3] = 20
    assert rule_curves(letters, TEXT_HEIGHT, TEXT) == []
