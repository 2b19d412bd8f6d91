"""Rows of labels and values among the regions, tables and pictures of a page."""

import cv2
import numpy as np
import pytest
from drawn_pairs import GOODS, LEFT, RIGHT, blank, fields_of, line, pairs_of, row_of

from pagemill.document.direction import mirrored
from pagemill.document.geometry import union_box
from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.assemble import blocks_of
from pagemill.parsing.inline_formulas import InlineFormulas
from pagemill.parsing.pairs.regions import with_pairs
from pagemill.parsing.pairs.tables import text_of
from pagemill.tables.table import Table


def test_what_stands_between_rows_cuts_them_and_keeps_its_region() -> None:
    lines = [*pairs_of(), *pairs_of(GOODS[:1], top=400), line("主菜", LEFT, 330)]
    region = DetectedRegion(box=(LEFT, 140, RIGHT, 440), label=Label.TEXT, score=0.8, source="onnx")
    kept, tables = with_pairs([region], {}, lines, blank())
    assert [region.label for region in kept] == [Label.TEXT, Label.TABLE, Label.TEXT]
    assert kept[0].box == lines[-1].box
    assert text_of(tables[2], Label.TEXT) == "番茄 9.48"


def test_a_picture_of_rows_alone_is_rows_and_one_with_a_legend_stays() -> None:
    lines = pairs_of()
    region = DetectedRegion(box=(0, 100, 600, 900), label=Label.IMAGE, score=0.8, source="onnx")
    kept, _ = with_pairs([region], {}, lines, blank())
    assert [each.label for each in kept] == [Label.TABLE]
    drawing = [*lines, *(line("axis", 60 + 120 * x, 500 + 60 * y) for x in range(4) for y in range(2))]
    assert with_pairs([region], {}, drawing, blank()) == ([region], {})


def test_a_table_that_took_leaders_for_a_column_is_replaced() -> None:
    lines = [line(f"{label} ......... {page}", LEFT, 150 + 38 * page, RIGHT) for page, label in enumerate("ABCD")]
    region = DetectedRegion(box=(LEFT, 140, RIGHT, 340), label=Label.TABLE, score=0.9, source="onnx")
    table = Table(cells=(), rows=4, columns=3, line_indices=tuple(range(len(lines))))
    kept, tables = with_pairs([region], {0: table}, lines, blank())
    assert [each.label for each in kept] == [Label.CONTENT]
    assert tables[0].grid() == [[label, str(page)] for page, label in enumerate("ABCD")]


@pytest.mark.parametrize(("label", "found"), [(Label.TEXT, 1), (Label.DISPLAY_FORMULA, 0)])
def test_formulas_with_numbers_stay(label: Label, found: int) -> None:
    region = DetectedRegion(box=(LEFT, 140, RIGHT, 340), label=label, score=0.9, source="onnx")
    kept, tables = with_pairs([region], {}, pairs_of(), blank())
    assert (len(tables), region in kept) == (found, not found)


def test_a_table_that_was_found_stays() -> None:
    lines = pairs_of()
    region = DetectedRegion(box=(LEFT, 140, RIGHT, 340), label=Label.TABLE, score=0.9, source="onnx")
    table = Table(cells=(), rows=4, columns=2, line_indices=tuple(range(len(lines))))
    assert with_pairs([region], {0: table}, lines, blank()) == ([region], {0: table})


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
