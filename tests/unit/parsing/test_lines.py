"""Rows of lines: upside down, and those that end inside a Korean word."""

import pytest

from pagemill.document.page import Mark, Span, TextLine, Word
from pagemill.parsing.korean import korean_words, mark_broken_words
from pagemill.parsing.lines import Row, clean_lines, join_rows, mark_hyphens, rows_of


def rows_ending_in_spaces(spaces):
    """20 full rows, so many of which end in a drawn space."""
    return [
        Row(lines=[], text=f"물레 방아{i:02}길", box=(0, 30 * i, 400, 30 * i + 20), size=20, trailing_space=i < spaces)
        for i in range(20)
    ]


def test_a_full_row_without_a_drawn_space_ends_inside_a_word():
    rows = rows_ending_in_spaces(3)
    mark_broken_words([rows], None)
    assert [row.word_goes_on for row in rows] == [False] * 3 + [True] * 16 + [None]
    assert join_rows(rows[2:4]) == "물레 방아02길 물레 방아03길"
    assert join_rows(rows[3:5]) == "물레 방아03길물레 방아04길"


@pytest.mark.parametrize("spaces", [0, 1])
def test_where_no_spaces_are_drawn_at_line_ends_nothing_is_known(spaces):
    rows = rows_ending_in_spaces(spaces)
    mark_broken_words([rows], None)
    assert not any(row.word_goes_on for row in rows)


def upside_down(text, x1, y1, x2, y2):
    return TextLine(text=text, box=(x1, y1, x2, y2), polygon=((x2, y2), (x1, y2), (x1, y1), (x2, y1)))


def test_lines_upside_down_read_from_the_bottom_right_to_the_top_left():
    lines = [
        upside_down("third row", 100, 100, 300, 120),
        upside_down("second", 250, 130, 300, 150),
        upside_down("row", 200, 130, 240, 150),
        upside_down("first row", 100, 160, 300, 180),
    ]
    rows = rows_of(lines)
    assert [row.text for row in rows] == ["first row", "second row", "third row"]
    assert rows[1].box == (200, 130, 300, 150)
    assert rows[1].lines == [lines[1], lines[2]]


def test_vertical_columns_read_from_the_right_tier_by_tier():
    def column(text, x, top, bottom):
        return TextLine(text=text, box=(x, top, x + 20, bottom), font_size=20.0)

    lower = [column("lower right", 100, 420, 800), column("lower left", 60, 420, 700)]
    upper = [column("upper left", 60, 10, 400), column("upper right", 100, 30, 400)]
    rows = rows_of([*lower, *upper])
    assert [row.text for row in rows] == ["upper right", "upper left", "lower right", "lower left"]


def test_the_page_tells_which_hyphens_are_of_the_words():
    def rows(*texts):
        return [Row(lines=[], text=text, box=(0, 30 * i, 400, 30 * i + 20), size=20) for i, text in enumerate(texts)]

    blocks = [
        rows("this is a well-", "known fact of the over-", "view"),
        rows("a well-known one"),
        rows("an overview of"),
    ]
    mark_hyphens(blocks)
    assert join_rows(blocks[0]) == "this is a well-known fact of the overview"


def test_a_drawn_soft_hyphen_is_a_hyphen_and_marks_keep_their_place():
    line = TextLine(text="\x02ＡＢ well\u00adknown", box=(0, 0, 9, 9), spans=(Span(4, 8, Mark.BOLD),))
    ((cleaned,), _) = clean_lines([line])
    assert cleaned.text == "AB well-known"
    assert cleaned.spans == (Span(3, 7, Mark.BOLD),)


def test_parts_that_are_no_words_are_joined_where_other_korean_lines_end_inside_words():
    def lines(*texts):
        return [Row(lines=[], text=text, box=(0, 30 * i, 400, 30 * i + 20), size=20) for i, text in enumerate(texts)]

    def marked(*blocks, scanned=False):
        mark_broken_words(blocks, None if scanned else korean_words(row.text for block in blocks for row in block))
        return blocks[-1]

    undecided = ["새 물레와 함께 방아 상", "태를 살핀다"]
    cut = ["돌로 쌓은 방앗간 곁의 물레", "방앗", "간 옆"]
    assert not marked(lines(*undecided))[0].word_goes_on
    assert join_rows(marked(lines(*cut), lines(*undecided))) == "새 물레와 함께 방아 상태를 살핀다"
    assert join_rows(marked(lines(*cut), lines(*undecided), scanned=True)) == "새 물레와 함께 방아 상 태를 살핀다"


def test_radicals_are_the_ideographs_that_they_look_like():
    line = TextLine(text="⽇本 ⻓⾊ ⺡", box=(0, 0, 90, 10), words=(Word(text="⽇本", box=(0, 0, 20, 10)),))
    (clean,), _ = clean_lines([line])
    assert (clean.text, clean.words[0].text) == ("日本 长色 ⺡", "日本")  # the last one is no character of its own


@pytest.mark.parametrize(
    ("initial", "first"), [("A", "A second wheel came"), ("“A", "“A second wheel came"), ("T", "Tsecond wheel came")]
)
def test_an_initial_that_is_a_word_stands_apart_and_may_overlap_its_rows(initial, first):
    def line(text: str, *box: float) -> TextLine:
        return TextLine(text=text, box=box)

    lines = [
        line(initial, 100, 100, 140, 150),
        line("second wheel came", 138, 100, 400, 120),
        line("in a year, and the second", 138, 125, 400, 145),
        line("one never turned", 100, 150, 400, 170),
    ]
    rows = rows_of(lines)
    assert rows[0].text == first
    assert rows[1].box[0] == 100


def test_a_large_initial_beside_a_line_without_text_is_no_error():
    places = [("A", 0, 0, 60, 60), (" ", 70, 0, 300, 20)]
    places += [("the mill turns", left, top, 300, top + 20) for left, top in ((70, 22), (70, 44), (0, 66))]
    rows = rows_of([TextLine(text=text, box=tuple(box)) for text, *box in places])
    assert "A" in "".join(row.text for row in rows)
