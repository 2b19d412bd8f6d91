import pytest

from pagemill.tables.table import Cell, Table, build_table, clean_text


def simple(*texts: str, **changes: object) -> Table:
    cells = [Cell(row=i // 2, column=i % 2, text=text, header=i < 2) for i, text in enumerate(texts)]
    return build_table(cells)


def test_markdown_of_a_plain_table() -> None:
    assert simple("a", "b", "1", "2").to_markdown() == "| a | b |\n| --- | --- |\n| 1 | 2 |"


@pytest.mark.parametrize("text", ["x|y", "x\ny", "<b>x", "\\", "&lt;", "![a](b)"])
def test_markdown_only_where_lossless(text: str) -> None:
    assert simple("a", "b", "1", text).to_markdown() is None


def test_no_markdown_with_spans_or_without_one_header_row() -> None:
    head = Cell(row=0, column=0, column_span=2, header=True)
    assert build_table([head, Cell(row=1, column=0), Cell(row=1, column=1)]).to_markdown() is None
    assert build_table([Cell(row=0, column=0), Cell(row=1, column=0)]).to_markdown() is None
    assert build_table([]).to_markdown() is None


def test_a_less_than_sign_is_no_tag() -> None:
    markdown = simple("a", "b", "p < 0.05", "x").to_markdown()
    assert markdown is not None
    assert "p < 0.05" in markdown


def test_holes_are_filled_and_empty_columns_squeezed_out() -> None:
    table = build_table([Cell(row=0, column=0, column_span=5, text="a"), Cell(row=0, column=7), Cell(row=3, column=7)])
    assert (table.rows, table.columns) == (2, 2)
    assert [(c.row, c.column, c.column_span) for c in table.cells] == [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]


def test_clean_text() -> None:
    assert clean_text(" a \t b\x00\n\n c\ud800 ") == "a b\nc"


def test_a_cell_that_goes_on_below_the_head_is_in_no_thead() -> None:
    table = build_table(
        [
            Cell(row=0, column=0, row_span=2, text="a", header=True),
            Cell(row=0, column=1, text="b", header=True),
            Cell(row=1, column=1, text="1"),
        ]
    )
    assert table.to_html() == '<table><tr><th rowspan="2">a</th><th>b</th></tr><tr><td>1</td></tr></table>'
