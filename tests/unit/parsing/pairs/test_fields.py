"""Fields of forms, and columns of text that are none."""

import pytest
from drawn_pairs import FIELDS, LEFT, blank, fields_of, line, written

from pagemill.document.labels import Label
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.pairs.regions import with_pairs


@pytest.mark.parametrize("columns", [1, 2])
def test_labels_with_values_of_words_are_rows_where_typography_does_not_tell(columns: int) -> None:
    places = [(50 + 300 * column, 190 + 300 * column) for column in range(columns)]
    lines = [line(text, x, 150 + 38 * row) for own in places for row, pair in enumerate(FIELDS)
             for x, text in zip(own, pair, strict=True)]  # fmt: skip
    assert fields_of(lines) == [[list(pair) * columns for pair in FIELDS]]
    assert with_pairs([], {}, lines, blank())[1] == {}


def test_values_that_are_about_equally_long_are_fields_of_labels_that_are_not() -> None:
    pairs = (("성명", "김영희"), ("발급 장소", "박물관"), ("신청 사유", "연기함"), ("시설", "이민정"), ("합계", "227"))
    lines = [
        line(text, x, 150 + 38 * row) for row, pair in enumerate(pairs) for x, text in zip((50, 190), pair, strict=True)
    ]
    assert fields_of(lines) == [[list(pair) for pair in pairs]]


def test_the_second_line_of_a_label_belongs_to_it_and_what_is_as_far_as_a_row_does_not() -> None:
    rows = [150, 222, 260, 298, 336]
    lines = [
        line(text, x, y) for y, pair in zip(rows, FIELDS, strict=True) for x, text in zip((50, 190), pair, strict=True)
    ]
    (grid,) = fields_of([*lines, line("뒷줄", LEFT, 182)])
    assert grid[0] == ["성명 뒷줄", "김영희"]
    assert fields_of([*lines, line("서명", LEFT, 374)]) == [[list(pair) for pair in FIELDS]]


def test_second_lines_of_two_labels_on_one_level_are_no_row() -> None:
    lines = [
        line(text, x, y)
        for y, pair in zip((150, 222, 260, 298, 336), FIELDS, strict=True)
        for x, text in zip((50, 190, 350, 490), pair * 2, strict=True)
    ]
    (grid,) = fields_of([*lines, line("뒷줄", 50, 182), line("뒷줄", 350, 182)])
    assert grid[0] == ["성명 뒷줄", "김영희"] * 2


def test_a_label_that_leaves_little_room_has_its_value_where_those_of_others_begin() -> None:
    rows = [*FIELDS, ("신청인의생년월일", "1998")]
    lines = [
        line(text, x, 150 + 38 * row) for row, pair in enumerate(rows) for x, text in zip((50, 190), pair, strict=True)
    ]
    assert fields_of(lines) == [[list(pair) for pair in rows]]


def test_a_row_without_one_of_its_values_stays_in_its_form() -> None:
    places = (50, 190, 350, 490)
    rows = [[*pair, *pair] for pair in FIELDS]
    rows.insert(2, ["서명", "", "날짜", "1998"])
    rows.insert(4, ["주소", "부산", "지역: 서울 강남구", ""])
    lines = [line(text, x, 150 + 38 * row) for row, texts in enumerate(rows)
             for x, text in zip(places, texts, strict=True) if text]  # fmt: skip
    assert fields_of(lines) == [rows]


def test_notes_beside_a_text_are_no_labels() -> None:
    lines = [line("도시의 물과 나무와 다리" + "에" * (row % 5), 250, 150 + 38 * row) for row in range(16)]
    lines += [line("쪽지" * (1 + row % 2), 50, 150 + 38 * row) for row in (0, 4, 10, 15)]
    assert fields_of(lines) == []


@pytest.mark.parametrize(("width", "gutter"), [(9, 11), (14, 3), (22, 9)])
def test_columns_of_text_on_one_level_are_no_fields(width: int, gutter: int) -> None:
    lines = [
        line("항" * (width - row % 2), x, 150 + 38 * row) for x in (50, 50 + 15 * (width + gutter)) for row in range(6)
    ]
    region = DetectedRegion(box=(40, 140, 990, 400), label=Label.TEXT, score=0.8, source="onnx")
    assert with_pairs([region], {}, lines, blank(), with_fields=True)[1] == {}


TALK = (
    "to be or not to be",
    "good my lord how does your honour",
    "I never gave you aught",
    "you know right well you did",
)


SHORT = ("flour", "3 eggs", "salt", "cinnamon")
RAGGED = ("Ada King", "Grace", "Mary Anning", "Lise M")
SPOKEN = ("to be or not", "good my lord how goes", "I never gave you", "you know it right well")
PROSE = ("the harbour office and", "published its budgets", "in spring and despite", "heavy rain of the time")


@pytest.mark.parametrize(
    "rows",
    [
        [((f"{row + 1}.", 50), (text, 120)) for row, text in enumerate(RAGGED)],
        [((f"[{row + 8}]", 50), (text, 160)) for row, text in enumerate(RAGGED)],
        [(("HAMLET:", 50), (text, 300)) for text in SPOKEN],
        [((f"{'a' * (2 + row)}, {row}", 50), (f"{'k' * (9 - 2 * row)}, {row}", 300)) for row in range(4)],
        [((label, 50), (text, 300)) for label, text in zip(SHORT, TALK, strict=True)],
        [((label, 50), (text, 300)) for label, text in zip(SHORT, PROSE, strict=True)],
        [(("x" * (9 - (row == 1)), 50), (text, 225)) for row, text in enumerate(RAGGED)],
    ],
    ids=["items", "references", "script", "index", "ragged text", "text", "words that fill their column"],
)
def test_running_text_beside_short_lines_is_no_form(rows: list[tuple[tuple[str, float], ...]]) -> None:
    assert fields_of(written(rows)) == []


def test_fields_that_come_again_are_a_form() -> None:
    people = [(("Name", 50), ("Ada King", 300)), (("Address", 50), ("1 Hill Road", 300)), (("Age", 50), ("36", 300))]
    (grid,) = fields_of(written(people * 3))
    assert [row[0] for row in grid] == ["Name", "Address", "Age"] * 3


def test_fields_of_three_columns_of_which_no_row_has_all_lose_nothing() -> None:
    columns = (50.0, 350.0, 650.0)
    rows = [
        tuple(part for at in range(3) if at != 2 * (row % 2) for part in
              ((f"l{row}{at}", columns[at]), (f"v{row}{at}" + "x" * (row % 4), columns[at] + 150)))
        for row in range(10)
    ]  # fmt: skip
    lines = written(rows)
    said = [text for grid in fields_of(lines) for row in grid for text in row if text]
    assert sorted(said) == sorted(one.text for one in lines)


def test_the_same_values_of_other_labels_are_a_form() -> None:
    for values in (RAGGED, SPOKEN):
        rows = [((label, 50), (text, 300)) for label, text in zip(SHORT, values, strict=True)]
        assert fields_of(written(rows)) == [[list(pair) for pair in zip(SHORT, values, strict=True)]]


@pytest.mark.parametrize(("left", "values"), [("abc", TALK), ("abcdefgh", RAGGED)])
def test_labels_in_colons_may_have_long_values_and_fill_their_column(left: str, values: tuple[str, ...]) -> None:
    labels = [left[row // 2 :] + ":" for row in range(len(values))]
    rows = [((label, 50), (text, 222)) for label, text in zip(labels, values, strict=True)]
    assert fields_of(written(rows)) == [[list(pair) for pair in zip(labels, values, strict=True)]]


def test_a_colon_close_to_a_value_ends_its_label() -> None:
    rows = [*FIELDS, ("신청인의생년월일:", "1998")]
    assert fields_of(written([((label, 50), (value, 190)) for label, value in rows])) == [[list(pair) for pair in rows]]


def test_a_label_may_have_a_gap() -> None:
    rows = [((label, 50), (value, 250)) for label, value in FIELDS]
    (grid,) = fields_of(written([*rows, (("신청", 50), ("사유", 100), ("연기", 250))]))
    assert grid[-1] == ["신청 사유", "연기"]


def test_a_row_with_more_than_fields_is_none_of_the_form() -> None:
    rows = [((label, 50), (value, 190)) for label, value in FIELDS]
    assert fields_of(written([*rows, (("서명", 50), ("부산", 190), ("2019", 400))])) == [
        [list(pair) for pair in FIELDS]
    ]


def test_a_column_beside_a_form_is_of_the_form() -> None:
    even = ("가나", "다라", "마바", "사아", "자차")
    rows = [((label, 50), (value, 190), (text, 350), (text[::-1], 490))
            for (label, value), text in zip(FIELDS, even, strict=True)]  # fmt: skip
    (grid,) = fields_of(written(rows))
    assert grid == [[text for text, _ in row] for row in rows]
    assert fields_of(written([row[2:] for row in rows])) == []


@pytest.mark.parametrize(("text", "below"), [("뒷줄" * 6, 32), ("뒷줄", 60)])
def test_a_line_that_is_wide_or_far_below_is_no_second_line_of_a_label(text: str, below: float) -> None:
    lines = written([((label, 50), (value, 190)) for label, value in FIELDS], pitch=100)
    assert fields_of(lines)[0][0] == list(FIELDS[0])
    said = [text for grid in fields_of([*lines, line(text, 50, 150 + below)]) for row in grid for text in row]
    assert said == [text for pair in FIELDS for text in pair]
