import pytest

from pagemill.document.page import TextLine, Word
from pagemill.parsing.fields import with_marks


def line(text, x, y=100.0, *, size=20.0, letter=10.0, words=True):
    box = (x, y, x + letter * len(text), y + size)
    parts, at = [], x
    for word in text.split():
        parts.append(Word(word, (at, y, at + letter * len(word), y + size)))
        at += letter * (len(word) + 1)
    return TextLine(text=text, box=box, font_size=size, words=tuple(parts) if words else ())


def box(checked, x, y=101.0):
    return TextLine(text="☒" if checked else "☐", box=(x, y, x + 18, y + 18), engine="annotation")


def test_a_check_box_before_its_label():
    (joined,) = with_marks([line("I agree", 130)], [box(True, 100)])
    assert joined.text == "☒ I agree"
    assert [word.text for word in joined.words] == ["☒", "I", "agree"]
    assert joined.box == (100, 100, 200, 120)
    assert joined.engine == "annotation"


def test_a_check_box_after_its_label_and_between_two():
    assert [one.text for one in with_marks([line("I agree", 100)], [box(False, 180)])] == ["I agree ☐"]
    both = with_marks([line("Yes", 130), line("No", 250)], [box(True, 100), box(False, 220)])
    assert [one.text for one in both] == ["☒ Yes", "☐ No"]


def test_a_check_box_inside_a_line():
    (joined,) = with_marks([line("Yes    No", 100, words=True)], [box(True, 131)])
    assert joined.text == "Yes ☒ No"


@pytest.mark.parametrize("where", [(100.0, 300.0), (600.0, 101.0)])
def test_a_check_box_without_a_label_is_a_line(where):
    lines = with_marks([line("Somewhere else", 130)], [box(True, *where)])
    assert [one.text for one in lines] == ["Somewhere else", "☒"]


def test_a_sign_read_in_the_box_is_the_box():
    lines = with_marks([line("X", 104, 102, size=14), line("I agree", 130)], [box(True, 100)])
    assert [one.text for one in lines] == ["☒ I agree"]


def test_values_are_lines_of_their_own():
    value = TextLine(text="Ada", box=(100, 200, 200, 220), engine="annotation")
    assert with_marks([line("Name", 100)], [value]) == [line("Name", 100), value]
    assert with_marks([], [value, box(True, 10)]) == [box(True, 10), value]


@pytest.mark.parametrize(("engine", "left"), [("rapidocr", []), ("text-layer", ["D K 4 7"])])
def test_a_value_is_there_once_where_its_field_was_read_from_the_pixels(engine, left):
    drawn = TextLine(text="D K 4 7", box=(102, 102, 188, 118), engine=engine)
    label = TextLine(text="Code:", box=(20, 100, 90, 120), engine=engine)
    value = TextLine(text="DK47", box=(100, 100, 190, 120), engine="annotation")
    assert [one.text for one in with_marks([label, drawn], [value])] == ["Code:", *left, "DK47"]
