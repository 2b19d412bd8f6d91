from __future__ import annotations

import pytest

from pagemill.parsing.captions import is_caption
from pagemill.parsing.lists import marker
from pagemill.parsing.margins import PAGE_NUMBER
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
