"""Scans of ordinary documents: their lines measured on the pixels, and structured as those of a text layer are."""

import numpy as np
import pytest
from drawn_sheets import PROSE, Sheet
from scanned_sheets import record_of, scan, scanned_markdown

from pagemill.document.labels import Label
from pagemill.document.page import TextLine
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.scanned import is_measurable
from pagemill.parsing.typography.measured import measured

GOODS = (
    ("Lamp oil, 1 l", "8.40"),
    ("Twine", "15.00"),
    ("Hooks, box of 10", "2.15"),
    ("Candle x3", "4.50"),
    ("Rye bread", "3.20"),
    ("Smoked herring", "11.05"),
    ("TOTAL", "44.30"),
)
FIELDS = (
    ("Name", "Margret Olsen"),
    ("Street and number", "Hafenstrasse 14"),
    ("Vessel", "Marie Louise"),
    ("Length over all", "11.40 m"),
    ("Home port", "Kappeln"),
    ("From", "1 May 2031"),
)
CODE = ("def toll(boat):", "    if boat.length > 9:", "        return boat.length * 2", "    return 0")


def rows(markdown: str) -> list[list[str]]:
    """The cells of the rows of tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines() if "|" in line]


@pytest.mark.parametrize(("font", "contrast", "skew"), [("Courier", 1.0, 0.0), ("Times-Roman", 0.45, -1.2)])
def test_the_rows_of_a_receipt_stay_rows(tmp_path, font, contrast, skew):
    sheet = Sheet()
    sheet.put(110, 80, "QUAY STORES", font, 18)
    for number, (label, value) in enumerate(GOODS):
        sheet.put(72, 120 + 13 * number + 6 * (number == 6), label, font, 10)
        sheet.right(280, 120 + 13 * number + 6 * (number == 6), value, font, 10)
    sheet.put(72, 240, "Thank you", font, 10)
    markdown = scanned_markdown(sheet, tmp_path, dpi=150, contrast=contrast, skew=skew)
    assert all([label, value] in rows(markdown) for label, value in GOODS)
    assert "# QUAY STORES\n" in markdown, "it is larger than the rows"


@pytest.mark.parametrize(("bold", "ruled"), [(True, False), (False, True)])
def test_the_fields_of_a_form_stay_beside_their_labels(tmp_path, bold, ruled):
    sheet = Sheet()
    sheet.put(72, 80, "Application for a berth", "Helvetica-Bold", 16)
    for number, (label, value) in enumerate(FIELDS):
        y = 130 + 22 * number
        sheet.put(72, y, label, "Helvetica-Bold" if bold else "Helvetica")
        sheet.put(220, y, value)
        if ruled:
            sheet.line(218, 842 - y - 4, 500, 842 - y - 4)
    sheet.prose(72, 300, 450)
    markdown = scanned_markdown(sheet, tmp_path)
    found = rows(markdown)
    assert all([label, value] in [[cell.replace("*", "") for cell in row] for row in found] for label, value in FIELDS)
    assert markdown.startswith("# Application for a berth\n")
    assert PROSE in markdown


def test_contents_keep_their_page_numbers_over_dots_that_were_not_read(tmp_path):
    sheet = Sheet()
    entries = [("Preface", "v"), ("The harbour", "1"), ("The rope walk", "12"), ("The storm", "107")]
    for number, (title, page) in enumerate(entries):
        sheet.put(72, 100 + 20 * number, title)
        sheet.right(500, 100 + 20 * number, page)
        for x in range(150, 470, 6):
            sheet.put(x, 100 + 20 * number, ".")
    pixels, lines = scan(sheet, tmp_path)
    read = [line for line in lines if line.text.strip(". ")]
    assert len(read) == 2 * len(entries)
    record = record_of(pixels, read)
    assert [region.content for region in record.regions] == ["\n".join(f"{a} … {b}" for a, b in entries)]


def test_code_is_known_by_its_pitch_and_keeps_its_indents(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    for number, line in enumerate(CODE):
        sheet.put(72, y + 13 * number, line, "Courier", 10)
    sheet.prose(72, y + 75, 450)
    markdown = scanned_markdown(sheet, tmp_path)
    assert "```\n" + "\n".join(CODE) + "\n```" in markdown
    assert markdown.count(PROSE) == 2


def test_bullets_that_were_not_read_make_items_and_headings_are_bold(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "Duties of the clerk", "Helvetica-Bold", 11)
    y = sheet.prose(72, 105, 450)
    for number, item in enumerate(("opens the sluice at dawn", "counts the carts", "keeps the book")):
        sheet.circle(80, 842 - y - 12 - 18 * number + 4, 2, fill=1)
        sheet.put(96, y + 12 + 18 * number, item)
    markdown = scanned_markdown(sheet, tmp_path)
    assert markdown.startswith("## Duties of the clerk\n")
    assert "- opens the sluice at dawn\n- counts the carts\n- keeps the book" in markdown


def test_columns_that_begin_at_different_heights_are_no_skew(tmp_path):
    sheet = Sheet()
    sheet.put(60, 80, "Each of the hundred boats at the inner quay pays its toll to the keeper", size=12)
    sheet.put(60, 94, "of the house.", size=12)
    for number in range(40):
        sheet.put(60, 130 + 12 * number, "the keeper counts the carts at dusk", size=10)
        sheet.put(320, 139 + 12 * number, "and he opens the sluice at dawn", size=10)
    pixels, lines = scan(sheet, tmp_path)
    tops = {line.text.split()[0]: line.box[1] for line in measured(lines, pixels).lines}
    assert tops["of"] - tops["Each"] == pytest.approx(14 * 200 / 72, abs=2)


def test_a_paragraph_in_larger_letters_is_no_heading_and_headings_of_one_size_are_of_one_level(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "Rules of the harbour", "Helvetica-Bold", 24)
    opening = "All boats over nine metres pay at the toll house before they are made fast to the inner quay:"
    y = sheet.prose(72, 120, 450, opening, size=14)
    for name, size in (("Tolls", 16), ("Boats", 14.6)):  # as they are measured, not as they were set
        sheet.put(72, y + 20, name, "Helvetica-Bold", size)
        y = sheet.prose(72, sheet.prose(72, y + 44, 450) + 2, 450)
    markdown = scanned_markdown(sheet, tmp_path)
    assert opening in markdown.splitlines()
    headings = [line for line in markdown.splitlines() if line.startswith("#")]
    assert headings == ["# Rules of the harbour", "## Tolls", "## Boats"]


def test_columns_of_text_are_not_rows(tmp_path):
    sheet = Sheet()
    sheet.prose(60, 80, 220, size=10)
    sheet.prose(320, 80, 220, PROSE[::-1].title(), size=10)
    markdown = scanned_markdown(sheet, tmp_path)
    assert "|" not in markdown
    assert PROSE in markdown


def test_lines_without_ink_and_other_scripts(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "Harbour toll notice")
    pixels, lines = scan(sheet, tmp_path)
    record = record_of(np.full_like(pixels, 255), lines)
    assert [region.content for region in record.regions] == ["Harbour toll notice"]
    assert is_measurable(lines)
    assert not is_measurable([])


def test_the_text_of_seals_and_logos_is_in_the_record(tmp_path):
    sheet = Sheet()
    sheet.put(72, 60, "Quay Stores Ltd")
    sheet.prose(72, 120, 450)
    sheet.put(300, 500, "Approved in May")
    pixels, lines = scan(sheet, tmp_path)
    boxes = {line.text: line.box for line in lines}
    labels = {"Quay Stores Ltd": Label.HEADER_IMAGE, "Approved in May": Label.SEAL}
    detected = [
        DetectedRegion(box=boxes[text], label=label, score=0.9, source="onnx") for text, label in labels.items()
    ]
    record = record_of(pixels, lines, tuple(detected))
    assert {region.label: region.content for region in record.regions if region.source == "onnx"} == {
        label: text for text, label in labels.items()
    }


def test_a_page_without_lines_of_its_own_is_measured():
    assert measured([], np.full((100, 100, 3), 255, dtype=np.uint8)).lines == []


def test_words_off_the_grid_of_code_do_not_close_up(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    sheet.setFillGray(0.88)
    sheet.rect(66, 842 - y - 70, 470, 84, stroke=0, fill=1)
    sheet.setFillGray(0)
    for number, line in enumerate(CODE):
        sheet.put(72, y + 13 * number, line, "Courier", 10)
    caption = "Listing 3: fill the little buffer until it is full"
    sheet.put(72, y + 13 * len(CODE), caption, "Helvetica", 10)
    markdown = scanned_markdown(sheet, tmp_path)
    assert caption in markdown


def test_words_beside_code_in_cells_are_no_code(tmp_path):
    sheet = Sheet()
    names = ["Boat", "Owner", "Quay", "Master", "Task", "Rules"]
    for number, name in enumerate(names):
        sheet.put(72, 100 + 14 * number, name, "Times-Roman")
        said = ("Keeps the boats", "Times-Roman") if number % 2 == 0 else (f"(fetch {number} boats)", "Courier", 10)
        sheet.put(130, 100 + 14 * number, *said)
    for number, line in enumerate(CODE):
        sheet.put(72, 260 + 13 * number, line, "Courier", 10)
    pixels, lines = scan(sheet, tmp_path)
    code = [line.text for line in measured(lines, pixels).lines if line.spans]
    assert len(code) == 3 + len(CODE) and not set(code) & set(names)


def test_underlined_words_do_not_move_the_baseline(tmp_path):
    sheet = Sheet()
    sheet.put(72, 100, "Pool")
    sheet.put(150, 100, "the network of all boats (see Worker Pool)")
    x1 = 150 + sheet.stringWidth("the network of all ", "Helvetica", 11)
    sheet.rect(x1, 842 - 101.8, sheet.stringWidth("boats (see Worker Pool", "Helvetica", 11), 1, fill=1)
    pixels, lines = scan(sheet, tmp_path)
    below = [line.box[3] for line in measured(lines, pixels).lines]
    assert len(below) == 2 and abs(below[0] - below[1]) < 1.5


def test_a_cell_that_nearly_touches_the_next_ends_no_table(tmp_path):
    sheet = Sheet()
    said = [("Name", "Meaning"), ("Store", "Keeps the skills"), ("Pool", "Works"), ("Evolution", "Shares the rules")]
    for number, (label, value) in enumerate(said):
        sheet.put(72, 100 + 20 * number, label, "Helvetica-Bold")
        sheet.put(132, 100 + 20 * number, value)
    sheet.prose(72, 240, 450)
    found = rows(scanned_markdown(sheet, tmp_path).replace("**", ""))
    assert [row for row in found if "---" not in row] == [list(pair) for pair in said]


def test_a_lone_small_letter_does_not_tell_its_size(tmp_path):
    sheet = Sheet()
    for number, text in enumerate(("Publishin", "g", "Circle", "shared")):
        sheet.put(72, 100 + 14 * number, text)
    pixels, lines = scan(sheet, tmp_path)
    assert len({line.font_size for line in measured(lines, pixels).lines}) == 1


def test_cyrillic_descenders_are_below_the_baseline():
    pixels = np.full((60, 140, 3), 255, np.uint8)
    pixels[20:30, 10:130:3] = 0
    pixels[30:34, 40:46] = 0  # of one letter
    found = [
        measured([TextLine(text=text, box=(8.0, 12.0, 132.0, 40.0), engine="drawn")], pixels).lines[0].box[3]
        for text in ("Налоги", "Амортизация", "Выручка", "Carriage")
    ]
    assert found[1:3] == found[3:] * 2
    assert found[0] > found[1]


def test_the_words_of_a_stamp_across_rows_of_labels_and_numbers_are_not_lost():
    pixels = np.full((700, 1000, 3), 255, np.uint8)
    lines = []
    for number, (label, value) in enumerate(GOODS):
        y = 60 + 38 * number
        lines += [TextLine(text=label, box=(80, y, 80 + 15 * len(label), y + 30), engine="drawn")]
        lines += [TextLine(text=value, box=(900 - 15 * len(value), y, 900, y + 30), engine="drawn")]
    lines.append(TextLine(text="Received in the harbour office", box=(400, 136, 950, 166), engine="drawn"))
    for line in lines:
        x1, y1, x2, y2 = map(int, line.box)
        pixels[y1 + 6 : y2 - 6, x1:x2:4] = 0
    record = record_of(pixels, lines)
    assert [region.content for region in record.regions if region.label is not Label.TABLE] == [lines[-1].text]
    assert sum(region.content.count("<tr>") for region in record.regions if region.label is Label.TABLE) == len(GOODS)
