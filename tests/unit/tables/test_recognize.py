"""Drawn tables whose lines of text are known: what is tested is the grid alone."""

import cv2
import numpy as np
import pytest
from drawn_tables import blank, line_at, print_lines, ruled_page, texts

from pagemill.document.page import TextLine
from pagemill.tables.find import find_tables
from pagemill.tables.recognize import recognize_table
from pagemill.tables.table import Table


def check_ruled(table: Table | None) -> None:
    assert texts(table) == [["Name", "Two in one", ""], *([f"{r} {c}" for c in range(3)] for r in "abc")]
    assert table is not None
    assert [(c.row, c.column, c.column_span) for c in table.cells if c.column_span > 1] == [(0, 1, 2)]
    assert table.header_rows == 1


def test_ruled_table_with_a_merged_cell() -> None:
    page, lines = ruled_page()
    table = recognize_table(page, (40, 40, 660, 300), lines)
    check_ruled(table)
    assert table is not None
    assert table.line_indices == tuple(range(len(lines)))


def test_words_beyond_the_sides_of_a_ruled_table_are_in_a_cell_or_their_line_is_not_of_the_table() -> None:
    page, lines = ruled_page()
    lines[-1] = line_at("c 2 which overflows", 470, 248)
    lines += [line_at("Some sentence that stands directly above the table", 5, 28)]
    print_lines(page, lines)
    table = recognize_table(page, (5, 20, 680, 300), lines)
    assert texts(table)[0] == ["Name", "Two in one", ""]
    assert texts(table)[-1] == ["c 0", "c 1", "c 2 which overflows"]
    assert table is not None
    assert table.line_indices == tuple(range(len(lines) - 1))


def test_noisy_scan_of_a_ruled_table() -> None:
    page, lines = ruled_page()
    noise = np.random.default_rng(0).normal(0, 12, page.shape)
    page = np.clip(page + noise, 0, 255).astype(np.uint8)
    page = cv2.imdecode(cv2.imencode(".jpg", page, [cv2.IMWRITE_JPEG_QUALITY, 60])[1], cv2.IMREAD_COLOR)
    check_ruled(recognize_table(page, (30, 30, 680, 315), lines))


def test_broken_rules_still_bound_cells() -> None:
    page, lines = ruled_page()
    page[:, 300:305] = 255
    page[140:146, 60:] = 255
    check_ruled(recognize_table(page, (40, 40, 660, 300), lines))


BORDERLESS = [
    ["Region", "Sales", "Share"],
    ["North coast", "1,204", "31 %"],
    ["South", "988", "25 %"],
    ["East and west", "1,707", "44 %"],
]


@pytest.mark.parametrize("words", [True, False])
def test_borderless_table(words: bool) -> None:
    page = blank()
    lines = [
        line_at(text, [60, 320, 520][column], 60 + 40 * row, words=words)
        for row, row_texts in enumerate(BORDERLESS)
        for column, text in enumerate(row_texts)
    ]
    print_lines(page, lines)
    table = recognize_table(page, (40, 40, 700, 260), lines)
    assert texts(table) == BORDERLESS
    assert table is not None
    assert table.header_rows == 1
    assert table.to_markdown() is not None


def test_line_across_columns_is_split_at_its_words() -> None:
    page = blank()
    lines = []
    for row, row_texts in enumerate(BORDERLESS):
        parts = [w for c, text in enumerate(row_texts) for w in line_at(text, [60, 320, 520][c], 60 + 40 * row).words]
        box = (60.0, parts[0].box[1], parts[-1].box[2], parts[0].box[3])
        lines.append(TextLine(text=" ".join(w.text for w in parts), box=box, words=tuple(parts)))
    assert texts(recognize_table(page, (40, 40, 700, 260), lines)) == BORDERLESS


def test_title_over_columns_spans_them() -> None:
    page = blank()
    xs = [60, 320, 480, 640]
    lines = [line_at("Both years", 375, 60)]
    rows = [["Item", "2019", "2020", "Note"], ["pears", "12", "13", "x"], ["plums", "14", "11", "y"]]
    for row, row_texts in enumerate([*rows, ["nuts", "10", "19", "z"]]):
        lines += [line_at(text, x, 110 + 40 * row) for x, text in zip(xs, row_texts, strict=True)]
    cv2.line(page, (320, 95), (530, 95), (0, 0, 0), 2)
    cv2.line(page, (60, 142), (700, 142), (0, 0, 0), 2)
    table = recognize_table(page, (40, 40, 720, 290), lines)
    assert table is not None
    assert [(c.column, c.column_span) for c in table.cells if c.text == "Both years"] == [(1, 2)]
    assert table.header_rows == 2


def test_wrapped_label_is_one_cell() -> None:
    page = blank()
    lines = [line_at("Statement", 60, 50), line_at("Yes", 420, 50), line_at("No", 560, 50)]
    y = 100.0
    for number in range(4):
        lines += [line_at(f"Statement {number} is long", 60, y), line_at("12", 420, y), line_at("34", 560, y)]
        lines.append(line_at("and goes on", 60, y + 26))
        y += 62
    table = recognize_table(page, (40, 30, 640, 370), lines)
    assert [row[0] for row in texts(table)] == ["Statement", *(f"Statement {n} is long and goes on" for n in range(4))]


def test_shaded_head_of_a_borderless_table() -> None:
    page = blank()
    page[50:130, 50:700] = (0, 90, 160)
    rows = [["Region", "Sales", "Share"], ["", "EUR", "percent"], *BORDERLESS[1:]]
    lines = [
        line_at(text, [60, 320, 520][c], 60 + 40 * r)
        for r, row in enumerate(rows)
        for c, text in enumerate(row)
        if text
    ]
    table = recognize_table(page, (40, 40, 710, 300), lines)
    assert table is not None
    assert table.header_rows >= 1
    assert not any(cell.header for cell in table.cells if cell.text == "North coast")


def test_running_text_is_no_table() -> None:
    lines = [line_at("words that run on and on in a line", 60, 60 + 34 * row) for row in range(6)]
    assert recognize_table(blank(), (40, 40, 700, 300), lines) is None


@pytest.mark.parametrize("box", [(0, 0, 0, 0), (-50, -50, -10, -10), (5000, 5000, 6000, 6000), (0, 0, 900, 600)])
def test_nothing_to_see(box: tuple[float, float, float, float]) -> None:
    assert recognize_table(blank(), box, []) is None
    line = line_at("x", 880, 590)
    assert recognize_table(blank(), box, [line]) is None


def test_a_table_ruled_both_ways_is_found() -> None:
    page, lines = ruled_page()
    (box,) = find_tables(page, lines)
    assert box == pytest.approx((50, 50, 650, 290), abs=4)
    assert find_tables(blank(), lines) == find_tables(page, []) == []
    assert find_tables(np.zeros((1, 1, 3), np.uint8), lines) == []


def test_figures_stacked_between_rules_are_rows() -> None:
    page = blank()
    xs, ys = [50, 250, 450, 650, 850], [50, 110, 200]
    for y in ys:
        cv2.line(page, (xs[0], y), (xs[-1], y), (0, 0, 0), 2)
    for x in xs:
        cv2.line(page, (x, ys[0]), (x, ys[-1]), (0, 0, 0), 2)
    lines = [line_at(text, x + 20, 68) for text, x in zip("abcd", xs, strict=False)]
    lines.append(line_at("both", 70, 142))
    lines += [line_at(str(10 * x + y), x + 20, y) for x in xs[1:4] for y in (122, 162)]
    print_lines(page, lines)
    table = recognize_table(page, (40, 40, 860, 210), lines)
    assert table is not None
    assert table.rows == 3
    assert [(c.text, c.row_span) for c in table.cells if c.row_span > 1] == [("both", 2)]


def test_caption_beside_the_table_is_neither_text_nor_rule() -> None:
    page, lines = ruled_page()
    page[38:42, 100:500] = 0  # letters that run together
    caption = line_at("Table 1: what a caption says above its table", 100, 28)
    table = recognize_table(page, (48, 44, 652, 292), [*lines, caption])
    check_ruled(table)
    assert table is not None
    assert len(lines) not in table.line_indices


@pytest.mark.parametrize("misread", ["$", "s"])
def test_currency_signs_stay_with_their_amounts(misread: str) -> None:
    page = blank()
    lines = [line_at("Item", 60, 60), line_at("Cost", 420, 60), line_at("Gain", 640, 60)]
    for row, item in enumerate(["Paper", "Rags", "Felt", "Size"]):
        y = 100 + 40 * row
        lines.append(line_at(item, 60, y))
        for x in (400, 620):
            lines += [line_at("$" if row < 3 else misread, x, y), line_at(f"{row},204", x + 70, y)]
    table = recognize_table(page, (40, 40, 800, 270), lines)
    assert texts(table)[1] == ["Paper", "$ 0,204", "$ 0,204"]


def test_rules_that_end_at_a_shaded_head() -> None:
    page, shade = blank(), (221, 170, 120)
    cv2.rectangle(page, (50, 60), (650, 108), shade, -1)
    for x in (190, 420):
        page[60:108, x : x + 2] = 255  # the head's cells are parted by white lines, the others by hairlines
        page[108:300, x] = 126
    for y in (156, 228, 300):
        cv2.line(page, (50, y), (650, y), (90, 90, 90), 1)
    lines = [line_at(text, x, 68) for text, x in (("Kind", 70), ("Before", 210), ("After", 440))]
    lines += [line_at(text, x, 118) for text, x in (("Class", 70), ("first", 210), ("second", 440))]
    lines += [line_at("Ground", 70, 178), line_at("carried by", 210, 163), line_at("water", 210, 193)]
    lines += [line_at("of great harm", 440, 178), line_at("Code", 70, 250), line_at("none", 210, 250)]
    lines += [line_at("some", 440, 250)]
    print_lines(page, lines)
    table = recognize_table(page, (45, 55, 655, 305), lines)
    assert texts(table) == [
        ["Kind", "Before", "After"],
        ["Class", "first", "second"],
        ["Ground", "carried by water", "of great harm"],
        ["Code", "none", "some"],
    ]
    assert table is not None
    assert table.header_rows == 1


def test_a_framed_page_with_a_striped_picture_is_no_table() -> None:
    page = blank(900, 900)
    cv2.rectangle(page, (50, 50), (850, 850), (90, 90, 90), 1)
    page[700:846, 50:360] = (160, 90, 40)  # a picture in the frame's corner, with white stripes
    for x in (120, 180, 240, 300):
        page[700:846, x : x + 3] = 255
    lines = [line_at(text, 80, y) for y, text in ((100, "some text"), (400, "in a frame"))]
    assert find_tables(page, lines) == []
