"""A page from regions and lines: what is where, in which order, and what it says."""

from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Furniture, PageResult, TextLine
from pagemill.export.markdown import page_markdown
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.assemble import assemble_regions
from pagemill.parsing.inline_formulas import InlineFormulas
from pagemill.tables.table import Cell, build_table

WIDTH, HEIGHT = 1000, 1400


def text(content, x, y, *, width=None, size=20.0, bold=False):
    width = 10.0 * len(content) if width is None else width
    return TextLine(text=content, box=(x, y, x + width, y + size * 1.2), font_size=size, bold=bold, engine="text-layer")


def paragraph(lines, x=100, y=200, *, width=700, pitch=26, **more):
    """Full lines but for the last."""
    full = [text(line, x, y + i * pitch, width=width, **more) for i, line in enumerate(lines[:-1])]
    return [*full, text(lines[-1], x, y + (len(lines) - 1) * pitch, width=width * 0.5, **more)]


def region(lines, label=Label.TEXT):
    boxes = [line.box for line in lines]
    box = (min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes))
    return DetectedRegion(box=box, label=label, score=0.9, source="model")


def assembled(regions, lines, tables=None, width=WIDTH, page_number=1):
    record = PageResult(
        page_id="a", page_idx=0, doc_id="a", source="a", page_number=page_number, width=width, height=HEIGHT
    )
    assemble_regions(record, regions, lines, tables or {}, {}, InlineFormulas())
    return record.regions


def parse(groups, *, labels=None, tables=None, page_number=2):
    labels = labels or [Label.TEXT] * len(groups)
    regions = [region(lines, label) for lines, label in zip(groups, labels, strict=True)]
    lines = [line for group in groups for line in group]
    return assembled(regions, lines, tables, page_number=page_number)


def contents(regions):
    return [(found.label.value, found.content) for found in regions]


def test_lines_become_a_paragraph_with_broken_words_whole():
    (found,) = parse([paragraph(["The measure-", "ments of the mill", "went on."])])
    assert found.content == "The measurements of the mill went on."
    assert found.engine == "text-layer"
    assert len(found.lines) == 3


def test_pieces_on_one_baseline_read_from_left_to_right():
    pieces = [text("right piece", 400, 203), text("left piece", 100, 200)]
    (found,) = parse([pieces])
    assert found.content == "left piece right piece"


def test_endless_leaders_and_blanks_are_read_in_one_go():
    for line in (". " * 50_000 + "x", "a" + " " * 100_000 + "b"):  # minutes, if each dot started a search of its own
        for label in (Label.TEXT, Label.CONTENT):
            (found,) = parse([[text(line, 100, 200, width=700)]], labels=[label])
            assert found.content


def test_a_drop_cap_goes_before_its_first_row():
    cap = text("O", 100, 200, width=40, size=60.0)
    rows = [text(line, 150, 200 + i * 26, width=650) for i, line in enumerate(["nce upon a time", "there was a mill"])]
    rows.append(text("by a river.", 100, 252, width=300))
    (found,) = parse([[cap, *rows]])
    assert found.content == "Once upon a time there was a mill by a river."


def test_paragraphs_apart_by_space_or_indent():
    first = paragraph(["First line of one", "second line of it", "its end."], y=200)
    second = paragraph(["Another begins here", "and goes on", "to its end."], y=310)
    (found,) = parse([[*first, *second]])
    assert found.content.count("\n\n") == 1
    lines = [text("Full line of text", 100, 200, width=700), text("ends here full.", 100, 226, width=700)]
    lines += [text("Indented start", 140, 252, width=660), text("and its second", 100, 278, width=700)]
    (found,) = parse([lines])
    assert found.content == "Full line of text ends here full.\n\nIndented start and its second"


def test_a_list_inside_text_is_a_region_of_its_own():
    lines = [text("Four things decide how it goes", 100, 200, width=700), text("and these are:", 100, 226, width=300)]
    lines += [text("• the water", 100, 252, width=300), text("• the wheel, which is old", 100, 278, width=690)]
    lines += [text("and large", 120, 304, width=200)]
    found = parse([lines])
    assert [(item.list_item, item.content) for item in found] == [
        (False, "Four things decide how it goes and these are:"),
        (True, "• the water\n• the wheel, which is old and large"),
    ]


def test_heading_inside_text_and_levels_by_number():
    body = paragraph(["Body text of the page goes on", "for some rows and then", "it ends."], y=260)
    heading = text("2.1 The wheel", 100, 220, width=200, bold=True)
    found = parse([[heading, *body]])
    assert [(item.label, item.level) for item in found] == [(Label.PARAGRAPH_TITLE, 3), (Label.TEXT, None)]


def test_title_of_the_first_page():
    title = [text("From Rag to Ream", 100, 150, width=600, size=40.0)]
    body = paragraph(["Body text of the page goes on", "for some rows and then", "it ends."], y=300)
    found = parse([title, body], labels=[Label.PARAGRAPH_TITLE, Label.TEXT], page_number=1)
    assert (found[0].label, found[0].level) == (Label.DOC_TITLE, 1)


def test_running_head_page_number_and_stamp_leave_the_markdown():
    head = [text("JOURNAL OF PAPER", 100, 40, width=300)]
    body = paragraph([f"Row {i} of the body text of this page" for i in range(10)], y=200)
    foot = [text("17", 490, 1350, width=20)]
    corners = ((20.0, 900.0), (20.0, 300.0), (44.0, 300.0), (44.0, 900.0))
    stamp = TextLine(text="Downloaded from a server", box=(20, 300, 44, 900), polygon=corners, font_size=20.0)
    groups = [head, body, foot, [stamp]]
    found = parse(groups)
    assert {item.label for item in found} == {Label.HEADER, Label.TEXT, Label.NUMBER, Label.ASIDE_TEXT}
    record = PageResult(page_id="d_2", page_idx=0, doc_id="d", source="d.pdf", page_number=2, regions=found)
    page_text = page_markdown(record)
    assert page_text.startswith("JOURNAL OF PAPER\n\n")  # of which this page alone is no proof
    record.leaves_out = Furniture.LIKELY
    page_text = page_markdown(record)
    assert "JOURNAL" not in page_text
    assert "17" not in page_text
    assert "Downloaded" not in page_text
    assert page_text.startswith("Row 0 of the body")


def test_a_footnote_below_the_text():
    body = paragraph([f"Row {i} of the body text of this page" for i in range(30)], y=100)
    note = [text("1 See the books of the mill.", 100, 1200, size=15.0, width=400)]
    found = parse([body, note])
    assert [item.label for item in found] == [Label.TEXT, Label.FOOTNOTE]


def test_caption_table_and_its_lines():
    caption = [text("Table 1: Rag and paper.", 100, 300, width=300)]
    cells = [text("Rag", 100, 350, width=50), text("Paper", 300, 350, width=60)]
    table = build_table([Cell(row=0, column=i, text=line.text) for i, line in enumerate(cells)], line_indices=(1, 2))
    found = parse([caption, cells], labels=[Label.TEXT, Label.TABLE], tables={1: table})
    assert [item.label for item in found] == [Label.FIGURE_TITLE, Label.TABLE]
    assert found[0].caption_of == 1
    assert found[1].content_format is ContentFormat.HTML
    assert found[1].content == "<table><tr><td>Rag</td><td>Paper</td></tr></table>"
    assert len(found[1].lines) == 2


def test_text_over_a_background_picture_is_running_text_and_labels_in_a_figure_are_its_own():
    picture = DetectedRegion(box=(0, 0, WIDTH, HEIGHT), label=Label.IMAGE, score=0.9, source="model")
    found = assembled([picture], [text("THE VISION", 100, 600)])
    assert ("text", "THE VISION") in [(item.label.value, item.content) for item in found] or (
        "paragraph_title",
        "THE VISION",
    ) in contents(found)
    figure = DetectedRegion(box=(100, 100, 500, 400), label=Label.IMAGE, score=0.9, source="model")
    (found,) = assembled([figure], [text("axis", 200, 200)])
    assert found.content == "axis"
    assert [line.text for line in found.lines] == ["axis"]


def test_a_paragraph_cut_by_a_column_continues():
    left = [text(f"left row {i} of the column", 100, 200 + 26 * i, width=350) for i in range(8)]
    right = [text(f"right row {i} of the column", 550, 200 + 26 * i, width=350) for i in range(8)]
    found = parse([left, right])
    assert [item.continues for item in found] == [True, True]


def test_korean_rows_broken_inside_words():
    texts = [
        "재해보험금을 지급하지 않는 보",
        "험회사의 약관을 살펴보고 ",
        "그에 따른 개선방안을 ",
        "제시하고자 하였다 그리고 ",
        "끝",
    ]
    lines = [text(line, 100, 200 + 26 * i, width=700) for i, line in enumerate(texts)]
    (found,) = parse([lines])
    assert found.content.startswith("재해보험금을 지급하지 않는 보험회사의 약관을 살펴보고 그에 따른")


def test_formula_is_marked_as_text():
    (found,) = parse([[text("E = mc2", 300, 300)]], labels=[Label.DISPLAY_FORMULA])
    assert found.content_format is ContentFormat.FORMULA_TEXT


@given(
    st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 1350), st.integers(5, 600), st.integers(8, 60)),
        max_size=25,
    ),
    st.lists(
        st.tuples(
            st.integers(0, 800), st.integers(0, 1200), st.integers(1, 900), st.integers(1, 900), st.sampled_from(Label)
        ),
        max_size=8,
    ),
)
def test_no_line_is_lost_or_doubled_and_order_is_dense(line_boxes, region_boxes):
    lines = [
        TextLine(text=f"word{i} text", box=(x, y, min(x + w, WIDTH), min(y + h, HEIGHT)))
        for i, (x, y, w, h) in enumerate(line_boxes)
    ]
    regions = [
        DetectedRegion(box=(x, y, min(x + w, WIDTH), min(y + h, HEIGHT)), label=label, score=0.5, source="model")
        for x, y, w, h, label in region_boxes
    ]
    found = assembled(regions, lines)
    assert [item.index for item in found] == list(range(len(found)))
    kept = sorted(line.text for item in found for line in item.lines)
    assert kept == sorted(line.text for line in lines)


def body_text(x=100, y=200, rows=30):
    return paragraph([f"full row number {i} of running text" for i in range(rows)], x=x, y=y)


def read_line(content, x, y, *, width, size):
    """As recognition gives it: the font size is not known, only the height of the box."""
    return TextLine(text=content, box=(x, y, x + width, y + size / 0.72), engine="onnx")


def test_small_print_with_a_mark_at_the_foot_is_a_footnote():
    body = [read_line(f"full row {i} of running text", 100, 200 + 30 * i, width=700, size=20) for i in range(20)]
    note = [
        read_line("1The books of the mill are kept in", 100, 1150, width=700, size=18.6),
        read_line("the county archive.", 100, 1178, width=300, size=18.6),
    ]
    found = parse([body, note], labels=[Label.TEXT, Label.REFERENCE_CONTENT])
    assert found[1].label is Label.FOOTNOTE


def test_an_unmarked_rest_of_a_footnote_in_the_next_column():
    left, right = body_text(rows=20), body_text(x=850, rows=20)
    note = [text("1) The books of the mill are kept", 100, 1150, width=650, size=14)]
    rest = [text("in the county archive.", 850, 1150, width=300, size=14)]
    found = assembled(
        [region(lines) for lines in (left, right, note, rest)],
        [*left, *right, *note, *rest],
        width=1700,
        page_number=2,
    )
    assert [each.label for each in found].count(Label.FOOTNOTE) == 2


def test_numbered_items_at_the_foot_are_no_footnotes():
    body = [read_line(f"full row {i} of running text", 100, 200 + 30 * i, width=700, size=20) for i in range(20)]
    items = [read_line("3. Turn the wheel by hand", 100, 1150, width=500, size=19)]
    assert parse([body, items])[1].label is Label.TEXT


def test_the_largest_heading_near_the_top_is_the_title_also_below_other_lines():
    notice = [text("Notice 173", 100, 120)]
    title = [text("Classes in making paper by hand", 100, 200, size=26)]
    heading = [text("1. What we offer", 100, 300, size=22)]
    found = parse(
        [notice, title, heading, body_text(y=400)],
        labels=[Label.TEXT, Label.PARAGRAPH_TITLE, Label.PARAGRAPH_TITLE, Label.TEXT],
        page_number=1,
    )
    assert [(each.label, each.level) for each in found if each.level] == [
        (Label.DOC_TITLE, 1),
        (Label.PARAGRAPH_TITLE, 2),
    ]


def test_a_single_sign_is_no_title():
    found = parse([[text("\u81ea", 300, 300, size=40)], body_text(y=400)], labels=[Label.DOC_TITLE, Label.TEXT])
    assert found[0].label is not Label.DOC_TITLE


def test_a_page_that_holds_only_a_header_says_it():
    (found,) = parse([[text("Visible heading line", 200, 100)]], labels=[Label.HEADER])
    assert found.label in {Label.TEXT, Label.PARAGRAPH_TITLE}


def test_page_numbers_that_a_model_calls_footers():
    found = parse([body_text(), [text("xi", 500, 1340)]], labels=[Label.TEXT, Label.FOOTER])
    assert found[1].label is Label.NUMBER


def test_a_sentence_about_a_table_is_no_caption():
    found = parse([[text("Table 3-1 summarizes these registers.", 100, 300)], body_text(y=400)],
                  labels=[Label.FIGURE_TITLE, Label.TEXT])  # fmt: skip
    assert found[0].label is Label.TEXT


def test_numbered_paragraphs_are_a_list():
    items = [*paragraph(["1. Undo and redo made it", "possible to try things."]),
             *paragraph(["2. Spell checkers made it", "possible to be wrong."], y=290)]  # fmt: skip
    (found,) = parse([items])
    assert found.list_item
    assert found.content.split("\n") == [
        "1. Undo and redo made it possible to try things.",
        "2. Spell checkers made it possible to be wrong.",
    ]


def test_words_are_no_formula_and_an_equation_is_no_heading():
    found = parse(
        [[text("Listing 1: Simple program", 300, 100)], body_text(y=200, rows=10), [text("a2 + 8 = 12", 400, 600)]],
        labels=[Label.DISPLAY_FORMULA, Label.TEXT, Label.PARAGRAPH_TITLE],
    )
    assert [each.label for each in found] == [Label.FIGURE_TITLE, Label.TEXT, Label.DISPLAY_FORMULA]


def test_a_formula_with_words_stays():
    found = parse([[text("maximize f(x) = c + x subject to", 300, 500)], body_text(y=600, rows=10)],
                  labels=[Label.DISPLAY_FORMULA, Label.TEXT])  # fmt: skip
    assert found[0].label is Label.DISPLAY_FORMULA


def test_the_rest_of_a_list_item_that_layout_cut_off():
    items = [text("\u2022 one thing", 100, 300, width=700), text("\u2022 the policy must", 100, 326, width=700)]
    found = parse([items, [text("address three things.", 130, 352)]])
    assert len(found) == 1
    assert found[0].content == "\u2022 one thing\n\u2022 the policy must address three things."


def test_a_numbered_heading_taken_for_a_caption():
    found = parse([[text("8.1 Panes of glass", 300, 300)], body_text(y=400, rows=10)],
                  labels=[Label.FIGURE_TITLE, Label.TEXT])  # fmt: skip
    assert found[0].label is Label.PARAGRAPH_TITLE


def test_a_models_reading_order():
    groups = [[text("said second", 100, 300)], [text("said first", 100, 500)]]
    regions = [DetectedRegion(box=region(g).box, label=Label.TEXT, score=0.9, source="model", order=1 - i)
               for i, g in enumerate(groups)]  # fmt: skip
    found = assembled(regions, [line for g in groups for line in g], page_number=2)
    assert [each.content for each in found] == ["said first", "said second"]


def test_a_large_formula_is_no_heading():
    groups = [paragraph(["Words that fill the page", "and go on", "and end."]), [text("e + 1 = 0", 300, 600, size=40)]]
    assert contents(parse(groups))[1] == ("display_formula", "e + 1 = 0")
    signs = [paragraph(["Words that fill the page", "and go on", "and end."]), [text("iπ", 300, 600, size=40)]]
    assert contents(parse(signs))[1] == ("text", "iπ")


def test_words_of_other_scripts_are_no_formula():
    groups = [paragraph(["Words that fill the page", "and go on", "and end."])]
    groups.append([text("발행일 2020년 4월 2일", 100, 600), text("발행처 www.nars.go.kr", 100, 626)])
    (found,) = [r for r in parse(groups, labels=[Label.TEXT, Label.DISPLAY_FORMULA]) if "발행일" in (r.content or "")]
    assert found.label is Label.TEXT


def test_a_section_number_apart_from_its_heading_comes_back():
    body = paragraph(["Words that fill the page", "and go on", "and end."])
    groups = [[text("2.1.1", 100, 150, size=26)], [text("The data of the mill", 200, 150, size=26)], body]
    labels = [Label.TEXT, Label.PARAGRAPH_TITLE, Label.TEXT]
    found = parse(groups, labels=labels)
    assert (found[0].label, found[0].level) == (Label.PARAGRAPH_TITLE, 4)
    assert found[0].content == "2.1.1 The data of the mill"


def read(content, x, y, height):
    """A line as a recognizer gives it: no font size, its height as found."""
    return TextLine(text=content, box=(x, y, x + 300, y + height), engine="rapidocr")


def test_headings_read_from_pixels_keep_one_level_though_measured_roughly():
    def body(y):
        return [read("words that run on and on", 100, y + 30 * i, 24) for i in range(4)]

    groups = [[read("Recording", 100, 100, 40)], body(160), [read("Editing", 100, 400, 46)], body(460)]
    labels = [Label.PARAGRAPH_TITLE, Label.TEXT] * 2
    levels = [found.level for found in parse(groups, labels=labels) if found.level]
    assert levels == [2, 2]


def test_a_numbered_row_set_a_little_larger_heads_its_paragraph():
    head = text("(3) 약관해석의 원칙", 100, 200, width=690, size=21.7)
    lines = [head, *paragraph(["현재 약관은 작성자에 의하여", "일방적으로 작성되고 고객에게는", "그러하다."], y=226)]
    found = parse([lines])
    assert contents(found)[0] == ("paragraph_title", "(3) 약관해석의 원칙")
    assert found[1].content.startswith("현재 약관은")


def test_a_numbered_row_of_the_texts_size_heads_nothing():
    lines = [
        text("(3) 약관해석의 원칙", 100, 200, width=690),
        *paragraph(["현재 약관은", "일방적으로", "그러하다."], y=226),
    ]
    assert [found.label for found in parse([lines])] == [Label.TEXT]


def test_numbered_headings_stand_below_those_a_little_larger():
    body = ["Words that fill the page", "and go on", "and end."]
    groups = [[text("2 The mill", 100, 100, size=24)], paragraph(body, y=140)]
    groups += [[text("(1) Its wheel", 100, 300, size=22)], paragraph(body, y=340)]
    found = parse(groups, labels=[Label.PARAGRAPH_TITLE, Label.TEXT] * 2)
    assert [(title.content, title.level) for title in found if title.level] == [("2 The mill", 2), ("(1) Its wheel", 3)]


def test_headings_one_below_the_other_stay_two():
    heads = [
        text("Recently issued standards", 100, 150, bold=True),
        text("Recently adopted standard", 100, 188, bold=True),
    ]
    body = paragraph(["Words that fill the page", "and go on", "and end."], y=240)
    found = parse([heads, body], labels=[Label.REFERENCE_CONTENT] * 2)
    assert contents(found)[:2] == [
        ("paragraph_title", "Recently issued standards"),
        ("paragraph_title", "Recently adopted standard"),
    ]
    close = [text("Recently issued standards", 100, 150, bold=True), text("and what they mean", 100, 176, bold=True)]
    assert contents(parse([close, body]))[0] == ("paragraph_title", "Recently issued standards and what they mean")


def test_a_row_that_breaks_a_word_is_no_heading():
    first = [text("B5 First solution: the mill is ho-", 100, 150, size=30)]
    rest = paragraph(["mogeneous in all that it does,", "and so", "it goes."], y=200)
    found = parse([first, rest], labels=[Label.PARAGRAPH_TITLE, Label.TEXT])
    assert [each.label for each in found] == [Label.TEXT, Label.TEXT]
    assert found[0].continues


def test_a_captions_name_apart_from_it_comes_back():
    body = paragraph(["Words that fill the page", "and go on", "and end."], y=240)
    groups = [[text("Table 2-2", 100, 150)], [text("Comparison of the mills", 215, 150)], body]
    found = parse(groups)
    assert contents(found)[0] == ("figure_title", "Table 2-2 Comparison of the mills")
    assert len(found) == 2


def test_numbered_exercises_are_neither_headings_nor_formulas():
    body = paragraph(["Words that fill the page", "and go on", "and end."])
    exercises = [text("150. s(t) = 2t + 8", 100, 600, size=22), text("151. s(t) = 2t − 15", 100, 640)]
    assert contents(parse([body, exercises]))[1:] == [("text", "150. s(t) = 2t + 8\n151. s(t) = 2t − 15")]


def test_code_is_cut_out_of_its_paragraph():
    rows = ["It has an element of its own:", "<bean>", "<name>Address</name>", "</bean>"]
    found = parse([[text(row, 100, 200 + 26 * i) for i, row in enumerate(rows)]])
    assert [each.label for each in found] == [Label.TEXT, Label.ALGORITHM]
    assert found[1].content == "<bean>\n<name>Address</name>\n</bean>"
