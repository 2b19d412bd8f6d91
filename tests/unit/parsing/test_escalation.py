"""A second reading: which regions are sent, whose reading stays, and what happens when no server answers."""

import msgspec
import numpy as np
import pytest
from tests.unit.parsing.test_page import REF, Services
from tests.unit.parsing.test_quality import line, page, region

from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.document.labels import Label, Task
from pagemill.document.page import ContentFormat, PageError, Status, TextLine
from pagemill.errors import LanguageError, NetworkError
from pagemill.imaging.page import DecodedPage
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.escalation import is_better, to_ask
from pagemill.parsing.page import parse_page
from pagemill.recognition.base import Problem, RegionReader, RegionReading
from pagemill.recognition.reader import ReadPage

SURE = "The wheel turns day and night."
DOUBTFUL = "Tne mil1 st4nds by tne r1ver."
TRUTH = "The mill stands by the river."


def reading(content: str | None, **told) -> RegionReading:
    return RegionReading(content=content, content_format=ContentFormat.MARKDOWN, engine="vlm:m", **told)


def test_regions_are_sent_in_which_errors_are_to_be_expected_or_that_were_not_read():
    record = page(
        region(0, line(SURE, 0.99)),
        region(1, line(DOUBTFUL, 0.7)),
        region(2, label=Label.TABLE),
        region(3, line(DOUBTFUL, 0.7), label=Label.IMAGE),
        region(4, line(DOUBTFUL, 0.7), label=Label.HEADER),
        region(5, content="a = b", content_format=ContentFormat.LATEX, label=Label.DISPLAY_FORMULA),
        region(6, line(SURE, 0.99)),
        errors=[PageError(component="recognition", category="low_confidence", message="doubtful", region=6)],
    )
    assert to_ask(record, 1.0) == {1: Task.TEXT, 2: Task.TABLE, 6: Task.TEXT}
    assert list(to_ask(record, 9.0)) == [2, 6]
    assert list(to_ask(record, 0.0)) == [0, 1, 2, 6]


def test_a_warning_about_the_page_sends_all_that_is_read_of_it():
    error = PageError(component="recognition", category="poorly_read", message="not reliable")
    record = page(region(0, line(SURE, 0.99)), region(1, line("i", 0.1), label=Label.IMAGE), errors=[error])
    assert list(to_ask(record, 1.0)) == [0]
    record.errors = [msgspec.structs.replace(error, component="crops")]
    assert not to_ask(record, 1.0)


@pytest.mark.parametrize(
    ("answer", "better"),
    [
        (reading(TRUTH), True),
        (reading("**The** mill stands\nby the river."), True),
        (reading(None), False),
        (reading(""), False),
        (reading(TRUTH, problem=Problem("repetition", "it repeats itself")), False),
        (reading(TRUTH * 3), False),  # invented
        (reading("The mill"), False),  # cut
        (reading("방앗간은 강가에 서 있고 물레는 밤낮으로 돈다"), False),
        (reading("A cat sleeps under an old table."), False),
    ],
)
def test_an_answer_must_be_sound_and_about_as_long_and_like_the_first_reading(answer, better):
    assert is_better(region(0, line(DOUBTFUL, 0.7)), answer) is better


def test_where_the_script_is_in_doubt_the_answer_may_be_in_another():
    korean = reading("방앗간은 강가에 서 있고 물레는 밤낮으로 돈다")
    assert is_better(region(0, line(DOUBTFUL, 0.7)), korean, any_script=True)


def test_latex_must_render_and_what_was_not_read_needs_only_an_answer():
    formula = region(0, line("a b c", 0.7), label=Label.DISPLAY_FORMULA, content_format=ContentFormat.FORMULA_TEXT)
    latex = RegionReading(content=r"\frac{a}{b} = c", content_format=ContentFormat.LATEX, engine="vlm:m")
    assert is_better(formula, latex)
    assert not is_better(formula, RegionReading(content=r"\frac{a", content_format=ContentFormat.LATEX, engine="vlm:m"))
    assert is_better(region(0, label=Label.TABLE), reading("| a | b |"))


class Model(RegionReader):
    """Answers every region with the same; notes what it was asked."""

    name = "model"

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def prepare(self, crop, task):
        return crop.shape, task

    async def read(self, prepared):
        self.asked.append(prepared)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class TwoRegions(Services):
    """A page with a text that was read well and one that was not."""

    def __init__(self, answer, lines=None):
        boxes = [(40.0, 40.0, 360.0, 60.0), (40.0, 240.0, 360.0, 260.0)]
        texts = [(SURE, 0.99), (DOUBTFUL, 0.6)]
        read = [
            TextLine(text=text, box=box, confidence=confidence, engine="rapidocr")
            for (text, confidence), box in zip(texts, boxes, strict=True)
        ]
        super().__init__(read=ReadPage(lines=read))
        self.boxes, self.model = boxes, Model(answer)

    async def decode(self, payload):
        return DecodedPage(pixels=np.full((400, 400, 3), 255, dtype=np.uint8))

    async def detect_regions(self, pixels):
        return [DetectedRegion(box=box, label=Label.TEXT, score=0.9, source="test") for box in self.boxes]

    async def region_reader(self):
        return self.model


ESCALATING = ParseSettings(
    recognition=RecognitionSettings(escalate="vlm", servers=("http://127.0.0.1:1",)), crops=False
)


async def test_the_better_reading_is_kept_and_the_doubt_is_settled():
    services = TwoRegions(reading(TRUTH, attempts=2))
    record = (await parse_page(REF, services, ESCALATING)).record
    assert [shape[0] for (shape, _) in services.model.asked] == [20]
    first, second = record.regions
    assert (first.content, first.engine, first.other_engine) == (SURE, "rapidocr", None)
    assert (second.content, second.engine, second.other_engine) == (TRUTH, "vlm:m", "rapidocr")
    assert (second.attempts, second.confidence, second.lines) == (2, None, ())
    assert (record.errors, record.review, record.confidence) == ([], False, 0.99)
    assert TRUTH in record.markdown and DOUBTFUL not in record.markdown


@pytest.mark.parametrize("answer", [reading(TRUTH * 4), reading(None, problem=Problem("timeout", "too slow"))])
async def test_a_worse_reading_is_left_and_the_doubt_stays(answer):
    record = (await parse_page(REF, TwoRegions(answer), ESCALATING)).record
    second = record.regions[1]
    assert (second.content, second.engine, second.other_engine) == (DOUBTFUL, "rapidocr", "vlm:m")
    assert [error.category for error in record.errors] == ["low_confidence"]
    assert record.review


async def test_two_readings_that_agree_settle_the_doubt_and_keep_the_lines():
    record = (await parse_page(REF, TwoRegions(reading(DOUBTFUL)), ESCALATING)).record
    second = record.regions[1]
    assert (second.engine, second.other_engine, len(second.lines)) == ("rapidocr", "vlm:m", 1)
    assert not record.errors


async def test_without_a_server_the_first_reading_stays_with_a_warning():
    gone = NetworkError("no server answers", remedy="Start one.")
    page = await parse_page(REF, TwoRegions(gone), ESCALATING)
    record = page.record
    assert (record.status, record.regions[1].content) == (Status.DONE, DOUBTFUL)
    assert [error.category for error in record.errors] == ["low_confidence", "network"]
    assert "1 doubtful region was not read again" in record.errors[1].message
    assert list(page.failures()), "without --strict it is told, too"


async def test_a_page_in_a_script_that_no_engine_reads_is_the_models():
    services = TwoRegions(reading(TRUTH))

    async def read(pixels, languages, *, bends):
        raise LanguageError("the page is in Thai script")

    services.read = read
    record = (await parse_page(REF, services, ESCALATING)).record
    assert [region.engine for region in record.regions] == ["vlm:m", "vlm:m"]
    failed = (await parse_page(REF, services, ParseSettings())).record
    assert failed.status is Status.FAILED


async def test_without_the_option_no_model_is_asked():
    services = TwoRegions(reading(TRUTH))
    await parse_page(REF, services, ParseSettings())
    assert not services.model.asked
