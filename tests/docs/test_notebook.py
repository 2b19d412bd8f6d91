"""The notebook of the examples runs, cell by cell, and is kept without its outputs."""

import ast
import json
import shutil

import pytest
from markdown_pages import ROOT

NOTEBOOK = json.loads((ROOT / "examples/notebook.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_it_holds_no_outputs():
    assert CODE
    assert [cell for cell in CODE if cell["outputs"] or cell["execution_count"] is not None] == []


@pytest.mark.integration
@pytest.mark.slow
def test_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "samples", tmp_path / "samples", ignore=shutil.ignore_patterns("makers", "corpus.*", "*.py"))
    names: dict[str, object] = {}
    shown = []
    for number, cell in enumerate(CODE):
        *first, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(first, []), f"cell {number}", "exec"), names)
        assert isinstance(last, ast.Expr)  # what the cell shows
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert "From Rag to Ream" in shown[0]
    assert "<table" in shown[1]
    assert all(shown)
