"""Tables that a page break cut apart."""

from pagemill.tables.html import parse_table
from pagemill.tables.joining import join_tables
from pagemill.tables.table import Table

HEAD = "<tr><th>Vat</th><th>Weight</th></tr>"


def table(*rows: str) -> Table:
    found = parse_table(f"<table>{''.join(rows)}</table>")
    assert found is not None
    return found


def row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def shown(joined: Table) -> str:
    return (joined.to_markdown() or joined.to_html()).replace("| --- | --- |\n", "")


def test_a_repeated_head_is_there_once():
    joined = join_tables(table(HEAD, row("1", "20")), table(HEAD, row("2", "30")))
    assert shown(joined) == "| Vat | Weight |\n| 1 | 20 |\n| 2 | 30 |"


def test_a_row_over_the_break_is_one():
    first = table(HEAD, row("1", "a wheel that turns the"))
    assert shown(join_tables(first, table(row("", "beater"), row("2", "b")))).endswith(
        "| 1 | a wheel that turns the beater |\n| 2 | b |"
    )
    assert join_tables(first, table(row("", "Beaters"))).rows == 3  # a row without a name
    assert join_tables(first, table(row("2", "beater"))).rows == 3


def test_rows_of_the_same_words_as_the_head_stay_where_they_are_all_there_is():
    assert join_tables(table(HEAD, row("1", "2")), table(HEAD)).rows == 3


def test_spans_and_widths_stay():
    joined = join_tables(table(HEAD, row("1", "2")), table('<tr><td rowspan="2">3</td><td>4</td></tr>', row("5")))
    assert (joined.rows, joined.columns) == (4, 2)
    assert parse_table(joined.to_html()) == joined
    wide = join_tables(table(row("1")), table(row("2", "3")))
    assert parse_table(wide.to_html()) == wide
    assert parse_table(join_tables(table(row("2", "3")), table(row("1"))).to_html()) is not None
