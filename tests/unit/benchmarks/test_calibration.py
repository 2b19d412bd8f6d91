"""The fit of confidence tables, and the trade-off of escalation, on figures whose answer is known."""

import pytest

from calibration import Line, fitted
from escalation import Asked, curve


def line(score: float, right: float, characters: int = 150) -> Line:
    return Line(1, "0", "e", score, characters, right)


def test_a_table_rises_and_holds_the_means():
    scores, right = fitted([line(0.2, 0.4), line(0.5, 0.6), line(0.9, 1.0, 3000)])
    assert (scores[0], right[0]) == (0.0, 0.0)
    assert (scores[-1], right[-1]) == (0.9, 1.0)
    assert scores == sorted(scores) and right == sorted(right)


def test_neighbours_that_fall_are_one_point():
    _, right = fitted([line(0.2, 0.9, 1000), line(0.9, 0.5, 1000)])
    assert right == [0.0, pytest.approx(0.7)]


def test_the_regions_with_most_to_expect_are_sent_first():
    doubtful = Asked(False, 5.0, 8, 8, True, 100)
    sure = Asked(False, 0.1, 2, 2, True, 100)
    rows = curve([sure] * 9 + [doubtful]).splitlines()
    assert rows[2].startswith("| 0% | 2.60%")
    assert rows[4].startswith("| 10% | 1.80%")
    assert rows[10].startswith("| 100% | 0.00%")
    assert "The default sends 10% of the regions" in rows[-1]
