"""Engines of another package, found through its entry points alone, as docs/engines.md tells."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from forked_command import run_forked
from installed_package import install_package
from PIL import Image, ImageDraw, ImageFont

pytestmark = [pytest.mark.slow, pytest.mark.integration]

ENGINES = """
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import FormulaOffer, Problem, RecognizedFormula, RecognizedText, RecognizerOffer
from pagemill.recognition.base import RegionReader, RegionReading

def half(page, index, label):
    height, width = page.shape[:2]
    box = (0, index * height / 2, width, (index + 1) * height / 2)
    return DetectedRegion(box=box, label=label, score=0.9, source="halves")

class Halves:
    name = "halves"
    max_batch = 2

    def __init__(self, lower):
        self.lower = lower

    def detect(self, pages):
        return [[half(page, 0, Label.DOC_TITLE), half(page, 1, self.lower)] for page in pages]

    def close(self):
        pass

class Parrot:
    name = "parrot"
    languages = frozenset({"vi"})
    max_batch = 16

    def recognize(self, lines):
        return [RecognizedText(text="xin chào", confidence=0.9) for _ in lines]

    def close(self):
        pass

class Echo(RegionReader):
    name = "echo"
    in_flight = 4

    async def check(self):
        pass

    def prepare(self, crop, task):
        return crop.shape, task

    async def read(self, prepared):
        (height, width, _), task = prepared
        if height > 250 and width == 900 and task == "text" and not hasattr(self, "refused"):
            self.refused = True
            problem = Problem("refused", "the first is refused")
            return RegionReading(content=None, content_format=ContentFormat.TEXT, engine=self.name, problem=problem)
        said = f"{task} {width}x{height}"
        return RegionReading(content=said, content_format=ContentFormat.MARKDOWN, engine=self.name)

    async def aclose(self):
        pass

class Scholar:
    max_batch = 4

    def recognize(self, crops):
        assert all(crop.ndim == 3 and crop.dtype == "uint8" for crop in crops)
        return [RecognizedFormula(latex=r"\\eta = \\frac{P}{\\rho g Q H}", confidence=0.9) for _ in crops]

    def close(self):
        pass

def formula_offers():
    return [FormulaOffer(name="scholar", create=Scholar)]

def create_reader(settings):
    return Echo()

def create(settings):
    return Halves(Label.ABSTRACT)

def create_formulas(settings):
    return Halves(Label.DISPLAY_FORMULA)

def offers():
    return [RecognizerOffer(name="parrot", languages=Parrot.languages, create=Parrot)]
"""
ENTRY_POINTS = """[pagemill.layout_engines]
halves = third_party_engines:create
formulas = third_party_engines:create_formulas
[pagemill.text_engines]
parrot = third_party_engines:offers
[pagemill.formula_engines]
scholar = third_party_engines:formula_offers
[pagemill.region_engines]
echo = third_party_engines:create_reader
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with an installed package, as pip leaves it."""
    return install_package(tmp_path / "packages", "third-party-engines", ENTRY_POINTS, third_party_engines=ENGINES)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    image = Image.new("RGB", (900, 600), "white")
    draw = ImageDraw.Draw(image)
    draw.text((80, 120), "The upper half", fill="black", font=ImageFont.load_default(40))
    draw.text((80, 420), "The lower half", fill="black", font=ImageFont.load_default(40))
    image.save(tmp_path / "page.png")
    return tmp_path / "page.png"


def parse(packages: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
    return run_forked("parse", *arguments, env={**os.environ, "PYTHONPATH": path})


def test_the_layout_engine_of_another_package(packages, page, tmp_path):
    run = parse(packages, page, "--layout-engine", "halves", "-o", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    record = json.loads((tmp_path / "out" / "ocr_results.jsonl").read_text(encoding="utf-8"))
    assert [(r["label"], r["source"], r["content"]) for r in record["regions"]] == [
        ("doc_title", "halves", "The upper half"),
        ("abstract", "halves", "The lower half"),
    ]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["settings"]["layout_engine"] == "halves"


def test_the_text_engine_of_another_package_reads_its_languages(packages, page, tmp_path):
    run = parse(packages, page, "--lang", "vi", "-o", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    record = json.loads((tmp_path / "out" / "ocr_results.jsonl").read_text(encoding="utf-8"))
    assert [region["content"] for region in record["regions"]] == ["xin chào", "xin chào"]


def test_the_region_engine_of_another_package(packages, page, tmp_path):
    arguments = ["--layout-engine", "halves", "--recognition-engine", "echo", "-o", tmp_path / "out"]
    run = parse(packages, page, *arguments)
    assert run.returncode == 3, run.stderr
    record = json.loads((tmp_path / "out" / "ocr_results.jsonl").read_text(encoding="utf-8"))
    assert [(r["content"], r["engine"]) for r in record["regions"]] == [(None, "echo"), ("text 900x300", "echo")]
    assert [(e["category"], e["region"]) for e in record["errors"]] == [("refused", 0)]
    assert "the first is refused" in run.stdout


def test_the_formula_engine_of_another_package(packages, page, tmp_path):
    """Without an engine this page gives the signs of its formula on their lines, with a warning."""
    with Image.open(page) as image:
        image.load()
    image.paste("white", (0, 300, 900, 600))
    ImageDraw.Draw(image).text((80, 420), "a + b = 2c - d", fill="black", font=ImageFont.load_default(40))
    image.save(page)
    run = parse(packages, page, "--layout-engine", "formulas", "-o", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    record = json.loads((tmp_path / "out" / "ocr_results.jsonl").read_text(encoding="utf-8"))
    (formula,) = [region for region in record["regions"] if region["label"] == "display_formula"]
    assert (formula["content_format"], formula["engine"], formula["confidence"]) == ("latex", "scholar", None)
    assert "$$\n\\eta = \\frac{P}{\\rho g Q H}\n$$" in record["markdown"]
    assert not record["errors"]
    assert any(crop["region"] == formula["index"] for crop in record["image_crops"])


def test_an_unknown_engine_is_reported_before_the_output_is_touched(packages, page, tmp_path):
    run = parse(packages, page, "--layout-engine", "absent", "-o", tmp_path / "out")
    assert run.returncode == 2
    assert "there is no layout engine 'absent'" in run.stderr
    assert "Installed: formulas, halves, onnx, pp-doclayout-v3" in run.stderr
    assert not (tmp_path / "out").exists()
