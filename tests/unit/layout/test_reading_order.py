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


def test_elements_across_the_columns_part_them() -> None:
    title, wide = (20, 2, 80, 8), (10, 60, 90, 70)
    boxes = [(10, 75, 48, 120), wide, (52, 10, 90, 55), (52, 75, 90, 120), title, (10, 10, 48, 55)]
    assert order(*boxes) == [4, 5, 2, 1, 0, 3]


def test_nothing_beside_anything_is_one_column() -> None:
    title, heading, text, date, rest = (
        (30, 5, 70, 10), (10, 14, 25, 17), (10, 20, 90, 60), (70, 70, 90, 74), (10, 80, 60, 90),
    )  # fmt: skip
    assert order(heading, title, rest, date, text) == [1, 0, 4, 3, 2]


def test_the_right_column_goes_on_alone_after_the_left() -> None:
    left, right = [(10, 10, 48, 40)], [(52, 10, 90, 40), (52, 45, 90, 80)]
    assert order(*right, *left) == [2, 0, 1]


def test_columns_flow_around_a_centred_picture() -> None:
    left = [(10, 10, 48, 38), (10, 42, 28, 68), (10, 72, 48, 120)]
    right = [(52, 10, 90, 38), (72, 42, 90, 68), (52, 72, 90, 120)]
    labels = [Label.TEXT] * 6 + [Label.IMAGE]
    assert order(*right, *left, (32, 42, 68, 68), labels=labels) == [3, 4, 6, 5, 0, 1, 2]


def test_a_picture_of_a_middle_column_stays_in_it() -> None:
    left, middle, right = (10, 10, 34, 120), [(38, 10, 62, 40), (38, 45, 62, 70), (38, 75, 62, 120)], (66, 10, 90, 120)
    labels = [Label.TEXT, Label.TEXT, Label.IMAGE, Label.TEXT, Label.TEXT]
    assert order(left, *middle, right, labels=labels) == [0, 1, 2, 3, 4]


def test_a_heading_parts_all_columns_that_break_at_its_height() -> None:
    above = [(5, 10, 33, 60), (37, 10, 62, 58), (66, 12, 95, 60)]
    head, below = (5, 64, 60, 70), [(5, 74, 33, 120), (37, 74, 62, 120), (66, 74, 95, 120)]
    labels = [Label.TEXT] * 3 + [Label.PARAGRAPH_TITLE] + [Label.TEXT] * 3
    assert order(*above, head, *below, labels=labels) == [0, 1, 2, 3, 4, 5, 6]
    crossing = (66, 12, 95, 120)
    assert order(*above[:2], crossing, head, *below[:2], labels=labels[:6]) == [0, 1, 3, 4, 5, 2]


def test_a_short_heading_over_text_across_the_columns_follows_both_columns() -> None:
    left, right, heading, text = (10, 10, 48, 60), (52, 10, 90, 60), (10, 64, 30, 68), (10, 70, 90, 100)
    labels = [Label.TEXT, Label.TEXT, Label.PARAGRAPH_TITLE, Label.TEXT]
    assert order(left, right, heading, text, labels=labels) == [0, 1, 2, 3]
    # Over a figure it may be the last line of the left column.
    labels[3] = Label.IMAGE
    assert order(left, right, heading, text, labels=labels) == [0, 2, 1, 3]


def test_a_heading_of_the_right_page_of_a_spread_waits_for_the_left_page() -> None:
    left = [(10, 8, 48, 30), (10, 32, 48, 90)]
    # Below the heading a short title and a short last line have room side by side, but not at one height.
    head, title, text, last = (60, 8.2, 84, 11), (66, 13, 78, 15), (52, 17, 90, 80), (52, 82, 64, 84)
    labels = [Label.TEXT, Label.TEXT, Label.PARAGRAPH_TITLE, Label.PARAGRAPH_TITLE, Label.TEXT, Label.TEXT]
    assert order(*left, head, title, text, last, labels=labels) == [0, 1, 2, 3, 4, 5]


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


def test_a_subtitle_over_the_gutter_comes_before_both_columns() -> None:
    subtitle, left = (30, 10, 75, 14), [(5, 20, 22, 24), (5, 30, 46, 60)]
    right = [(52, 20, 90, 24), (52, 30, 95, 60)]
    assert order(*left, *right, subtitle) == [4, 0, 1, 2, 3]


def test_the_right_columns_head_waits_for_the_left_column() -> None:
    left, right = [(5, 30, 46, 60), (5, 62, 46, 100)], [(52, 10, 95, 25), (52, 30, 95, 100)]
    assert order(*right, *left) == [2, 3, 0, 1]
    wide = (5, 105, 95, 130)
    assert order(*right, *left, wide) == [2, 3, 0, 1, 4]


def test_headings_in_a_margin_of_their_own_stand_among_the_text() -> None:
    boxes = [(5, 10, 20, 13), (30, 20, 95, 50), (5, 55, 18, 58), (30, 62, 95, 100)]
    labels = [Label.PARAGRAPH_TITLE, Label.TEXT, Label.PARAGRAPH_TITLE, Label.TEXT]
    assert order(*boxes, labels=labels) == [0, 1, 2, 3]
    beside = [(5, 20, 20, 23), (30, 20, 95, 50), (5, 60, 18, 63), (30, 60, 95, 100)]
    assert order(*beside, labels=labels) == [0, 1, 2, 3]


def test_headings_of_a_left_column_are_no_margin() -> None:
    boxes = [(5, 10, 20, 13), (5, 16, 46, 50), (5, 55, 18, 58), (5, 62, 46, 100), (52, 10, 95, 40)]
    labels = [Label.PARAGRAPH_TITLE, Label.TEXT, Label.PARAGRAPH_TITLE, Label.TEXT, Label.TEXT]
    assert order(*boxes, labels=labels) == [0, 1, 2, 3, 4]


def test_a_grid_of_numbered_cards_runs_card_by_card() -> None:
    heads = [(5, 10, 20, 13), (55, 10, 70, 13), (5, 60, 20, 63), (55, 60, 70, 63)]
    formulas = [(28, 20, 36, 24), (80, 20, 88, 24), (28, 70, 36, 74), (80, 70, 88, 74)]
    texts = [(5, 30, 45, 50), (55, 30, 95, 50), (5, 80, 45, 99), (55, 80, 95, 99)]
    numbers = [1, 2, 3, 4] + [None] * 8
    assert order(*heads, *formulas, *texts, numbers=numbers) == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


def test_articles_of_the_press_stay_together() -> None:
    """Two bands: an article of two columns beside one of one column; then a headline over one and one over two."""
    line = (5, 10, 30, 12)  # a byline tells the height of lines
    boxes = [
        (5, 2, 62, 8), line, (5, 14, 32, 60), (35, 10, 62, 60), (66, 2, 95, 8), (66, 10, 95, 58),
        (5, 66, 32, 72), (5, 74, 32, 130), (35, 66, 95, 72), (35, 74, 62, 128), (66, 74, 95, 130),
    ]  # fmt: skip
    labels = [Label.PARAGRAPH_TITLE if i in (0, 4, 6, 8) else Label.TEXT for i in range(len(boxes))]
    assert order(*boxes, labels=labels) == list(range(len(boxes)))


def test_the_height_of_lines_tells_columns_of_the_press_where_no_block_is_a_line() -> None:
    boxes = [(5, 2, 62, 12), (5, 14, 32, 60), (35, 14, 62, 26), (66, 2, 95, 26), (66, 28, 95, 40)]
    labels = [Label.PARAGRAPH_TITLE if i in (0, 3) else Label.TEXT for i in range(len(boxes))]
    found = reading_order(np.array(boxes, float), labels, PAGE, line_height=2.0)
    assert found == [0, 1, 2, 3, 4]


def test_a_heading_in_the_middle_over_columns_of_the_press_comes_before_all_of_them() -> None:
    boxes = [(40, 2, 60, 8), (5, 10, 32, 60), (35, 10, 62, 60), (66, 2, 95, 58)]
    labels = [Label.PARAGRAPH_TITLE, Label.TEXT, Label.TEXT, Label.TEXT]
    found = reading_order(np.array(boxes, float), labels, PAGE, line_height=2.0)
    assert found == [0, 1, 2, 3]
