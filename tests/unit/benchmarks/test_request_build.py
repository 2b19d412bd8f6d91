from __future__ import annotations

import sys
from pathlib import Path

import pytest

import crops as crop_bench
from request_build import CROP, request_tables

_GLMOCR = """
class PageLoader:
    def __init__(self, config): pass
    def build_request_from_image(self, image):
        return {"messages": [{"content": [{"size": image.size}]}]}
"""


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crop_bench, "A4_300DPI", (1000, 900))


@pytest.fixture
def python_with_glmocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This interpreter, with a package that has glmocr's names."""
    package = tmp_path / "glmocr"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "config.py").write_text(
        "class Part: page_loader = None\nclass Config: pipeline = Part()\ndef load_config(): return Config()"
    )
    (package / "dataloader.py").write_text(_GLMOCR)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Path(sys.executable)


def test_both_build_requests_of_the_same_crops(python_with_glmocr: Path):
    tables = request_tables(crops=2, glmocr_python=python_with_glmocr)
    assert len(tables) == 2
    for table in tables:
        names = [row[0] for row in table.rows]
        assert names == [
            "pagemill (75, 4:2:0)",
            "pagemill (90, 4:2:0)",
            "glmocr (75, 4:2:0)",
            "glmocr, with json.dumps",
        ]
        kilobytes = [row[4] for row in table.rows]
        assert kilobytes[0] < kilobytes[1]
        assert kilobytes[2] == len(f'{{"messages": [{{"content": [{{"size": [{CROP[0]}, {CROP[1]}]}}]}}]}}') / 1000
        assert table.rows[0][-1] == 1.0


def test_without_glmocr_ours_are_measured():
    assert [len(table.rows) for table in request_tables(crops=1)] == [2, 2]
