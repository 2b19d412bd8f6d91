import pytest

from pagemill.document.page import Mark, Span, TextLine, Word
from pagemill.export.markdown import table_markdown
from pagemill.tables.html import parse_table
from pagemill.tables.table import Cell, build_table
from pagemill.tables.words import join_words, words_of_line


def table(text, *spans):
    cells = [Cell(row=0, column=0, text="Head", header=True), Cell(row=0, column=1, text="More", header=True)]
    return build_table([*cells, Cell(row=1, column=0, text=text, spans=spans), Cell(row=1, column=1, text="x")])


MARKED = table("see a * b", Span(0, 3, Mark.LINK, "https://x.org/?a=1&b=2"), Span(4, 5, Mark.BOLD))


def test_marks_of_a_cell_are_tags_and_are_read_again():
    markup = MARKED.to_html()
    assert '<td><a href="https://x.org/?a=1&amp;b=2">see</a> <b>a</b> * b</td>' in markup
    read = parse_table(markup)
    assert read is not None
    assert read.cells == MARKED.cells
    plain = parse_table(markup, marks=False)
    assert plain is not None
    assert not any(cell.spans for cell in plain.cells)
    assert plain.cells[2].text == "see a * b"


def test_a_pipe_table_shows_them():
    rows = table_markdown(MARKED.to_html()).splitlines()
    assert rows[2] == r"| [see](https://x.org/?a=1&b=2) **a** \* b | x |"
    assert table_markdown(table("plain * text").to_html()).splitlines()[2] == "| plain * text | x |"


@pytest.mark.parametrize("target", ["javascript:alert(1)", "data:text/html,x", "//x.org", "ftp://x.org"])
def test_a_link_to_elsewhere_is_text(target):
    read = parse_table(f'<table><tr><td><a href="{target}">go</a></td><td><strong>x</strong></td></tr></table>')
    assert read is not None
    assert [cell.spans for cell in read.cells] == [(), (Span(0, 1, Mark.BOLD),)]
    assert target not in table("go", Span(0, 2, Mark.LINK, target)).to_html()


def test_the_words_of_a_cell_keep_their_marks():
    words = tuple(Word(text, (20.0 * i, 0, 20.0 * i + 18, 10)) for i, text in enumerate(("a", "bold", "one")))
    line = TextLine(text="a bold one", box=(0, 0, 60, 10), words=words, spans=(Span(2, 10, Mark.BOLD),))
    found = words_of_line(line, 0, (0, 0))
    assert join_words(found, 10) == ("a bold one", (Span(2, 10, Mark.BOLD),))
    assert join_words(found[1:2], 10) == ("bold", (Span(0, 4, Mark.BOLD),))
