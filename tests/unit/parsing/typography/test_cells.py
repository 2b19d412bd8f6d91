"""Tables without a full grid: aligned texts, labels and values, cells of several lines."""

import re

import pytest
from drawn_sheets import Sheet, markdown

CROSSING = ["Rough when the wind comes", "from the west; bring a coat and", "something to hold"]


def rows_of(text: str) -> list[list[str]]:
    """Cells of the pipe tables in a text, without the rows of dashes."""
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_labels_and_values_stay_in_their_rows(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "Arrival form", "Helvetica-Bold", 14)
    said = [("Name of vessel", "Grey Heron"), ("Port", "East quay"), ("Cargo", "Salt and rope"), ("Crew", "5")]
    for place, (label, value) in enumerate(said):
        sheet.put(72, 110 + 18 * place, label)
        sheet.put(240, 110 + 18 * place, value)
    menu = [("Fish soup", "4.20"), ("Boiled beef with barley", "7.60"), ("Coffee", "1.00")]
    for place, (dish, price) in enumerate(menu):
        sheet.put(72, 300 + 16 * place, dish)
        sheet.right(400, 300 + 16 * place, price)
    rows = rows_of(markdown(sheet, tmp_path))
    assert rows[:4] == [list(pair) for pair in said]
    assert rows[4:] == [list(pair) for pair in menu]


def test_a_cell_of_three_lines_is_one_cell(tmp_path):
    sheet = Sheet()
    for x, head in ((72, "Island"), (170, "Remarks on the crossing"), (380, "Summer")):
        sheet.put(x, 80, head, "Helvetica-Bold")
    sheet.put(72, 104, "Heron Rock")
    for line, text in enumerate(CROSSING):
        sheet.put(170, 104 + 13 * line, text)
    sheet.put(380, 104, "6")
    for place, (island, remark, boats) in enumerate([("Little Ness", "", "11"), ("Tern", "Ask the master", "1,204")]):
        sheet.put(72, 156 + 24 * place, island)
        sheet.put(170, 156 + 24 * place, remark or " ")
        sheet.put(380, 156 + 24 * place, boats)
    rows = rows_of(markdown(sheet, tmp_path))
    assert rows[1] == ["Heron Rock", " ".join(CROSSING), "6"]
    assert rows[2:] == [["Little Ness", "", "11"], ["Tern", "Ask the master", "1,204"]]


def test_a_table_over_two_pages_is_one(tmp_path):
    sheet = Sheet()
    head = ["No.", "Item", "Shelf"]
    sheet.prose(72, 80, 450)
    sheet.table([72, 160, 320], 560, [head, *([str(i), f"Item {i}", f"A{i}"] for i in range(1, 12))], ruled=True)
    sheet.showPage()
    sheet.table([72, 160, 320], 60, [head, *([str(i), f"Item {i}", f"A{i}"] for i in range(12, 16))], ruled=True)
    sheet.prose(72, 300, 450)
    rows = rows_of(markdown(sheet, tmp_path))
    assert rows == [head, *([str(i), f"Item {i}", f"A{i}"] for i in range(1, 16))]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_head_of_a_striped_table_is_a_row_of_its_own(tmp_path, first):
    sheet = Sheet()
    rows = [["No.", "Item", "Shelf"], *([str(i), "Lighthouse", f"A{i}"] for i in range(1, 7))]
    for place in range(first, len(rows), 2):
        sheet.saveState()
        sheet.setFillGray(0.9)
        sheet.rect(70, 842 - 104 - 18 * place, 300, 18, stroke=0, fill=1)
        sheet.restoreState()
    for place, row in enumerate(rows):
        for x, text in zip((72, 110, 240), row, strict=True):
            sheet.put(x, 99 + 18 * place, text, "Helvetica" if place else "Helvetica-Bold")
    assert rows_of(markdown(sheet, tmp_path)) == rows


def test_a_head_between_its_caption_and_the_first_rule_is_a_row(tmp_path):
    sheet = Sheet()
    rows = [["No.", "Item", "Shelf"], *([str(i), f"Item {i}", f"A{i}"] for i in range(1, 7))]
    sheet.put(130, 84, "Table 2. What the boat house holds")
    for place, row in enumerate(rows):
        sheet.line(70, 842 - 104 - 18 * place, 370, 842 - 104 - 18 * place)
        for x, text in zip((72, 160, 320), row, strict=True):
            sheet.put(x, 99 + 18 * place, text, "Helvetica" if place else "Helvetica-Bold")
    assert rows_of(markdown(sheet, tmp_path)) == rows


def test_a_label_that_wraps_in_the_last_row_is_one_cell(tmp_path):
    sheet = Sheet()
    rows = [["Name of the vessel", "Grey Heron", "Port", "East quay"], ["Depth", "3 fathoms", "Flag", "none"]]
    sheet.table([72, 190, 300, 360], 80, rows, ruled=False)
    sheet.put(76, 134, "Harbour master and")
    sheet.put(76, 147, "deputy")
    sheet.put(194, 134, "Tern")
    sheet.prose(72, 200, 400)
    assert rows_of(markdown(sheet, tmp_path))[2] == ["Harbour master and deputy", "Tern", "", ""]


def test_two_tables_with_a_heading_between_them_are_two(tmp_path):
    sheet = Sheet()
    rows = [["No.", "Item", "Shelf"], ["1", "Anchor", "A1"], ["2", "Bell", "B2"]]
    sheet.table([72, 160, 320], 740, rows, ruled=True)
    sheet.showPage()
    sheet.put(72, 60, "The second boat house", "Helvetica-Bold", 14)
    sheet.table([72, 160, 320], 80, rows, ruled=True)
    assert markdown(sheet, tmp_path).count("| No. | Item | Shelf |") == 2


PAIRS = {
    "form": [("Name:", "Grey Heron"), ("Port of registry:", "East quay"), ("Crew:", "5"), ("Arrived:", "9 June")],
    "menu": [("Fish soup", "4.20"), ("Boiled beef with barley", "17.60"), ("Coffee", "1.00"), ("Tea", "0.90")],
    "receipt": [("2 x Rope, tarred", "31.00"), ("1 x Lamp", "8.50"), ("Total", "39.50"), ("Cash", "40.00")],
    "contents": [("The sluice", "3"), ("The mill pond", "17"), ("The dam", "24"), ("The brook", "101")],
    "record": [("Fuel", "Coal"), ("Depth", "3 fathoms"), ("Flag", "none"), ("Last port of call", "Saint Orin")],
}


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(("size", "step", "ruled"), [(8, 10, False), (11, 28, False), (10, 18, True)])
def test_labels_stay_with_their_values(tmp_path, kind, size, step, ruled):
    sheet = Sheet()
    sheet.put(72, 80, "Before the lock", "Helvetica-Bold", 15)
    for place, (label, value) in enumerate(PAIRS[kind]):
        y = 120 + place * step
        sheet.put(72, y, label, size=size)
        if kind in {"menu", "receipt", "contents"}:
            sheet.right(420, y, value, size=size)
        else:
            sheet.put(260, y, value, size=size)
        if kind == "contents":
            start = 80 + sheet.stringWidth(label, "Helvetica", size)
            sheet.put(start, y, "." * int((395 - start) / sheet.stringWidth(".", "Helvetica", size)), size=size)
        if ruled:
            sheet.line(72, 842 - y - 5, 420, 842 - y - 5)
    lines = markdown(sheet, tmp_path).splitlines()
    for label, value in PAIRS[kind]:
        assert any(label in line and value in line.split(label, 1)[1] for line in lines), (label, value, lines)


def _stock(start: int, count: int, columns: int) -> list[list[str]]:
    return [[str(i), f"Item {i}", f"A{i}", f"{3 * i}"][:columns] for i in range(start, start + count)]


@pytest.mark.parametrize(("ruled", "columns"), [(True, 4), (False, 3)])
@pytest.mark.parametrize("case", ["repeated head", "no head", "heading", "other head", "prose"])
def test_tables_over_pages_and_their_false_friends(tmp_path, ruled, columns, case):
    xs, head = [72, 160, 290, 400][:columns], ["No.", "Item", "Shelf", "Count"][:columns]
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    sheet.table(xs, 580, [head, *_stock(1, 10, columns)], ruled=ruled)
    sheet.showPage()
    rest = _stock(11, 5, columns)
    y = 60.0
    if case == "heading":
        sheet.put(72, 70, "The second boat house", "Helvetica-Bold", 14)
        y = 90
    elif case == "prose":
        y = sheet.prose(72, 70, 450) + 10
    first = {"no head": [], "other head": [["Key", "Guest", "Room", "Nights"][:columns]]}.get(case, [head])
    sheet.table(xs, y, [*first, *rest], ruled=ruled, head=bool(first))
    sheet.prose(72, y + 200, 450)
    text = markdown(sheet, tmp_path)
    tables = sum(line.startswith("| ---") for line in text.splitlines())
    assert tables == (1 if case in {"repeated head", "no head"} else 2), text
    assert f"| {' | '.join(rest[-1])} |" in text


@pytest.mark.parametrize(("place", "ruled"), [(80, True), (330, False), (480, True)])
@pytest.mark.parametrize("angle", [90, -90])
def test_a_turned_table_on_an_upright_page(tmp_path, place, ruled, angle):
    sheet = Sheet()
    rows = [["Berth", "Vessel", "Since"], ["1", "Grey Heron", "June"], ["2", "Tern", "May"], ["3", "Auk", "July"]]
    end = sheet.prose(72, 70, 450)
    sheet.saveState()
    sheet.translate(place if angle > 0 else place + 80, 842 - 500 if angle > 0 else 842 - 170)
    sheet.rotate(angle)
    sheet.translate(0, -842)
    sheet.table([0, 90, 200], 0 if angle < 0 else -80, rows, ruled=ruled)
    sheet.restoreState()
    sheet.prose(72, 560, 450)
    assert end < 170
    text = markdown(sheet, tmp_path)
    assert rows_of(text) == rows
    assert text.count("The mill pond was dug") == 2


CELLS = [
    ["Duty", "When and by whom it is done", "Where"],
    ["Open the gate at the", "the bell was rung twice by", "Upper gate and"],
    ["Oil the pump with", "the engineer has written it down", "Pump house"],
]
REST = {1: ["lower end", "the keeper", "its wheel"], 2: ["clean oil", "in the book", ""]}


@pytest.mark.parametrize("step", [0, 5])
@pytest.mark.parametrize("middle", [False, True])
def test_rows_whose_cells_all_have_several_lines(tmp_path, step, middle):
    """Written cell by cell, at one distance or with space between rows, at the top or in the middle of their row."""
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    for number, row in enumerate(CELLS):
        tall = 2 if number in REST else 1
        for x, text, rest in zip((72, 210, 400), row, REST.get(number, ["", "", ""]), strict=True):
            below = 6.5 if middle and tall == 2 and not rest else 0
            sheet.put(x, y + below, text)
            if rest:
                sheet.put(x, y + 13, rest)
        y += 13 * tall + step
    expected = [CELLS[0], *([f"{a} {b}".strip() for a, b in zip(CELLS[i], REST[i], strict=True)] for i in (1, 2))]
    assert rows_of(markdown(sheet, tmp_path)) == expected


def test_level_rules_bound_a_table_beside_a_column_of_text(tmp_path):
    sheet = Sheet()
    for x in (60, 320):
        sheet.prose(x, 80, 220, size=9)
    for y in (300, 316, 376):
        sheet.line(60, 842 - y, 280, 842 - y)
    rows = [["Bird", "Nests", "Young"], ["Heron", "4", "11"], ["Tern", "20", "31"], ["Auk", "7", "9"]]
    for number, row in enumerate(rows):
        for x, text in zip((64, 150, 230), row, strict=True):
            sheet.put(x, 312 + 18 * number, text, size=9)
    sheet.prose(320, 300, 220, size=9)
    assert rows_of(markdown(sheet, tmp_path)) == rows


def test_code_in_all_cells_is_a_table_and_code_with_aligned_remarks_is_none(tmp_path):
    sheet = Sheet()
    rows = [["--host", "HOST"], ["--verbose", "LEVEL"], ["--port", "PORT"], ["-o", "OUT"]]
    for number, row in enumerate(rows):
        for x, text in zip((72, 217), row, strict=True):
            sheet.put(x, 100 + 16 * number, text, "Courier", 10)
        sheet.put(72, 300 + 12 * number, f"{row[0]:<20} # {row[1]}", "Courier", 10)
    text = markdown(sheet, tmp_path)
    assert rows_of(text) == [[f"`{cell}`" for cell in row] for row in rows]
    assert "--host # HOST" in " ".join(text.split())


def test_columns_of_numbers_with_narrow_gutters(tmp_path):
    sheet = Sheet()
    for y, cells in ((100, ("Region", "Q1", "Q2")), (120, ("North", "1,200", "1,310")), (140, ("South", "980", "45"))):
        sheet.put(72, y, cells[0])
        sheet.right(200, y, cells[1])
        sheet.right(232, y, cells[2])
    sheet.put(72, 160, "Total")
    sheet.right(200, 160, "2,180")
    sheet.right(232, 160, "1,355")
    assert rows_of(markdown(sheet, tmp_path))[1:3] == [["North", "1,200", "1,310"], ["South", "980", "45"]]


def test_a_small_table_beside_prose_and_boxes_of_a_drawing(tmp_path):
    sheet = Sheet()
    rows = [["Name", "Size"], ["Auk", "12"], ["Tern", "7"], ["Heron", "31"]]
    for number, row in enumerate(rows):
        for x, text in zip((400, 470), row, strict=True):
            sheet.put(x, 82 + 14 * number, text)
    sheet.prose(72, 80, 300)
    for x in (72, 222, 372):
        sheet.rect(x, 842 - 340, 90, 30)
        sheet.put(x + 10, 330, f"Step {x}")
    sheet.line(162, 842 - 325, 222, 842 - 325)
    sheet.line(312, 842 - 325, 372, 842 - 325)
    text = markdown(sheet, tmp_path)
    assert rows_of(text) == rows
    assert "the meadows stood under water until June" in text
    assert "<table" not in text


def test_a_word_that_a_hyphen_cuts_in_a_cell_is_whole(tmp_path):
    sheet = Sheet()
    cells = [["Crossing", "Remark"], ["Heron", "Closed in the win-"], ["Tern", "Open to all"]]
    sheet.grid([72, 160, 270], [842 - y for y in (90, 110, 145, 165)])
    for y, row in zip((104, 124, 159), cells, strict=True):
        sheet.put(76, y, row[0])
        sheet.put(164, y, row[1])
    sheet.put(164, 137, "ter months")
    assert rows_of(markdown(sheet, tmp_path))[1] == ["Heron", "Closed in the winter months"]


YEARS = [
    ["Water rights", "178", "141", "138"],
    ["Rags and size", "3,423", "2,532", "1,892"],
    ["Wages", "1,136", "876", "680"],
]


@pytest.mark.parametrize("shaded", [(0, 2), (0, 1, 2)])
@pytest.mark.parametrize("underlined", [False, True])
def test_shaded_rows_and_underlined_cells_are_parts_of_one_table(tmp_path, shaded, underlined):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    rows = [["", "2025", "2024", "2023"], *YEARS, ["Total", "4,737", "3,549", "2,710"]]
    sheet.setFillGray(0.9)
    for row in shaded:
        sheet.rect(70, 842 - 268 - 16 * row, 450, 14, stroke=0, fill=1)
    sheet.setFillGray(0)
    for row, cells in enumerate(rows):
        y = 248 + 16 * row
        sheet.put(72, y, cells[0])
        for column, cell in enumerate(cells[1:]):
            sheet.right(330 + 90 * column, y, cell)
            if underlined and row in (0, 3):
                sheet.line(270 + 90 * column, 842 - y - 3, 332 + 90 * column, 842 - y - 3)
    written = markdown(sheet, tmp_path)
    assert [line for line in written.splitlines() if line.startswith("|")] == [
        "|  | 2025 | 2024 | 2023 |",
        "| --- | --- | --- | --- |",
        *(f"| {' | '.join(cells)} |" for cells in rows[1:]),
    ]


def test_double_rules_and_titles_of_rows_end_no_table(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    rows = [
        ["Work", "Days", "Men"],
        ["Sluice and wheel", "", ""],
        *([f"Part {n}", f"{n}.5", f"{n}"] for n in range(1, 6)),
    ]
    rows += [["All", "17.5", "15"]]
    for row, cells in enumerate(rows):
        for x, cell in zip((72, 260, 400), cells, strict=True):
            sheet.put(x, 248 + 14 * row, cell)
    for y in (236, 252, 254, 266, 336, 338, 352):
        sheet.line(70, 842 - y, 470, 842 - y)
    written = markdown(sheet, tmp_path)
    table = [line for line in written.splitlines() if line.startswith("|")]
    assert len(table) == len(rows) + 1
    assert all(f"| Part {n} | {n}.5 | {n} |" in table for n in range(1, 6))


def test_code_beside_text_between_rules_is_in_cells_of_one_table(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    for x, head in ((72, "Event"), (170, "Cause"), (330, "Names")):
        sheet.put(x, 200, head, "Helvetica-Bold")
    for place, (event, cause, names) in enumerate(
        [("gate-open", "Water", ("a, b_gate", "c_gate")), ("gate-shut", "Ice", ("d",))]
    ):
        y = 230 + 30 * place
        sheet.put(72, y, event, "Courier", 8)
        sheet.put(170, y, cause, "Helvetica", 8)
        for line, name in enumerate(names):
            top = y + 10 * line - 5 * (len(names) - 1)
            sheet.put(330, top, name, "Courier", 8)
            if line + 1 < len(names):
                sheet.put(330 + sheet.stringWidth(name, "Courier", 8), top, ",")
    for y in (185, 210, 243, 275):
        sheet.line(68, 842 - y, 480, 842 - y)
    rows = rows_of(markdown(sheet, tmp_path))
    assert [[cell.replace("`", "") for cell in row] for row in rows] == [
        ["Event", "Cause", "Names"],
        ["gate-open", "Water", "a, b_gate, c_gate"],
        ["gate-shut", "Ice", "d"],
    ]


def test_two_rows_between_three_rules_have_lines_in_the_middle(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    for x, y, text in (
        (72, 207, "Name"),
        (200, 200, "Usual"),
        (200, 214, "hour"),
        (300, 207, "Use"),
        (72, 247, "Gate"),
    ):
        sheet.put(x, y, text, "Helvetica-Bold" if y < 230 else "Helvetica")
    for x, y, text in ((200, 247, "7"), (300, 240, "Opened by the miller, who"), (300, 254, "then goes home")):
        sheet.put(x, y, text)
    for y in (185, 224, 264):
        sheet.line(68, 842 - y, 480, 842 - y)
    rows = rows_of(markdown(sheet, tmp_path))
    assert rows == [["Name", "Usual hour", "Use"], ["Gate", "7", "Opened by the miller, who then goes home"]]


def test_names_that_break_anywhere_are_first_cells_of_their_rows(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 60, 450)
    for x, y, text in ((72, 213, "Name"), (160, 200, "Usu"), (160, 213, "al"), (220, 213, "Use of the gate")):
        sheet.put(x, y, text, "Helvetica-Bold")
    names = [("MILL_GATE_OPEN_AT_7", "7", "Opened by the miller"), ("MILL_GATE_SHUT_AT_8", "8", "Shut by the miller")]
    for place, (name, hour, use) in enumerate(names):
        y = 230 + 56 * place
        for line in range(4):
            sheet.put(72, y + 13 * line, name[5 * line : 5 * line + 5], "Courier")
        sheet.put(160, y + 19.5, hour)
        sheet.put(220, y + 19.5, use)
    rows = rows_of(markdown(sheet, tmp_path))
    assert [[cell.replace(" ", "").strip("`") for cell in row] for row in rows] == [
        ["Name", "Usual", "Useofthegate"],
        *([name, hour, use.replace(" ", "")] for name, hour, use in names),
    ]


def test_justified_rows_with_wide_gaps_are_no_table(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    for y, words in (
        (260, ["Millers", "blocked", "gates"]),
        (274, ["because", "of ice", "below"]),
        (288, ["wheels", "called", "large"]),
    ):
        sheet.put(72, y, words[0])
        sheet.put(145, y, words[1])
        sheet.right(245, y, words[2])
    last = "The irony is of the craft"
    sheet.put(72, 302, last, "Helvetica", 173 / sheet.stringWidth(last, "Helvetica", 1))
    sheet.put(72, 316, "intended.")
    assert not rows_of(markdown(sheet, tmp_path))


def test_names_that_hyphens_break_in_the_first_column_are_whole(tmp_path):
    sheet = Sheet()
    said = [
        ("HARBOUR_VALIDA-", "TION_LEVEL", "8", "Checks of a boat"),
        ("QUAY_IS-", "SUE_ROOM", "5", "Boats at a quay"),
    ]
    for x, head in ((72, "Variable"), (220, "Default"), (320, "Meaning")):
        sheet.put(x, 100, head, "Helvetica-Bold")
    sheet.put(72, 114, "TOLL")
    sheet.put(220, 114, "2")
    sheet.put(320, 114, "Crowns a metre")
    for number, (start, rest, *values) in enumerate(said):
        sheet.put(72, 128 + 28 * number, start)
        sheet.put(72, 142 + 28 * number, rest)
        for x, value in zip((220, 320), values, strict=True):
            sheet.put(x, 128 + 28 * number, value)
    sheet.prose(72, 240, 450)
    rows = rows_of(markdown(sheet, tmp_path))
    assert rows[2:] == [[start.rstrip("-") + rest, *values] for start, rest, *values in said]


def test_a_word_that_a_narrow_cell_cuts_is_whole(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 60, 450, "Every supplier, any other Anbieter or Harbour, is listed with the code that is given.")
    rows = [("Anbiete", "r", "Code", "Place"), ("Harbou", "r Co", "17", "North"), ("ESTIM", "_COD", "18", "South")]
    for place, (first, second, code, where) in enumerate(rows):
        sheet.put(72, 120 + 36 * place, first)
        sheet.put(72, 132 + 36 * place, second)
        sheet.put(150, 120 + 36 * place, code)
        sheet.put(260, 120 + 36 * place, where)
    found = rows_of(markdown(sheet, tmp_path))
    assert found == [["Anbieter", "Code", "Place"], ["Harbour Co", "17", "North"], ["ESTIM_COD", "18", "South"]]


def test_a_line_without_the_space_that_others_end_with_is_cut_inside_a_word(tmp_path):
    sheet = Sheet()
    rows = [("Kompo", "nente", "7"), ("Gute ", "Ware ", "8"), ("480000", "0", "9")]
    for place, (first, second, number) in enumerate(rows):
        sheet.put(72, 100 + 36 * place, first)
        sheet.put(72, 112 + 36 * place, second)
        sheet.put(150, 100 + 36 * place, number)
        sheet.put(220, 100 + 36 * place, f"A {number}")
    found = rows_of(markdown(sheet, tmp_path))
    assert [row[0] for row in found] == ["Komponente", "Gute Ware", "4800000"]


def test_a_head_whose_first_line_is_above_those_in_its_middle(tmp_path):
    sheet = Sheet()
    for y, text in ((116, "Number"), (129, "of berth")):
        sheet.put(72, y, text, "Helvetica-Bold")
    sheet.put(150, 122.5, "Master", "Helvetica-Bold")
    sheet.put(260, 122.5, "Cargo", "Helvetica-Bold")
    for place, row in enumerate((("17", "Tern", "Salt"), ("18", "Heron", "Rope"))):
        for x, text in zip((72, 150, 260), row, strict=True):
            sheet.put(x, 154 + 20 * place, text)
    found = rows_of(markdown(sheet, tmp_path))
    assert found == [["Number of berth", "Master", "Cargo"], ["17", "Tern", "Salt"], ["18", "Heron", "Rope"]]


def test_code_that_runs_up_to_the_next_cell_and_over_it_stays_in_its_own(tmp_path):
    sheet = Sheet()
    rows = [
        ("Harbour", "", "Master"),
        ("", "BERTH", "Tern"),
        ("", "BERTH_NUMBER_ON", "Heron"),
        ("", "MOORING_OF_SHIPS", "Puffin"),
    ]
    rows += [("", "BERTH_NUMBERS", "Petrel")]
    for place, (name, code, master) in enumerate(rows):
        y = 100 + 18 * place
        sheet.put(72, y, name or code, "Courier" if code else "Helvetica", 10)
        sheet.put(150, y, master, size=10)
        sheet.put(260, y, f"{place} boats", size=10)
    found = rows_of(markdown(sheet, tmp_path))
    assert [row[:2] for row in found[1:]] == [[f"`{code}`", master] for _, code, master in rows[1:]]


@pytest.mark.parametrize("drawn", ["nothing", "walls and the head"])
def test_cells_over_rows_and_heads_over_heads(tmp_path, drawn):
    sheet = Sheet()
    sheet.prose(72, 60, 450)
    sheet.put(270, 172, "Results of the survey", "Helvetica-Bold")
    for x, y, text in ((100, 184, "Building"), (190, 184, "Total"), (262, 196, "First half"), (352, 196, "Share")):
        sheet.put(x, y, text, "Helvetica-Bold")
    y = 222
    for name, numbers in {
        "Pumping station": [("5450", "12.1", "4.0")],
        "Town hall": [("4475", "8.2", "71.9"), ("894", "7.5", "9.1")],
        "Bridge": [("31", "22.8", "1.3"), ("7954", "5.0", "88.4"), ("86", "30.5", "2.2")],
    }.items():
        sheet.put(72, y + 11 * (len(numbers) - 1), name)
        for row in numbers:
            for x, number in zip((214, 310, 380), row, strict=True):
                sheet.right(x, y, number)
            y += 22
    if drawn != "nothing":
        for wall in (170, 240, 330):
            sheet.line(wall, 842 - 158, wall, 842 - (y - 8))
        for level in (158, 204, y - 8):
            sheet.line(66, 842 - level, 400, 842 - level)
    text = markdown(sheet, tmp_path)
    assert text.count("<table>") == 1
    for cell in (
        '<th rowspan="2">Building</th><th rowspan="2">Total</th><th colspan="2">Results of the survey</th></tr>',
        "<tr><th>First half</th><th>Share</th></tr>",
        "<td>Pumping station</td><td>5450</td>",
        '<td rowspan="2">Town hall</td><td>4475</td><td>8.2</td><td>71.9</td></tr><tr><td>894</td>',
        '<td rowspan="3">Bridge</td><td>31</td>',
    ):
        assert cell in text


def test_a_head_in_the_middle_of_all_columns_spans_those_under_it_alone(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 60, 450)
    sheet.put(198, 172, "Next steps", "Helvetica-Bold")
    for x, y, text in ((92, 184, "Region"), (154, 196, "Building"), (234, 196, "Share"), (334, 184, "Total")):
        sheet.put(x, y, text, "Helvetica-Bold")
    for row, (name, *numbers) in enumerate((("Port", "8311", "94.69", "late"), ("School", "5340", "5.16", "done"),
                                            ("Bridge", "5399", "5.83", "late"))):  # fmt: skip
        for x, text in zip((72, 160, 238, 336), (name, *numbers), strict=True):
            sheet.put(x, 222 + 22 * row, text)
    text = markdown(sheet, tmp_path)
    assert '<th rowspan="2">Region</th><th colspan="2">Next steps</th><th rowspan="2">Total</th></tr>' in text
    assert "<tr><th>Building</th><th>Share</th></tr>" in text


def test_answers_right_behind_labels_are_no_column(tmp_path):
    sheet = Sheet()
    fields = [("Name:", "Grey Heron"), ("Date of birth:", "9 June"), ("Port of registry:", "East quay"), ("Crew:", "5")]
    for place, (label, answer) in enumerate(fields):
        sheet.put(72, 110 + 24 * place, label)
        sheet.put(92 + sheet.stringWidth(label, "Helvetica", 10), 110 + 24 * place, answer)
    assert not rows_of(markdown(sheet, tmp_path))


@pytest.mark.parametrize("column", [0, 2])
def test_a_table_between_rules_may_have_text_in_one_column_alone(tmp_path, column):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    xs = (90, 250, 350)
    for x, head in zip(xs, ("Use case", "Validator", "Serializer"), strict=True):
        sheet.put(x, 200, head)
    for place in range(3):
        sheet.put(xs[column], 220 + 14 * place, f"The gate {place}")
    for y in (188, 205, 254):
        sheet.line(80, 842 - y, 450, 842 - y)
    sheet.prose(72, 290, 450)
    table = rows_of(markdown(sheet, tmp_path))
    assert table[0] == ["Use case", "Validator", "Serializer"] if column else ["Use case", "Validator Serializer"]
    assert " ".join(row[column] for row in table[1:]) == "The gate 0 The gate 1 The gate 2"


def test_a_heading_between_the_rules_of_two_tables_is_in_neither(tmp_path):
    sheet = Sheet()
    for top, name in ((100, "Water"), (200, "Wheels")):
        sheet.put(72, top - 30, name, "Helvetica-Bold", 13)
        for place, row in enumerate((("Gate", "Hours"), ("east", "seven"), ("west", "nine"))):
            for x, cell in zip((80, 250), row, strict=True):
                sheet.put(x, top + 20 * place, cell)
            sheet.line(72, 842 - top - 20 * place - 6, 400, 842 - top - 20 * place - 6)
    text = markdown(sheet, tmp_path)
    assert [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")] == ["Water", "Wheels"]


def test_lines_of_a_cell_beside_one_in_its_middle_are_a_row(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    for x, cell in ((80, "Mode"), (250, "What it does")):
        sheet.put(x, y, cell, "Helvetica-Bold")
    for x, cell in ((80, "alone"), (250, "It writes a line, and ends")):
        sheet.put(x, y + 17, cell)
    sheet.put(80, y + 34, "in a loop (gate")
    sheet.put(250, y + 40.5, "It does so again and again, until it rains")
    sheet.put(80, y + 47, "open)")
    table = rows_of(markdown(sheet, tmp_path))
    assert table == [
        *(["Mode", "What it does"], ["alone", "It writes a line, and ends"]),
        ["in a loop (gate open)", "It does so again and again, until it rains"],
    ]


STATEMENT = [("Revenue", "$", "91,847"), ("Cost of sales", "", "52,004"), ("Costs and expenses:", "", ""),
             ("Research and development", "", "(27,279)"), ("Depreciation", "", "53,765"),
             ("Net income", "$", "47,097")]  # fmt: skip


@pytest.mark.parametrize("ruled", [True, False])
def test_a_statement_of_accounts_is_one_table_under_its_units(tmp_path, ruled):
    sheet = Sheet()
    sheet.put(72, 80, "Statement of income", "Helvetica-Bold", 16)
    sheet.put(200, 106, "(in millions, except per share amounts)")
    sheet.put(335, 126, "Year ended December 31,")
    for column, year in enumerate(("2031", "2030")):
        sheet.right(390 + 110 * column, 144, year)
    for place, (label, sign, amount) in enumerate(STATEMENT):
        y = 162 + 18 * place
        sheet.put(90 if place in (3, 4) else 72, y, label)
        for column in range(2):
            if amount:
                sheet.right(390 + 110 * column, y, amount)
            if sign:
                sheet.put(310 + 110 * column, y, sign)
        if ruled and place in (0, 5):  # over the amounts alone
            sheet.line(305, 842 - y + 13, 500, 842 - y + 13)
    if ruled:
        sheet.line(305, 842 - 130, 500, 842 - 130)
        sheet.line(305, 842 - 258, 500, 842 - 258)
    sheet.prose(72, 330, 450)
    text = markdown(sheet, tmp_path)
    head, table = text.split("<table>")
    assert head.rstrip().endswith("(in millions, except per share amounts)") and "#" not in head.split("\n\n")[1]
    rows = [re.findall(r"<t[dh](?: [^>]*)?>(.*?)</t[dh]>", row) for row in table.split("</tr>")]
    assert rows[0] == ["", "Year ended December 31,"] and 'colspan="2"' in table
    assert rows[1] == ["", "2031", "2030"]
    expected = [[label, *(2 * [f"{sign} {amount}".strip()])] for label, sign, amount in STATEMENT]
    assert rows[2:8] == expected
