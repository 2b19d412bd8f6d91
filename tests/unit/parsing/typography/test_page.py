"""Ordinary documents by their fonts and places: titles, headings, furniture, lists, code, columns."""

from __future__ import annotations

import itertools

import pytest
from drawn_sheets import PROSE, Sheet, markdown, records

from pagemill.document.labels import Label
from pagemill.document.page import Furniture

TITLES = list(
    itertools.product(
        ("Helvetica-Bold", "Times-Bold", "Helvetica", "Times-Roman"), (12, 12.5, 13, 14, 15, 16), ("centred", "left")
    )
)


@pytest.mark.parametrize(("font", "size", "place"), TITLES)
def test_the_title_of_a_first_page_is_a_title(tmp_path, font, size, place):
    sheet = Sheet()
    title = "Agreement on the use of the mill pond"
    if place == "centred":
        sheet.centre(80, title, font, size)
    else:
        sheet.put(72, 80, title, font, size)
    below = sheet.prose(72, 120, 450, font="Times-Roman" if font.startswith("Times") else "Helvetica")
    sheet.prose(72, below + 12, 450, font="Times-Roman" if font.startswith("Times") else "Helvetica")
    lines = markdown(sheet, tmp_path).splitlines()
    assert lines[0] == f"# {title}"


HEADINGS = list(itertools.product((True, False), ("Helvetica-Bold", "Times-Bold"), (11, 12, 14), (24, 34)))


@pytest.mark.parametrize(("ruled", "font", "size", "gap"), HEADINGS)
def test_a_heading_above_a_table_stays_a_heading(tmp_path, ruled, font, size, gap):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 22
    for heading in ("Large wheels", "Hands"):
        sheet.put(72, y, heading, font, size)
        rows = [["No.", "Part", "Count"], ["1", "Part B1", "8"], ["2", "Part C2", "15"], ["3", "Part D3", "22"]]
        y = sheet.table([72, 150, 300], y + gap - 14, rows, ruled=ruled) + 30
    text = markdown(sheet, tmp_path)
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    assert headings == ["Large wheels", "Hands"]
    assert text.count("| 3 | Part D3 | 22 |") == 2


def test_a_page_number_is_left_out_and_a_last_row_of_a_table_is_not(tmp_path):
    sheet = Sheet()
    rows = [["Post", "Person", "Duty"], ["Gate", "keeper", "Opens the gate"], ["Pump", "engineer", "Oils the pump"]]
    sheet.table([72, 200, 330], 700, rows, ruled=True)
    sheet.centre(810, "1", "Helvetica", 11)
    sheet.showPage()
    sheet.table([72, 200, 330], 60, [["Office", "clerk", "Sells the tickets"]], ruled=True)
    sheet.prose(72, 140, 450)
    sheet.centre(810, "2", "Helvetica", 11)
    text = markdown(sheet, tmp_path)
    assert "Sells the tickets" in text
    assert not any(line.strip() in {"1", "2"} for line in text.splitlines())


def test_a_letters_first_line_stays_and_a_running_head_goes(tmp_path):
    sheet = Sheet()
    for page in range(3):
        sheet.put(72, 40, "Annual report of the mill", size=9)
        sheet.prose(72, 120, 450, PROSE.replace("mill", f"mill {page}"))
        sheet.showPage()
    pages = records(sheet, tmp_path)
    heads = [region for page in pages for region in page.regions if region.label is Label.HEADER]
    assert [region.furniture for region in heads] == [Furniture.PROVEN] * 3
    letter = Sheet()
    letter.put(72, 40, "Zoe Miller, 3 Mill Lane", size=9)
    letter.prose(72, 120, 450)
    assert "Zoe Miller, 3 Mill Lane" in markdown(letter, tmp_path)


def test_lists_are_nested_by_their_indents(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450)
    rows = [(72, "1. Clothes"), (90, "\u2022 Oilskin"), (90, "\u2022 Gloves"), (108, "i) wool"), (108, "ii) rubber")]
    for x, text in [*rows, (72, "2. Food")]:
        y += 15
        sheet.put(x, y, text)
    text = markdown(sheet, tmp_path)
    items = [line for line in text.splitlines() if line.lstrip().startswith(("- ", "1. ", "2. "))]
    depths = [(len(line) - len(line.lstrip())) // 5 for line in items]
    assert depths == [0, 1, 1, 2, 2, 0]
    assert items[3].strip() == "- i) wool"


def test_a_line_that_begins_like_an_item_by_accident_is_none(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "The tests of the ferry on the river went on until the end of the whole year, and then again and")
    sheet.put(72, 94, "- 4 degrees in the morning, with fog over the water and no wind at all, while the bell of the")
    sheet.put(72, 108, "1986. That was the year of the flood, in which the house of the pilot was carried to the sea.")
    (region,) = records(sheet, tmp_path)[0].regions
    assert not region.list_item
    assert region.content is not None and "then again and - 4 degrees" in region.content


def test_code_is_taken_row_by_row_inside_its_item(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "1. Make a folder and fetch the settings:")
    for y, line in ((98, "mkdir -p /srv/wx"), (112, "for i in 1 2; do"), (126, "    echo $i"), (154, "done")):
        sheet.put(90, y, line, "Courier", 10)
    sheet.put(72, 176, "2. Start it.")
    text = markdown(sheet, tmp_path)
    block = "     ```\n     mkdir -p /srv/wx\n     for i in 1 2; do\n         echo $i\n\n     done\n     ```"
    assert block in text
    assert text.rstrip().endswith("\n\n2. Start it.")


def test_two_columns_of_prose_are_read_one_after_the_other(tmp_path):
    sheet = Sheet()
    sheet.put(72, 70, "The pond", "Helvetica-Bold", 16)
    sheet.prose(72, 110, 210, PROSE.replace("mill", "left"))
    sheet.prose(310, 110, 210, PROSE.replace("mill", "right"))
    regions = [region.content or "" for region in records(sheet, tmp_path)[0].regions]
    assert regions[0] == "The pond"
    assert [text.split()[1] for text in regions[1:]] == ["left", "right"]


def test_numbers_of_paragraphs_go_before_them(tmp_path):
    sheet = Sheet()
    y = 80.0
    for number in (11, 12, 13):
        sheet.put(50, y, str(number), size=9)
        y = sheet.prose(90, y, 420) + 10
    text = markdown(sheet, tmp_path)
    assert [paragraph.split()[0] for paragraph in text.strip().split("\n\n")] == ["11", "12", "13"]
