from __future__ import annotations

import sys
from pathlib import Path

import pytest

import crops as crop_bench
from crops import crop_tables, sample_page
from glmocr_process import glmocr_process
from pagemill.errors import MissingDependencyError
from pagemill.imaging.decode import decode_image


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crop_bench, "A4_300DPI", (496, 702))


@pytest.fixture
def python_with_glmocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This interpreter, with a package that has glmocr's names and notes what it is asked."""
    package = tmp_path / "glmocr"
    (package / "utils").mkdir(parents=True)
    (package / "__init__.py").write_text("print('a package may print')")
    (package / "utils" / "__init__.py").touch()
    (package / "config.py").write_text(
        "class Part: page_loader = None\nclass Config: pipeline = Part()\ndef load_config(): return Config()"
    )
    (package / "dataloader.py").write_text(
        "class Page:\n"
        "    def __init__(self, path): self.size = len(open(path, 'rb').read())\n"
        "    def load(self): pass\n"
        "class PageLoader:\n"
        "    def __init__(self, config): pass\n"
        "    def load_pages(self, path): return [Page(path)]\n"
        "    def build_request_from_image(self, crop):\n"
        "        return {'messages': [{'content': [{'image_url': {'url': 'data:,' + 'A' * 400}}]}]}\n"
    )
    (package / "utils" / "image_utils.py").write_text("def crop_image_region(page, box): return box")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Path(sys.executable)


@pytest.mark.usefixtures("small_pages")
def test_pages_come_from_their_seed():
    assert sample_page(1, "JPEG") == sample_page(1, "JPEG")
    assert sample_page(1, "PNG") != sample_page(2, "PNG")


@pytest.mark.slow
def test_pages_have_the_sizes_of_the_reference():
    jpeg, png = sample_page(0, "JPEG"), sample_page(0, "PNG")
    assert 2.1e6 < len(jpeg) < 2.6e6
    assert 0.3e6 < len(png) < 0.5e6
    assert decode_image(jpeg).pixels.shape == decode_image(png).pixels.shape == (3508, 2480, 3)


def test_regions_cover_five_million_pixels():
    area = sum((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in crop_bench.BOXES) / 1e6 * 2480 * 3508
    assert 4.9e6 < area < 5.1e6
    assert len(crop_bench.BOXES) == 8


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


@pytest.mark.usefixtures("small_pages")
def test_glmocr_is_asked_for_the_same_pages(python_with_glmocr: Path):
    for table in crop_tables(pages=2, glmocr_python=python_with_glmocr):
        name, *_, size, ratio = table.rows[-1]
        assert name == "glmocr (75, 4:2:0)"
        assert size == 8 * 300 / 1e6
        assert ratio > 0


def test_an_interpreter_without_glmocr_says_so():
    with (
        pytest.raises(MissingDependencyError, match="No module named 'glmocr'"),
        glmocr_process(Path(sys.executable), "import glmocr.nothing") as ask,
    ):
        ask({})


def test_what_is_no_interpreter_says_so(tmp_path: Path):
    with pytest.raises(MissingDependencyError, match="cannot be started"), glmocr_process(tmp_path / "none", ""):
        pass


def test_a_question_that_fails_tells_the_last_line():
    python = Path(sys.executable)
    with (
        pytest.raises(MissingDependencyError, match="ZeroDivisionError"),
        glmocr_process(python, "def answer(x): return 1 / x") as ask,
    ):
        assert ask(2) == 0.5
        ask(0)
