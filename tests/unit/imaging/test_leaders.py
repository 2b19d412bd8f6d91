"""Leaders are found by their dots, and taken out of a page."""

import warnings

import cv2
import numpy as np
import pytest

from pagemill.imaging.leaders import find_leaders, without_leaders


def _page(pitch: int = 12, count: int = 20, size: int = 3, slope: float = 0.0, paper: int = 255) -> np.ndarray:
    page = np.full((200, 600, 3), paper, np.uint8)
    cv2.putText(page, "Preface", (20, 100), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (20, 20, 20), 2)
    for place in range(count):
        x, y = 150 + pitch * place, round(97 + slope * pitch * place)
        page[y : y + size, x : x + size] = paper - 100
    return page


@pytest.mark.parametrize("how", [{}, {"slope": 0.02}, {"paper": 200}, {"pitch": 7, "size": 2}])
def test_a_row_of_dots_is_a_leader(how: dict[str, float]) -> None:
    page = _page(**how)  # type: ignore[arg-type]
    assert len(find_leaders(page[..., 0])) == 20
    cleaned = without_leaders(page)
    assert int(cleaned[90:, 145:].max()) - int(cleaned[90:, 145:].min()) == 0
    assert (cleaned[:, :140] == page[:, :140]).all()


@pytest.mark.parametrize("how", [{"count": 5}, {"size": 1, "count": 0}])
def test_an_ellipsis_and_letters_are_none(how: dict[str, int]) -> None:
    page = _page(**how)
    assert without_leaders(page) is page


def test_a_dotted_line_under_text_is_none() -> None:
    page = _page()
    for place in range(4):
        cv2.putText(page, "said", (150 + 60 * place, 94), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (20, 20, 20), 2)
    assert without_leaders(page) is page


def test_dots_at_uneven_distances_are_none() -> None:
    page = _page(count=0)
    for place, x in enumerate(np.cumsum([27, 41, 34, 30, 40, 28, 27, 28, 25, 26, 29, 21])):
        page[97 + place % 2 : 101, 100 + x : 104 + x] = 20
    assert find_leaders(page[..., 0]) == []


def test_a_scale_of_small_digits_is_none() -> None:
    page = np.full((2339, 1654, 3), 255, np.uint8)
    for place in range(10):
        cv2.putText(page, str(place), (200 + 40 * place, 1000), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (20, 20, 20), 1)
    assert without_leaders(page) is page


def test_a_scale_in_small_print_of_a_coarse_scan_is_none() -> None:
    page = np.full((1169, 827, 3), 255, np.uint8)
    for place in range(10):
        drawn = np.full((80, 80, 3), 255, np.uint8)
        cv2.putText(drawn, str(place), (20, 60), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (20, 20, 20), 4)
        page[580:592, 200 + 16 * place : 212 + 16 * place] = cv2.resize(drawn, (12, 12), interpolation=cv2.INTER_AREA)
    assert without_leaders(page) is page


def test_a_leader_at_the_upper_edge_has_nothing_above_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(find_leaders(_page()[97:, :, 0])) == 20


def test_dots_that_touch_in_a_coarse_scan_are_a_leader() -> None:
    drawn = np.full((800, 2400), 255, np.uint8)
    for place in range(60):
        cv2.circle(drawn, (600 + 18 * place, 400), 5, 0, -1)
    page = cv2.GaussianBlur(cv2.resize(drawn, (600, 200), interpolation=cv2.INTER_AREA), (0, 0), 0.8)
    assert len(find_leaders(page)) == 60
