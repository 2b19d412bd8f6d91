"""Tables whose heads are turned or slanted."""

from __future__ import annotations

import pytest
from drawn_sheets import PROSE, Sheet, markdown, records

from pagemill.document.labels import Label

HEADS = ("Procedure", "Completion", "Knowledge", "Total")
PLACES = (230, 290, 350, 410)


def drawn(angle: float, rules: str) -> Sheet:
    """A table of six rows below its heads, which are turned against the clock, between two paragraphs."""
    sheet = Sheet()
    foot = sheet.prose(72, 80, 450) + 90
    sheet.put(76, foot, "Task", "Helvetica-Bold", 10)
    for head, x in zip(HEADS, PLACES, strict=True):
        sheet.saveState()
        # What is written downwards hangs from one height.
        sheet.translate(x + 8, 842 - foot + (60 if angle < 0 else 0))
        sheet.rotate(angle)
        sheet.setFont("Helvetica-Bold", 10)
        sheet.drawString(0, 0, head)
        sheet.restoreState()
    for row in range(6):
        y = foot + 18 + 16 * row
        sheet.put(76, y, f"Measure {row} objects", size=10)
        for column, x in enumerate(PLACES):
            sheet.put(x, y, f"0.{row}{column}", size=10)
    levels = [842 - y for y in (foot - 70, foot + 5, *(foot + 21 + 16 * row for row in range(6)))]
    if rules == "grid":
        sheet.grid([72, 210, 275, 335, 395, 460], levels)
    else:
        for y in (levels[0], levels[1], levels[-1]):
            sheet.line(72, y, 470, y)
    sheet.prose(72, foot + 150, 450)
    return sheet


@pytest.mark.parametrize("rules", ["grid", "level"])
@pytest.mark.parametrize("angle", [90, 60, 45, -90])
def test_they_are_the_first_row_of_the_table(tmp_path, angle, rules):
    lines = markdown(drawn(angle, rules), tmp_path).splitlines()
    assert [line for line in lines if line.startswith("|")][:3] == [
        "| Task | Procedure | Completion | Knowledge | Total |",
        "| --- | --- | --- | --- | --- |",
        "| Measure 0 objects | 0.00 | 0.01 | 0.02 | 0.03 |",
    ]
    assert len([line for line in lines if line]) == 2 + 8


def test_the_record_has_them_as_they_stand(tmp_path):
    sheet = drawn(90, "grid")
    (record,) = records(sheet, tmp_path)
    (table,) = [region for region in record.regions if region.label is Label.TABLE]
    turned = [line for line in table.lines if line.polygon is not None]
    assert [line.text for line in turned] == list(HEADS)
    assert all(line.box[3] - line.box[1] > line.box[2] - line.box[0] for line in turned)
    x1, y1, x2, y2 = table.bbox
    assert all(x1 <= line.box[0] < line.box[2] <= x2 and y1 <= line.box[1] < line.box[3] <= y2 for line in turned)


def test_turned_text_over_nothing_is_text_of_its_own(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450)
    for x in (200, 300):
        sheet.saveState()
        sheet.translate(x, 842 - y - 150)
        sheet.rotate(90)
        sheet.drawString(0, 0, "Draft")
        sheet.restoreState()
    assert markdown(sheet, tmp_path) == f"{PROSE}\n\nDraft\n\nDraft\n"


def turned(sheet: Sheet, x: float, foot: float, text: str, size: float = 9) -> None:
    """Write a line upwards from a place on the page."""
    sheet.saveState()
    sheet.translate(x, 842 - foot)
    sheet.rotate(90)
    sheet.setFont("Helvetica", size)
    sheet.drawString(0, 0, text)
    sheet.restoreState()


@pytest.mark.parametrize("columns", [1, 2])
def test_stamps_in_both_margins_are_no_heads(tmp_path, columns):
    sheet = Sheet()
    for column in range(columns):
        y = 80.0
        for _ in range(3):
            y = sheet.prose(72 + 240 * column, y, 450 if columns == 1 else 215) + 12
    for x, text in ((40, "Downloaded from the library"), (560, "Copy for the reader of this page")):
        turned(sheet, x, 160, text)
    blocks = markdown(sheet, tmp_path).strip().split("\n\n")
    assert blocks[: 3 * columns] == [PROSE] * 3 * columns
    assert sorted(blocks[3 * columns :]) == ["Copy for the reader of this page", "Downloaded from the library"]


def test_a_turned_table_above_text_is_whole(tmp_path):
    sheet = Sheet()
    rows = (
        ("Year", "Wheat", "Barley", "Oats"),
        *((f"18{n:02}", str(3 * n), str(5 * n), str(7 * n)) for n in range(1, 8)),
    )
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            turned(sheet, 200 + 20 * number, 500 - 80 * place, cell, 10)
    sheet.prose(72, 520, 450)
    assert "| 1803 | 9 | 15 | 21 |" in markdown(sheet, tmp_path)


def test_values_written_upright_over_bars_are_no_table(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450)
    for place in range(5):
        turned(sheet, 150 + 60 * place, y + 100, f"{100 + 7 * place} tons")
    sheet.prose(72, y + 115, 450)
    text = markdown(sheet, tmp_path)
    assert "|" not in text and "<table" not in text and "128 tons" in text
