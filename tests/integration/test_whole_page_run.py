"""Whole runs whose pages a model reads as a whole: what comes out, killed and resumed, cut off, without places."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from coded_pages import Corpus, mixed_corpus
from PIL import Image
from run_contents import records
from stub_process import StubProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]
PAGES = 24
MODEL = ("--recognition-engine", "vlm", "--model", "deepseek-ocr")
STUB = ("--model", "deepseek-ocr")


def ref(label: str, box: list[int], content: str = "") -> str:
    return f"<|ref|>{label}<|/ref|><|det|>[{box}]<|/det|>\n{content}\n\n"


GROUNDED = (
    ref("title", [100, 50, 900, 90], "# Page {image}")
    + ref("text", [100, 100, 900, 300], "Where \\(x^2\\) <img src=x> is **bold**.")
    + ref("image", [100, 320, 480, 600])
    + ref("image_caption", [100, 610, 480, 640], "<center>Figure 1</center>")
    + ref("table", [520, 320, 900, 600])
    + ref("table_caption", [520, 300, 900, 318], "Table 1\n<table><tr><td>1</td><td>2</td></tr></table>")
    + ref("equation", [100, 700, 900, 750], "\\[ a = \\frac{b}{c} \\]")
    + ref("footer", [100, 950, 900, 980], "7")
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return mixed_corpus(tmp_path_factory.mktemp("inputs"), PAGES)


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProcess]:
    with StubProcess(*STUB, "--text", GROUNDED, "--latency-ms", "100") as server:
        yield server


@pytest.fixture(scope="module")
def options(stub: StubProcess) -> tuple[str, ...]:
    return "--quiet", *MODEL, "--server", stub.url


def test_every_page_is_one_request_and_shows_its_regions(undisturbed: Path, stub: StubProcess):
    found = records(undisturbed)
    assert [record["page_idx"] for record in found] == list(range(PAGES))
    assert stub.counts()["requests"] == PAGES
    assert len({record["regions"][0]["content"] for record in found}) > 1  # each got the answer to its own image
    for record in found:
        assert (record["status"], record["errors"], record["text_source"]) == ("done", [], "ocr")
        assert "layout" not in record["timings"]
        assert [region["label"] for region in record["regions"]] == [
            "doc_title", "text", "image", "figure_title", "table", "figure_title", "display_formula", "footer",
        ]  # fmt: skip
        title, text, image, caption, table, *_ = record["regions"]
        assert (title["engine"], title["level"], title["bbox_2d"]) == ("vlm:deepseek-ocr", 1, [100, 50, 901, 90])
        assert title["bbox"] == pytest.approx(
            [
                100 / 999 * record["width"],
                50 / 999 * record["height"],
                900 / 999 * record["width"],
                90 / 999 * record["height"],
            ]
        )
        assert (image["content"], caption["caption_of"]) == (None, 2)
        assert table["content"] == "<table><tr><td>1</td><td>2</td></tr></table>"
        assert "$x^2$" in text["content"]
        assert "<img" not in record["markdown"]
        assert "$$\na = \\frac{b}{c}\n$$" in record["markdown"]
        picture, _ = record["image_crops"]
        cut = np.asarray(Image.open(io.BytesIO((undisturbed / picture["path"]).read_bytes())))
        assert cut.shape[:2] == pytest.approx((281 / 999 * record["height"], 381 / 999 * record["width"]), abs=3)
    described = json.loads((undisturbed / "run.json").read_text())
    assert described["identity"]["reading"] == "pages"
    assert "Figure 1" in (undisturbed / "report.html").read_text()
