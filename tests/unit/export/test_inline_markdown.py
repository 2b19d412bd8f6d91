import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pagemill.document.page import Mark, Span
from pagemill.document.spans import tidy
from pagemill.export.inline_markdown import marked, not_a_list

READER = MarkdownIt("commonmark").enable("strikethrough")
OPENING = {"strong_open": Mark.BOLD, "em_open": Mark.ITALIC, "s_open": Mark.STRIKE}
HTML = {"b": Mark.BOLD, "i": Mark.ITALIC, "s": Mark.STRIKE, "sup": Mark.SUPERSCRIPT, "sub": Mark.SUBSCRIPT}


def read(markdown: str) -> tuple[str, set[tuple[Mark, int, str | None]]]:
    """What a reader of Markdown sees: the text, and each marked character that is no space or punctuation."""
    text, found = "", set()
    for block in READER.parse(markdown):
        opened: list[tuple[Mark, str | None]] = []
        for token in block.children or ():
            name = token.content.strip("</>")
            if token.type in OPENING:
                opened.append((OPENING[token.type], None))
            elif token.type == "link_open":
                opened.append((Mark.LINK, str(token.attrs["href"])))
            elif token.type == "html_inline" and name in (*HTML, "code") and not token.content.startswith("</"):
                opened.append((HTML.get(name, Mark.CODE), None))
            elif token.type.endswith("_close") or token.type == "html_inline":
                opened.pop()
            elif token.type == "softbreak":
                text += "\n"
            else:
                assert token.type in ("text", "code_inline", "text_special"), token
                own = [*opened, (Mark.CODE, None)] if token.type == "code_inline" else opened
                for char in token.content:
                    found |= {(mark, len(text), target) for mark, target in own if char.isalnum()}
                    text += char
        if block.type == "inline":
            assert not opened
    return text, found


def expected(text: str, spans: tuple[Span, ...]) -> set[tuple[Mark, int, str | None]]:
    return {
        (span.mark, place, span.target)
        for span in spans
        for place in range(span.start, span.end)
        if text[place].isalnum()
    }


@pytest.mark.parametrize(
    ("text", "spans", "markdown"),
    [
        ("a bold word", [(2, 6, Mark.BOLD)], "a **bold** word"),
        ("both here", [(0, 9, Mark.BOLD), (5, 9, Mark.ITALIC)], "**both *here***"),
        ("one two three", [(0, 7, Mark.BOLD), (4, 13, Mark.ITALIC)], "**one *two*** *three*"),
        ("the end.", [(4, 8, Mark.STRIKE)], "the ~~end.~~"),
        ("run a*b now", [(4, 7, Mark.CODE)], "run `a*b` now"),
        ("run a`b now", [(4, 7, Mark.CODE)], "run ``a`b`` now"),
        ("5*3 is bold", [(7, 11, Mark.BOLD)], r"5\*3 is **bold**"),
        ("see word5.", [(8, 9, Mark.SUPERSCRIPT)], "see word<sup>5</sup>."),
        ("“굵게”는", [(0, 4, Mark.BOLD)], "**“굵게**”는"),
        ("`x`", [(0, 1, Mark.BOLD)], r"<b>\`</b>x\`"),
        (r"a\!b", [(3, 4, Mark.LINK, "https://x.org/")], r"a\\\![b](https://x.org/)"),
        ("snake_case in bold", [(14, 18, Mark.BOLD)], "snake_case in **bold**"),
    ],
)
def test_marks_are_written(text, spans, markdown):
    assert marked(text, tuple(Span(*span) for span in spans)) == markdown


def test_links_are_links_and_nothing_else_is():
    link = (Span(4, 8, Mark.LINK, "https://x.org/a_(b)?c=1&copy;=2"),)
    assert marked("See! here](b)", (Span(5, 9, Mark.LINK, "https://x.org"),)) == r"See! [here](https://x.org)\](b)"
    assert marked("See!here", link) == r"See\![here](https://x.org/a_(b)?c=1&amp;copy;=2)"
    assert marked("https://x.org", (Span(0, 13, Mark.LINK, "https://x.org"),)) == "<https://x.org>"
    assert marked("a [1] b", (Span(2, 5, Mark.LINK, "#refs"),)) == r"a [\[1\]](#refs) b"
    for target in ("javascript:alert(1)", "file:///etc", "#page=3&top=100", "https://a b", None):
        assert marked("See here", (Span(4, 8, Mark.LINK, target),)) == "See here"
    assert marked("x" * 9, (Span(0, 9, Mark.LINK, "https://x.org/((a"),)) == "[xxxxxxxxx](https://x.org/%28%28a)"


def test_a_number_that_begins_a_line_begins_no_list():
    assert not_a_list("1986. A year\n7) and\n1.5 m") == "1986\\. A year\n7\\) and\n1.5 m"


SPANS = st.lists(
    st.builds(
        Span, st.integers(0, 14), st.integers(1, 14), st.sampled_from(list(Mark)), st.just(None)
    ).map(lambda span: Span(span.start, span.end, span.mark, "https://x.org" if span.mark is Mark.LINK else None)),
    max_size=5,
)  # fmt: skip


@settings(max_examples=150)
@example("a“b”c d", [Span(1, 4, Mark.BOLD), Span(0, 7, Mark.ITALIC)])
@example("ab", [Span(0, 1, Mark.BOLD), Span(1, 2, Mark.ITALIC)])
@example("77", [Span(0, 2, Mark.STRIKE), Span(1, 2, Mark.BOLD)])
@given(st.text(st.sampled_from(list("ab7 한“(*_`~[]<!\\&$.-")), min_size=1, max_size=14), SPANS)
def test_what_a_reader_sees_is_what_is_printed(text, given_spans):
    text = "x" + " ".join(text.split())  # no block of another kind, no white space that Markdown drops
    spans = tidy(text, given_spans)
    if not spans:
        return  # :func:`escape` leaves signs alone that mark nothing
    shown, marks = read(marked(text, spans))
    assert shown == text
    wanted = expected(text, spans)
    code = {place for mark, place, _ in wanted if mark is Mark.CODE}
    # In code nothing is set apart; there, only what marks all of it counts.
    assert {mark for mark in marks if mark[1] not in code or mark[0] in (Mark.CODE, Mark.LINK)} == {
        mark for mark in wanted if mark[1] not in code or mark[0] in (Mark.CODE, Mark.LINK)
    }
