import pytest
from synthetic_run import TABLE, page, region

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, TextLine, Word
from pagemill.export.placed_text import clean, language_of, lines_of, words_of


def test_words_keep_their_places_and_the_spaces_between_them() -> None:
    words = (Word("한국", (0, 0, 20, 10)), Word("어", (20, 0, 30, 10)), Word("text", (40, 0, 80, 10)))
    line = TextLine(text="한국어 text", box=(0, 0, 80, 10), words=words)
    assert [(word.text, word.box, spaced) for word, spaced in words_of(line)] == [
        ("한국", (0, 0, 20, 10), False),
        ("어", (20, 0, 30, 10), True),
        ("text", (40, 0, 80, 10), False),
    ]


@pytest.mark.parametrize(
    ("box", "boxes"),
    [
        ((0, 0, 60, 10), [(0, 0, 20, 10), (30, 0, 60, 10)]),
        ((0, 0, 10, 60), [(0, 0, 10, 20), (0, 30, 10, 60)]),  # one that runs down the page
    ],
)
def test_words_without_places_share_the_line(box, boxes) -> None:
    for words in ((), (Word("other", (0, 0, 1, 1)),)):
        assert [word.box for word, _ in words_of(TextLine(text="ab def", box=box, words=words))] == boxes


def test_what_is_no_character_is_left_out_of_words() -> None:
    line = TextLine(text="a\x00b\ud800 \uffffc\x85", box=(0, 0, 10, 10))
    assert [(word.text, spaced) for word, spaced in words_of(line)] == [("a", True), ("b", True), ("c", True)]
    assert clean("a\ud83d\n\U0001f600") == "a \U0001f600"
    assert not list(words_of(TextLine(text=" \x01 ", box=(0, 0, 10, 10))))


def test_a_region_that_was_read_as_a_whole_is_cut_into_strips() -> None:
    whole = region(0, Label.TEXT, "first line\nsecond line", confidence=0.5)
    assert [(line.text, line.box, line.confidence) for line in lines_of(whole)] == [
        ("first line", pytest.approx((0, 0, 90 * 10 / 11, 45)), 0.5),
        ("second line", (0, 45, 90, 90), 0.5),
    ]
    table = region(0, Label.TABLE, TABLE, content_format=ContentFormat.HTML)
    assert [line.text for line in lines_of(table)] == ["Vat | Weight", "in | out", "1 | -4.5 | =1+1"]


def test_a_formula_is_its_content() -> None:
    signs = (TextLine(text="x2", box=(0, 0, 5, 5)),)
    formula = region(0, Label.DISPLAY_FORMULA, "x^2\n= y", content_format=ContentFormat.LATEX, lines=signs)
    assert [line.text for line in lines_of(formula)] == ["x^2 = y"]
    assert not lines_of(region(0, Label.IMAGE))


def test_the_language_of_a_page_is_named_where_there_is_one() -> None:
    assert language_of(page("d", 1, languages=("ko",))) == "ko"
    for languages in ((), ("ko", "en"), ("und-Latn",), ('en" onclick="x',)):
        assert language_of(page("d", 1, languages=languages)) == ""
