"""The second pass over a document of 12 pages: beside the first one, with bad answers, killed midway and resumed."""

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest
from aiohttp.web import BaseRequest, StreamResponse
from pagemill_process import kill_when_written, run
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from run_contents import records
from stub_process import StubProcess

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.parse import parse_into
from pagemill.app.reporting import RunOutcome
from pagemill.config.describing import DescribeSettings
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.errors import ExitCode
from pagemill.export.docjson import pages_from_docjson
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.store.paths import DESCRIPTIONS
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]
PAGES = 12
SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "docjson.schema.json"
GROUNDED = (
    "<|ref|>text<|/ref|><|det|>[[100, 100, 900, 300]]<|/det|>\nProse about mills.\n\n"
    "<|ref|>image<|/ref|><|det|>[[120, 380, 880, 640]]<|/det|>\n\n"
    "<|ref|>image_caption<|/ref|><|det|>[[120, 650, 880, 680]]<|/det|>\nFigure. A picture.\n\n"
)


def said(summary: str) -> str:
    answer = {"language": "en", "summary": summary, "keywords": ["mill"], "data": [["Year", "t"], ["1788", "4"]]}
    return json.dumps(answer)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PDF with a picture of its own, a caption and prose on each page."""
    path = tmp_path_factory.mktemp("input") / "mills.pdf"
    canvas = Canvas(str(path), pagesize=(595, 842), invariant=1)
    for number in range(1, PAGES + 1):
        canvas.setFont("Helvetica", 11)
        for line in range(12):
            canvas.drawString(
                72, 770 - 15 * line, "The vat and the press stand in one room, where the sheets are made."
            )
        colours = np.random.default_rng(number).integers(0, 255, (9, 14, 3), dtype=np.uint8)
        picture = Image.fromarray(colours).resize((560, 360), Image.Resampling.BICUBIC)
        canvas.drawImage(ImageReader(picture), 110, 300, 375, 240)
        canvas.drawString(110, 280, f"Figure {number}. The wheel of the mill.")
        for line in range(8):
            canvas.drawString(72, 240 - 15 * line, "Rags are sorted by hand, and washed before they are beaten again.")
        canvas.showPage()
    canvas.save()
    return path


async def parse(document: Path, out: Path, describer: StubServer, reader: StubServer | None = None) -> RunOutcome:
    """Parse in this process, so that the servers can be watched."""
    settings = ParseSettings(describing=DescribeSettings(kinds=("figures",), servers=(describer.url,)))
    if reader is not None:
        recognition = RecognitionSettings(engine="vlm", model="deepseek-ocr", servers=(reader.url,))
        settings = ParseSettings(describing=settings.describing, recognition=recognition)
    directory = DirectoryOptions(report=False)
    return await parse_into(out, [document], ParseOptions(), directory, pipeline=Pipeline(Services(settings)))


class HeldServer(StubServer):
    """Answers a completion, which it is given the number of, when something has come about."""

    def __init__(self, settings: StubSettings, come_about: Callable[[int], bool]) -> None:
        super().__init__(settings)
        self._come_about = come_about

    async def _answer(self, request: BaseRequest, number: int) -> StreamResponse:
        async with asyncio.timeout(300):
            while not self._come_about(number):  # noqa: ASYNC110 - it follows from counts
                await asyncio.sleep(0.01)
        return await super()._answer(request, number)


async def test_elements_are_described_while_pages_are_read(document: Path, tmp_path: Path) -> None:
    """The last page is read only when another one is being described; before, all pages are in flight together.

    At the end all elements are in flight together.
    """
    together: list[tuple[int, int]] = []
    arrived: list[int] = []

    def read(number: int) -> bool:
        arrived.append(number)
        is_described = describer.in_flight > 0
        return max(arrived) == PAGES and (number < PAGES or is_described)

    def described(_: int) -> bool:
        together.append((reader.in_flight, describer.in_flight))
        return describer.counts["requests"] == PAGES

    async with (
        HeldServer(StubSettings(model="deepseek-ocr", text=GROUNDED), read) as reader,
        HeldServer(StubSettings(text=said("A wheel.")), described) as describer,
    ):
        outcome = await parse(document, tmp_path / "out", describer, reader)
    assert outcome.exit_code is ExitCode.OK
    assert outcome.described is not None
    assert (outcome.described.described, describer.counts["requests"]) == (PAGES, PAGES)
    both, most = max(together, key=min), (reader.counts["max_in_flight"], describer.counts["max_in_flight"])
    print(f"read and described at once: {both}; most at once: {most}")
    assert min(both) > 0
    assert most == (PAGES, PAGES)
    data = (tmp_path / "out" / "documents" / "mills.json").read_bytes()
    jsonschema.validate(msgspec.json.decode(data), msgspec.json.decode(SCHEMA.read_bytes()))
    pages = pages_from_docjson(data)
    assert [page.page_number for page in pages] == list(range(1, PAGES + 1))
    for page in pages:
        (description,) = [region.description for region in page.regions if region.description]
        assert (description.summary, description.chart) == ("A wheel.", (("Year", "t"), ("1788", "4")))


async def test_bad_answers_are_marked_and_nothing_is_shifted(document: Path, tmp_path: Path) -> None:
    settings = StubSettings(
        by_prompt={f"Figure {n}.": said(f"Wheel {n}.") for n in range(1, PAGES + 1)}
        | {"Figure 11.": "It shows a wheel."},
        fault_by_prompt={"Figure 3.": Fault.LOOP, "Figure 7.": Fault.TRUNCATED},
    )  # fmt: skip
    async with StubServer(settings) as describer:
        outcome = await parse(document, tmp_path / "out", describer)
    assert outcome.exit_code is ExitCode.PAGES_FAILED
    bad = {3: "repetition", 7: "truncated", 11: "invalid_json"}
    for page in records(tmp_path / "out"):
        number = page["page_number"]
        found = [region["description"]["summary"] for region in page["regions"] if region["description"]]
        problems = [(error["component"], error["category"]) for error in page["errors"]]
        assert found == ([] if number in bad else [f"Wheel {number}."])
        assert problems == ([("describe", bad[number])] if number in bad else [])
    markdown = (tmp_path / "out" / "documents" / "mills.md").read_text()
    assert markdown.count("![Figure") == PAGES
    assert [n for n in range(1, PAGES + 1) if f"![Figure {n}: Wheel {n}.](" not in markdown] == list(bad)


def test_a_killed_run_asks_nothing_twice(document: Path, tmp_path: Path) -> None:
    out, environment = tmp_path / "out", {**os.environ, "OMP_NUM_THREADS": "1"}
    arguments = ["parse", document, "-o", out, "--no-report", "--describe", "figures"]
    with StubProcess("--text", said("A wheel."), "--latency-ms", "300") as stub:
        kill_when_written(3, out, [*arguments, "--describe-server", stub.url], environment, tmp_path / "first.log")
    kept = answers(out)
    assert 3 <= kept < PAGES, "it was killed midway"
    with StubProcess("--text", said("A wheel.")) as stub:
        log = tmp_path / "second.log"
        assert run([*arguments, "--describe-server", stub.url], environment, log) == ExitCode.OK, log.read_text()
    print(f"killed with {kept} of {PAGES} elements described; asked after that: {stub.counts()['requests']}")
    assert stub.counts()["requests"] == PAGES - kept
    assert answers(out) == PAGES
    described = [region["description"] for page in records(out) for region in page["regions"] if region["description"]]
    assert len(described) == PAGES


def answers(out: Path) -> int:
    """Answers that are kept in a run directory."""
    connection = sqlite3.connect(out / DESCRIPTIONS)
    (count,) = connection.execute("SELECT count(*) FROM answers").fetchone()
    connection.close()
    return int(count)
