import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.labels import Label
from pagemill.layout.reading_order import leading_number, reading_order

PAGE = (100.0, 140.0)


def order(*boxes: tuple[float, float, float, float], labels: list[Label] | None = None, numbers=None) -> list[int]:
    return reading_order(np.array(boxes, float), labels or [Label.TEXT] * len(boxes), PAGE, numbers)


def test_one_column() -> None:
    assert order((10, 50, 90, 60), (10, 10, 90, 20), (10, 30, 90, 40)) == [1, 2, 0]


def test_two_columns_with_uneven_blocks() -> None:
    left = [(10, 10, 48, 60), (10, 62, 48, 120)]
    right = [(52, 10, 90, 30), (52, 33, 90, 90), (52, 92, 90, 120)]
    assert order(*right, *left) == [3, 4, 0, 1, 2]


def test_elements_across_the_columns_part_them() -> None:
    title, wide = (20, 2, 80, 8), (10, 60, 90, 70)
    boxes = [(10, 75, 48, 120), wide, (52, 10, 90, 55), (52, 75, 90, 120), title, (10, 10, 48, 55)]
    assert order(*boxes) == [4, 5, 2, 1, 0, 3]


def test_a_skewed_page_keeps_its_columns() -> None:
    left = [(10, 10, 49, 40), (11, 42, 50, 80)]
    right = [(50, 11, 89, 41), (51, 43, 90, 81)]  # the columns' frames overlap a little in x
    assert order(*left, *right) == [0, 1, 2, 3]


def test_margins_come_first_and_last() -> None:
    labels = [Label.FOOTER, Label.TEXT, Label.HEADER, Label.ASIDE_TEXT, Label.FOOTNOTE, Label.NUMBER]
    boxes = [
        (10, 130, 40, 135),
        (10, 20, 90, 100),
        (10, 2, 90, 6),
        (1, 30, 4, 90),
        (10, 105, 90, 120),
        (80, 130, 85, 135),
    ]
    assert order(*boxes, labels=labels) == [2, 1, 4, 3, 0, 5]


@pytest.mark.parametrize("caption", [(20, 61, 42, 64), (20, 34, 42, 38)])
def test_a_caption_stays_beside_its_figure(caption: tuple[float, float, float, float]) -> None:
    boxes = [(12, 40, 46, 60), caption, (10, 10, 48, 30), (52, 10, 90, 90), (10, 70, 48, 90)]
    labels = [Label.IMAGE, Label.FIGURE_TITLE, Label.TEXT, Label.TEXT, Label.TEXT]
    figure = [0, 1] if caption[1] > 40 else [1, 0]
    assert order(*boxes, labels=labels) == [2, *figure, 4, 3]


def test_numbers_decide_how_a_grid_runs() -> None:
    grid = [(10, 10, 45, 40), (55, 10, 90, 40), (10, 50, 45, 90), (55, 50, 90, 90)]
    assert order(*grid) == [0, 2, 1, 3]
    assert order(*grid, numbers=[1, 2, 3, 4]) == [0, 1, 2, 3]
    assert order(*grid, numbers=[1, 3, 2, 4]) == [0, 2, 1, 3]


def test_leading_numbers() -> None:
    assert [leading_number(t) for t in ("3. Results", "(12) x", "2024 was", "no", "4) y")] == [3, 12, None, None, 4]


boxes_strategy = st.lists(
    st.tuples(st.integers(0, 90), st.integers(0, 90), st.integers(1, 60), st.integers(1, 60)).map(
        lambda b: (float(b[0]), float(b[1]), float(b[0] + b[2]), float(b[1] + b[3]))
    ),
    max_size=25,
    unique=True,
)
labels_cycle = [Label.TEXT, Label.IMAGE, Label.FIGURE_TITLE, Label.TABLE, Label.TEXT, Label.PARAGRAPH_TITLE]


@given(boxes_strategy, st.randoms(use_true_random=False))
def test_the_order_is_a_permutation_that_does_not_depend_on_input_place_or_size(boxes, random) -> None:
    labels = [labels_cycle[i % len(labels_cycle)] for i in range(len(boxes))]
    array = np.array(boxes, float).reshape(-1, 4)
    found = reading_order(array, labels, (150, 150))
    assert sorted(found) == list(range(len(boxes)))
    assert reading_order(array * 4, labels, (600, 600)) == found
    assert reading_order(array + 64, labels, (150, 150)) == found
    shuffled = list(range(len(boxes)))
    random.shuffle(shuffled)
    again = reading_order(array[shuffled], [labels[i] for i in shuffled], (150, 150))
    assert [shuffled[i] for i in again] == found


def test_columns_from_right_to_left() -> None:
    left = [(10.0, 10.0, 48.0, 60.0), (10.0, 62.0, 48.0, 120.0)]
    right = [(52.0, 10.0, 90.0, 30.0), (52.0, 33.0, 90.0, 90.0)]
    labels = [Label.TEXT] * 4
    assert reading_order(np.array([*left, *right]), labels, PAGE, right_to_left=True) == [2, 3, 0, 1]


def test_a_models_order_goes_before_geometry() -> None:
    boxes = np.array([(10, 10, 90, 20), (10, 30, 90, 40), (10, 50, 90, 60), (10, 52, 90, 64), (10, 2, 90, 5)], float)
    labels = [Label.TEXT] * 4 + [Label.HEADER]
    assert reading_order(boxes, labels, PAGE, ranks=[2, 1, 0, None, 3]) == [4, 2, 3, 1, 0]
