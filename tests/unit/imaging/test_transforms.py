import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.imaging.transforms import crop, crop_along, crop_quad, fit, resize, rotate_quarter


def checkered(height: int, width: int) -> np.ndarray:
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows % 256, columns % 256, (rows + columns) % 256], axis=-1).astype(np.uint8)


def test_resize_states_its_size_and_keeps_equal_sizes_untouched():
    page = checkered(40, 60)
    assert resize(page, 30, 20).shape == (20, 30, 3)
    assert resize(page, 60, 40) is page
    with pytest.raises(ValueError, match="cannot resize"):
        resize(page, 0, 10)


def test_fit_only_shrinks():
    page = checkered(100, 10)
    assert fit(page, 50).shape == (50, 5, 3)
    assert fit(page, 200) is page
    assert fit(checkered(1000, 1), 10).shape == (10, 1, 3)


def test_crop_is_the_slice():
    page = checkered(50, 80)
    cut = crop(page, (10.0, 5.0, 30.0, 25.0))
    assert np.array_equal(cut, page[5:25, 10:30])
    assert np.shares_memory(cut, page)


def test_crop_whitens_outside_the_polygon():
    page = np.zeros((20, 20, 3), np.uint8)
    cut = crop(page, (0, 0, 20, 20), [(0, 0), (19, 0), (0, 19)])
    assert cut[2, 2].tolist() == [0, 0, 0]
    assert cut[18, 18].tolist() == [255, 255, 255]
    assert not page.any()


@given(st.tuples(*[st.floats(0, 39)] * 4))
def test_crop_by_the_box_as_a_polygon_is_the_slice(box: tuple[float, float, float, float]):
    page = checkered(40, 40)
    (x1, x2), (y1, y2) = sorted(box[::2]), sorted(box[1::2])
    cut = crop(page, (x1, y1, x2, y2), [(x1, y1), (x2, y1), (x2, y2), (x1, y2)])
    assert np.shares_memory(cut, page)
    assert np.array_equal(cut, crop(page, (x1, y1, x2, y2)))


@given(st.lists(st.tuples(st.floats(2, 38), st.floats(2, 38)), min_size=3, max_size=7))
def test_crop_keeps_every_pixel_of_a_corner(polygon: list[tuple[float, float]]):
    page = np.zeros((40, 40, 3), np.uint8)
    cut = crop(page, (0, 0, 40, 40), polygon)
    assert all(not cut[int(y), int(x)].any() for x, y in polygon)
    assert cut[0, 0].tolist() == [255, 255, 255]
    assert not page.any()


coordinate = st.floats(-1e5, 1e5, allow_nan=False)


@given(st.tuples(coordinate, coordinate, coordinate, coordinate))
def test_crop_of_any_box_has_pixels(box: tuple[float, float, float, float]):
    cut = crop(checkered(30, 40), box)
    assert 1 <= cut.shape[0] <= 30
    assert 1 <= cut.shape[1] <= 40


@given(st.lists(st.tuples(coordinate, coordinate), min_size=4, max_size=4))
def test_crop_quad_of_any_corners_is_bounded(corners: list[tuple[float, float]]):
    cut = crop_quad(checkered(30, 40), corners)
    assert min(cut.shape[:2]) >= 1
    assert max(cut.shape[:2]) <= 80


def test_crop_quad_of_an_upright_box_is_the_slice():
    page = checkered(50, 80)
    cut = crop_quad(page, [(10, 5), (30, 5), (30, 25), (10, 25)])
    assert np.array_equal(cut, page[5:25, 10:30])
    assert not np.shares_memory(cut, page)


def test_crop_quad_turns_by_its_first_corner():
    page = checkered(50, 80)
    on_its_side = crop_quad(page, [(30, 5), (30, 25), (10, 25), (10, 5)])
    assert on_its_side.shape == (20, 20, 3)
    assert np.abs(on_its_side.astype(int) - np.rot90(page[5:25, 10:30])).max() <= 1


def test_crop_quad_straightens_a_slanted_line():
    page = np.full((200, 400, 3), 255, np.uint8)
    page[90:110, 50:350] = (200, 30, 10)
    turn = cv2.getRotationMatrix2D((200, 100), 7, 1)
    slanted = cv2.warpAffine(page, turn, (400, 200), borderValue=(255, 255, 255))
    corners = np.array([(52, 92), (348, 92), (348, 108), (52, 108)]) @ turn[:, :2].T + turn[:, 2]
    cut = crop_quad(slanted, [(float(x), float(y)) for x, y in corners])
    assert cut.shape == (16, 296, 3)
    assert np.abs(cut.astype(int) - (200, 30, 10)).max() < 12


@pytest.mark.parametrize("corners", [[(0, 0), (1, 0), (1, 1)], [(0, 0), (1, 0), (float("nan"), 1), (0, 1)]])
def test_crop_quad_refuses_what_is_no_quadrilateral(corners: list[tuple[float, float]]):
    with pytest.raises(ValueError, match="four finite corners"):
        crop_quad(checkered(5, 5), corners)


def test_rotate_quarter_is_clockwise():
    page = checkered(2, 3)
    assert np.array_equal(rotate_quarter(page, 90), np.rot90(page, -1))
    assert np.array_equal(rotate_quarter(rotate_quarter(page, 90), 270), page)
    assert rotate_quarter(page, 90).flags.c_contiguous
    with pytest.raises(ValueError, match="multiple of 90"):
        rotate_quarter(page, 45)


def test_crop_along_straightens_a_bent_band():
    page = np.full((100, 400, 3), 255, np.uint8)
    x = np.arange(400)
    middle = [(float(each), 50 + 15 * np.sin(each / 70)) for each in x]
    for column, y in middle:
        page[round(y) - 5 : round(y) + 5, int(column)] = 0
    band = crop_along(page, middle, 20.0, 380.0, 24.0)
    assert band.shape == (24, 360, 3)
    assert band[10:14].max() < 60
    assert min(band[:4].min(), band[-4:].min()) > 200
