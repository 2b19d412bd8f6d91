import sys
from pathlib import Path

import pytest

from pagemill.errors import MissingDependencyError
from pagemill.tables.html import parse_table
from pagemill.tables.table import Table

MARKUP = (
    "<table><thead><tr><th rowspan=2>mill</th><th colspan=2>paper</th></tr><tr><th>kg</th><th>kg</th></tr></thead>"
    "<tbody><tr><td>old</td><td>1,5</td><td>=2+2</td></tr></tbody></table>"
)


@pytest.fixture
def table() -> Table:
    table = parse_table(MARKUP)
    assert table is not None
    return table


def test_csv_is_written_with_formulas_made_inert(table: Table, tmp_path: Path):
    text = 'mill,paper,paper\r\nmill,kg,kg\r\nold,"1,5",\'=2+2\r\n'
    assert table.to_csv(tmp_path / "t.csv") == text
    assert (tmp_path / "t.csv").read_bytes().decode() == text


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_have_a_name_for_each_column(table: Table, package: str):
    pytest.importorskip(package)
    frame = table.to_pandas() if package == "pandas" else table.to_polars()
    assert list(frame.columns) == ["mill", "paper / kg", "paper / kg_2"]
    assert [list(frame[name]) for name in frame.columns] == [["old"], ["1,5"], ["=2+2"]]


def test_a_table_without_header_numbers_its_columns():
    pytest.importorskip("pandas")
    table = parse_table("<table><tr><td>a</td><td></td></tr></table>")
    assert table is not None
    assert list(table.to_pandas().columns) == ["column_1", "column_2"]


def test_a_missing_package_is_named_with_its_command(table: Table, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError) as caught:
        table.to_pandas()
    assert "install pandas" in (caught.value.remedy or "")


def test_a_table_says_its_size_in_one_line(table: Table):
    assert repr(table) == "Table(3 rows, 3 columns)"
    assert table._repr_html_() == table.to_html()
    assert table._repr_markdown_() == table.to_html()  # spans
