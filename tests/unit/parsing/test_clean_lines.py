from pagemill.document.page import TextLine, Word
from pagemill.parsing.lines import clean_lines


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
    assert error.message.startswith("1 lines")


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
