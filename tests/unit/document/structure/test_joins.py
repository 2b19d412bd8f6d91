"""Paragraphs, lists and tables over page breaks."""

import pytest
from page_layouts import heading, page, prose, read, region

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Status, TextLine

HEAD = "<thead><tr><th>Vat</th><th>Weight</th></tr></thead>"


def table(rows: int, top: int, bottom: int, head: str = HEAD, cells: int = 2, **fields):
    row = f"<tr>{''.join(f'<td>{cell}</td>' for cell in range(cells))}</tr>"
    html = f"<table>{head}<tbody>{row * rows}</tbody></table>"
    return region(Label.TABLE, html, top, content_format=ContentFormat.HTML, high=bottom - top, **fields)


def joined(*pages) -> list[str | None]:
    return [each.joined_to for each in read(pages) if each.joined_to]


def items(text: str, top: int, **fields):
    return region(Label.TEXT, text, top, list_item=True, **fields)


def test_a_table_at_the_foot_continues_at_the_head(caplog):
    foot = region(Label.FOOTNOTE, "1 A note.", 900)
    pages = (
        page(1, prose(100), table(5, 300, 880), foot),
        page(2, table(9, 60, 900)),
        page(3, table(2, 60, 200), prose()),
    )
    caplog.set_level("INFO", logger="pagemill.document.structure.joins")
    assert joined(*pages) == ["d_1/1", "d_2/0"]
    assert caplog.messages == [
        f"d_{n}/0: table joined to {to}, which it continues" for n, to in ((2, "d_1/1"), (3, "d_2/0"))
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(page(2, heading("Second mill", 60), table(5, 100, 300)), id="a heading between"),
        pytest.param(page(2, region(Label.FIGURE_TITLE, "Table 2", 60), table(5, 100, 300)), id="a caption"),
        pytest.param(page(2, table(5, 60, 300, cells=3)), id="another number of columns"),
        pytest.param(page(2, table(5, 60, 300, HEAD.replace("Vat", "Rag"))), id="another head"),
        pytest.param(page(2, table(5, 60, 300, right=600)), id="another width"),
        pytest.param(page(2, table(5, 300, 600)), id="not at the head"),
        pytest.param(page(3, table(5, 60, 300)), id="a page between"),
        pytest.param(page(2, table(5, 60, 300), status=Status.FAILED), id="a failed page"),
    ],
)
def test_tables_that_are_not_one(other):
    assert joined(page(1, prose(80), table(5, 300, 950)), other) == []


def lined(html: str, top: int, bottom: int, styles: tuple[int, int], lefts: tuple[int, int] = (100, 500)):
    """A table whose first and last row have their lines in styles of the page."""
    places = ((top, styles[0]), (bottom - 10, styles[1]))
    lines = tuple(
        TextLine(text="1", box=(float(left), float(y), left + 50.0, y + 10.0), style=style)
        for y, style in places
        for left in lefts
    )
    html = f"<table>{html}</table>"
    return region(Label.TABLE, html, top, content_format=ContentFormat.HTML, high=bottom - top, lines=lines)


GUESSED = "<thead><tr><th>{}</th><th>{}</th></tr></thead><tbody><tr><td>Rag</td><td>2</td></tr></tbody>"


@pytest.mark.parametrize(
    ("cells", "styles", "lefts", "one"),
    [
        pytest.param(("Oak", "3"), (0, 0), (100, 500), True, id="a row like the last one, taken for a head"),
        pytest.param(("Oak", "Price"), (0, 0), (100, 500), False, id="a head like the first one"),
        pytest.param(("Oak", "Price"), (1, 0), (100, 500), False, id="a head in the style of the first one"),
        pytest.param(("Oak", "3"), (0, 0), (100, 700), True, id="half of the edges agree"),
        pytest.param(("Oak", "3"), (0, 0), (300, 700), False, id="none does"),
    ],
)
def test_the_first_row_of_the_rest_is_often_taken_for_a_head(cells, styles, lefts, one):
    head_style = styles[0]
    first = lined(GUESSED.format("Vat", "Weight"), 300, 950, (head_style, 0))
    rest = lined(GUESSED.format(*cells), 60, 300, styles, lefts)
    assert bool(joined(page(1, prose(80), first), page(2, rest))) is one


def test_a_table_that_ends_in_the_middle_of_its_page_has_ended():
    assert joined(page(1, table(5, 60, 500)), page(2, table(5, 60, 300)), page(3, prose(850, high=100))) == []


def test_where_no_page_is_full_its_foot_is_where_a_deep_margin_begins():
    pages = (page(1, prose(80), table(5, 200, 600)), page(2, table(5, 60, 400)))
    assert joined(*pages) == []
    assert joined(page(1, prose(80), table(5, 200, 700)), pages[1]) == ["d_1/1"]


@pytest.mark.parametrize(
    ("gap", "fields", "one"),
    [
        pytest.param(15, {}, False, id="close to its table"),
        pytest.param(80, {}, True, id="as far away as a running head"),
        pytest.param(80, {"label": Label.FIGURE_TITLE}, False, id="a caption"),
    ],
)
def test_what_stands_above_a_table_may_name_it(gap, fields, one):
    label = fields.get("label", Label.HEADER)
    name = region(label, "The north branch", 30, high=20)
    assert bool(joined(page(1, prose(80), table(5, 200, 950)), page(2, name, table(5, 50 + gap, 400)))) is one


def test_a_list_continues():
    assert joined(page(1, items("1. oak\n2. elm", 800)), page(2, items("3. ash", 60))) == ["d_1/0"]
    assert joined(page(1, items("- oak", 800)), page(2, items("- ash", 60))) == ["d_1/0"]
    assert joined(page(1, items("1. oak\n2. elm", 800)), page(2, items("1. ash", 60))) == []
    assert joined(page(1, items("- oak", 800)), page(2, items("* ash", 60))) == []
    assert joined(page(1, items("- an oak that", 800)), page(2, prose(60, "is old.", left=120))) == ["d_1/0"]
    assert joined(page(1, items("- an oak that", 800)), page(2, heading("Wheels", 60), prose(100))) == []


def test_an_open_paragraph_continues_over_pictures():
    first = page(1, prose(600, "The water and", continues=True), region(Label.IMAGE, None, 800))
    assert joined(first, page(2, prose(60, "the wheel."))) == ["d_1/0"]
    assert joined(first, page(2, prose(60, "The wheel."))) == []
    assert joined(first, page(2, heading("Wheels", 60), prose(100, "the wheel."))) == []
