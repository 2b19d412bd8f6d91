"""Rows of labels and numbers among the lines of a page."""

from collections.abc import Sequence

import cv2
import numpy as np
import pytest

from pagemill.document.geometry import union_box
from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.assemble import blocks_of
from pagemill.parsing.inline_formulas import InlineFormulas
from pagemill.parsing.pairs import text_of, with_pairs
from pagemill.tables.recognize import mirrored
from pagemill.tables.table import Table

GOODS = (("番茄", "9.48"), ("2 x 17,660", "35,320"), ("奶酪", "29.70"), ("合计", "1,258.77"))
LEFT, RIGHT = 50, 520


def blank() -> np.ndarray:
    return np.full((900, 600, 3), 255, np.uint8)


def line(text: str, x1: float, y: float, x2: float | None = None) -> TextLine:
    """A line 30 pixels high, of characters 15 wide; it ends at the second place where there is one."""
    width = 15 * len(text)
    x1, x2 = (x1, x1 + width) if x2 is None else (x2 - width, x2)
    return TextLine(text=text, box=(x1, y, x2, y + 30), engine="drawn")


def pairs_of(goods: tuple[tuple[str, str], ...] = GOODS, top: float = 150.0, pitch: float = 38.0) -> list[TextLine]:
    lines = [line(label, LEFT, top + pitch * row) for row, (label, _) in enumerate(goods)]
    return lines + [line(value, 0, top + pitch * row + 7, RIGHT) for row, (_, value) in enumerate(goods)]


def columns_of(lines: list[TextLine], label: Label = Label.TEXT) -> list[DetectedRegion]:
    """What a layout model makes of rows: a column of labels and one of numbers."""
    boxes = ((LEFT - 5, 140, 300, 400), (380, 140, RIGHT + 5, 400))
    return [DetectedRegion(box=box, label=label, score=0.8, source="onnx") for box in boxes if lines]


def found_in(
    lines: list[TextLine], regions: list[DetectedRegion], pixels: np.ndarray | None = None
) -> list[tuple[Label, list[list[str]]]]:
    kept, tables = with_pairs(regions, {}, lines, blank() if pixels is None else pixels)
    assert all(kept[index].source == "pairs" for index in tables)
    return [(kept[index].label, table.grid()) for index, table in tables.items()]


def test_columns_of_labels_and_numbers_are_rows() -> None:
    lines = pairs_of()
    kept, tables = with_pairs(columns_of(lines), {}, lines, blank())
    assert [region.label for region in kept] == [Label.TABLE]
    assert tables[0].grid() == [list(pair) for pair in GOODS]
    assert set(tables[0].line_indices) == set(range(len(lines)))


def test_what_stands_between_rows_cuts_them_and_keeps_its_region() -> None:
    lines = [*pairs_of(), *pairs_of(GOODS[:1], top=400), line("主菜", LEFT, 330)]
    region = DetectedRegion(box=(LEFT, 140, RIGHT, 440), label=Label.TEXT, score=0.8, source="onnx")
    kept, tables = with_pairs([region], {}, lines, blank())
    assert [region.label for region in kept] == [Label.TEXT, Label.TABLE, Label.TEXT]
    assert kept[0].box == lines[-1].box
    assert text_of(tables[2], Label.TEXT) == "番茄 9.48"


def test_dots_between_label_and_number_make_contents() -> None:
    pixels = blank()
    lines = pairs_of(tuple((label, str(page)) for page, (label, _) in enumerate(GOODS, start=7)))
    for row in range(len(GOODS)):
        for x in range(230, 480, 12):
            cv2.circle(pixels, (x, int(150 + 38 * row + 26)), 2, (0, 0, 0), -1)
    ((label, grid),) = found_in(lines, columns_of(lines), pixels)
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
    assert found_in(lines, columns_of(lines)) == []


def test_tables_of_three_columns_stay() -> None:
    lines = pairs_of()
    three = [*lines, *(line("many", 250, 150 + 38 * row) for row in range(len(GOODS)))]
    assert found_in(three, columns_of(three)) == []


def test_a_heading_in_a_second_column_is_no_remark() -> None:
    def moved(lines: list[TextLine]) -> list[TextLine]:
        boxes = [(x1 + 550, y1, x2 + 550, y2) for x1, y1, x2, y2 in (each.box for each in lines)]
        return [TextLine(text=each.text, box=box) for each, box in zip(lines, boxes, strict=True)]

    left, right = pairs_of(GOODS[:3]), moved([*pairs_of(GOODS[:3]), line("后食", LEFT, 150 + 38 * 3)])
    lines = [*left, *right, *pairs_of(GOODS[3:], top=150 + 38 * 3)]
    found = found_in(lines, [], np.full((900, 1200, 3), 255, np.uint8))
    assert [len(grid) for _, grid in found] == [4, 3]


def test_a_picture_of_rows_alone_is_rows_and_one_with_a_legend_stays() -> None:
    lines = pairs_of()
    region = DetectedRegion(box=(0, 100, 600, 900), label=Label.IMAGE, score=0.8, source="onnx")
    kept, _ = with_pairs([region], {}, lines, blank())
    assert [each.label for each in kept] == [Label.TABLE]
    drawing = [*lines, *(line("axis", 60 + 120 * x, 500 + 60 * y) for x in range(4) for y in range(2))]
    assert with_pairs([region], {}, drawing, blank()) == ([region], {})


def test_lines_across_stay_lines_of_text() -> None:
    lines = [*pairs_of(), *(line("x" * 33, LEFT, 150 + 38 * row + 19) for row in range(len(GOODS)))]
    assert found_in(lines, []) == []


def test_a_table_that_was_found_stays() -> None:
    lines = pairs_of()
    region = DetectedRegion(box=(LEFT, 140, RIGHT, 340), label=Label.TABLE, score=0.9, source="onnx")
    table = Table(cells=(), rows=4, columns=2, line_indices=tuple(range(len(lines))))
    assert with_pairs([region], {0: table}, lines, blank()) == ([region], {0: table})


def row_of(y: float, *parts: tuple[str, float]) -> TextLine:
    """A line of words far apart, as detection joins them."""
    words = tuple(Word(text, (x, y, x + 15 * len(text), y + 30)) for text, x in parts)
    box = (words[0].box[0], y, words[-1].box[2], y + 30)
    return TextLine(text=" ".join(word.text for word in words), box=box, words=words, engine="drawn")


@pytest.mark.parametrize("numbers", [("7", "88", "999", ""), ("7", "", "", "")])
def test_what_else_a_line_says_is_not_lost(numbers: tuple[str, ...]) -> None:
    lines = []
    for row, ((label, value), second) in enumerate(zip(GOODS, numbers, strict=True)):
        parts = [(label, LEFT), (value, 300 - 15 * len(value)), ("面包", 340)] + ([(second, 460)] if second else [])
        lines.append(row_of(150 + 38 * row, *parts))
    _, tables = with_pairs([], {}, lines, blank())
    for table in tables.values():
        said = "".join("".join(row) for row in table.grid())
        assert all(word.text in said for index in table.line_indices for word in lines[index].words)


def test_a_currency_far_from_its_amount_stays_with_it() -> None:
    lines = [row_of(150 + 38 * row, (f"番茄{row}", LEFT), ("€", 360), (f"{row}.48", 460)) for row in range(4)]
    ((_, grid),) = found_in(lines, [])
    assert grid == [[f"番茄{row}", f"€ {row}.48"] for row in range(4)]


FIELDS = (("성명", "김영희"), ("발급 장소", "박물관"), ("신청 사유", "기한 연기"), ("시설", "이민정"), ("합계", "2227"))


def fields_of(lines: list[TextLine]) -> list[list[list[str]]]:
    """Rows where typography does not tell them."""
    region = DetectedRegion(box=(40, 140, 990, 600), label=Label.TEXT, score=0.8, source="onnx")
    return [table.grid() for table in with_pairs([region], {}, lines, blank(), with_fields=True)[1].values()]


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


@pytest.mark.parametrize("misread", [None, 6])
def test_indented_labels_of_numbers_are_rows_among_the_others(misread: int | None) -> None:
    numbers = ["8", "22", "35", "41", "52", "54", "63", "102", "106", "120", "132", "142", "144"]
    if misread is not None:
        numbers[misread] = "六ろ"
    labels = [(f"{row}節の見出し", LEFT + (24 if row % 3 else 0)) for row in range(len(numbers))]
    lines = [line(text, x, 150 + 38 * row) for row, (text, x) in enumerate(labels)]
    lines += [line(number, 0, 150 + 38 * row, RIGHT) for row, number in enumerate(numbers)]
    _, tables = with_pairs([], {}, lines, blank(), with_fields=True)
    rows = [tuple(row) for table in tables.values() for row in table.grid()]
    expected = [(label, number) for row, ((label, _), number) in enumerate(zip(labels, numbers, strict=True))
                if row != misread]  # fmt: skip
    assert sorted(rows) == sorted(expected)


def test_labels_of_a_page_from_right_to_left_are_on_the_right() -> None:
    def seen(lines: list[TextLine]) -> list[TextLine]:
        return [mirrored(each, 600) for each in lines]

    goods = (("لحم", "9.48"), ("خبز", "35,320"), ("جبن", "29.70"), ("المجموع", "1,258.77"))
    pixels = blank()
    for row in range(len(goods)):
        for x in range(210, 400, 12):
            cv2.circle(pixels, (x, int(150 + 38 * row + 26)), 2, (0, 0, 0), -1)
    lines = seen(pairs_of(goods))
    kept, tables = with_pairs([], {}, lines, pixels[:, ::-1])
    assert [(kept[i].label, table.grid()) for i, table in tables.items()] == [(Label.CONTENT, [list(p) for p in goods])]
    assert kept[0].box == union_box(each.box for each in lines)
    fields = (("الاسم", "كريم"), ("تاريخ الميلاد", "سعيد"), ("السبب", "تأجيل"), ("المبنى", "مكتبة"))
    rows = [
        line(text, x, 150 + 38 * row)
        for row, pair in enumerate(fields)
        for x, text in zip((50, 290), pair, strict=True)
    ]
    assert fields_of(seen(rows)) == [[list(pair) for pair in fields]]
    words = [row_of(150 + 38 * row, ("خبز", LEFT), (f"{row}.48", 460)) for row in range(4)]
    (table,) = with_pairs([], {}, seen(words), blank())[1].values()
    assert table.grid() == [["خبز", f"{row}.48"] for row in range(4)]


def written(rows: Sequence[tuple[tuple[str, float], ...]], pitch: float = 38) -> list[TextLine]:
    """A line for each text at its place."""
    return [line(text, x, 150 + pitch * row) for row, parts in enumerate(rows) for text, x in parts]


TALK = (
    "to be or not to be",
    "good my lord how does your honour",
    "I never gave you aught",
    "you know right well you did",
)


@pytest.mark.parametrize(
    "rows",
    [
        [((f"{row + 1}.", 50), (text, 120)) for row, text in enumerate(TALK)],
        [((f"[{row + 8}]", 50), (text, 160)) for row, text in enumerate(TALK)],
        [(("HAMLET:", 50), (text, 300)) for text in TALK],
        [((f"{'a' * (2 + row)}, {row}", 50), (f"{'k' * (9 - 2 * row)}, {row}", 300)) for row in range(4)],
        [((label, 50), (text, 300)) for label, text in zip(("flour", "3 eggs", "salt", "cinnamon"), TALK, strict=True)],
        [((label, 50), (text, 300)) for label, text in zip(
            ("flour", "3 eggs", "salt", "cinnamon"),
            ("the harbour office and", "published its budgets", "in spring and despite", "heavy rain of the time"),
            strict=True,
        )],
    ],
    ids=["items", "references", "script", "index", "ragged text", "text"],
)  # fmt: skip
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


def test_words_of_a_cut_line_from_right_to_left_keep_their_order() -> None:
    names = ("John Smithson", "Ann Lee", "Peter Pan", "Mary Anning")
    lines = []
    for row, name in enumerate(names):
        label, y = ("שם" * (1 + row), 150 + 38 * row)
        first, last = name.split()
        middle = 500 + 15 * len(first)
        words = (
            Word(label, (960 - 15 * len(label), y, 960, y + 30)),
            Word(first, (500, y, middle, y + 30)),
            Word(last, (middle + 10, y, 680, y + 30)),
        )
        text = f"{label} {name}"
        lines.append(TextLine(text=text, box=union_box(word.box for word in words), words=words, engine="drawn"))
    lines.append(line("כותרת הטופס של המשרד הראשי בעיר", 400, 60))
    pixels = np.full((900, 1000, 3), 255, np.uint8)
    tables = with_pairs([], {}, lines, pixels, with_fields=True)[1]
    assert [row[1] for table in tables.values() for row in table.grid()] == list(names)


def test_lines_of_two_contents_side_by_side_are_in_both() -> None:
    lines = [
        row_of(150 + 38 * row, (f"l{row}", LEFT), (".....", 120), (f"{row + 1}", 280), (f"r{row}", 340), (".....", 410),
               (f"{row + 11}", 520))
        for row in range(4)
    ]  # fmt: skip
    kept, tables = with_pairs([], {}, lines, blank())
    blocks = blocks_of(kept, lines, tables, {}, 600, 900, InlineFormulas())
    said = " ".join(block.text for block in blocks).split()
    assert sorted(word for word in said if word != "…") == sorted(
        word.text for one in lines for word in one.words if word.text != "....."
    )
