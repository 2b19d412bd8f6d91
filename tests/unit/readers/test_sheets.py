"""Sheets show what Excel does."""

import zipfile
from pathlib import Path

import pytest
from test_formats import read, texts

from pagemill.document.labels import Label
from pagemill.readers import base


def test_cells_with_a_stored_value_show_no_formula(tmp_path: Path):
    from openpyxl import Workbook

    book = Workbook()
    for row in (("Item", "Twice"), ("Pen", "=1+1"), ("Ink", "=3*3"), ("text (=A1)", 4)):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        for name, data in members.items():
            stored = (
                data.replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
                .replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
                .replace(b"<f>1+1</f><v/>", b"<f>1+1</f><v>2</v>")
            )
            archive.writestr(name, stored)
    (table,) = texts(read(tmp_path / "a.xlsx", "hangul:read"), Label.TABLE)
    assert "<td>Pen</td><td>2</td>" in (table or "")
    assert "<td>Ink</td><td>=3*3</td>" in (table or "")
    assert "<td>text (=A1)</td><td>4</td>" in (table or "")


def test_old_sheets_show_no_formula_behind_a_value():
    xls = pytest.importorskip("dochan.office_binary.xls")
    from pagemill.readers.hangul import _show_values

    _show_values()
    _show_values()
    assert (xls._with_formula_text("2", "1+1"), xls._with_formula_text("", "1+1")) == ("2", "=1+1")


def test_a_stray_cell_far_away_costs_no_sheet(tmp_path: Path):
    from openpyxl import Workbook
    from openpyxl.comments import Comment

    book = Workbook()
    sheet = book.active
    sheet.append(["Item", "Price"])
    sheet.append(["Pen", 2])
    sheet.cell(1_048_576, 16_384).value = "far"
    sheet.cell(1_048_576, 16_384).comment = Comment("Why?", "Lee")
    sheet["A3"] = "Merged"
    sheet.merge_cells("A3:B3")
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx", "hangul:read")
    (table,) = texts(found, Label.TABLE)
    assert '<td colspan="2">Merged</td>' in (table or "") and "<td>far</td>" in (table or "")
    assert "Why?" in " ".join(text or "" for text in texts(found, Label.ASIDE_TEXT))
    assert (found.parts[0].warnings, found.parts[0].notes) == (
        [],
        ["wide gaps between cells left out in 1 sheet"],
    )


def test_names_that_excel_gives_are_no_text(tmp_path: Path):
    from openpyxl import Workbook
    from openpyxl.workbook.defined_name import DefinedName

    book = Workbook()
    book.active.append(["k", "v"])
    book.active.auto_filter.ref = "A1:B1"
    book.active.print_title_rows = "1:1"
    book.defined_names["rate"] = DefinedName("rate", attr_text="Sheet!$A$1")
    book.save(tmp_path / "a.xlsx")
    (name,) = texts(read(tmp_path / "a.xlsx", "hangul:read"))
    assert (name or "").startswith("Defined name: rate")


def test_characters_that_excel_escapes_are_shown(tmp_path: Path):
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["a_x000D_", "b_x005F_x000D_", "c_x0041_"])
    book.save(tmp_path / "a.xlsx")
    (table,) = texts(read(tmp_path / "a.xlsx", "hangul:read"), Label.TABLE)
    assert table == "<table><thead><tr><th>a</th><th>b_x000D_</th><th>c_x0041_</th></tr></thead></table>"


def test_hidden_rows_of_a_sheet_in_parts_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from openpyxl import Workbook

    monkeypatch.setattr(base, "TABLE_CELLS", 3)
    book = Workbook()
    for number in range(5):
        book.active.append([number])
    book.active.row_dimensions[2].hidden = True
    book.save(tmp_path / "a.xlsx")
    notes = [part.notes for part in read(tmp_path / "a.xlsx", "hangul:read").parts]
    assert notes == [["hidden in the sheet: 1 row"], []]
