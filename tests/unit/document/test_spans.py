from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.page import Mark, Span, TextLine
from pagemill.document.spans import carried, lines_of, spans_of, tidy, with_scripts


def line(text, *spans):
    return TextLine(text=text, box=(0, 0, 1, 1), spans=tuple(Span(*span) for span in spans))


def said(content, spans):
    return [(content[span.start : span.end], span.mark) for span in spans]


def test_a_run_over_three_rows_is_one_span():
    lines = [
        line("It is very ", (6, 11, Mark.BOLD)),
        line("im-", (0, 3, Mark.BOLD)),
        line("portant now", (0, 7, Mark.BOLD)),
    ]
    content = "It is very important now"
    assert said(content, spans_of(content, lines)) == [("very important", Mark.BOLD)]


def test_a_link_over_two_lines_is_one_and_two_targets_are_two():
    one, other = "https://x.org", "https://y.org"
    lines = [
        line("see the", (4, 7, Mark.LINK, one)),
        line("page and", (0, 4, Mark.LINK, one), (5, 8, Mark.LINK, other)),
    ]
    assert spans_of("see the page and", lines) == (Span(4, 12, Mark.LINK, one), Span(13, 16, Mark.LINK, other))


def test_what_the_content_writes_otherwise_does_not_shift_the_rest():
    lines = [
        line("\uf0b7 Chapter one ......... 12", (2, 13, Mark.BOLD)),
        line("\uf0b7 x = y + 2 is the sum", (2, 11, Mark.ITALIC), (19, 22, Mark.BOLD)),
    ]
    content = "• Chapter one … 12\n• $x = \\frac{y}{1} + 2$ is the sum"
    assert said(content, spans_of(content, lines))[0] == ("Chapter one", Mark.BOLD)
    assert said(content, spans_of(content, lines))[-1] == ("sum", Mark.BOLD)


def test_no_span_runs_over_a_line_break():
    lines = [line("• one", (2, 5, Mark.BOLD)), line("• two", (2, 5, Mark.BOLD))]
    assert said("• one\n• two", spans_of("• one\n• two", lines)) == [("one", Mark.BOLD), ("two", Mark.BOLD)]
    spans = tidy("one\ntwo", [Span(0, 7, Mark.BOLD)])
    assert [own for _, own in lines_of("one\ntwo", spans)] == [(Span(0, 3, Mark.BOLD),), (Span(0, 3, Mark.BOLD),)]


@pytest.mark.parametrize(
    ("text", "start", "end", "mark", "notes", "written"),
    [
        ("105", 2, 3, Mark.SUPERSCRIPT, (), "10⁵"),
        ("105", 2, 3, Mark.SUPERSCRIPT, ("5",), "10⁵"),
        ("in 19984", 7, 8, Mark.SUPERSCRIPT, ("4",), None),
        ("in 21.9", 6, 7, Mark.SUPERSCRIPT, (), None),
        ("21 °C1", 5, 6, Mark.SUPERSCRIPT, ("1",), None),
        ("Ca2+", 2, 4, Mark.SUPERSCRIPT, (), "Ca²⁺"),
        ("m2", 1, 2, Mark.SUPERSCRIPT, ("2",), "m²"),
        ("5 km2", 4, 5, Mark.SUPERSCRIPT, (), "5 km²"),
        ("cm-1", 2, 4, Mark.SUPERSCRIPT, (), "cm⁻¹"),
        ("H2O", 1, 2, Mark.SUBSCRIPT, (), "H₂O"),
        ("word5", 4, 5, Mark.SUPERSCRIPT, ("5",), None),
        ("end.5", 4, 5, Mark.SUPERSCRIPT, (), None),
        ("말5", 1, 2, Mark.SUPERSCRIPT, (), None),
        ("1st", 1, 3, Mark.SUPERSCRIPT, (), None),
        ("5 A note", 0, 1, Mark.SUPERSCRIPT, (), None),
    ],
)
def test_scripts_are_unicode_and_the_names_of_notes_are_not(text, start, end, mark, notes, written):
    span = Span(start, end, mark)
    assert with_scripts(text, (span,), notes) == ((text, (span,)) if written is None else (written, ()))


MARKS = st.sampled_from([Mark.BOLD, Mark.ITALIC, Mark.LINK])
SPANS = st.lists(
    st.builds(Span, st.integers(-3, 30), st.integers(-3, 30), MARKS, st.sampled_from([None, "#a"])), max_size=6
)
TEXTS = st.text(st.sampled_from(list("ab-. \n•ﬁ１")), max_size=25)


@given(TEXTS, TEXTS, SPANS)
def test_whatever_is_given_the_spans_are_sound(source, target, spans):
    result = carried(spans, source, target)
    assert list(result) == sorted(result, key=lambda span: (span.start, span.end, span.mark))
    for span in result:
        assert 0 <= span.start < span.end <= len(target)
        text = target[span.start : span.end]
        assert text == text.strip()
        assert "\n" not in text
    for mark in Mark:
        own = [span for span in result if span.mark is mark]
        assert all(before.end <= after.start for before, after in pairwise(own))


@given(TEXTS, SPANS)
def test_of_the_same_text_they_stay_what_they_are(text, spans):
    once = tidy(text, spans)
    assert carried(once, text, text) == once
    assert carried(once, text, f"X {text}") == tuple(Span(s.start + 2, s.end + 2, s.mark, s.target) for s in once)
