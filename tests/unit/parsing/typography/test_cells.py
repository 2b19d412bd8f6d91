"""Tables without a full grid: aligned texts, labels and values, cells of several lines."""

from __future__ import annotations

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


def test_two_tables_with_a_heading_between_them_are_two(tmp_path):
    sheet = Sheet()
    rows = [["No.", "Item", "Shelf"], ["1", "Anchor", "A1"], ["2", "Bell", "B2"]]
    sheet.table([72, 160, 320], 740, rows, ruled=True)
    sheet.showPage()
    sheet.put(72, 60, "The second boat house", "Helvetica-Bold", 14)
    sheet.table([72, 160, 320], 80, rows, ruled=True)
    assert markdown(sheet, tmp_path).count("| No. | Item | Shelf |") == 2
