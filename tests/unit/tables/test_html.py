from hypothesis import given
from hypothesis import strategies as st

from pagemill.tables.html import MAX_CHARACTERS, parse_table
from pagemill.tables.table import Cell, Table, build_table


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    text = st.text(max_size=8)
    free = {(r, c) for r in range(rows) for c in range(columns)}
    cells = []
    while free:
        row, column = min(free)
        width = draw(st.integers(1, columns - column))
        height = draw(st.integers(1, rows - row))
        covered = {(r, c) for r in range(row, row + height) for c in range(column, column + width)}
        if not covered <= free:
            width = height = 1
            covered = {(row, column)}
        free -= covered
        cells.append(
            Cell(
                row=row, column=column, row_span=height, column_span=width, text=draw(text), header=draw(st.booleans())
            )
        )
    return build_table(cells)


def slots(table: Table) -> list[tuple[int, int]]:
    return [
        (r, c)
        for cell in table.cells
        for r in range(cell.row, cell.row + cell.row_span)
        for c in range(cell.column, cell.column + cell.column_span)
    ]


@given(tables())
def test_html_round_trip(table: Table) -> None:
    again = parse_table(table.to_html())
    assert again is not None
    assert [(c.row, c.column, c.row_span, c.column_span) for c in again.cells] == [
        (c.row, c.column, c.row_span, c.column_span) for c in table.cells
    ]
    # Texts come back clean, and clean ones come back as they are.
    assert parse_table(again.to_html()) == again


@given(st.text())
def test_any_text_parses_or_is_no_table(text: str) -> None:
    parse_table(text)
    parse_table(f"<table><tr><td>{text}</td></tr></table>")


fragments = st.sampled_from(
    [
        "<tr>",
        "</tr>",
        "<td>",
        "</td>",
        "<th>",
        "<table>",
        "</table>",
        "<td colspan=3>",
        "<td rowspan=4>",
        "x",
        "<thead>",
        "<tbody>",
        "<br>",
        "<td colspan=100000 rowspan=100000>",
        "<td colspan=-1>",
        "<td rowspan=٣>",
        "<script>",
        "&lt;",
    ]
)


@given(st.lists(fragments, max_size=40))
def test_cells_of_malformed_html_tile_the_grid(pieces: list[str]) -> None:
    table = parse_table("<table>" + "".join(pieces))
    if table is not None:
        assert sorted(slots(table)) == [(r, c) for r in range(table.rows) for c in range(table.columns)]
        assert parse_table(table.to_html()) == table


def test_huge_spans_end_with_the_table() -> None:
    table = parse_table("<table><tr><td colspan=100000>a<td>b<tr><td>c<td>d</table>")
    assert table is not None
    assert (table.rows, table.columns) == (2, 3)
    assert [cell.column_span for cell in table.cells] == [2, 1, 1, 1, 1]


def test_a_cell_ends_where_one_from_above_stands() -> None:
    table = parse_table("<table><tr><td>a<td rowspan=2>b<td>c<tr><td colspan=3>d</table>")
    assert table is not None
    assert [(cell.text, cell.column, cell.column_span) for cell in table.cells if cell.row == 1] == [
        ("d", 0, 1),
        ("", 2, 1),
    ]
    assert sorted(slots(table)) == [(r, c) for r in range(2) for c in range(3)]


def test_nested_table_becomes_text() -> None:
    table = parse_table("<table><tr><td>a<table><tr><td>b<td>c</table></td><td>d</td></tr></table>")
    assert table is not None
    assert [cell.text for cell in table.cells] == ["a\nb c", "d"]


def test_scripts_are_dropped_and_texts_escaped() -> None:
    table = parse_table("<table><tr><td>a<script>alert(1)</script> &lt;b&gt; &amp;</td></tr></table>")
    assert table is not None
    assert table.to_html() == "<table><tr><td>a &lt;b&gt; &amp;</td></tr></table>"


def test_limits_give_none() -> None:
    assert parse_table("<table>" + " " * MAX_CHARACTERS) is None
    assert parse_table("<table>" + "<tr><td>x" * 20_001) is None


def test_many_empty_rows_under_many_spans() -> None:
    table = parse_table("<table><tr>" + "<td rowspan=999999>x" * 1000 + "<tr>" * 100_000 + "<tr><td>y</table>")
    assert table is not None
    assert (table.rows, table.columns) == (2, 1001)
