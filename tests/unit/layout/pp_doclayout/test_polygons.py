"""Outlines from masks: tracing blocks gives what tracing the drawn mask gives."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.layout.pp_doclayout.polygons import _convex_corners, _trace, outline

PAGE = (1000, 1600)


def outline_of(mask: np.ndarray, box: tuple[float, ...], page=PAGE) -> np.ndarray | None:
    return outline(np.packbits(mask, axis=1), np.array(box, dtype=np.float32), page)


def drawn_and_traced(mask: np.ndarray, width: int, height: int) -> np.ndarray:
    drawn = cv2.resize(mask, (width, height), interpolation=cv2.INTER_NEAREST)
    contours = cv2.findContours(drawn, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[0]
    if not contours:
        return np.empty((0, 2))
    largest = max(contours, key=cv2.contourArea)
    return cv2.approxPolyDP(largest, 0.004 * cv2.arcLength(largest, True), True).reshape(-1, 2)


@given(st.integers(0, 2**32 - 1), st.integers(1, 24), st.integers(1, 24), st.floats(0.3, 30), st.floats(0.3, 30))
def test_tracing_blocks_is_tracing_the_drawing(seed, rows, columns, across, down):
    random = np.random.default_rng(seed)
    mask = (random.random((rows, columns)) < random.uniform(0.1, 0.95)).astype(np.uint8)
    mask[0, 0] = 1
    width, height = int(np.ceil(columns * across)), int(np.ceil(rows * down))
    assert _trace(mask, width, height).tolist() == drawn_and_traced(mask, width, height).tolist()


def test_a_mask_that_fills_its_box_or_is_empty_says_no_more_than_the_box():
    full, empty = np.ones((200, 200), dtype=bool), np.zeros((200, 200), dtype=bool)
    assert outline_of(full, (100, 100, 500, 500)) is None
    assert outline_of(empty, (100, 100, 500, 500)) is None


def test_the_outline_of_a_slanted_region_follows_it():
    mask = np.zeros((200, 200), dtype=np.uint8)
    corners = np.array([[50, 40], [150, 60], [140, 110], [40, 90]])  # mask pixels: 5 x 8 page pixels each
    cv2.fillPoly(mask, [corners], 1)
    points = outline_of(mask.astype(bool), (200, 320, 755, 888))
    assert points is not None
    drawn, wanted = (np.zeros((1600, 1000), dtype=np.uint8) for _ in range(2))
    cv2.fillPoly(drawn, [np.rint(points).astype(np.int32)], 1)
    cv2.fillPoly(wanted, [corners * (5, 8)], 1)
    assert (drawn & wanted).sum() / (drawn | wanted).sum() > 0.93


@pytest.mark.parametrize(
    "box", [(10, 10, 10, 50), (50, 50, 10, 10), (-50, -50, -10, -10), (1200, 1700, 1300, 1800), (0, 0, 0.5, 0.5)]
)
def test_boxes_without_pixels_have_no_outline(box):
    assert outline_of(np.random.default_rng(0).random((200, 200)) < 0.5, box) is None


def test_a_box_smaller_than_its_mask_pixels_is_traced_as_drawn():
    mask = np.random.default_rng(0).random((200, 200)) < 0.6
    assert outline_of(mask, (0, 0, 150, 150), page=(150, 150)) is not None


def test_inner_corners_go_and_sharp_ones_move_along_their_bisector():
    notch = np.array([[0, 0], [0, 100], [50, 60], [100, 100], [100, 0]])  # as traced: y grows downwards
    assert _convex_corners(notch).tolist() == [[0, 0], [0, 100], [100, 100], [100, 0]]
    triangle = np.array([[0, 0], [0, 100], [100, 100]])  # corners of 45, 90 and 45 degrees
    moved = _convex_corners(triangle)
    assert moved[1].tolist() == [0, 100]
    length = (100 + 100 * np.sqrt(2)) / 2
    assert moved[0] == pytest.approx([length * np.sin(np.pi / 8), length * np.cos(np.pi / 8)])
    assert len(_convex_corners(np.array([[5, 5]]))) == 0
