"""What an answer about a whole page holds: labels, places, contents, nothing lost, nothing trusted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.config.model_cards import load_card
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat
from pagemill.recognition.base import PageReading
from pagemill.recognition.vlm.guard import MAX_CHARACTERS
from pagemill.recognition.vlm.page_answers import label_of, read_answer

STEPS = load_card("deepseek-ocr").cleanup
TABLE = "<table><tr><td>1</td></tr></table>"


def ref(label: str, content: str = "", boxes: str = "[[100, 100, 900, 200]]") -> str:
    return f"<|ref|>{label}<|/ref|><|det|>{boxes}<|/det|>\n{content}\n\n"


def read(text: str, steps=STEPS) -> PageReading:
    elements, problem = read_answer(text, steps)
    return PageReading(elements=elements, engine="vlm", problem=problem)


def told(text: str) -> list[tuple[Label, str | None]]:
    return [(element.label, element.content) for element in read(text).elements]


def test_labels_places_and_contents():
    answer = read(
        ref("title", "# Yields", "[[0, 0, 999, 333]]")
        + ref("sub_title", "## 2.1 Rice")
        + ref("text", "Where \\(x^2\\) is\n\n- one", "[[100, 100, 480, 300], [520, 100, 900, 200]]")
        + ref("image")
        + ref("image_caption", "<center>Figure 1</center>")
        + ref("table", TABLE)
        + ref("table_footnote", "* of 2020")
        + ref("equation", "\\[ a = \\frac{b}{c} \\]")
        + ref("header", "The Mill")
        + ref("page_number", "7")
    )
    assert answer.problem is None
    assert [(element.label, element.content, element.content_format) for element in answer.elements] == [
        (Label.DOC_TITLE, "# Yields", ContentFormat.MARKDOWN),
        (Label.PARAGRAPH_TITLE, "## 2.1 Rice", ContentFormat.MARKDOWN),
        (Label.TEXT, "Where $x^2$ is\n\n- one", ContentFormat.MARKDOWN),
        (Label.IMAGE, None, ContentFormat.TEXT),
        (Label.FIGURE_TITLE, "Figure 1", ContentFormat.MARKDOWN),
        (Label.TABLE, TABLE, ContentFormat.HTML),
        (Label.VISION_FOOTNOTE, "* of 2020", ContentFormat.MARKDOWN),
        (Label.DISPLAY_FORMULA, "a = \\frac{b}{c}", ContentFormat.LATEX),
        (Label.HEADER, "The Mill", ContentFormat.MARKDOWN),
        (Label.NUMBER, "7", ContentFormat.MARKDOWN),
    ]
    assert answer.elements[0].boxes == ((0.0, 0.0, 1.0, pytest.approx(1 / 3)),)
    assert len(answer.elements[2].boxes) == 2
    assert all(element.problem is None for element in answer.elements)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Sub-Title", Label.PARAGRAPH_TITLE),
        ("page footnote", Label.FOOTNOTE),
        ("reference_content", Label.REFERENCE_CONTENT),
        ("chart", Label.CHART),
        ("hologram", None),
        ("", None),
    ],
)
def test_names_of_labels(name: str, label: Label | None):
    assert label_of(name) is label


def test_the_caption_of_a_table_may_come_between_it_and_its_cells():
    assert told(ref("table") + ref("table_caption", f"<center>Table 1</center>\n\n{TABLE}")) == [
        (Label.TABLE, TABLE),
        (Label.FIGURE_TITLE, "Table 1"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Before all.\n" + ref("text", "Then."), [(Label.TEXT, "Before all."), (Label.TEXT, "Then.")]),
        (ref("hologram", "Words."), [(Label.TEXT, "Words.")]),
        ("<|ref|>text<|/ref|>", []),
        ("<|ref|>image<|/ref|>", [(Label.IMAGE, None)]),
        (ref("Words on a sign"), [(Label.TEXT, "Words on a sign")]),
        (ref("image", "Read in it."), [(Label.IMAGE, None), (Label.TEXT, "Read in it.")]),
        (ref("text", f"Up.\n{TABLE}\nLow."), [(Label.TEXT, "Up."), (Label.TABLE, TABLE), (Label.TEXT, "Low.")]),
        (ref("table", f"{TABLE}\n{TABLE}"), [(Label.TABLE, TABLE), (Label.TABLE, TABLE)]),
        (ref("table", TABLE + "long " * 100), [(Label.TABLE, TABLE), (Label.TEXT, ("long " * 100).strip())]),
        (ref("table", "No table"), [(Label.TABLE, "No table")]),
        (ref("text", "In İstanbul İİİ") + ref("table") + ref("table_caption", "İİİ " + TABLE),
         [(Label.TEXT, "In İstanbul İİİ"), (Label.TABLE, TABLE), (Label.FIGURE_TITLE, "İİİ")]),
    ],
)  # fmt: skip
def test_nothing_is_lost(text: str, expected: list[tuple[Label, str | None]]):
    assert told(text) == expected


def test_an_answer_without_places_is_one_text_and_told():
    answer = read("# All of it\n\nin words")
    assert [(e.label, e.boxes, e.content) for e in answer.elements] == [(Label.TEXT, (), "# All of it\n\nin words")]
    assert answer.problem is not None
    assert answer.problem.category == "no_grounding"
    assert read("<｜end▁of▁sentence｜>").elements == ()


def test_places_that_make_no_sense_are_none():
    for boxes in ("[[5, 5, 5, 5]]", "[[100, s, 340, 295]]", "nowhere"):
        (element,) = read(ref("text", "Words", boxes)).elements
        assert (element.boxes, element.content) == ((), "Words")
        assert element.problem is not None
        assert element.problem.category == "no_grounding"


def test_what_is_wrong_with_an_element_is_told_of_it():
    problems = [
        element.problem.category if element.problem else None
        for element in read(
            ref("text") + ref("footer") + ref("equation", "\\frac{a}{b") + ref("table", "none") + ref("text", "good")
        ).elements
    ]
    assert problems == ["empty_text", None, "unbalanced_formula", "no_table", None]


@pytest.mark.parametrize("end", ["<|ref|>te", "<|ref|>text<|/ref|><|det|>[[1, 2", ref("table", "<table><tr><td>1")])
def test_an_answer_that_ends_inside_of_something_is_truncated(end: str):
    answer = read(ref("text", "Words") + end)
    assert answer.elements[0].content == "Words"
    assert answer.problem is not None
    assert answer.problem.category == "truncated"


def test_what_stands_around_the_whole_answer_is_taken_off():
    answer = read(f"<think>hm <|ref|></think>```markdown\n{ref('text', 'Words')}\n```", ["reasoning", *STEPS])
    assert [(element.label, element.content) for element in answer.elements] == [(Label.TEXT, "Words")]


def test_a_table_can_do_nothing():
    (element,) = read(
        ref("table", '<table onclick="x()"><tr><td><script>alert(1)</script>1</td></tr></table>')
    ).elements
    assert "script" not in (element.content or "")
    assert "onclick" not in (element.content or "")


PIECES = [
    "<|ref|>",
    "<|/ref|>",
    "<|det|>",
    "<|/det|>",
    "[[1,2,3,4]]",
    "text",
    "table",
    "<table>",
    "</table>",
    "<td>",
    "\n",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_order_of_pieces_is_read(text: str):
    for element in read(text).elements:
        for x1, y1, x2, y2 in element.boxes:
            assert 0 <= x1 < x2 <= 1
            assert 0 <= y1 < y2 <= 1
        assert "<|" not in (element.content or "")


WORDS = st.text(alphabet="abc", min_size=1, max_size=8)
PARTS = st.lists(st.tuples(WORDS, st.booleans()), min_size=1)


@settings(deadline=None)
@given(PARTS, st.sampled_from(["text", "title", "image", "footer", "nobody knows"]))
def test_every_word_comes_out_and_in_order(parts: list[tuple[str, bool]], label: str):
    written = [
        f"<table><tr><td>{word}</td></tr></table>" if in_table else f"\n\n{word}\n\n" for word, in_table in parts
    ]
    out = " ".join(element.content or "" for element in read(ref(label, "".join(written))).elements)
    at = 0
    for word, in_table in parts:
        at = out.index(f"<td>{word}</td>" if in_table else word, at) + len(word)


HOSTILE = [
    pytest.param("<table>", marks=pytest.mark.slow),
    *("</table>", "<table", ref("table", "<table>"), ref("text", TABLE), ref("image"), "\\["),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_answers_end(piece: str):
    read(ref("text", "a") + piece * (MAX_CHARACTERS // len(piece)))
