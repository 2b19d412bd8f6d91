import numpy as np
import pytest

from pagemill.layout.text_blocks import group_lines, is_press, rows_of, split_lines, text_columns


def column(x1: float, x2: float, y: float, count: int, pitch: float = 15.0, height: float = 10.0) -> np.ndarray:
    return np.array([[x1, y + i * pitch, x2, y + i * pitch + height] for i in range(count)], float)


def sizes(blocks: list[np.ndarray]) -> list[int]:
    return sorted(len(block) for block in blocks)


def test_two_columns_are_two_blocks() -> None:
    assert sizes(group_lines(np.concatenate([column(0, 200, 0, 6), column(215, 400, 0, 7)]))) == [6, 7]


def test_a_headline_over_two_columns_stays_alone() -> None:
    lines = np.concatenate([column(0, 400, -15, 1), column(0, 200, 0, 5), column(215, 400, 0, 5)])
    assert sizes(group_lines(lines)) == [1, 5, 5]


def test_a_paragraph_gap_parts_blocks() -> None:
    assert sizes(group_lines(np.concatenate([column(0, 200, 0, 5), column(0, 200, 95, 4)]))) == [4, 5]


def test_a_caption_across_a_narrow_gutter_does_not_end_it() -> None:
    lines = np.concatenate([column(150, 260, -13, 1), column(0, 200, 0, 5, 13), column(206, 400, 0, 5, 13)])
    assert sizes(group_lines(lines)) == [1, 5, 5]


def test_the_short_last_line_of_a_column_is_no_marker_of_the_next() -> None:
    lines = np.concatenate([column(0, 200, 0, 5), column(206, 400, 0, 7), [[180, 75, 200, 85]]])
    assert sizes(group_lines(lines)) == [6, 7]


def test_pieces_of_a_line_and_list_markers_belong_to_it() -> None:
    lines = np.array([[0, 0, 100, 10], [106, 0, 200, 10], [0, 15, 200, 25], [0, 30, 8, 40], [25, 30, 200, 40]], float)
    assert sizes(group_lines(lines)) == [5]


def test_other_lines_keep_free_ones_apart() -> None:
    lines = column(0, 200, 0, 5)
    free = np.array([True, True, False, True, True])
    assert [block.tolist() for block in group_lines(lines, free)] == [[0, 1], [3, 4]]


def test_every_line_is_in_one_block() -> None:
    random = np.random.default_rng(3)
    corner = random.uniform(0, 1000, (300, 2))
    lines = np.concatenate([corner, corner + random.uniform(5, 200, (300, 2)) * [1, 0.1]], axis=1)
    for blocks in (group_lines(lines), split_lines(lines, np.arange(len(lines)))):
        assert sorted(np.concatenate(blocks).tolist()) == list(range(300))


def test_a_region_over_two_columns_is_cut_between_them_left_first() -> None:
    lines = np.concatenate([column(215, 400, 0, 6), column(0, 200, 0, 6)])
    assert [sorted(part.tolist()) for part in split_lines(lines, np.arange(len(lines)))] == [
        [6, 7, 8, 9, 10, 11],
        [0, 1, 2, 3, 4, 5],
    ]


@pytest.mark.parametrize(
    ("rows", "gap", "ragged", "parts"),
    [
        (8, 4.0, 0, 2),  # columns of running text
        (8, 2.0, 0, 1),  # as between words
        (4, 4.0, 0, 1),  # too few lines to tell
        (8, 4.0, 60, 1),  # names and values, side by side at the longest name
        (8, 12.0, 60, 2),
    ],
)
def test_a_narrow_gap_that_many_lines_reach_cuts_a_region(rows: int, gap: float, ragged: float, parts: int) -> None:
    lines = np.concatenate([column(0, 200, 0, rows), column(200 + gap, 400, 0, rows)])
    lines[1:rows, 2] -= ragged
    found = split_lines(lines, np.arange(len(lines)))
    assert [len(part) for part in found] == [2 * rows // parts] * parts


def test_ragged_pieces_do_not_cut_a_region() -> None:
    lines = np.concatenate([column(0, 200, 0, 6), np.array([[215.0, 31, 225, 39]])])
    assert len(split_lines(lines, np.arange(len(lines)))) == 1


def test_rows_run_from_left_to_right() -> None:
    lines = np.array([[50, 1, 90, 11], [0, 0, 40, 10], [0, 20, 40, 30]], float)
    assert [row.tolist() for row in rows_of(lines)] == [[1, 0], [2]]


def test_a_running_foot_of_three_pieces_is_cut_off_its_paragraph() -> None:
    foot = np.array([[0.0, 80, 60, 90], [170, 80, 230, 90], [340, 80, 400, 90]])
    lines = np.concatenate([column(0, 400, 0, 5), foot])
    parts = split_lines(lines, np.arange(len(lines)))
    assert [sorted(part.tolist()) for part in parts] == [[0, 1, 2, 3, 4], [5, 6, 7]]


def test_a_region_of_a_thousand_paragraphs_is_cut_at_every_gap() -> None:
    assert sizes(split_lines(column(0, 200, 0, 1200, pitch=40), np.arange(1200))) == [1] * 1200


def test_a_line_that_stands_beside_rows_is_no_piece_of_one() -> None:
    standing = np.array([[0.0, 10.0, 12.0, 90.0]])
    assert sizes(group_lines(np.concatenate([standing, column(15, 200, 0, 7)]))) == [1, 7]


def justified(x: float, rows: int, top: float = 0.0) -> list[list[float]]:
    """Rows of a narrow justified column: two words far apart in most, in others one in the middle or a whole line."""
    made: list[list[float]] = []
    for row in range(rows):
        words = ([(0, 30), (80, 100)], [(0, 25), (40, 65), (78, 100)], [(0, 100)], [(0, 45), (85, 100)])[row % 4]
        made += [[x + a, top + 12 * row, x + b, top + 12 * row + 10] for a, b in words]
    return made


def test_words_far_apart_in_narrow_columns_of_the_press_stay_in_their_lines() -> None:
    lines = np.array([*justified(0, 12), *justified(108, 12), *justified(216, 12)], float)
    blocks = group_lines(lines, press=True)
    assert sorted(np.ptp(lines[block][:, ::2]) for block in blocks) == [100, 100, 100]


def test_headlines_side_by_side_stay_apart_and_one_over_two_columns_stays_whole() -> None:
    columns = [column(x, x + 100, 60, 12, pitch=12) for x in (0, 108, 216)]
    over_two = np.array([[0, 0, 98, 20], [120, 0, 208, 20], [0, 24, 205, 44]], float)  # a gap over the gutter
    beside = np.array([[216, 0, 316, 20], [216, 24, 280, 44]], float)
    lines = np.concatenate([over_two, beside, *columns])
    heads = [block.tolist() for block in group_lines(lines, press=True) if block.min() < 5]
    assert sorted(map(sorted, heads)) == [[0, 1, 2], [3, 4]]


def test_a_caption_over_two_columns_is_none_of_the_first_ones_lines() -> None:
    lines = np.concatenate([[[70, 0, 140, 10]], column(0, 100, 12, 8, 12), column(108, 208, 60, 8, 12)])
    assert sizes(group_lines(lines, press=True)) == [1, 8, 8]


def test_a_short_last_line_of_the_press_whose_box_is_tall_stays_in_its_column() -> None:
    lines = np.concatenate([column(0, 100, 0, 8, 12), [[0, 95, 30, 110]], column(108, 208, 0, 8, 12)])
    assert sizes(group_lines(lines, press=True)) == [8, 9]


def test_short_tiers_of_vertical_text_on_its_side_are_columns_of_the_press() -> None:
    lines = np.concatenate([column(x, x + 65, 0, 20, 12) for x in (0, 75, 150)])
    assert is_press(lines, text_columns(lines))


def test_two_rows_over_a_picture_of_the_press_are_no_piece_of_the_column_beside_them() -> None:
    ragged = column(108, 208, 0, 12, 12)
    ragged[:, 0] += np.array([0, 4, 9] * 4)  # as columns in Arabic: their lines end at the left
    lines = np.concatenate([ragged, column(10, 100, 0, 2, 12), column(-120, -20, 0, 12, 12)])
    assert sizes(group_lines(lines, press=True)) == [2, 12, 12]


def test_lines_of_two_columns_whose_boxes_touch_are_two() -> None:
    left, right = column(0, 100, 0, 12, 12), column(104, 204, 0, 12, 12)
    left[:, 2] += np.array([0, 3, -4, 5, -2, 4] * 2)
    right[:, 0] += np.array([0, 4, -3, -5, 3, -2] * 2)
    assert sizes(group_lines(np.concatenate([left, right]), press=True)) == [12, 12]
