"""Columns of vertical writing, as glyphs one by one."""

import numpy as np
import pytest

from pagemill.imaging.glyph_lines import lines_of_glyphs
from pagemill.imaging.glyphs import STYLE, Glyphs
from pagemill.imaging.vertical_lines import columns_of_glyphs

SIZE = 20.0
STYLES = np.array([(SIZE, angle, False, False, False, False, 0, False, 0) for angle in (0, 90)], dtype=STYLE)


def column(text, x, *, top=100.0, step=SIZE):
    """Characters one below the other; figures and Latin letters lie on their side. (character, box, pen, style)."""
    placed, y = [], top
    for char in text:
        if char.isascii():
            placed.append((char, (x + 3, y, x + 18, y + SIZE / 2), (x + 5, y), 1))
            y += SIZE / 2
            continue
        ink = (x, y, x + SIZE, y + SIZE)
        if char in "、。":
            ink = (x + 13, y + 1, x + 18, y + 6)
        elif char == "一":
            ink = (x + 1, y + 9, x + 19, y + 11)
        placed.append((char, ink, (x, y + 0.88 * SIZE), 0))
        y += step
    return placed


def row(text, y, *, left=100.0, step=SIZE):
    return [
        (char, (left + i * step, y, left + i * step + SIZE, y + SIZE), (left + i * step, y + 0.88 * SIZE), 0)
        for i, char in enumerate(text)
    ]


def glyphs_of(placed):
    return Glyphs(
        np.array([ord(char) for char, *_ in placed], dtype=np.uint32),
        np.array([box for _, box, _, _ in placed], dtype=np.float64),
        np.array([pen for _, _, pen, _ in placed], dtype=np.float64),
        np.array([style for *_, style in placed], dtype=np.int32),
        STYLES,
    )


def texts_of(placed):
    return [line.text for line in lines_of_glyphs(glyphs_of(placed), 1000, 1000)]


def test_columns_side_by_side_are_lines_of_their_own_in_content_order():
    first, second = "今年の春、水道局は新しい", "停車場の計画を承認した。"
    assert texts_of(column(first, 400) + column(second, 366)) == [first, second]


def test_punctuation_flat_characters_and_figures_stay_in_their_column():
    text = "供水公司公布了2024年的一件預算。"
    (line,) = lines_of_glyphs(glyphs_of(column(text, 400)), 1000, 1000)
    assert line.text == text
    assert line.box == pytest.approx((400, 100, 420, 100 + 15 * SIZE + 6), abs=1)
    assert [word.text for word in line.words] == [text]


def test_tiers_are_cut():
    upper, lower = "上段の文章です", "下段の文章です"
    assert texts_of(column(upper, 400) + column(lower, 400, top=300)) == [upper, lower]


@pytest.mark.parametrize("pitch", [1.25, 1.5, 2.0])
def test_horizontal_lines_stay_horizontal(pitch):
    lines = ["横書きの文章です", "二行目の文章です", "三行目の文章です", "四行目の文章です"]
    placed = [glyph for i, text in enumerate(lines) for glyph in row(text, 100 + i * pitch * SIZE)]
    assert not columns_of_glyphs(glyphs_of(placed))
    assert texts_of(placed) == lines


CELLS = [("甲", "一"), ("乙", "二"), ("丙", "三"), ("丁", "四"), ("戊", "五")]


def test_cells_of_a_tables_column_are_no_vertical_line():
    rows = [row(a, 100 + 28 * i) + row(b, 100 + 28 * i, left=300) for i, (a, b) in enumerate(CELLS)]
    assert not columns_of_glyphs(glyphs_of([glyph for cells in rows for glyph in cells]))
