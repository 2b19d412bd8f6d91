import pytest

from pagemill.document.page import Mark, Span, TextLine, Word
from pagemill.document.spans import reworded
from pagemill.parsing.lines import clean_lines, half_width, moved, quarter_turn


def test_unprintable_characters_go_and_the_rest_stays():
    word = Word("pay\u202e001", (0, 0, 5, 5))
    line = TextLine(text="pay\u202e001\x1b[31m \x00now", box=(0, 0, 9, 5), words=(word,))
    (cleaned,), errors = clean_lines([line])
    assert cleaned.text == "pay001[31m now"
    assert cleaned.words[0].text == "pay001"
    assert not errors


def test_a_clean_line_is_the_same_object():
    line = TextLine(text="물레 mill\u200d", box=(0, 0, 9, 5))
    (kept,), _ = clean_lines([line])
    assert kept is line


def test_lines_without_a_box_are_named():
    lines = [TextLine(text="a", box=(float("nan"), 0, 1, 1)), TextLine(text="b", box=(0, 0, 1, 1))]
    kept, (error,) = clean_lines(lines)
    assert [line.text for line in kept] == ["b"]
    assert error.message.startswith("1 line of text")


def test_corners_that_are_no_numbers_go():
    line = TextLine(text="a", box=(0, 0, 1, 1), polygon=((0, 0), (float("inf"), 0), (1, float("nan")), (0, 1)))
    (kept,), errors = clean_lines([line])
    assert kept.polygon is None
    assert kept.box == line.box
    assert not errors


def test_lines_that_hold_nothing_to_print_go():
    kept, errors = clean_lines([TextLine(text=text, box=(0, 0, 1, 1)) for text in ("\ufeff", " \u202a ", "", "a")])
    assert [line.text for line in kept] == ["a"]
    assert not errors


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("ＡＢＣ１２３", "ABC123"),
        ("２０２６년（안），￦５００", "2026년(안),₩500"),
        ("第３章（续）：说明，完", "第3章（续）：说明，完"),
        ("「Ａ」を、見る！", "「A」を、見る！"),
        ("plain", "plain"),
    ],
)
def test_full_width_forms_are_normalised_but_for_the_punctuation_of_chinese_and_japanese(text, normal):
    assert half_width(text) == normal
    (cleaned,), _ = clean_lines([TextLine(text=text, box=(0, 0, 9, 5), words=(Word(text, (0, 0, 9, 5)),))])
    assert (cleaned.text, cleaned.words[0].text) == (normal, normal)


def test_full_width_signs_of_a_latin_line_are_those_of_the_page():
    for page, text in (("水車は動く", "Pro（Byte）"), ("물레 이야기", "Pro(Byte)")):
        lines = [TextLine(text=line, box=(0, 0, 9, 5)) for line in (page, "Pro（Byte）")]
        assert clean_lines(lines)[0][1].text == text


@pytest.mark.parametrize(
    ("drawn", "text"), [("ประจ\u0e4d\u0e32ปี", "ประจำปี"), ("น\u0e4d\u0e49\u0e32", "น้ำ"), ("สํ", "สํ")]
)
def test_the_thai_vowel_in_two_parts_is_one_character(drawn, text):
    (line,), _ = clean_lines([TextLine(text=drawn, box=(0, 0, 90, 20), words=(Word(drawn, (0, 0, 90, 20)),))])
    assert (line.text, line.words[0].text) == (text, text)


@pytest.mark.parametrize(
    ("text", "marked", "kept"),
    [
        ("plain\x07 bold", "bold", "bold"),
        ("\u202eab\u202c \uff22old", "\uff22old", "Bold"),
        ("\u0e19\u0e4d\u0e49\u0e32 bold", "bold", "bold"),
        ("\u0e19\u0e4d\u0e49\u0e32 bold", "\u0e19\u0e4d\u0e49\u0e32", "\u0e19\u0e49\u0e33"),
        ("only \u200e\u202d", "\u202d", None),
    ],
)
def test_spans_follow_the_characters_that_they_mark(text, marked, kept):
    start = text.index(marked)
    span = Span(start, start + len(marked), Mark.BOLD)
    (line,), _ = clean_lines([TextLine(text=text, box=(0, 0, 10, 10), spans=(span,))])
    assert [line.text[span.start : span.end] for span in line.spans] == ([] if kept is None else [kept])


def test_a_line_that_is_moved_keeps_its_spans():
    line = TextLine(text="a bold word", box=(0, 0, 100, 10), spans=(Span(2, 6, Mark.BOLD),))
    assert moved(line, quarter_turn(90, 200, 300)).spans == line.spans


def test_spans_follow_a_text_that_is_told_otherwise():
    line = TextLine(
        text="o a bold word and a link", box=(0, 0, 9, 9), spans=(Span(4, 8, Mark.BOLD), Span(20, 24, Mark.LINK, "#a"))
    )
    longer = reworded(line, "(1) a bold word and a link")
    assert [longer.text[span.start : span.end] for span in longer.spans] == ["bold", "link"]
    other = reworded(line, "o a bold sign and a link")
    assert [other.text[span.start : span.end] for span in other.spans] == ["bold", "link"]
    gone = reworded(line, "o a b\u2026d word and a link")
    assert [gone.text[span.start : span.end] for span in gone.spans] == ["b\u2026d", "link"]
