"""Ordinary documents by their fonts and places: titles, headings, furniture, lists, code, columns."""

import pytest
from drawn_sheets import PROSE, Sheet, markdown, records
from PIL import Image
from reportlab.lib.utils import ImageReader, simpleSplit
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont

from pagemill.document.labels import Label
from pagemill.document.page import Furniture, TextLine
from pagemill.imaging.page import TextLayer
from pagemill.parsing.blocks import Block
from pagemill.parsing.typography.page import typographic_blocks

PROSE_LINES = simpleSplit(PROSE, "Helvetica", 11, 430)


@pytest.mark.parametrize("font", ["Helvetica-Bold", "Times-Roman"])
@pytest.mark.parametrize(("size", "place"), [(12, "centred"), (12, "left"), (13, "centred"), (16, "left")])
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


@pytest.mark.parametrize("tagged", ["P", "LBody", ""])
def test_bold_paragraphs_of_a_file_whose_tags_name_no_heading_are_headings(tmp_path, tagged):
    """A contract: its parts are centred, and its sections numbered, above text at the edge of their numbers."""
    sheet, y = Sheet(), 100
    for head in ("PART I", "1. Definitions", "1.1 The pond", "PART II", "1. Duties", "2. Term"):
        if head.startswith("PART"):
            sheet.centre(y, head, "Helvetica-Bold", 11)
            y += 26
        else:
            sheet.put(72, y, head, "Helvetica-Bold", 11)
            y = sheet.prose(72, y + 30, 450) + 26

    def tag_of(text: str) -> str:
        return tagged if text == "1. Definitions" else "P" * bool(tagged)

    text = markdown(sheet, tmp_path, tag_of)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert [line.index(" ") for line in headings] == [1, 2, 3, 1, 2, 2]


@pytest.mark.parametrize("ruled", [True, False])
@pytest.mark.parametrize(
    ("font", "size", "gap"), [("Times-Bold", 11, 24), ("Helvetica-Bold", 11, 34), ("Times-Bold", 14, 24)]
)
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


def test_columns_flow_around_a_picture_and_its_caption(tmp_path):
    sheet = Sheet()
    texts = []
    for side, x in (("left", 72), ("right", 310)):
        words, y = " ".join([PROSE.replace("mill", side)] * 2).split(), 110.0
        texts.append(" ".join(words))
        while words:
            inset = 60 if 180 < y < 310 else 0
            line = words.pop(0)
            while words and sheet.stringWidth(f"{line} {words[0]}", "Helvetica", 11) <= 210 - inset:
                line += f" {words.pop(0)}"
            sheet.put(x + (inset if side == "right" else 0), y, line)
            y += 13.75
    sheet.drawImage(ImageReader(Image.new("RGB", (60, 60), "teal")), 230, 842 - 285, 132, 100)
    sheet.centre(297, "The sluice in May", "Helvetica", 9)
    left, right, picture, caption = records(sheet, tmp_path)[0].regions
    assert [left.content, right.content] == texts
    assert (picture.label, caption.content) == (Label.IMAGE, "The sluice in May")


def test_a_headline_over_three_columns_may_end_in_a_gutter(tmp_path):
    sheet = Sheet()
    sheet.centre(70, "The pond and the hours of", "Helvetica-Bold", 18)
    for side, x in (("left", 60), ("inner", 222), ("right", 384)):
        sheet.prose(x, 110, 150, PROSE.replace("mill", side))
    regions = [region.content or "" for region in records(sheet, tmp_path)[0].regions]
    assert [text.split()[1] for text in regions] == ["pond", "left", "inner", "right"]


def test_numbers_of_paragraphs_go_before_them(tmp_path):
    sheet = Sheet()
    y = 80.0
    for number in (11, 12, 13):
        sheet.put(50, y, str(number), size=9)
        y = sheet.prose(90, y, 420) + 10
    text = markdown(sheet, tmp_path)
    assert [paragraph.split()[0] for paragraph in text.strip().split("\n\n")] == ["11", "12", "13"]


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("x", [40, 560])
def test_numbers_of_lines_are_left_out(tmp_path, every, x):
    sheet = Sheet()
    for number, line in enumerate(PROSE_LINES * 4, start=1):
        sheet.put(72, 80 + 15 * number, line)
        if number % every == 0:
            sheet.put(x, 80 + 15 * number, str(number), size=7)
    sheet.put(72, 500, "4", "Helvetica-Bold", 16)
    sheet.put(100, 500, "The sluice", "Helvetica-Bold", 16)
    assert markdown(sheet, tmp_path) == f"{PROSE}\n\n" * 4 + "# 4 The sluice\n"


def test_a_small_number_beside_a_large_heading_is_one_of_lines(tmp_path):
    sheet = Sheet()
    for number, line in enumerate(["2 The sluice", *PROSE_LINES], start=1):
        sheet.put(60, 80 + 20 * number, str(number), size=5)
        sheet.put(72, 80 + 20 * number, line, *(("Helvetica-Bold", 20) if number == 1 else ("Helvetica", 11)))
    assert markdown(sheet, tmp_path) == f"# 2 The sluice\n\n{PROSE}\n"


def test_a_table_that_counts_its_rows_stays(tmp_path):
    sheet = Sheet()
    rows = [["No.", "Part", "Count"], *([str(n), f"Part {n}", str(7 * n)] for n in range(1, 6))]
    sheet.table([72, 150, 300], 100, rows, ruled=False)
    assert "| 3 | Part 3 | 21 |" in markdown(sheet, tmp_path)


@pytest.mark.parametrize(
    ("baseline", "font", "size"),
    [
        pytest.param(94, "Helvetica", 34, id="as high as its rows"),
        pytest.param(94, "Helvetica-Bold", 34, id="bold"),
        pytest.param(89, "Helvetica", 30, id="floating above the baseline of the last row"),
        pytest.param(96, "Helvetica", 20, id="beginning below the first row"),
    ],
)
def test_a_drop_cap_begins_the_first_word(tmp_path, baseline, font, size):
    sheet = Sheet()
    sheet.put(72, baseline, "T", font, size)
    for number, line in enumerate(PROSE_LINES):
        sheet.put(95 if number < 2 else 72, 80 + 14 * number, line.removeprefix("T"))
    assert markdown(sheet, tmp_path) == f"{PROSE}\n"


def test_notes_in_the_margin_are_no_cells(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 380)
    sheet.prose(72, 94 + 13.75 * 7, 380)
    for number, line in enumerate(("The board is", "painted anew", "in the spring")):
        sheet.put(470, 80 + 13.75 * (2 + number), line, size=9)
    assert markdown(sheet, tmp_path) == f"{PROSE}\n\n{PROSE}\n\nThe board is painted anew in the spring\n"


def test_prose_in_cards_is_read_card_by_card(tmp_path):
    sheet = Sheet()
    for x, name in ((60, "mill"), (225, "washers"), (390, "children")):
        sheet.put(x, 100, f"The {name}", "Helvetica-Bold", 13)
        sheet.prose(x, 120, 140, f"The {name} have their hours. " + PROSE[:200])
    text = markdown(sheet, tmp_path)
    assert "|" not in text
    assert [part.split()[2] for part in text.split("\n\n")] == ["mill", "have", "washers", "have", "children", "have"]


def test_the_mark_of_a_footnote_stands_apart_from_it(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    sheet.put(72, 746, "1", size=5)
    sheet.put(75, 750, "Measured in the year of the flood.", size=8)
    assert markdown(sheet, tmp_path).endswith("<sup>1</sup> Measured in the year of the flood.\n")


def test_a_page_number_far_above_the_edge_is_left_out(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    sheet.centre(712, "1", "Helvetica", 11)
    assert markdown(sheet, tmp_path) == f"{PROSE}\n"


def test_a_heading_hardly_larger_than_the_text_is_told_by_the_rows_that_wrap(tmp_path):
    sheet = Sheet()
    y = 80.0
    for name in ("mill", "washers", "children"):
        sheet.put(72, y, f"The {name}", "Helvetica-Bold", 11.5)
        y = sheet.prose(72, y + 26, 450) + 12
    headings = [line for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert [line.lstrip("# ") for line in headings] == ["The mill", "The washers", "The children"]


def test_an_emphatic_coloured_row_is_a_heading(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    sheet.setFillColorRGB(0.1, 0.3, 0.7)
    sheet.put(72, y, "The sluice", "Helvetica-Oblique")
    sheet.setFillColorRGB(0, 0, 0)
    sheet.prose(72, y + 24, 450, PROSE.replace("mill", "brook"))
    assert "# *The sluice*" in markdown(sheet, tmp_path)


def test_a_bold_item_with_code_below_it_stays_an_item(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    for number, name in enumerate(("Fetch", "Build"), start=1):
        sheet.put(90, y, f"{number}. {name}", "Helvetica-Bold")
        sheet.put(110, y + 20, f"make {name.lower()}", "Courier", 10)
        y += 44
    assert "1. **Fetch**" in markdown(sheet, tmp_path)


def test_coloured_code_is_a_heading_where_another_one_is_slanted(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    for name, font in (("The sluice", "Helvetica-Oblique"), ("gate", "Courier")):
        sheet.setFillColorRGB(0.1, 0.3, 0.7)
        sheet.put(72, y, name, font)
        sheet.setFillColorRGB(0, 0, 0)
        y = sheet.prose(72, y + 24, 450, PROSE.replace("mill", name)) + 20
    assert "# `gate`" in markdown(sheet, tmp_path)


def test_two_paragraphs_between_code_tell_no_leading(tmp_path):
    sheet = Sheet()
    y = put_code(sheet, 90, ["mill open [gate]", "mill shut [gate]", "mill turn [wheel]"])
    sheet.setFillColorRGB(0.1, 0.3, 0.7)
    sheet.put(72, y + 12, "The sluice", "Helvetica-Oblique")
    sheet.setFillColorRGB(0, 0, 0)
    sheet.put(72, y + 34, "A gate is opened by the wheel beside the pond, and shut by the one who opened it.")
    sheet.put(72, y + 56, "It is shut at night.")
    assert "# *The sluice*" in markdown(sheet, tmp_path)


@pytest.mark.parametrize(("size", "below", "is_heading"), [(11, "\N{BULLET} It turns.", True), (8, "It turns.", False)])
def test_headings_in_the_margin_are_no_smaller_than_the_text(tmp_path, size, below, is_heading):
    sheet = Sheet()
    y = 80.0
    for name in ("Gate", "Sluice"):
        sheet.put(72, y, name, "Helvetica-Bold", 13)
        y = sheet.prose(110, y + 18, 450) + 8
    sheet.put(72, y, "open gate", "Courier", size)
    sheet.put(110, y + 16, below)
    assert ("# `open gate`" in markdown(sheet, tmp_path)) == is_heading


def test_code_goes_on_in_the_next_column_and_on_the_next_page(tmp_path):
    sheet = Sheet()
    rows = [f"step_{number} = wheel.turn({number})" for number in range(1, 100)]
    for place, row in enumerate(rows):
        row_on_page = place % 66
        if place == 66:
            sheet.showPage()
        sheet.put(
            72 + 240 * (row_on_page >= 33), 72 + 21 * (row_on_page % 33) + 8 * (row_on_page >= 33), row, "Courier", 10
        )
    assert markdown(sheet, tmp_path) == "```\n" + "\n".join(rows) + "\n```\n"


def test_bold_words_go_on_in_a_row_of_bold_words(tmp_path):
    sheet = Sheet()
    start = "The mill pond was dug in the year of the great thaw, when"
    sheet.put(72, 80, start)
    sheet.put(72 + sheet.stringWidth(f"{start} ", "Helvetica", 11), 80, "the brook left", "Helvetica-Bold")
    sheet.put(72, 94, "its bed and the meadows stood under water until the end of June.", "Helvetica-Bold")
    text = markdown(sheet, tmp_path)
    assert text.endswith(
        "thaw, when **the brook left its bed and the meadows stood under water until the end of June.**\n"
    )


def test_items_may_have_bare_numbers_and_dashes(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    for row, (x, sign, text) in enumerate(
        [(72, "1", "Clothes"), (90, "\u2013", "Oilskin"), (90, "\u2013", "Gloves"), (72, "2", "Food")]
    ):
        sheet.put(x, y + 15 * row, sign)
        sheet.put(x + 18, y + 15 * row, text)
    items = markdown(sheet, tmp_path).split("\n\n", 1)[1].splitlines()
    assert [item.strip() for item in items] == ["1. Clothes", "- Oilskin", "- Gloves", "2. Food"]


def test_comments_in_another_script_stay_in_their_code(tmp_path):
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiKakuGo-W5"))
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    comments = ("\u6c34\u95f8\u3092\u958b\u304f", "", "\u6b62\u3081\u308b", "")
    for row, (code, comment) in enumerate(zip(("#", "gate.open()", "#", "wheel.stop()"), comments, strict=True)):
        sheet.put(72, y + 14 * row, code, "Courier", 10)
        sheet.put(84, y + 14 * row, comment, "HeiseiKakuGo-W5", 11)
    assert markdown(sheet, tmp_path).count("```") == 2


@pytest.mark.parametrize(("gap", "space"), [(0.2, ""), (0.3, " ")])
def test_the_gap_between_scripts_is_no_space_where_spaces_are_drawn(tmp_path, gap, space):
    pdfmetrics.registerFont(UnicodeCIDFont("HYGothic-Medium"))
    sheet = Sheet()
    x = 72.0
    for text, font in (("hooks", "Helvetica"), ("\uac00 \ud3ec\ud568\ub41c \uac83", "HYGothic-Medium")):
        sheet.put(x, 100, text, font, 12)
        x += pdfmetrics.stringWidth(text, font, 12) + gap * 12
    assert markdown(sheet, tmp_path).strip() == f"hooks{space}\uac00 \ud3ec\ud568\ub41c \uac83"


def test_a_row_of_words_behind_a_name_is_no_code(tmp_path):
    pdfmetrics.registerFont(UnicodeCIDFont("HYGothic-Medium"))
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    sheet.put(72, y, "get_rates_of_foreign_investment", "Courier", 11)
    sheet.put(282, y, "\ud568\uc218\ub294 \uc870\ud68c\ud569\ub2c8\ub2e4.", "HYGothic-Medium", 12)
    assert "```" not in markdown(sheet, tmp_path)


def test_numbers_of_rows_are_no_part_of_code(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    for row, line in enumerate(("if sluice.open:", "    wheel.turn()", "    bell.ring()")):
        sheet.put(72, y + 14 * row, f"{row + 9:3}", "Courier", 7)
        sheet.put(96, y + 14 * row, line, "Courier", 10)
    assert markdown(sheet, tmp_path).endswith("```\nif sluice.open:\n    wheel.turn()\n    bell.ring()\n```\n")


def test_columns_of_data_in_a_fixed_pitch_keep_their_numbers(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    for row in range(5):
        sheet.put(72, y + 14 * row, f"{1980 + row}  {40448 + 917 * row}", "Courier", 10)
    written = markdown(sheet, tmp_path)
    assert all(f"{1980 + row}  {40448 + 917 * row}" in written for row in range(5))


@pytest.mark.parametrize("left", ["2020 2021 2022", "1 2 3", "7 8 9"])
@pytest.mark.parametrize("cells", ["10,000 17,919 25,838", "Adams Baker Clark"])
def test_numbers_before_cells_are_not_those_of_lines(tmp_path, left, cells):
    sheet = Sheet()
    sheet.put(60, 80, "Turnover in euros", "Helvetica-Bold", 16)
    for row, (number, cell) in enumerate(zip(left.split(), cells.split(), strict=True)):
        sheet.put(60, 120 + 16 * row, number)
        sheet.right(300, 120 + 16 * row, cell)
    written = markdown(sheet, tmp_path)
    assert all(word in written for word in (left + " " + cells).split())


@pytest.mark.parametrize("last", ["4711", "C", "MC", "vivid"])
def test_a_lone_word_at_the_foot_is_no_page_number(tmp_path, last):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    sheet.put(72, 642, "The grand total of the damages in euros is:")
    sheet.put(72, 702, last)
    assert markdown(sheet, tmp_path).rstrip().endswith(last)


def test_a_drop_cap_behind_a_number_is_not_lost(tmp_path):
    sheet = Sheet()
    sheet.put(90, 130, "M", "Helvetica", 44)
    sheet.put(60, 104, "1.1")
    for row in range(5):
        text = (
            "ills were built beside the brook in those days"
            if not row
            else "and they worked all day long for the vat men."
        )
        sheet.put(132 if row < 3 else 90, 104 + 13 * row, text)
    assert "M" in markdown(sheet, tmp_path)


def test_a_slanted_comment_stays_in_its_code(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    sheet.put(72, y, "sluice.open()", "Courier", 10)
    sheet.put(72, y + 13, "# before the flood", "Times-Italic", 10)
    sheet.put(72, y + 26, "wheel.turn()", "Courier", 10)
    assert markdown(sheet, tmp_path).endswith("```\nsluice.open()\n# before the flood\nwheel.turn()\n```\n")


def test_the_second_row_of_a_reference_belongs_to_it(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    for place, (number, row) in enumerate((n, row) for n in (1, 2) for row in PROSE_LINES[:2]):
        if place % 2 == 0:
            sheet.put(72, y + 15 * place, f"[{number}]")
        sheet.put(92, y + 15 * place, row)
    references = markdown(sheet, tmp_path).strip().split("\n\n")[1:]
    assert [text.split()[0] for text in references] == ["[1]", "[2]"]


CONTENTS = (
    ("1", "Water", 3, "leaders"),
    ("1.1", "The pond that was dug in the year of the great thaw and its", None, "wrapped"),
    ("", "dam", 4, "leaders"),
    ("1.2", "Sluices", 6, "leaders"),
    ("2", "Wheels", 11, "bold"),
    ("2.1", "Axles", 12, "leaders"),
    ("2.2", "Hubs", 14, "leaders"),
    ("2.3", "Spokes", 15, "leaders"),
)


def test_entries_of_a_table_of_contents_are_rows_of_their_own(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "Contents", "Helvetica-Bold", 18)
    for place, (number, title, page, kind) in enumerate(CONTENTS):
        y, font = 120 + 15 * place, "Helvetica-Bold" if kind == "bold" else "Helvetica"
        x = 72 if "." not in number and number else 90
        sheet.put(x, y, number, font)
        sheet.put(120, y, title, font)
        end = 124 + sheet.stringWidth(title, font, 11)
        if kind == "leaders":
            sheet.put(end, y, " ." * int((490 - end) / 6.3))
        if page:
            sheet.right(520, y, str(page), font)
    sheet.prose(72, 400, 450)
    regions = records(sheet, tmp_path)[0].regions
    assert [region.label for region in regions] == [Label.DOC_TITLE, Label.CONTENT, Label.TEXT]
    assert regions[1].content == (
        "1 Water … 3\n1.1 The pond that was dug in the year of the great thaw and its dam … 4\n1.2 Sluices … 6\n"
        "2 Wheels 11\n2.1 Axles … 12\n2.2 Hubs … 14\n2.3 Spokes … 15"
    )


@pytest.mark.parametrize("colour", [0, 0x808080])
def test_code_that_is_set_in_bold_is_code(tmp_path, colour):
    sheet = Sheet()
    sheet.put(72, 80, "Turning the wheel", "Helvetica-Bold", 14)
    y = sheet.prose(72, 105, 450) + 20
    code = ["def turn(wheel):", "    wheel.open(sluice)", "    wheel.wait('''", "slowly", "    ''')"]
    for place, row in enumerate(code):
        sheet.setFillColorRGB(*[(colour if row == "slowly" else 0) / 0xFFFFFF] * 3)
        sheet.put(72 + 4.8 * (len(row) - len(row.lstrip())), y + 10 * place, row.strip(), "Courier-Bold", 8)
    sheet.setFillColorRGB(0, 0, 0)
    y = sheet.prose(72, y + 70, 450) + 20
    sheet.put(72, y, "wheel.close()", "Courier-Bold", 8)
    sheet.prose(72, y + 25, 450)
    text = markdown(sheet, tmp_path)
    assert "```\n" + "\n".join(code) + "\n```" in text
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Turning the wheel"]
    assert "wheel.close()" in text


def test_code_that_runs_into_the_margin_does_not_part_the_rows_of_paragraphs(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 300)
    for place in range(3):
        sheet.put(
            72, y + 15 + 11 * place, f"{place} " + "-8.849255e+03 4.262056e+01 4.200000e-01 1.666667e-01 ...", "Courier"
        )
    sheet.prose(72, y + 70, 300)
    labels = [region.label for region in records(sheet, tmp_path)[0].regions]
    assert labels == [Label.TEXT, Label.ALGORITHM, Label.TEXT]


@pytest.mark.parametrize("mark", ["[1] ", ""])
def test_references_hang(tmp_path, mark):
    sheet = Sheet()
    texts = (
        "Miller, A., J. Sluice and M. Brook, On the turning of wheels in the thaw of spring, as it was seen by "
        "B. Washer, in the book of the pond, folio 5.",
        f"Dam, C., H. Hub and F. Spoke, {PROSE[:200]}.",
        "Mill, D., and F. Spoke, On the pond that was dug for the wheels in the year of the great thaw, and on the dam "
        "of the miller, folio 7.",
    )
    y, references = 80, []
    for number, text in enumerate(texts, 1):
        text = f"{mark.replace('1', str(number))}{text}"
        first = simpleSplit(text, "Helvetica", 11, 435)[0]
        rest = simpleSplit(text.removeprefix(first), "Helvetica", 11, 420)
        for x, row in ((72, first), *((87, row) for row in rest)):
            sheet.put(x, y, row)
            y += 13
        references.append(text)
    assert [region.content for region in records(sheet, tmp_path)[0].regions] == references


@pytest.mark.parametrize("step", [16, 34])
def test_rows_in_bold_that_are_set_solid_are_an_address(tmp_path, step):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    for place, row in enumerate(("The Mill", "Pond Lane 4", "Brook", "Meadows")):
        sheet.put(72, y + place * step, row, "Helvetica-Bold", 13)
    sheet.prose(72, y + 4 * step + 20, 450)
    headings = [line for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert len(headings) == (0 if step == 16 else 4)


@pytest.mark.parametrize(
    ("head", "is_proven"),
    [
        ("1. Name of the applicant", False),
        ("Article 1", False),
        ("Total due: 1 dollar", False),
        ("1", True),
        ("- 1 -", True),
        ("Page 1 of 3", True),
        ("1/3", True),
    ],
)
def test_one_page_proves_a_page_number_that_has_no_words_of_its_own(tmp_path, head, is_proven):
    sheet = Sheet()
    sheet.put(72, 40, head)
    sheet.prose(72, 120, 450)
    (record,) = records(sheet, tmp_path)
    (region,) = [region for region in record.regions if region.content == head]
    assert (region.furniture is Furniture.PROVEN) is is_proven


def test_short_lines_on_a_background_are_no_lettering():
    layer, size = TextLayer(lines=(), characters=0, unmapped=0), (600, 800)
    lines = [
        TextLine(text=text, box=(60, y, 160, y + 12)) for text, y in (("Board", 80), ("Works", 200), ("Sales", 320))
    ]
    for side, is_inside in ((780, False), (340, True)):
        picture = Block((20, 20, 580, side), Label.IMAGE, [], "onnx")
        blocks = typographic_blocks(layer, lines, [picture], size, None)
        written = " ".join(block.text for block in blocks if block is not picture)
        assert ("Works" in written) is not is_inside


def put_code(sheet: Sheet, y: float, rows: list[str], size: float = 10) -> float:
    """Write rows of code, one step for each, also for empty ones; the place below."""
    for place, row in enumerate(rows):
        if row:
            sheet.put(72, y + 12 * place, row, "Courier", size)
    return y + 12 * len(rows)


def test_a_blank_line_in_the_only_code_is_no_leading(tmp_path):
    sheet = Sheet()
    y = put_code(sheet, sheet.prose(72, 80, 450) + 10, ["mill open [gate]", "", "mill shut"])
    sheet.setFillColorRGB(0.2, 0.3, 0.7)
    for name in ("gate", "sluice"):
        sheet.put(72, y + 12, name, "Courier-Oblique")
        sheet.setFillColorRGB(0, 0, 0)
        y = sheet.prose(72, y + 32, 450)
        sheet.setFillColorRGB(0.2, 0.3, 0.7)
    lines = markdown(sheet, tmp_path).splitlines()
    assert [line.strip("#* `") for line in lines if line.startswith("#")] == ["gate", "sluice"]


def test_code_below_a_blank_line_at_the_foot_is_no_furniture(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    put_code(sheet, 740, ["def mill(water):", "    wheel = Wheel()", "", "    return wheel"])
    sheet.showPage()
    sheet.prose(72, 80, 450)
    assert "    wheel = Wheel()\n\n    return wheel\n```" in markdown(sheet, tmp_path)


def test_the_last_item_of_a_list_is_no_foot(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 450)
    sheet.put(84, 765, "• the paper mill")
    assert "- the paper mill" in markdown(sheet, tmp_path)


@pytest.mark.parametrize(("font", "gap"), [("Helvetica-Bold", 22), ("Helvetica-BoldOblique", 17)])
def test_headings_between_code_are_all_that_a_page_has_but_code(tmp_path, font, gap):
    sheet = Sheet()
    y = 80.0
    for heading in ("Open the gate", "Shut the gate"):
        sheet.put(72, y, heading, font)
        for row in ("gate = Gate(mill)", "for hour in gate.hours():", "    gate.turn(hour, 3)"):
            y += 14
            sheet.put(72, y, row, "Courier")
        y += gap
    text = markdown(sheet, tmp_path)
    lines = text.split("```")[2].strip().splitlines()
    assert [line.strip("#* ") for line in lines] == ["Shut the gate"]
    assert lines[0].startswith("# ") == (gap > 20)


def test_a_heading_runs_in_an_em_before_its_text(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "The mill", "Helvetica-Bold", 11)
    y = sheet.prose(72, 100, 450)
    for title, gap in (("Hours", 11), ("Note", 5)):
        end = 72 + sheet.stringWidth(title, "Helvetica-Bold", 11) + gap
        sheet.put(72, y + 14, title, "Helvetica-Bold")
        sheet.put(end, y + 14, "The hours of the pond are painted on a board.")
        y += 44
    sheet.prose(72, y, 450)
    text = markdown(sheet, tmp_path)
    assert "# The mill" in text
    assert "## Hours\n\nThe hours of the pond" in text
    assert "**Note** The hours" in text


def test_justified_rows_with_code_are_of_the_size_of_their_text(tmp_path):
    sheet = Sheet()
    sheet.prose(72, 80, 250)
    first = ["mill.open_the_gate", "lets", "the", "water", "through"]
    for y, words in ((300, first), (314, ["the", "race", "to", "the", "wheel", "and", "the", "millstone"])):
        fonts = [("Courier", 8) if "_" in word else ("Helvetica", 11) for word in words]
        widths = [sheet.stringWidth(word, *font) for word, font in zip(words, fonts, strict=True)]
        x = 72.0
        for word, font, width in zip(words, fonts, widths, strict=True):
            sheet.put(x, y, word, *font)
            x += width + (250 - sum(widths)) / (len(words) - 1)
    sheet.put(72, 328, "below it.")
    assert "`mill.open_the_gate` lets the water through the race to the wheel and the millstone below it." in markdown(
        sheet, tmp_path
    )


def test_a_full_row_of_bold_words_goes_on_in_plain_ones(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 250) + 20
    bold = "The old miller opens the gate at seven and he"
    sheet.put(72, y, bold, "Helvetica-Bold", 250 / sheet.stringWidth(bold, "Helvetica-Bold", 1))
    sheet.put(72, y + 13.75, "shuts it before the children come.")
    assert f"**{bold}** shuts it" in markdown(sheet, tmp_path)


def test_code_with_comments_in_a_column_is_one_block(tmp_path):
    sheet = Sheet()
    for place, number in enumerate((716, 717, 718, 719)):
        sheet.put(72, 100 + 14 * place, f"barge article {number} --refresh", "Courier", 10)
        sheet.put(258, 100 + 14 * place, f"# stored data of {number} instead of", "Courier", 10)
    sheet.put(72, 156, "the harbour", "Courier", 10)
    found = markdown(sheet, tmp_path)
    assert found.count("```") == 2
    assert "barge article 717 --refresh    # stored data" in found


def test_a_blank_line_in_a_larger_font_is_one_where_code_has_letters_of_another_font(tmp_path):
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    sheet = Sheet()
    y = 100.0
    for text, step in (("[berth]", 15), ("# ", 12), ("name = 'Tern'", 12), ("[cargo]", 27), ("kind = 'salt'", 12)):
        y += step
        sheet.put(72, y, text, "Courier", 10)
        if text == "# ":
            sheet.put(84, y, "港の名前", "HeiseiMin-W3", 10)
    found = markdown(sheet, tmp_path)
    assert found.count("```") == 2
    assert "'Tern'\n\n[cargo]" in found


@pytest.mark.parametrize(
    ("bold", "head"),
    [("Helvetica-Bold", "Helvetica-Bold"), ("Times-Bold", "Times-Roman"), ("Times-Bold", "Times-BoldItalic")],
)
def test_headings_of_a_page_that_is_bold_as_a_whole(tmp_path, bold, head):
    sheet, y = Sheet(), 60.0
    for name in ("Water", "Wheels", "Paper"):
        sheet.put(72, y + 12, name, head)
        y = sheet.prose(72, y + 26, 450, font=bold)
        y = sheet.prose(72, y + 8, 450, font=bold)
    heads = [line.strip("#* ") for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert heads == ["Water", "Wheels", "Paper"]


def test_an_initial_is_no_marker(tmp_path):
    sheet = Sheet()
    sheet.centre(60, "A. Miller and B. Baker", "Helvetica", 11)
    sheet.prose(72, 90, 450)
    assert not any(region.list_item for region in records(sheet, tmp_path)[0].regions)


def test_a_title_over_columns_is_above_headings_that_look_alike(tmp_path):
    sheet = Sheet()
    sheet.put(60, 60, "On the grinding of grain by water in the mills of the valley", "Helvetica-Bold", 12)
    for x in (60, 310):
        sheet.put(x, 90, f"Part {x}", "Helvetica-Bold", 12)
        sheet.prose(x, 110, 220, PROSE * 2)
    heads = [line.split(" ")[0] for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert heads == ["#", "##", "##"]


def test_double_spaced_paragraphs_are_whole_beside_single_spaced_ones(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 12
    for _ in range(2):
        for row in simpleSplit(f"{PROSE} {PROSE}", "Helvetica", 11, 450):
            sheet.put(72, y, row)
            y += 27.5
            if y > 780:
                sheet.showPage()
                y = 80
    assert len(markdown(sheet, tmp_path).strip().split("\n\n")) == 3


def test_entries_of_two_rows_hang_where_space_parts_them(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 12
    for row in PROSE_LINES[:3]:
        sheet.put(72, y, row)
        sheet.put(108, y + 14, "roofs in the north.")
        y += 40
    texts = markdown(sheet, tmp_path).strip().split("\n\n")[1:]
    assert [text.endswith("roofs in the north.") for text in texts] == [True] * 3


def test_a_title_right_of_the_sender_is_a_row_of_its_own(tmp_path):
    sheet = Sheet()
    for place, row in enumerate(("Alder & Sons", "4 Quay Road", "Northtown")):
        sheet.put(72, 80 + 14 * place, row)
    sheet.right(520, 108, "INVOICE", "Helvetica-Bold", 22)
    sheet.right(520, 140, "No. 2031-044")
    sheet.prose(72, 180, 450)
    lines = markdown(sheet, tmp_path).splitlines()
    assert {"# INVOICE", "Northtown", "No. 2031-044"} <= set(lines)


def test_a_row_with_a_date_at_its_end_is_no_part_of_the_text_below(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "MSc, University of Northtown")
    sheet.right(520, 80, "2022")
    sheet.prose(72, 94, 450)
    assert markdown(sheet, tmp_path).split("\n\n")[0].endswith("2022")


def test_centred_capitals_are_headings_and_end_a_list(tmp_path):
    sheet, y = Sheet(), 120
    for chapter, section in (("CHAPTER 1", "1 Application"), ("CHAPTER 2", "2 Offences")):
        sheet.centre(y, chapter, "Helvetica", 11)
        sheet.put(72, y + 26, section, "Helvetica-Bold", 11)
        for place, row in enumerate(("(1) A person may moor.", "(2) Nobody may sink.")):
            sheet.put(72, y + 46 + 16 * place, row)
        y += 100
    headings = [line for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert headings == ["# CHAPTER 1", "## 1 Application", "# CHAPTER 2", "## 2 Offences"]


def test_blocks_of_a_letterhead_are_read_one_after_the_other(tmp_path):
    sheet = Sheet()
    for place, row in enumerate(("Alder & Sons", "4 Quay Road", "Northtown")):
        sheet.put(72, 80 + 14 * place, row)
    for place, row in enumerate(("Statement no. 5", "Account 10-88", "May 2031")):
        sheet.put(400, 87 + 14 * place, row)
    sheet.put(72, 150, "Dear Ms Ferrant,")
    sheet.prose(72, 180, 450)
    words = markdown(sheet, tmp_path).split()
    assert [words.index(word) for word in ("Alder", "Northtown", "Statement", "2031", "Dear")] == [0, 6, 7, 13, 14]


def test_numbered_code_has_blank_lines(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 14
    for number, row in enumerate(("if sluice.open:", "", "    wheel.turn()"), 1):
        sheet.put(80, y, str(number), "Courier-Oblique", 10)
        sheet.put(120, y, row, "Courier", 10)
        y += 14
    assert markdown(sheet, tmp_path).endswith("```\nif sluice.open:\n\n    wheel.turn()\n```\n")


def test_lines_of_code_that_fill_their_own_panel_are_not_wrapped(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    rows = ("git-commit-everything-now", "ls", "#" * 25, "# Part one")
    sheet.setFillGray(0.9)
    sheet.rect(70, 842 - y - 60, 25 * 6 + 4, 72, stroke=0, fill=1)
    sheet.setFillGray(0)
    for place, row in enumerate(rows):
        sheet.put(72, y + 14 * place, row, "Courier", 10)
    assert "\n".join(rows) in markdown(sheet, tmp_path)


def test_an_amount_stays_behind_its_label_and_a_formula_in_capitals_is_no_heading(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 30
    sheet.put(72, y, "Total due")
    sheet.right(520, y, "1,200.00", "Helvetica-Bold", 18)
    sheet.centre(y + 40, "F = MA", "Helvetica", 11)
    sheet.prose(72, y + 80, 450)
    text = markdown(sheet, tmp_path)
    assert "# F" not in text
    assert "Total due" in next(line for line in text.splitlines() if "1,200.00" in line)


def test_headings_may_begin_with_letters_and_numbers_as_items_do(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450)
    for sign in ("A)", "b.", "3)"):
        sheet.put(72, y + 20, f"{sign} The gate", "Helvetica-Bold", 13)
        y = sheet.prose(72, y + 40, 450)
    text = markdown(sheet, tmp_path)
    assert [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")] == [
        *("A) The gate", "b. The gate", "3) The gate")
    ]


def test_a_numbered_heading_runs_in_and_the_rest_of_its_text_follows(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 100, 450) + 14
    x = 72.0
    for piece in ("1.2.1", "Hours of the pond"):
        sheet.put(x, y, piece, "Helvetica-Bold")
        x += sheet.stringWidth(piece, "Helvetica-Bold", 11) + 11
    sheet.put(x, y, "They are painted on a board beside the gate, and nobody may swim")
    sheet.put(72, y + 13.75, "in the pond at any other hour of the day, whatever the weather is like.")
    sheet.prose(72, y + 48, 450)
    text = markdown(sheet, tmp_path)
    assert "# 1.2.1 Hours of the pond\n\nThey are" in text
    assert "swim in the pond at any other hour" in text


def test_a_narrow_quotation_with_ragged_rows_is_one_paragraph(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 10
    y = sheet.prose(110, y, 300) + 10
    sheet.prose(72, y, 450)
    paragraphs = [part for part in markdown(sheet, tmp_path).split("\n\n") if part.strip()]
    assert len(paragraphs) == 3


def test_code_right_below_a_heading_with_code_in_it_is_none_of_the_heading(tmp_path):
    sheet = Sheet()
    sheet.put(72, 80, "Use of the gate", "Helvetica-Bold", 16)
    sheet.put(72, 110, "Use of ", "Helvetica-Bold")
    x = 72 + sheet.stringWidth("Use of ", "Helvetica-Bold", 11)
    sheet.put(x, 110, "open", "Courier-Bold")
    sheet.put(x + 30, 110, "in the same mill", "Helvetica-Bold")
    for place, row in enumerate(("const gate = {", "  type: 'lock',", "  open: true", "}")):
        sheet.put(72, 124 + 12 * place, row, "Courier", 9)
    text = markdown(sheet, tmp_path)
    assert "const gate = {\n" in text.split("```")[1]
    assert "`open` in the same mill" in next(line for line in text.splitlines() if line.startswith("## "))


@pytest.mark.parametrize("lines", ["each", "one"])
def test_a_head_over_columns_is_in_the_table(tmp_path, lines):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    sheet.put(365, y, "Year ended", "Helvetica-Bold", 10)
    for x, year in zip((280, 360, 440), ("2025", "2024", "2023"), strict=True):
        sheet.put(x + 20, y + 15, year, "Helvetica-Bold", 10)
        if lines == "each":
            sheet.line(x, 842 - y - 4, x + 65, 842 - y - 4)
    if lines == "one":
        sheet.line(280, 842 - y - 4, 505, 842 - y - 4)
    for row, label in enumerate(("Cost of revenue", "Research", "Sales", "Total")):
        sheet.put(76, y + 32 + 14 * row, label, size=10)
        for x in (280, 360, 440):
            sheet.put(x + 22, y + 32 + 14 * row, f"{row}{x}", size=10)
    text = markdown(sheet, tmp_path)
    assert '<th></th><th colspan="3">Year ended</th>' in text
    assert "<td>Total</td><td>3280</td><td>3360</td><td>3440</td>" in text


@pytest.mark.parametrize("corner", ["Part", ""])
def test_a_title_above_the_top_line_of_a_table_is_not_in_it(tmp_path, corner):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    sheet.put(265, y, "Our costs", "Helvetica-Bold", 11)
    for below in (4, 20, 78):
        sheet.line(72, 842 - y - below, 510, 842 - y - below)
    for row, cells in enumerate(
        ((corner, "2025", "2024"), ("Wood", "12", "14"), ("Iron", "3", "5"), ("Wages", "9", "8"))
    ):
        for x, cell in zip((76, 280, 440), cells, strict=True):
            sheet.put(x, y + 16 + 18 * row, cell, "Helvetica-Bold" if not row else "Helvetica")
    assert "# Our costs" in markdown(sheet, tmp_path)


def test_letters_of_an_index_are_no_drop_caps(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 30
    for letter, entries in (
        ("A", ("Abbey, 12", "Acre, 14", "Alder, 19")),
        ("B", ("Barley, 3", "Bridge, 8", "Brook, 9")),
    ):
        sheet.put(72, y + 10, letter, "Helvetica-Bold", 22)
        for place, entry in enumerate(entries):
            sheet.put(98, y + 14 * place, entry)
        y += 60
    text = markdown(sheet, tmp_path)
    assert "Abbey, 12" in text and "AAbbey" not in text and "BBarley" not in text


def test_centred_headings_above_hanging_ones_are_headings(tmp_path):
    sheet, y = Sheet(), 70.0
    for part in ("PART ONE OF THE REPORT", "PART TWO OF THE REPORT"):
        sheet.centre(y, part, "Helvetica-Bold", 11)
        y += 30
        for head in ("Origin", "Present use"):
            sheet.put(72, y, head, "Helvetica-Bold")
            y = sheet.prose(130, y + 18, 400) + 16
        y += 14
    heads = [line for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert heads == [
        *("# PART ONE OF THE REPORT", "## Origin", "## Present use"),
        *("# PART TWO OF THE REPORT", "## Origin", "## Present use"),
    ]


def test_a_heading_that_fills_the_second_column_is_not_centred(tmp_path):
    sheet = Sheet()
    last = "What the mills of the valley and of the meadows ground in the year of the thaw"
    for x, heads in ((60, ("Water", "Wheels")), (310, ("Stones", last))):
        y = 80.0
        for head in heads:
            for row in simpleSplit(head, "Helvetica-Bold", 11, 222):
                sheet.put(x, y, row, "Helvetica-Bold", 11)
                y += 13
            y = sheet.prose(x, y + 5, 222) + 14
    heads = [line for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert [head.lstrip("# ") for head in heads] == ["Water", "Wheels", "Stones", last]
    assert len({head.split(" ")[0] for head in heads[1:]}) == 1


def test_the_rows_of_an_address_below_its_name_are_no_paragraph(tmp_path):
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 20
    sheet.put(72, y, "The Mill Council", "Helvetica-Bold")
    rows = (
        "Level 14, 477 Pond Street, Millton",
        "Telephone 02 8063 4100 and 4101",
        "Office hours from 9 to 17 daily",
        "ABN 91 130 793 725 204",
    )
    for place, row in enumerate(rows, start=1):
        sheet.put(72, y + 13.75 * place, row)
    blocks = markdown(sheet, tmp_path).strip().split("\n\n")
    assert blocks[-4:] == list(rows)


@pytest.mark.parametrize(
    ("initial", "text", "first"),
    [
        ("A", "second wheel came, and a third one", "A second wheel"),
        ("T", "he second wheel came, and a third one", "The second wheel"),
        ("I", "never saw it again", "I never saw"),
        ("A", "s the second wheel came, and a third one", "As the second wheel"),
    ],
)
def test_an_initial_that_is_a_word_stands_apart_from_the_next(tmp_path, initial, text, first):
    """The page has both words elsewhere."""
    sheet = Sheet()
    sheet.put(72, 126, initial, size=44)
    right = 76 + sheet.stringWidth(initial, "Helvetica", 44)
    sheet.put(right, 100, text)
    sheet.put(right, 113, "which ran until the great thaw and then stood still for the rest of the year, as wheels do,")
    sheet.put(right, 126, "and of which nothing has been left but the axle and the stones on which it turned at first.")
    sheet.put(72, 139, "They say that a second one was never built, and I never asked why.")
    assert first in markdown(sheet, tmp_path)


def test_a_space_behind_an_initial_tells_that_it_is_a_word(tmp_path):
    sheet = Sheet()
    sheet.put(72, 126, "O", size=44)
    sheet.put(112, 100, "mill of the wheels, by which")
    sheet.put(108, 113, "the brook ran until the great thaw and then stood still for the rest of the year, and so on,")
    sheet.put(72, 139, "Nothing has been left of it.")
    assert markdown(sheet, tmp_path).startswith("O mill of the wheels")


def test_rows_of_dots_are_rules_and_no_text(tmp_path):
    sheet = Sheet()
    end = sheet.prose(72, 80, 450)
    sheet.put(72, end + 10, "." * 120)
    sheet.put(72, end + 24, ". " * 60)
    sheet.prose(72, end + 48, 450)
    sheet.put(72, end + 160, "Name: " + "." * 60)
    lines = [line for line in markdown(sheet, tmp_path).splitlines() if line]
    assert len(lines) == 3
    assert lines[-1] == "Name: …"


def test_numbered_items_stay_a_list_with_dots_for_answers_between_them(tmp_path):
    sheet = Sheet()
    for number, text in enumerate(("Who built the mill?", "Who owns it now?"), 1):
        sheet.put(72, 60 + 40 * number, f"{number}. {text}")
        sheet.put(72, 74 + 40 * number, "." * 140)
        sheet.put(72, 88 + 40 * number, "." * 140)
    lines = [line for line in markdown(sheet, tmp_path).splitlines() if line]
    assert lines == ["1. Who built the mill?", "2. Who owns it now?"]


def test_a_row_of_stars_is_no_item(tmp_path):
    sheet = Sheet()
    end = sheet.prose(72, 80, 450)
    sheet.centre(end + 14, "* * *", "Helvetica", 11)
    sheet.prose(72, end + 42, 450)
    assert not any(region.list_item for region in records(sheet, tmp_path)[0].regions)


@pytest.mark.parametrize("indent", [0, 15])
def test_indented_headings_and_one_with_a_formula_run_in(tmp_path, indent):
    """As LaTeX sets its paragraphs and subparagraphs."""
    sheet, y = Sheet(), 80
    for name in ("Water", "Wheels", "Stones", "The wheel"):
        sheet.put(72, y, f"Part {name}", "Helvetica-Bold", 15)
        y = sheet.prose(72, y + 24, 450) + 12
        x = 72 + indent
        sheet.put(x, y, name, "Helvetica-Bold")
        x += sheet.stringWidth(name, "Helvetica-Bold", 11)
        if " " in name:
            sheet.put(x + 3, y, "x", "Times-Italic")
            sheet.put(x + 11, y, "of iron", "Helvetica-Bold")
            x += 11 + sheet.stringWidth("of iron", "Helvetica-Bold", 11)
        (row,) = simpleSplit(PROSE, "Helvetica", 11, 511 - x)[:1]
        sheet.put(x + 11, y, row)
        y = sheet.prose(72, y + 13.75, 450, PROSE.removeprefix(row)) + 20
    headings = [line.strip("# *") for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert headings[1::2] == ["Water", "Wheels", "Stones", "The wheel *x* of iron"]


def test_a_numbered_heading_in_the_middle_is_no_item(tmp_path):
    """The American Mathematical Society sets sections so, in small capitals."""
    sheet = Sheet()
    y = sheet.prose(72, 80, 450) + 22
    for number, name in enumerate(("Water", "Wheels", "Fish"), 1):
        sheet.centre(y, f"{number}. {name}", "Times-Roman", 11)
        y = sheet.prose(72, y + 19, 450) + 22
    headings = [line for line in markdown(sheet, tmp_path).splitlines() if line.startswith("#")]
    assert [line.lstrip("# ") for line in headings] == ["1. Water", "2. Wheels", "3. Fish"]


@pytest.mark.parametrize(("bold", "below", "of_list"), [(True, 24, True), (False, 24, False), (True, 0, False)])
def test_a_heading_below_two_columns_is_that_of_what_stands_across_them(tmp_path, bold, below, of_list):
    sheet = Sheet()
    left = sheet.prose(72, 80, 210, size=10)
    sheet.prose(310, 80, 210, PROSE[:150], size=10)
    sheet.put(72, left + below, "Further duties", "Helvetica-Bold" if bold else "Helvetica", 10)
    sheet.prose(72, left + below + 13, 448, size=10)
    text = markdown(sheet, tmp_path)
    assert (text.index("Further duties") > text.index(PROSE[:20], 50)) is of_list
