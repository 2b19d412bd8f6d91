import csv
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_run import TABLE, page, region, sample_pages

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat
from pagemill.export.csv_tables import INDEX_COLUMNS, write_tables
from pagemill.tables.frames import inert
from pagemill.tables.html import parse_table
from pagemill.tables.table import Cell, Table


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.reader(stream))


def test_a_table_becomes_a_file_and_a_line_in_the_list(tmp_path: Path) -> None:
    write_tables(tmp_path, sample_pages())
    assert rows_of(tmp_path / "tables" / "report_2_2.csv") == [
        ["Vat", "Weight", "Weight"],
        ["Vat", "in", "out"],
        ["1", "-4.5", "'=1+1"],
    ]
    assert rows_of(tmp_path / "tables.csv") == [
        list(INDEX_COLUMNS),
        ["tables/report_2_2.csv", "report_2", "report", "2", "2", "3", "3", "2", "2", "Table 1: Weights"],
    ]


def test_what_is_no_grid_is_listed_without_a_file(tmp_path: Path) -> None:
    write_tables(tmp_path, [page("d", 1, [region(0, Label.TABLE, "rows that nobody could make out")])])
    assert rows_of(tmp_path / "tables.csv")[1][:2] == ["", "d_1"]
    assert not list((tmp_path / "tables").iterdir())


def test_a_tables_own_caption_is_listed(tmp_path: Path) -> None:
    said = "<table><caption>Sales</caption><tr><td>1</td></tr></table>"
    write_tables(tmp_path, [page("d", 1, [region(0, Label.TABLE, said, content_format=ContentFormat.HTML)])])
    assert rows_of(tmp_path / "tables.csv")[1][-1] == "Sales"


def test_the_byte_order_mark_is_on_demand(tmp_path: Path) -> None:
    for name, mark in (("with", True), ("without", False)):
        (tmp_path / name).mkdir()
        write_tables(tmp_path / name, sample_pages(), byte_order_mark=mark)
        for file in (tmp_path / name).rglob("*.csv"):
            assert file.read_bytes().startswith(b"\xef\xbb\xbf") is mark


def test_page_ids_do_not_choose_the_path(tmp_path: Path) -> None:
    hostile = page("d", 1, [region(0, Label.TABLE, TABLE, content_format=ContentFormat.HTML)])
    hostile.page_id = "../../=cmd|evil"
    write_tables(tmp_path, [hostile])
    (line,) = rows_of(tmp_path / "tables.csv")[1:]
    assert (tmp_path / line[0]).parent == tmp_path / "tables"
    assert (tmp_path / line[0]).is_file()


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "＝1+1", " =1", "-A1", "+1(2)A", "=", "@"])
def test_formulas_are_neutralised(text: str) -> None:
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-5.2", "+3 %", "-1,234", "-", "--", "-$ 5", "", "a=b", "12", "- 4.0", "-0.5‰"])
def test_numbers_and_plain_text_stay(text: str) -> None:
    assert inert(text) == text


@given(st.text(max_size=12))
def test_nothing_that_starts_a_formula_is_left(text: str) -> None:
    safe = inert(text)
    assert safe in (text, f"'{text}")
    assert safe.lstrip()[:1] not in {"=", "@", "＝", "＠"}
    if safe.lstrip()[:1] in {"+", "-"}:
        assert not any(character.isalpha() for character in safe)


@st.composite
def tilings(draw: st.DrawFn) -> Table:
    """A grid cut into cells: rows of spans, some of them two rows high."""
    columns = draw(st.integers(1, 6))
    cells: list[Cell] = []
    row = 0
    for _ in range(draw(st.integers(1, 4))):
        height = draw(st.integers(1, 3))
        cuts = sorted({0, columns, *draw(st.lists(st.integers(0, columns), max_size=4))})
        for left, right in pairwise(cuts):
            text = draw(st.text(st.characters(categories=("L", "N")), max_size=4))
            cells.append(Cell(row=row, column=left, row_span=height, column_span=right - left, text=text))
        row += height
    return Table(cells=tuple(cells), rows=row, columns=columns)


@given(tilings())
def test_every_slot_says_what_its_cell_says(table: Table) -> None:
    grid = table.grid()
    assert len(grid) == table.rows
    assert all(len(row) == table.columns for row in grid)
    for cell in table.cells:
        for row in range(cell.row, cell.row + cell.row_span):
            for column in range(cell.column, cell.column + cell.column_span):
                assert grid[row][column] == cell.text


def test_a_csv_is_read_back_as_it_was(tmp_path: Path) -> None:
    html = '<table><tr><td>a,b</td><td>say "x"</td></tr><tr><td>two<br>lines</td><td>한지</td></tr></table>'
    write_tables(tmp_path, [page("d", 1, [region(0, Label.TABLE, html, content_format=ContentFormat.HTML)])])
    table = parse_table(html)
    assert table is not None
    assert rows_of(tmp_path / "tables" / "d_1_0.csv") == [["a,b", 'say "x"'], ["two\nlines", "한지"]]
