"""Straightening: the angle, and boxes that come back to where the ink is."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.labels import Label
from pagemill.document.page import PageResult, Region, TextLine, Word
from pagemill.imaging.page import DecodedPage
from pagemill.parsing.thresholds import PARSING
from pagemill.parsing.upright import estimate_skew, level_page

WIDTH, HEIGHT = 600, 800


def slanted(angle: float, rows: int = 8) -> tuple[np.ndarray, list[TextLine]]:
    """A page of black bars, 20 pixels high, that fall to the right by ``angle`` degrees, and their lines."""
    turn = cv2.getRotationMatrix2D((WIDTH / 2, HEIGHT / 2), -angle, 1.0)
    pixels = np.full((HEIGHT, WIDTH, 3), 255, dtype=np.uint8)
    lines = []
    for row in range(rows):
        y = 150 + 60 * row
        corners = np.array([(100, y), (500, y), (500, y + 20), (100, y + 20)]) @ turn[:, :2].T + turn[:, 2]
        cv2.fillPoly(pixels, [np.round(corners).astype(np.int32)], (0, 0, 0))
        low, high = corners.min(axis=0), corners.max(axis=0)
        box = (*low.tolist(), *high.tolist())
        polygon = tuple((x, y) for x, y in corners.tolist())
        lines.append(TextLine(text=f"{row}", box=box, polygon=polygon, words=(Word(f"{row}", box),)))
    return pixels, lines


@given(angle=st.floats(-PARSING.max_skew + 0.01, PARSING.max_skew - 0.01).filter(lambda angle: abs(angle) > 0.2))
def test_the_angle_of_lines(angle: float):
    assert estimate_skew(slanted(angle)[1]) == pytest.approx(angle, abs=0.05)


def test_too_little_to_tell_is_no_angle():
    level, falling, rising = (slanted(angle)[1] for angle in (0.0, 5.0, -5.0))
    assert estimate_skew(level) == 0
    assert estimate_skew(falling[:2]) == 0
    assert estimate_skew([*falling[:4], *rising[4:]]) == 0
    assert estimate_skew([]) == 0


@pytest.mark.parametrize("angle", [3.0, -7.0])
def test_lines_become_level_and_come_back(angle: float):
    pixels, lines = slanted(angle)
    level = level_page(DecodedPage(pixels=pixels), lines, [], turned=0)
    for row, line in enumerate(level.lines):
        assert line.box == pytest.approx((100, 150 + 60 * row, 500, 170 + 60 * row), abs=0.6)
        assert line.polygon is None
        assert line.words[0].box[1::2] == line.box[1::2]
        x1, y1, x2, y2 = (round(value) for value in line.box)
        assert level.straight.pixels[y1 + 2 : y2 - 2, x1 + 2 : x2 - 2].max() < 100  # the ink is where the box is

    first, second = level.lines[0], level.lines[1]
    region = Region(index=0, label=Label.TEXT, bbox_2d=(0, 0, 0, 0), bbox=first.box, lines=(first, second))
    record = PageResult(
        page_id="a", page_idx=0, doc_id="a", source="a", page_number=1, width=WIDTH, height=HEIGHT, regions=[region]
    )
    level.restore(record)
    assert region.lines == (lines[0], lines[1])
    assert region.polygon is not None
    assert all(math.dist(*pair) < 1 for pair in zip(region.polygon, lines[0].polygon or (), strict=True))
    assert region.bbox == pytest.approx(lines[0].box, abs=0.6)
    thousandths = [value * 1000 / side for value, side in zip(region.bbox, (WIDTH, HEIGHT) * 2, strict=True)]
    assert region.bbox_2d == pytest.approx(thousandths, abs=0.6)
