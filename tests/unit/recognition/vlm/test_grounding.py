import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.recognition.vlm.grounding import GRID, GroundedElement, parse_grounded

PAGE = """<|ref|>title<|/ref|><|det|>[[101, 52, 898, 90]]<|/det|>
# Yields of rice

<|ref|>text<|/ref|><|det|>[[100, 100, 480, 300], [520, 100, 900, 200]]<|/det|>
Two columns of text.

<|ref|>image<|/ref|><|det|>[[100, 320, 480, 600]]<|/det|>
<|ref|>image_caption<|/ref|><|det|>[[100, 610, 480, 640]]<|/det|>
<center>Figure 1</center>

<|ref|>table<|/ref|><|det|>[[520, 320, 900, 600]]<|/det|>
<|ref|>table_caption<|/ref|><|det|>[[520, 300, 900, 318]]<|/det|>
<center>Table 1</center>

<table><tr><td>1</td></tr></table><｜end▁of▁sentence｜>"""


def scaled(box: tuple[float, float, float, float]) -> tuple[int, int, int, int]:
    """As the model writes it."""
    x1, y1, x2, y2 = (round(share * GRID) for share in box)
    return x1, y1, x2, y2


def test_a_page():
    page = parse_grounded(PAGE)
    assert not page.truncated
    assert [element.label for element in page.elements] == [
        "title", "text", "image", "image_caption", "table", "table_caption",
    ]  # fmt: skip
    title = page.elements[0]
    assert (title.label, scaled(title.boxes[0]), title.content) == ("title", (101, 52, 898, 90), "# Yields of rice")
    assert [scaled(box) for box in page.elements[1].boxes] == [(100, 100, 480, 300), (520, 100, 900, 200)]
    assert page.elements[2].content == ""
    assert page.elements[3].content == "Figure 1"
    assert page.elements[4].content == "<table><tr><td>1</td></tr></table>"
    assert page.elements[5].content == "Table 1"


def test_a_caption_keeps_a_table_of_its_own():
    box = "<|det|>[[1,2,3,4]]<|/det|>"
    first, second = "<table><tr><td>1</td></tr></table>", "<table><tr><td>2</td></tr></table>"
    page = parse_grounded(f"<|ref|>table<|/ref|>{box}{first}<|ref|>table_caption<|/ref|>{box}Table 1 {second}")
    assert [element.content for element in page.elements] == [first, f"Table 1 {second}"]


def test_text_without_references():
    assert parse_grounded("just words").elements == (GroundedElement("", (), "just words"),)
    assert parse_grounded("").elements == ()


@pytest.mark.parametrize(
    "det", ["[[1,2]]", "[[0,0,0,0]]", "__import__('os').system('x')", "[[9**9,1,2,3]]", "[['a',1,2,3]]"]
)
def test_coordinates_that_make_no_sense_are_no_box(det: str):
    page = parse_grounded(f"<|ref|>text<|/ref|><|det|>{det}<|/det|>words")
    assert [box for element in page.elements for box in element.boxes] == []
    assert "words" in page.elements[-1].content


@pytest.mark.parametrize(
    "det", ["[[100, s 250, 340, 295]]", "[[100, - 250, 340, 295]]", "[[100, <250, 340, 295", "box: 100 250 340 295"]
)
def test_four_numbers_are_a_box_whatever_is_between_them(det: str):
    (element,) = parse_grounded(f"<|ref|>text<|/ref|><|det|>{det}<|/det|>words").elements
    assert [scaled(box) for box in element.boxes] == [(100, 250, 340, 295)]
    assert element.content == "words"


def test_a_box_whose_end_is_missing_is_no_text():
    page = parse_grounded("<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]\nwords<|ref|>title<|/ref|>")
    assert [scaled(box) for box in page.elements[0].boxes] == [(1, 2, 3, 4)]
    assert page.elements[0].content == "words"


@pytest.mark.parametrize("det", ["[[1, 2, 3, 4]]", "[[1, s 2, 3, 4]]", "somewhere"])
def test_boxes_outside_of_references_are_no_text(det: str):
    page = parse_grounded(f"<|det|>{det}<|/det|>Before. <|ref|>text<|/ref|>words <|det|>{det}<|/det|>")
    assert [element.content for element in page.elements] == ["Before.", "words"]


def test_coordinates_are_clipped_and_put_in_order():
    page = parse_grounded("<|ref|>text<|/ref|><|det|>[[900, -5, 100, 1200.5]]<|/det|>")
    assert [scaled(box) for box in page.elements[0].boxes] == [(100, 0, 900, GRID)]


@pytest.mark.parametrize(
    "cut", ["<|ref|>te", "<|ref|>text<|/ref|><|det|>[[1, 2,", "<|ref|>text<|/ref|><|det|>[[1,2,3,4]]<|/de", "<|re"]
)
def test_an_end_inside_a_reference_is_cut_off(cut: str):
    page = parse_grounded("<|ref|>title<|/ref|><|det|>[[1,2,3,4]]<|/det|>\n# T\n" + cut)
    assert page.truncated
    assert page.elements[0].content == "# T"
    assert all("<|" not in element.content for element in page.elements)


def test_an_open_table_is_cut_off():
    assert parse_grounded("<|ref|>table<|/ref|><|det|>[[1,2,3,4]]<|/det|><table><tr><td>1").truncated


LABELS = st.sampled_from(["title", "text", "image", "table_footnote", "equation"])
BOXES = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 400), st.integers(500, 999), st.integers(500, 999)),
    min_size=1,
    max_size=3,
)
CONTENTS = st.text(alphabet="ab #$\\n\n|", max_size=30).map(str.strip)


@settings(deadline=None)
@given(st.lists(st.tuples(LABELS, BOXES, CONTENTS), max_size=8))
def test_what_is_written_is_read_again(elements: list[tuple[str, list[tuple[int, ...]], str]]):
    written = "\n".join(
        f"<|ref|>{label}<|/ref|><|det|>{[list(box) for box in boxes]}<|/det|>\n{content}\n"
        for label, boxes, content in elements
    )
    read = parse_grounded(written)
    assert not read.truncated
    assert [(e.label, [scaled(box) for box in e.boxes], e.content) for e in read.elements] == elements


@settings(deadline=None)
@given(st.lists(st.sampled_from(["<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "[[1,2,3,4]]", "text", "<", "|", "\n"])))
def test_any_order_of_pieces_is_read(pieces: list[str]):
    for element in parse_grounded("".join(pieces)).elements:
        for x1, y1, x2, y2 in element.boxes:
            assert 0 <= x1 < x2 <= 1
            assert 0 <= y1 < y2 <= 1


@pytest.mark.parametrize(
    "text",
    [
        "<|ref|>" * 50_000,
        "<|ref|>a<|/ref|><|det|>" * 20_000,
        "<|ref|>a<|/ref|>" * 30_000,
        "[" * 300_000,
        "<|" * 150_000,
        "<table" * 50_000,
    ],
)
def test_hostile_output_ends(text: str):
    parse_grounded(text)
