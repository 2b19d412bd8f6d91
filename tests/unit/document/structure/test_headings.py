"""Headings of a document and their levels."""

from collections.abc import Sequence
from typing import Any

import pytest
from page_layouts import BODY, HUGE, LARGE, SMALL, heading, levels, page, prose, read, region

from pagemill.document.labels import Label
from pagemill.document.page import DocumentInfo, Furniture, OutlineEntry, PageResult, Region, Style, TextLine

TITLE = heading("The Mill Book", 100, HUGE)


def test_levels_are_ranks_of_styles_over_all_pages():
    pages = [
        page(1, TITLE, heading("Water", 200), prose(300), heading("Wheels", 500, SMALL, level=2), prose(600)),
        page(2, heading("Axles", 100, SMALL, level=1), prose()),  # alone on its page it looked like the largest
        page(3, heading("Paper", 100), prose()),
    ]
    assert levels(pages) == [("The Mill Book", 1), ("Water", 2), ("Wheels", 3), ("Axles", 3), ("Paper", 2)]
    assert [each.label for each in read(pages)].count(Label.DOC_TITLE) == 1


def test_a_document_without_a_title_begins_with_its_highest_level():
    pages = [page(1, heading("Water", 100), prose()), page(2, heading("Paper", 100), heading("Rags", 200, SMALL))]
    assert levels(pages) == [("Water", 1), ("Paper", 1), ("Rags", 2)]
    for each in pages:
        each.page_number += 6  # a part of a document
    assert levels(pages) == [("Water", 2), ("Paper", 2), ("Rags", 3)]


def test_a_title_of_two_lines_is_one():
    pages = [page(1, TITLE, heading("Second Edition", 130, HUGE), heading("Water", 300), prose())]
    assert levels(pages) == [("The Mill Book", 1), ("Second Edition", 1), ("Water", 2)]


def test_sizes_that_a_producer_rounds_are_one():
    odd = page(2, heading("Paper", 100), prose(), styles=(BODY, SMALL, type(LARGE)("Sans", 15.9, bold=True), HUGE))
    assert levels([page(1, TITLE, heading("Water", 200), prose()), odd])[1:] == [("Water", 2), ("Paper", 2)]


def test_numbers_overrule_styles():
    pages = [
        page(1, TITLE, heading("1 Water", 200), prose(300), heading("1.1 Wheels", 500), prose(600)),
        page(2, heading("1.1.1 Axles", 100), heading("2 Paper", 200), heading("References", 300), prose(400)),
    ]
    assert [level for _, level in levels(pages)] == [1, 2, 3, 4, 2, 2]


def test_steps_that_are_numbered_below_a_heading_are_not_of_its_level():
    pages = [
        page(1, TITLE, heading("1 Water", 200), prose(300), heading("1. Open the gate", 500, SMALL), prose(600)),
        page(2, heading("2 Paper", 100), prose(300), heading("1. Beat the rags", 500, SMALL), prose(600)),
    ]
    assert [level for _, level in levels(pages)] == [1, 2, 3, 2, 3]


@pytest.mark.parametrize(("first", "second"), [(LARGE, SMALL), (SMALL, LARGE)])
def test_of_slanted_and_upright_headings_those_are_above_that_follow_higher_ones(first: Style, second: Style):
    styles = (BODY, *(Style("Sans", 10.0, italic=slanted, colour=0x446688) for slanted in (False, True)), HUGE)
    rows = [heading("Water", 200, first), heading("Wheels", 300, second), heading("Axles", 400, second)]
    pages = [page(1, TITLE, *rows, prose(500), styles=styles), page(2, heading("Paper", 100, first), styles=styles)]
    assert [level for _, level in levels(pages)] == [1, 2, 3, 3, 2]


@pytest.mark.parametrize("label", [Label.TEXT, Label.HEADER, Label.REFERENCE_CONTENT])
def test_what_looks_like_headings_elsewhere_is_one(label: Label):
    missed = region(label, "Rags", 100, LARGE)
    pages = [page(1, TITLE, heading("Water", 200), heading("Wheels", 400), prose()), page(2, missed, prose())]
    assert levels(pages)[-1] == ("Rags", 2)
    beside = region(Label.TEXT, "12", 100, BODY, left=920, right=940)
    missed.furniture = None
    assert levels([pages[0], page(2, missed, beside, prose())])[-1] == ("Wheels", 2)  # a label and its value


def test_what_looks_like_the_body_is_no_heading_where_headings_do_not():
    guess = heading("Water is everywhere", 700, BODY, score=0.6)
    pages = [page(1, TITLE, heading("Water", 200), heading("Wheels", 300), prose(), guess)]
    assert ("Water is everywhere", 2) not in levels(pages)
    assert read(pages)[-1].label is Label.TEXT
    assert len(levels([page(1, guess, prose())])) == 1  # nothing says otherwise
    numbered = heading("3 Water", 700, BODY, score=0.6)
    assert (
        levels([page(1, TITLE, heading("Water", 200), heading("Wheels", 300), prose(), numbered)])[-1][0] == "3 Water"
    )


def test_the_outline_shows_headings_and_levels():
    entries = [("Water", 1, 1), ("2 Wheels", 2, 1), ("Paper", 1, 2), ("Not there", 1, 9)]
    outline = tuple(OutlineEntry(title=title, level=level, page=number) for title, level, number in entries)
    pages = [
        page(1, TITLE, heading("Water", 200), prose(300), heading("Wheels", 500, LARGE), prose(600)),
        page(2, region(Label.TEXT, "Paper", 100, SMALL), prose()),
    ]
    assert [level for _, level in levels(pages, DocumentInfo(outline=outline))] == [1, 2, 3, 2]
    assert [level for _, level in levels(pages)] == [1, 2, 2]
    elsewhere = DocumentInfo(outline=tuple(OutlineEntry(title="Mill", level=1, page=2) for _ in range(3)))
    assert levels(pages, elsewhere) == levels(pages)


def test_tags_show_levels_where_they_are_sound():
    pages = [
        page(
            1, TITLE, heading("Water", 200, tag="H2"), prose(300, tag="P"), heading("Wheels", 500, tag="H3"), prose(600)
        ),
        page(2, region(Label.TEXT, "Paper", 100, SMALL, tag="H2"), prose(tag="P"), prose(700, tag="P")),
    ]
    assert levels(pages) == [("The Mill Book", 1), ("Water", 2), ("Wheels", 3), ("Paper", 2)]
    styles = (BODY, Style("Serif", 11.0, bold=True), LARGE, HUGE)
    pages.append(page(3, heading("Bold", 100, SMALL, tag="P"), prose(tag="P"), styles=styles))  # the page has no other
    assert levels(pages)[-1] == ("Paper", 2)
    pages.insert(0, page(1, heading("A Mill Book", 100, HUGE, tag="P"), prose(tag="P")))  # as Word tags its titles
    assert levels(pages)[0] == ("A Mill Book", 1)
    unsound = [page(1, *(prose(100 * number, tag="H1") for number in range(1, 6)))]
    assert levels(unsound) == []


def test_recognized_lines_are_of_the_level_of_their_heights():
    heights = [("Mill", 40), ("Water", 25), ("Paper", 23)]

    def line(text: str, high: int) -> Region:
        return heading(text, 100, None, lines=(TextLine(text=text, box=(0.0, 0.0, 9.0, float(high))),))

    pages = [page(number, line(*told), prose()) for number, told in enumerate(heights, 1)]
    for each in pages:
        each.styles = ()
        each.regions[1].style = None
    assert [level for _, level in levels(pages)] == [1, 2, 2]


def test_furniture_is_no_heading():
    assert read([page(1, heading("Mill", 40, furniture=Furniture.PROVEN), prose())])[0].anchor is None


@pytest.mark.parametrize(("gap", "is_heading"), [(20, False), (26, True)])
@pytest.mark.parametrize("larger", [2, 3])
def test_bold_lines_that_are_spaced_as_paragraphs_are_none_below_larger_headings(gap, is_heading, larger):
    bold = Style("Serif", 11.0, bold=True, characters=20)
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags")[:larger], 1):
        lead_in = heading("Mind the gate", 320 + gap, level=3)
        lead_in.style = 4
        regions = heading(name, 50), prose(100), prose(220), lead_in, prose(355 + gap)
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, bold)))
    assert ("Mind the gate" in dict(levels(pages))) is (is_heading or larger < 3)


def test_bold_lines_that_are_spaced_as_paragraphs_are_none_beside_those_that_are_set_off():
    bold = Style("Serif", 11.0, bold=True, characters=20)
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags"), 1):
        own, below, step = heading(name, 320), heading("Mind:", 350), heading("1. Mind the gate", 500)
        own.style = below.style = step.style = 4
        regions = prose(50), prose(170), own, below, prose(380), step, prose(530)
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, bold)))
    assert [text for text, _ in levels(pages)] == ["Water", "Wheels", "Rags"]


def test_headings_below_code_are_measured_by_texts_below_code():
    bold = Style("Serif", 11.0, bold=True, characters=20)
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags"), 1):
        code = [region(Label.ALGORITHM, "open(gate)", y, SMALL) for y in (320, 500)]
        lead_in, own = heading("Mind the gate", 290), heading("The gate", 560)
        lead_in.style = own.style = 4
        texts = prose(50), prose(170), prose(345), prose(600)
        regions = heading(name, 10), *texts[:2], lead_in, code[0], texts[2], code[1], own, texts[3]
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, bold)))
    texts = [text for text, _ in levels(pages)]
    assert "The gate" in texts
    assert "Mind the gate" not in texts


def test_headings_in_a_script_without_a_bold_cut_are_recognized_by_their_size():
    thin = Style("", LARGE.size + 0.4, characters=20)  # it is measured
    missed = region(Label.TEXT, "Рычаги", 100, LARGE)
    missed.style = 4
    styles = (BODY, SMALL, LARGE, HUGE, thin)
    pages = [page(1, TITLE, heading("Water", 200), prose(300)), page(2, missed, prose(), styles=styles)]
    assert levels(pages)[1:] == [("Water", 2), ("Рычаги", 2)]


def test_the_end_of_a_paragraph_above_smaller_notes_is_no_heading():
    pages = [
        page(1, TITLE, heading("Water", 200), prose(300)),
        page(2, heading("which the brook then left.", 60, BODY), heading("Notes", 100), prose(200)),
    ]
    assert levels(pages) == [("The Mill Book", 1), ("Water", 2), ("Notes", 2)]


def test_what_is_set_as_the_code_of_the_document_is_code():
    mono = Style("Mono", 12.0, bold=True, fixed_pitch=True, characters=20)
    styles = (BODY, SMALL, LARGE, HUGE, mono)
    code = region(Label.ALGORITHM, "a\nb\nc", 300, lines=[TextLine(text="a", box=(0, 0, 1, 1))] * 3)
    code.style = 4
    lone = heading("turn(wheel)", 60, None)
    lone.style = 4
    pages = [page(1, TITLE, prose(200), code, styles=styles), page(2, lone, prose(), styles=styles)]
    assert [each.label for each in read(pages)][-2:] == [Label.ALGORITHM, Label.TEXT]
    assert levels(pages[1:]) == [("turn(wheel)", 1)]  # where no code is set so, nobody knows


def test_headings_that_run_in_are_below_those_of_their_style():
    run_in = [heading("Hours", 300, SMALL), region(Label.TEXT, "The gate is open from seven. " * 9, 300, BODY)]
    pages = [page(1, TITLE, heading("Water", 200, SMALL), *run_in, heading("Paper", 500, SMALL), prose(600))]
    assert levels(pages) == [("The Mill Book", 1), ("Water", 2), ("Hours", 3), ("Paper", 2)]


def test_code_in_headings_of_one_size_is_not_of_the_next_larger_ones():
    code = Style("Mono", 12.0, bold=True, fixed_pitch=True, characters=10)
    larger = Style("Sans", 14.0, bold=True, characters=20)
    found = [heading("Water", 100, LARGE), heading("Gates", 200, SMALL), heading("open(gate)", 400, HUGE)]
    pages = [page(1, *found, prose(500), styles=(BODY, SMALL, larger, code)), page(2, prose(100))]
    assert [level for _, level in levels(pages)] == [1, 2, 3]


@pytest.mark.parametrize(("inline", "size", "expected"), [(8.8, 12.8, [1, 2, 2, 3]), (11.0, 11.0, [1, 2, 4, 3])])
def test_code_in_headings_is_as_much_smaller_as_code_in_text(inline, size, expected):
    code = Style("Mono", size, bold=True, fixed_pitch=True, characters=10)
    styles = (BODY, SMALL, LARGE, HUGE, code, Style("Mono", inline, fixed_pitch=True, characters=30))
    found = [heading("Mill", 50, HUGE), heading("Gates", 100), heading("open(gate)", 200), heading("Oil", 400, SMALL)]
    found[2].style = 4
    assert [level for _, level in levels([page(1, *found, prose(500), styles=styles)])] == expected


@pytest.mark.parametrize(("size", "expected"), [(8.8, [1, 2, 2, 3]), (10.1, [1, 3, 2, 4])])
def test_code_in_coloured_headings_is_of_theirs(size, expected):
    """Set as large as in text it is of the lowest of that colour; else it is as much smaller as it is there."""
    blue = [Style("Sans", points, bold=True, colour=0x134074, characters=20) for points in (24.0, 12.0)]
    code = Style("Mono", size, bold=True, fixed_pitch=True, colour=0x134074, characters=10)
    styles = (BODY, *blue, code, Style("Mono", 8.8, fixed_pitch=True, characters=30), SMALL)
    texts = ("Mill", "Gates", "open(gate)", "Oil")
    found = [heading(text, 50 + 100 * place, None) for place, text in enumerate(texts)]
    for each, style in zip(found, (1, 2, 3, 5), strict=True):
        each.style = style
    assert [level for _, level in levels([page(1, *found, prose(500), styles=styles)])] == expected


def test_centred_lines_below_the_title_are_none():
    light = Style("Serif", 14.0)
    authors = heading("Ada Quill", 140, SMALL, left=400, right=600)
    pages = [
        page(
            1, heading("Moss", 100, HUGE, left=400, right=600), authors, prose(200), heading("Water", 400), prose(500)
        ),
        page(2, heading("Wheels", 100), prose()),
    ]
    assert [text for text, _ in levels(pages)] == ["Moss", "Ada Quill", "Water", "Wheels"]
    for each in pages:
        each.styles = (BODY, light, LARGE, HUGE)
    assert [text for text, _ in levels(pages)] == ["Moss", "Water", "Wheels"]


@pytest.mark.parametrize(("left", "below"), [(100, 100), (130, 130), (130, 100)])
def test_bold_lines_that_are_indented_as_quotations_and_paragraphs_are_none(left, below):
    bold = Style("Serif", 11.0, bold=True, characters=20)
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags"), 1):
        lead_in = heading("Mind the gate", 350, left=left, right=300)
        lead_in.style = 4
        regions = heading(name, 50), prose(100), prose(220), lead_in, prose(385, left=below)
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, bold)))
    assert ("Mind the gate" in dict(levels(pages))) is (left == 100)


def test_where_headings_hang_in_the_margin_bold_lines_above_paragraphs_are_none():
    bold = Style("Serif", 11.0, bold=True, characters=20)
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags"), 1):
        own, lead_in = heading(name, 220, left=100, right=200), heading("Mind the gate", 360, left=150, right=300)
        own.style = lead_in.style = 4
        regions = prose(100, left=150), own, prose(240, left=150), lead_in, prose(380, left=150)
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, bold)))
    assert [text for text, _ in levels(pages)] == ["Water", "Wheels", "Rags"]


def test_lists_and_rows_of_code_show_no_space_between_paragraphs():
    bold = Style("Serif", 11.0, bold=True, characters=20)
    mono = Style("Mono", 9.0, fixed_pitch=True, characters=20)
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags"), 1):
        own = heading("The gate", 310)
        own.style = 4
        steps = [region(Label.TEXT, "1. Open it", 200 + 45 * at, BODY, list_item=True) for at in range(2)]
        row = region(Label.TEXT, "open --gate", 280, BODY)
        row.style = 5
        regions = heading(name, 50), prose(80, high=20), prose(105, high=80), *steps, row, own, prose(330)
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, bold, mono)))
    assert "The gate" in dict(levels(pages))


@pytest.mark.parametrize("colour", [0, 0x446688])
def test_bold_lines_in_the_colour_of_the_text_are_none_where_headings_are_coloured(colour):
    bold = Style("Serif", 11.0, bold=True, characters=20)
    own = Style("Serif", 14.0, bold=True, colour=colour, characters=20)
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags"), 1):
        title, lead_in = heading(name, 50), heading("Mind the gate", 341)
        title.style, lead_in.style = 5, 4
        regions = title, prose(100), prose(220), lead_in, prose(376)
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, bold, own)))
    assert ("Mind the gate" in dict(levels(pages))) is (colour == 0)


def test_a_bold_quotation_in_a_colour_of_quotations_is_none():
    grey = Style("Serif", 11.0, colour=0x555555, characters=100)
    bold = Style("Serif", 11.0, bold=True, colour=0x555555, characters=20)
    line = TextLine(text="The water", box=(0.0, 0.0, 1.0, 1.0))
    pages = []
    for number, name in enumerate(("Water", "Wheels", "Rags"), 1):
        said, quoted, more = heading("Mind the gate", 340), prose(375), prose(495)
        said.style, quoted.style, more.style = 5, 4, 4
        quoted.lines = more.lines = [line] * 3
        regions = heading(name, 50), prose(100), prose(220), said, quoted, more
        pages.append(page(number, *regions, styles=(BODY, SMALL, LARGE, HUGE, grey, bold)))
    assert [text for text, _ in levels(pages)] == ["Water", "Wheels", "Rags"]


_SLANTED = Style("Serif", 11.0, italic=True, characters=60)
_COLOURED = Style("Serif", 11.0, colour=0x06628F, characters=60)
_CAPITALS = Style("Serif", 9.0, characters=60)
_LINE = (TextLine(text="", box=(0.0, 0.0, 9.0, 9.0)),)
_OWN_LOOKS = (BODY, SMALL, LARGE, HUGE, _SLANTED, _COLOURED, _CAPITALS)


def _rows(names: Sequence[str], above: int, below: int, style: Style, **fields: Any) -> list[PageResult]:
    """A page for each name, which stands between two paragraphs at such distances from these."""
    pages = []
    for number, name in enumerate(names, 1):
        row = region(Label.TEXT, name, 300 + above, lines=_LINE, **fields)
        row.style = _OWN_LOOKS.index(style)
        below_it = prose(315 + above + below, lines=3 * _LINE)
        regions = heading(f"Part {number}", 50, LARGE), prose(200, lines=3 * _LINE), row, below_it
        pages.append(page(number, *regions, styles=_OWN_LOOKS))
    return pages


@pytest.mark.parametrize(
    ("style", "names"),
    [
        (_SLANTED, ("Water rights", "The old wheels", "Fish")),
        (_COLOURED, ("Water rights", "The old wheels", "Fish")),
        (_CAPITALS, ("WATER RIGHTS", "THE OLD WHEELS", "FISH")),
    ],
)
def test_rows_in_a_style_of_their_own_that_spaces_set_off_are_headings(style, names):
    assert [text for text, _ in levels(_rows(names, 16, 4, style))][1::2] == list(names)


@pytest.mark.parametrize(
    ("above", "below", "fields", "names"),
    [
        (16, 4, {}, ("Anna", "Miller", "Anna", "Miller", "Anna")),  # a dialogue
        (10, 10, {}, ("No wheel turns twice", "Ice has no neighbours", "The sluice is shut")),  # quotations
        (4, 16, {}, ("The mill in winter", "The sluice", "The board")),  # captions
        (70, 16, {}, ("The mill in winter", "The sluice", "The board")),  # captions of drawings
        (16, 4, {"left": 700}, ("Pondham, 3 May", "Milltown, 5 May", "Pondham, 8 May")),
        (16, 4, {}, ("Nobody may fish.", "Everyone may swim.", "Boats are let:")),
    ],
)
def test_rows_in_a_style_of_their_own_that_head_nothing_are_no_headings(above, below, fields, names):
    found = [text for text, _ in levels(_rows(names, above, below, _SLANTED, **fields))]
    assert found == [f"Part {number}" for number in range(1, len(names) + 1)]


def test_rows_below_headings_and_below_texts_are_recognized_by_others_in_their_style():
    pages = _rows(("Water rights", "The old wheels", "Fish"), 16, 4, _SLANTED)
    first, writer = (region(Label.TEXT, text, 68, lines=_LINE) for text in ("Weirs", "by Anna Weber"))
    first.style, writer.style = 4, 5
    styles = {"styles": _OWN_LOOKS}
    pages.append(page(4, heading("Part 4", 50, LARGE), first, prose(86, lines=3 * _LINE), **styles))
    pages += [
        page(number, heading(f"Part {number}", 50, LARGE), writer, prose(90, lines=3 * _LINE), **styles)
        for number in (5, 6, 7)
    ]
    found = [text for text, _ in levels(pages)]
    assert "Weirs" in found
    assert "by Anna Weber" not in found


def test_rows_of_a_style_in_which_most_head_nothing_are_no_headings():
    pages = _rows(("Water rights", "The old wheels", "Fish"), 16, 4, _SLANTED)
    pages += _rows(("Rain on the roof", "And on the river"), 8, 8, _SLANTED)
    assert not {"Water rights", "Fish"} & {text for text, _ in levels(pages)}
