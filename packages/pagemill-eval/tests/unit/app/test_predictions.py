import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from extraction_pages import INVOICE, page
from msgspec.structs import replace
from PIL import Image
from synthetic_run import failed_page, region, write_run
from synthetic_run import page as shown

from pagemill.app import extract as extracting
from pagemill.app.extract import ExtractOptions, extract
from pagemill.app.options import DirectoryOptions, ImageSources, ParseOptions
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat
from pagemill.errors import UsageError
from pagemill_bench.testing.stub_server import StubServer, StubSettings
from pagemill_eval import benchmarks
from pagemill_eval.app import predictions as module
from pagemill_eval.app.predictions import predict, prediction_of
from pagemill_eval.benchmark import Input, Kind, Sample

PAGE = page(1, "Some words")
TABLE = replace(PAGE.regions[0], content="<table><tr><td>1</td></tr></table>", content_format=ContentFormat.HTML)
FORMULA = replace(PAGE.regions[0], content="x^2", label=Label.DISPLAY_FORMULA, content_format=ContentFormat.LATEX)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Kind.MARKDOWN, "# Markdown"),
        (Kind.HTML, TABLE.content),
        (Kind.LATEX, "x^2"),
        (Kind.TEXT, f"Some words\n{TABLE.content}\nx^2"),
    ],
)
def test_a_page_as_a_prediction(kind, expected):
    result = replace(PAGE, regions=[PAGE.regions[0], TABLE, FORMULA], markdown="# Markdown")
    assert prediction_of(kind, result) == expected


def test_a_formula_that_was_read_as_text():
    assert prediction_of(Kind.LATEX, PAGE) == "Some words"
    assert prediction_of(Kind.HTML, PAGE) == ""


def test_inputs_are_staged_once_and_bad_ones_fail(tmp_path: Path):
    image = tmp_path / "a.png"
    Image.fromarray(np.full((5, 5, 3), 9, np.uint8)).save(image)
    broken = tmp_path / "gone.png"
    samples = [
        Sample(id=name, truth="", input=Input(path=path, page=number), prediction_names=(name,))
        for name, path, number in (("one", image, None), ("two", broken, None), ("three", image, 2))
    ]
    failures: dict[str, str] = {}
    for _ in range(2):  # the second time everything is there
        places = module._stage(samples, tmp_path / "inputs", failures, lambda *_: None)
    assert failures == {"two": f"{broken} does not exist"}
    assert (places["one"].document, places["three"].document, places["three"].page) == ("0000000", "0000000", 2)
    assert [path.name for path in (tmp_path / "inputs").iterdir()] == ["0000000.png"]


def test_samples_without_images(tmp_path: Path):
    sample = Sample(id="one", truth="", prediction_names=("one.html",))
    with pytest.raises(UsageError, match="1 of 1 samples have no image"):
        predict(benchmarks.create("pubtabnet"), [sample], tmp_path, ParseOptions(), DirectoryOptions(), quiet=True)


def test_a_crop_is_one_region():
    services = module._CropServices(
        ParseOptions().settings, ParseOptions().runtime, ParseOptions().layout, label=Label.TABLE
    )
    (region,) = asyncio.run(services.detect_regions(np.zeros((30, 40, 3), np.uint8)))
    assert (region.box, region.label) == ((0, 0, 40, 30), Label.TABLE)


def test_fields(tmp_path: Path, monkeypatch):
    """Three documents, one of which failed: the extraction of the app, with a stub for the model."""
    bill = shown("bill", 1, [region(0, Label.TEXT, "Invoice INV-7 Total 12.50 Due 5 May")])
    other = shown("other", 1, [region(0, Label.TEXT, "Invoice INV-8")])
    write_run(tmp_path / "run", [bill, other, failed_page("broken", 1)])
    good = {"number": "INV-7", "total": 12.5, "due": "5 May"}
    samples = [
        Sample(id=name, truth={}, prediction_names=(f"{name}.json",), schema=INVOICE) for name in ("bill", "broken")
    ]
    places = {name: module._Place(name, 1) for name in ("bill", "broken")}

    async def answer(out, schema, *_):
        async with StubServer(StubSettings(text=json.dumps(good), by_prompt={})) as server:
            settings = RecognitionSettings(model="generic", servers=(server.url,))
            await extract(out, schema, settings, ExtractOptions(images=False), ImageSources())

    monkeypatch.setattr(extracting, "extract", answer)
    failures: dict[str, str] = {}
    recognition = RecognitionSettings(model="generic", servers=("http://127.0.0.1:9",))
    options = ParseOptions(settings=ParseSettings(recognition=recognition))
    found = list(module._fields(tmp_path / "run", samples, places, options, failures, lambda *_: None))
    assert [(sample.id, json.loads(text)) for sample, text in found] == [("bill", good)]
    assert failures == {"broken": "took too long"}
