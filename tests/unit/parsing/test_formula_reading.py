"""Formulas of pictures: what of an engine's answer gets into the record, and what is said where nothing does."""

from pathlib import Path

import numpy as np
import pytest

from pagemill.config.settings import ParseSettings
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Status, TextLine
from pagemill.errors import CorruptInputError, EngineError
from pagemill.imaging.page import DecodedPage
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.formula_reading import sound
from pagemill.parsing.page import parse_page
from pagemill.recognition.base import RecognizedFormula
from pagemill.recognition.reader import ReadPage
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef

BOXES = [(40.0, 40.0, 260.0, 80.0), (40.0, 140.0, 260.0, 200.0)]
REF = PageRef(
    document=DocumentRef(doc_id="a", uri="a.png"),
    key=PageKey("0" * 64, 1),
    position=0,
    page_number=1,
    page_id="a_1",
    payload=EncodedImage(source=Path("a.png")),
    metadata={},
)
GOOD = r"\frac{a}{b} = c"


class Services:
    """A scanned page with two formulas, and an engine that gives the answers, if it has any."""

    def __init__(self, answers, engine="reader"):
        self.answers, self.engine, self.crops = answers, engine, []

    async def decode(self, payload):
        return DecodedPage(pixels=np.full((400, 300, 3), 255, dtype=np.uint8))

    async def read(self, pixels, languages, *, bends=False):
        lines = [TextLine(text=f"a{i} = c", box=box, confidence=0.9, engine="e") for i, box in enumerate(BOXES)]
        return ReadPage(lines=lines)

    async def detect_regions(self, pixels):
        return [DetectedRegion(box=box, label=Label.DISPLAY_FORMULA, score=0.9, source="test") for box in BOXES]

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)

    async def formula_engine(self):
        if isinstance(self.engine, Exception):
            raise self.engine
        return self.engine

    async def read_formulas(self, crops):
        self.crops = crops
        if isinstance(self.answers, Exception):
            raise self.answers
        return [RecognizedFormula(latex=each) if isinstance(each, str) else each for each in self.answers]


async def parsed(services):
    page = await parse_page(REF, services, ParseSettings(crops=False))
    assert page.record.status is Status.DONE
    return page.record


def told(record):
    return [(error.category, error.region) for error in record.errors]


async def test_without_an_engine_formulas_keep_their_signs_and_a_warning():
    services = Services([], engine=None)
    record = await parsed(services)
    assert [region.content_format for region in record.regions] == [ContentFormat.FORMULA_TEXT] * 2
    assert told(record) == [("low_confidence", 0), ("low_confidence", 1)]
    assert services.crops == []
    assert "models download cpu-best" in (record.errors[0].remedy or "")


async def test_what_an_engine_reads_is_the_formula():
    services = Services([GOOD, RecognizedFormula(latex=f"$$ {GOOD} $$", confidence=0.75)])
    record = await parsed(services)
    first, second = record.regions
    assert (first.content, first.content_format, first.engine, first.confidence) == (GOOD, "latex", "reader", None)
    assert (second.content, second.confidence) == (GOOD, None)  # what it says of itself is not calibrated
    assert record.markdown.count(f"$$\n{GOOD}\n$$") == 2
    assert [(crop.shape, crop.dtype) for crop in services.crops] == [((40, 220, 3), np.uint8), ((60, 220, 3), np.uint8)]
    assert not record.errors
    assert "formulas" in record.timings


@pytest.mark.parametrize("bad", ["", r"\frac{a}", r"\input{x}", "x + " * 200 + "x", "x" * 20_001])
async def test_what_is_no_good_leaves_the_signs_and_the_warning(bad):
    record = await parsed(Services([bad, GOOD]))
    first, second = record.regions
    assert (first.content, first.content_format, first.engine) == ("a0 = c", "formula_text", "e")
    assert second.content == GOOD
    assert told(record) == [("low_confidence", 0)]


async def test_a_formula_that_fails_says_why_and_leaves_the_others():
    record = await parsed(Services([EngineError("odd"), GOOD]))
    assert told(record) == [("engine", None), ("low_confidence", 0)]
    assert (record.regions[0].content, record.regions[1].content) == ("a0 = c", GOOD)


@pytest.mark.parametrize("where", ["offer", "model"])
async def test_an_engine_that_cannot_be_loaded_is_told_once(where):
    error = CorruptInputError("formulas.onnx is not a model", remedy="Remove it.")
    record = await parsed(Services([], engine=error) if where == "offer" else Services(error))
    assert told(record) == [("corrupt", None), ("low_confidence", 0), ("low_confidence", 1)]
    assert record.errors[0].message == error.message


@pytest.mark.parametrize(
    "latex",
    [
        r"\left\{ \begin{array} { l l } { x , } & { x > 0 } \\ { - x , } & { \mathrm { e l s e } } \end{array} \right.",
        r"\operatorname* { l i m } _ { n \rightarrow \infty } \displaystyle \sum _ { i = 1 } ^ { n } \hspace { 1em }",
        r"\underset { x \in \mathbb { R } } { \operatorname { m a x } } \; \bigl( \boldsymbol { x } \bigr)",
        r"\sum _ { \substack { i < j \\ j \le n } } \stackrel { d } { = } \lVert y \rVert",
    ],
)
def test_latex_as_models_write_it_is_sound(latex):
    assert sound(latex) == latex


@pytest.mark.parametrize(
    "latex", [r"\begin{array} a \end{array}", r"\bigl x", r"\hspace{x}", r"\hspace{1em", r"\href{a}"]
)
def test_what_renders_nowhere_is_not(latex):
    assert sound(latex) is None
