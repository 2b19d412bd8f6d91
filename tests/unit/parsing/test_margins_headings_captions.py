import pytest

from pagemill.document.labels import Label
from pagemill.document.page import TextLine
from pagemill.parsing.blocks import Block
from pagemill.parsing.headings import is_caption, join_names, mark_captions
from pagemill.parsing.lines import rows_of
from pagemill.parsing.lists import marker
from pagemill.parsing.margins import PAGE_NUMBER, mark_margins
from pagemill.parsing.paragraphs import ends_sentence


@pytest.mark.parametrize("text", ["17", "- 3 -", "xii", "Page 4 of 12", "4 / 12", "제 3쪽"[2:], "A-12"])
def test_page_numbers(text):
    assert PAGE_NUMBER.match(text)


@pytest.mark.parametrize("text", ["Chapter one", "12 apples", "January 10th 1864.", "12345", ""])
def test_no_page_numbers(text):
    assert not PAGE_NUMBER.match(text)


@pytest.mark.parametrize(
    "text",
    [
        "Figure 3: A mill",
        "Fig. 2. The wheel",
        "Figure 3-5 Special registers",
        "Table 1 Composition of the data",
        "<표 2> 현황",
        "그림 1. 한지",
        "TABLE IV",
    ],
)
def test_captions(text):
    assert is_caption(text)


@pytest.mark.parametrize(
    "text", ["Figure 1 shows the house", "Table 1 gives the balance", "Table 2-2 shows all", "Tables are good", "표현"]
)
def test_sentences_about_figures(text):
    assert not is_caption(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [("• one", "•"), ("1. one", "1."), ("(a) one", "(a)"), ("가. 하나", "가."), ("- one", "-"), ("① 하나", "①"),
     ("[3] X", "[3]"),
     ("1.5 times", ""), ("A man", ""), ("-5 degrees", "")],
)  # fmt: skip
def test_markers(text, found):
    assert marker(text) == found


@pytest.mark.parametrize(
    ("text", "ends"),
    [("The end.", True), ('He said "no."', True), ("as shown.12", True), ("있다.", True), ("and the", False)],
)
def test_sentence_ends(text, ends):
    assert ends_sentence(text) == ends


def in_one_row(label, *texts):
    """Blocks of one row, 10 pixels apart."""
    blocks, left = [], 10.0
    for text in texts:
        box = (left, 10.0, left + 10.0 * len(text), 20.0)
        line = TextLine(text=text, box=box, font_size=10.0)
        blocks.append(Block(box, label, rows_of([line]), "model", 0.9))
        left = box[2] + 10.0
    return blocks


@pytest.mark.parametrize(
    ("label", "texts"),
    [
        (Label.TEXT, ("Table 1", "Table 2", "The mills")),
        (Label.PARAGRAPH_TITLE, ("3", "2.1", "The mills")),
    ],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)])
def test_two_names_or_numbers_before_one_text_are_both_kept(label, texts, order):
    blocks = in_one_row(label, *texts)
    words = sorted(" ".join(block.plain for block in join_names([blocks[i] for i in order])).split())
    assert words == sorted(" ".join(texts).split())


def block_of(label, box, text="a few words"):
    return Block(box, label, list(rows_of([TextLine(text=text, box=box)])))


@pytest.mark.parametrize(
    ("label", "box", "found"),
    [
        (Label.HEADER, (100, 600, 300, 620), Label.TEXT),
        (Label.HEADER, (100, 860, 300, 880), Label.TEXT),
        (Label.FOOTER, (100, 700, 300, 720), Label.TEXT),
        (Label.HEADER, (100, 150, 300, 170), Label.HEADER),
        (Label.FOOTER, (100, 860, 300, 880), Label.FOOTER),
        (Label.HEADER, (670, 400, 690, 600), Label.HEADER),  # of a page that was printed sideways
    ],
)
def test_what_is_far_from_the_edge_is_no_running_head_or_foot(label, box, found):
    head = block_of(label, box)
    text = [block_of(Label.TEXT, (100, y, 600, y + 20)) for y in (300, 330, 360, 390)]
    mark_margins([head, *text], 700, 1000, 20.0)
    assert head.label is found


def test_a_page_number_far_from_the_edge_is_one_where_layout_says_so():
    number = block_of(Label.FOOTER, (340, 600, 360, 620), "62")
    text = [block_of(Label.TEXT, (100, y, 600, y + 20)) for y in (300, 330, 360, 390)]
    mark_margins([number, *text], 700, 1000, 20.0)
    assert number.label is Label.NUMBER


def page_of(label, text, size, top):
    """A body of ten rows, and one more block at a height; its label after its margins were marked."""
    lines = [TextLine(text="a body row", box=(100, 200 + 40 * i, 700, 220 + 40 * i), font_size=20.0) for i in range(10)]
    body = Block((100, 200, 700, 580), Label.TEXT, rows_of(lines), "model", 0.9)
    line = TextLine(text=text, box=(100, top, 100 + 0.5 * size * len(text), top + size), font_size=size)
    block = Block(line.box, label, rows_of([line]), "model", 0.9)
    mark_margins([block, body], 800, 1000, 20.0)
    return block.label


def test_large_text_at_the_top_is_no_running_head():
    assert page_of(Label.HEADER, "The Harbour Gazette", 40.0, 30) is Label.PARAGRAPH_TITLE
    assert page_of(Label.HEADER, "The Harbour Gazette", 18.0, 30) is Label.HEADER


def test_a_footnote_is_no_foot():
    assert page_of(Label.FOOTER, "1 See the minutes of the council.", 16.0, 950) is Label.FOOTNOTE
    assert page_of(Label.TEXT, "1) 조례 제3조와 제4조를 참고한다.", 16.0, 950) is Label.FOOTNOTE
    assert page_of(Label.FOOTER, "1) 조례 제3조에 관한 지침 참고", 16.0, 950) is Label.FOOTNOTE
    assert page_of(Label.FOOTER, "24 Annual report", 16.0, 950) is Label.FOOTER


def test_what_names_no_figure_is_a_caption_only_where_one_is_shown():
    blocks = in_one_row(Label.FIGURE_TITLE, "Later")
    mark_captions(blocks)
    assert blocks[0].label is Label.TEXT
    blocks = [*in_one_row(Label.FIGURE_TITLE, "Later"), Block((10, 30, 50, 90), Label.IMAGE, [])]
    mark_captions(blocks)
    assert blocks[0].label is Label.FIGURE_TITLE


@pytest.mark.parametrize(("width", "label"), [(16, Label.ASIDE_TEXT), (48, Label.TEXT)])
def test_large_vertical_text_at_the_side_is_a_headline_of_a_page_that_was_turned(width, label):
    line = TextLine(text="市政だより", box=(20.0, 300.0, 20.0 + width, 560.0))
    block = Block(line.box, Label.TEXT, rows_of([line]))
    mark_margins([block], 1000, 1400, 14.0)
    assert block.label is label
