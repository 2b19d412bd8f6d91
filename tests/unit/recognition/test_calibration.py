"""The stated meaning of a confidence: tables that rise, and one for engines that nobody has measured."""

import pytest

from pagemill.recognition.calibration import OTHER, expected_right, tables


@pytest.mark.parametrize("engine", sorted(tables()))
def test_a_table_rises_from_less_to_more(engine):
    scores, right = tables()[engine]
    assert list(scores) == sorted(scores) and list(right) == sorted(right)
    assert all(0 <= value <= 1 for value in (*scores, *right))


def test_the_engines_that_come_with_pagemill_are_measured():
    assert {"rapidocr", "tesseract", OTHER} <= set(tables())


def test_between_two_points_lies_the_line_and_outside_of_them_the_last_one():
    scores, right = tables()["rapidocr"]
    middle = (scores[0] + scores[1]) / 2
    assert expected_right("rapidocr", middle) == pytest.approx((right[0] + right[1]) / 2, abs=1e-4)
    assert expected_right("rapidocr", 0.0) == right[0]
    assert expected_right("rapidocr", 1.0) == right[-1]


def test_an_engine_of_another_package_has_the_table_of_all_engines():
    assert expected_right("nobody-knows-it", 0.9) == expected_right(OTHER, 0.9)
