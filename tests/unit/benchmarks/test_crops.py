import sys
from pathlib import Path

import pytest

import crops as crop_bench
from crops import crop_tables
from glmocr_process import glmocr_process
from pagemill.errors import MissingDependencyError


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crop_bench, "A4_300DPI", (496, 702))


@pytest.mark.slow
@pytest.mark.usefixtures("small_pages")
def test_without_glmocr_ours_are_measured():
    jpeg, png = crop_tables(pages=3)
    assert [row[0] for row in jpeg.rows] == [
        "pagemill, encoded like glmocr (75, 4:2:0)",
        "pagemill, as it saves crops (90, 4:4:4)",
        "pagemill, decoding to half size",
    ]
    assert len(png.rows) == 2
    assert jpeg.rows[0][-1] == 1.0
    assert jpeg.rows[0][4] < jpeg.rows[1][4]


def test_an_interpreter_without_glmocr_says_so():
    with (
        pytest.raises(MissingDependencyError, match="No module named 'glmocr'"),
        glmocr_process(Path(sys.executable), "import glmocr.nothing") as ask,
    ):
        ask({})


def test_a_question_that_fails_shows_the_last_line():
    python = Path(sys.executable)
    with (
        pytest.raises(MissingDependencyError, match="ZeroDivisionError"),
        glmocr_process(python, "def answer(x): return 1 / x") as ask,
    ):
        assert ask(2) == 0.5
        ask(0)
