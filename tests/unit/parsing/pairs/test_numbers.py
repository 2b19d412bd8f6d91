"""Labels with numbers that end below each other."""

import cv2
import numpy as np
import pytest
from drawn_pairs import GOODS, LEFT, RIGHT, blank, detected_columns, found_in, line, pairs_of, row_of

from pagemill.document.labels import Label
from pagemill.document.page import TextLine
from pagemill.parsing.pairs.regions import with_pairs


def test_columns_of_labels_and_numbers_are_rows() -> None:
    lines = pairs_of()
    kept, tables = with_pairs(detected_columns(), {}, lines, blank())
    assert [region.label for region in kept] == [Label.TABLE]
    assert tables[0].grid() == [list(pair) for pair in GOODS]
    assert set(tables[0].line_indices) == set(range(len(lines)))


def test_dots_between_label_and_number_make_contents() -> None:
    pixels = blank()
    lines = pairs_of(tuple((label, str(page)) for page, (label, _) in enumerate(GOODS, start=7)))
    for row in range(len(GOODS)):
        for x in range(230, 480, 12):
            cv2.circle(pixels, (x, int(150 + 38 * row + 26)), 2, (0, 0, 0), -1)
    ((label, grid),) = found_in(lines, detected_columns(), pixels)
    assert (label, grid[0]) == (Label.CONTENT, ["番茄", "7"])


@pytest.mark.parametrize(("leader", "found"), [(" ....... ", 1), ("          ", 0)])
def test_two_rows_with_leaders_are_enough(leader: str, found: int) -> None:
    lines = [line(f"{label}{leader}{number}", LEFT, 150 + 38 * row, RIGHT) for row, (label, number) in enumerate(
        zip("AB", ("27,750", "27,210"), strict=True))]  # fmt: skip
    lines.append(line("courses", LEFT, 400))
    assert len(found_in(lines, [])) == found


def test_leaders_that_were_read_are_cut_off() -> None:
    lines = [
        line(f"{label} ......... {page}", LEFT, 150 + 38 * page, RIGHT) for page, label in enumerate("ABCD", start=1)
    ]
    ((label, grid),) = found_in(lines, [])
    assert (label, grid) == (Label.CONTENT, [["A", "1"], ["B", "2"], ["C", "3"], ["D", "4"]])
    lines = pairs_of(tuple((label, f"· {page}") for page, (label, _) in enumerate(GOODS, start=1)))
    assert [row[1] for row in found_in(lines, [])[0][1]] == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    "goods",
    [
        GOODS[:2],
        tuple((label, f"({number})") for number, (label, _) in enumerate(GOODS, start=1)),  # of equations
        tuple((label, "in progress") for label, _ in GOODS),
    ],
)
def test_too_few_and_what_is_no_number_stay(goods: tuple[tuple[str, str], ...]) -> None:
    lines = pairs_of(goods)
    assert found_in(lines, detected_columns()) == []


def test_tables_of_three_columns_stay() -> None:
    lines = pairs_of()
    three = [*lines, *(line("many", 250, 150 + 38 * row) for row in range(len(GOODS)))]
    assert found_in(three, detected_columns()) == []


def test_a_heading_in_a_second_column_is_no_remark() -> None:
    def moved(lines: list[TextLine]) -> list[TextLine]:
        boxes = [(x1 + 550, y1, x2 + 550, y2) for x1, y1, x2, y2 in (each.box for each in lines)]
        return [TextLine(text=each.text, box=box) for each, box in zip(lines, boxes, strict=True)]

    left, right = pairs_of(GOODS[:3]), moved([*pairs_of(GOODS[:3]), line("后食", LEFT, 150 + 38 * 3)])
    lines = [*left, *right, *pairs_of(GOODS[3:], top=150 + 38 * 3)]
    found = found_in(lines, [], np.full((900, 1200, 3), 255, np.uint8))
    assert [len(grid) for _, grid in found] == [4, 3]


def test_lines_across_stay_lines_of_text() -> None:
    lines = [*pairs_of(), *(line("x" * 33, LEFT, 150 + 38 * row + 19) for row in range(len(GOODS)))]
    assert found_in(lines, []) == []


def test_a_currency_far_from_its_amount_stays_with_it() -> None:
    lines = [row_of(150 + 38 * row, (f"番茄{row}", LEFT), ("€", 360), (f"{row}.48", 460)) for row in range(4)]
    ((_, grid),) = found_in(lines, [])
    assert grid == [[f"番茄{row}", f"€ {row}.48"] for row in range(4)]


def with_dots(dots: int, height: int = 0) -> np.ndarray:
    """A page with dots between labels and numbers, or with strokes of a height."""
    pixels = blank()
    for row in range(len(GOODS)):
        for x in range(230, 230 + 12 * dots, 12):
            cv2.circle(pixels, (x, 150 + 38 * row + 26), 2, (0, 0, 0), -1)
            pixels[150 + 38 * row + 26 - height : 150 + 38 * row + 26, x : x + 3] = 0
    return pixels


@pytest.mark.parametrize(
    ("dots", "height", "label"), [(12, 0, Label.CONTENT), (3, 0, Label.TABLE), (12, 22, Label.TABLE)]
)
def test_few_dots_and_letters_are_no_leaders(dots: int, height: int, label: Label) -> None:
    ((found, _),) = found_in(pairs_of(), [], with_dots(dots, height))
    assert found is label


@pytest.mark.parametrize(("dots", "found"), [(12, 1), (0, 0)])
def test_roman_numbers_are_numbers_after_leaders(dots: int, found: int) -> None:
    goods = tuple((label, number) for (label, _), number in zip(GOODS, ("iv", "v", "vii", "xi"), strict=True))
    assert len(found_in(pairs_of(goods), [], with_dots(dots))) == found


def test_numbers_before_remarks_are_no_rows() -> None:
    remarks = [line("bought" + "x" * row, 400, 150 + 38 * row) for row in range(4)]
    lines = [line(text, x, 150 + 38 * row) for row in range(4) for text, x in ((f"tea{row}", 50), (f"{row}.48", 200))]
    assert len(found_in(lines, [])) == 1
    assert found_in([*lines, *remarks], []) == []
