import pytest

from pagemill.errors import InputError
from pagemill_eval.layout import LayoutBox, mean_average_precision

TRUTH = {
    "a": [LayoutBox("text", (0, 0, 100, 50)), LayoutBox("table", (0, 60, 100, 160))],
    "b": [LayoutBox("text", (10, 10, 90, 90))],
}


def test_all_found() -> None:
    score = mean_average_precision(TRUTH, TRUTH)
    assert score.map == score.map_50 == score.map_75 == pytest.approx(1.0)
    assert score.by_label == {"table": pytest.approx(1.0), "text": pytest.approx(1.0)}
    assert (score.pages, score.regions) == (2, 3)


def test_half_of_the_text_and_a_box_that_is_too_small() -> None:
    predicted = {"a": [LayoutBox("text", (0, 0, 100, 50), 0.9), LayoutBox("table", (0, 60, 100, 120), 0.8)]}
    score = mean_average_precision(predicted, TRUTH)
    # 51 of the 101 points of recall are reached; the table's overlap of .6 counts at .50, .55 and .60.
    assert score.by_label == {"table": pytest.approx(0.3), "text": pytest.approx(51 / 101)}
    assert score.map == pytest.approx((0.3 + 51 / 101) / 2)
    assert score.map_75 == pytest.approx((51 / 101) / 2)


def test_nothing_found_and_nothing_there() -> None:
    assert mean_average_precision({}, TRUTH).map == 0.0
    assert mean_average_precision({"a": [LayoutBox("seal", (0, 0, 1, 1))]}, TRUTH).map == 0.0
    assert mean_average_precision({}, {"a": []}).map is None


@pytest.mark.parametrize("box", [(0, 0, float("nan"), 1), (5, 0, 1, 1), (0, 0, 1e9, 1)])
def test_boxes_that_are_none(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(InputError):
        mean_average_precision({"a": [LayoutBox("text", box)]}, TRUTH)


def test_pages_that_the_truth_lacks() -> None:
    with pytest.raises(InputError, match="'c'"):
        mean_average_precision({"c": []}, TRUTH)
