"""The border to region engines: what they answer is checked, what they raise is the region's, and they load once."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from pagemill.config.modes import ReadingMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.labels import Label, Task
from pagemill.document.page import ContentFormat
from pagemill.errors import EngineError, NetworkError, UsageError
from pagemill.recognition.base import PageElement, PageReading, Problem, RegionReader, RegionReading
from pagemill.runtime import engines
from pagemill.runtime.region_reading import CheckedReader, load_reader
from pagemill.runtime.threads import ComputeThreads

GOOD = RegionReading(content="text", content_format=ContentFormat.MARKDOWN, engine="odd:1")
ODD = RecognitionSettings(engine="odd")
CROP = np.zeros((4, 4, 3), dtype=np.uint8)


class Engine(RegionReader):
    name = "odd"
    in_flight = 3
    closed = False

    def __init__(self, answer=GOOD):
        self.answer = answer

    async def check(self):
        pass

    def prepare(self, crop, task):
        if isinstance(self.answer, Exception):
            raise self.answer
        return crop.shape

    async def read(self, prepared):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def aclose(self):
        self.closed = True


async def test_a_good_reading_passes():
    assert await CheckedReader(Engine(), ODD).read(None) == GOOD


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("text", "Expected `object`, got `str`"),
        (replace(GOOD, content=None), "neither a content nor a reason"),
        (replace(GOOD, content=b"bytes"), "Expected `str | null`"),
        (replace(GOOD, content="x" * 2_000_001), "Expected `str` of length <= 2000000"),
        (replace(GOOD, content_format="markdown?"), "Invalid enum value"),
        (replace(GOOD, problem="broken"), "Expected `object | null`, got `str`"),
        (replace(GOOD, attempts=0), "Expected `int` >= 1"),
        (replace(GOOD, attempts=2**31), "Expected `int` <= 2147483647"),
        (replace(GOOD, attempts="two"), "Expected `int`, got `str`"),
        (ValueError("lost its dictionary"), "ValueError: lost its dictionary"),
        (EngineError("too odd"), "too odd"),
    ],
)
async def test_what_breaks_the_contract_is_reported_on_the_region(answer, said):
    reading = await CheckedReader(Engine(answer), ODD).read(None)
    assert reading.content is None
    assert isinstance(reading.problem, Problem)
    assert reading.problem.category == "engine"
    assert said in reading.problem.message


@pytest.mark.parametrize("error", [NetworkError("gone"), UsageError("another model"), asyncio.CancelledError()])
async def test_what_concerns_the_run_is_passed_on(error):
    with pytest.raises(type(error)):
        await CheckedReader(Engine(error), ODD).read(None)


def test_a_crop_that_cannot_be_prepared_is_an_error_that_names_the_engine():
    with pytest.raises(EngineError, match="the region engine 'odd' failed: ValueError: side over"):
        CheckedReader(Engine(ValueError("side over 65,535")), ODD).prepare(CROP, Task.TEXT)


ELEMENT = PageElement(
    label=Label.TEXT, boxes=((0.1, 0.1, 0.5, 1.2),), content="text", content_format=ContentFormat.MARKDOWN
)
PAGE = PageReading(elements=(ELEMENT,), engine="odd:1")


class PageEngine(Engine):
    reads = "pages"

    async def read_page(self, prepared):
        return await self.read(prepared)


async def test_an_engine_reads_regions_unless_it_says_otherwise():
    assert CheckedReader(Engine(), ODD).reads is ReadingMode.REGIONS
    assert CheckedReader(PageEngine(), ODD).reads is ReadingMode.PAGES


async def test_a_good_page_passes_with_its_boxes_clipped():
    reading = await CheckedReader(PageEngine(PAGE), ODD).read_page(None)
    assert reading == replace(PAGE, elements=(replace(ELEMENT, boxes=((0.1, 0.1, 0.5, 1.0),)),))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (GOOD, "missing required field `elements`"),
        (replace(PAGE, elements=None), "neither elements of a page nor a reason"),
        (replace(PAGE, elements="ab"), "Expected `array | null`, got `str`"),
        (replace(PAGE, attempts=True), "Expected `int`, got `bool`"),
        (replace(PAGE, elements=("ab",)), "Expected `object`, got `str`"),
        (replace(PAGE, problem="bad"), "Expected `object | null`, got `str`"),
        (replace(PAGE, elements=(replace(ELEMENT, label="title"),)), "Invalid enum value"),
        (replace(PAGE, elements=(replace(ELEMENT, content=1),)), "Expected `str | null`, got `int`"),
        (replace(PAGE, elements=(replace(ELEMENT, boxes=((0.0, 0.0, float("nan"), 1.0),)),)), "inverted"),
        (replace(PAGE, elements=(replace(ELEMENT, boxes=((1, 0, 0, 1),)),)), "inverted"),
        (replace(PAGE, elements=(replace(ELEMENT, content="x" * 1_500_000),) * 2), "characters for one page"),
        (ValueError("lost its dictionary"), "ValueError: lost its dictionary"),
    ],
)
async def test_what_breaks_the_contract_is_reported_on_the_page(answer, said):
    reading = await CheckedReader(PageEngine(answer), ODD).read_page(None)
    assert reading.elements is None
    assert isinstance(reading.problem, Problem)
    assert said in reading.problem.message


@pytest.mark.parametrize("error", [NetworkError("gone"), UsageError("another model"), asyncio.CancelledError()])
async def test_what_concerns_the_run_is_passed_on_from_pages(error):
    with pytest.raises(type(error)):
        await CheckedReader(PageEngine(error), ODD).read_page(None)


async def test_an_engine_that_cannot_do_what_was_asked_for_is_refused(monkeypatch):
    monkeypatch.setattr(engines, "load", lambda group, name: lambda settings: Engine())
    threads = ComputeThreads(1, name="test")
    with pytest.raises(UsageError, match="'odd' does not read pages"):
        await load_reader(RecognitionSettings(engine="odd", reading=ReadingMode.PAGES), threads)
    await threads.close()


class HangingEngine(Engine):
    served_model = "some-model"
    waits = True

    async def read(self, prepared):
        await asyncio.Event().wait()

    read_page = read

    def stop_waiting(self):
        self.waits = False


async def test_an_engine_that_never_answers_fails_its_region():
    hasty = RecognitionSettings(engine="odd", request_timeout_s=0.0004, server_wait_s=0.001)
    reader = CheckedReader(HangingEngine(), hasty)
    for reading in (await reader.read(None), await reader.read_page(None)):
        assert reading.problem is not None
        assert reading.problem.category == "timeout"
        assert reading.problem.message == "the region engine 'odd' did not answer within 0.01 s"


async def test_a_time_limit_of_the_engine_is_its_own():
    reading = await CheckedReader(Engine(TimeoutError("too slow")), ODD).read(None)
    assert reading.problem is not None
    assert "TimeoutError: too slow" in reading.problem.message


async def test_every_foreign_engine_gets_a_time_limit_and_a_notice_when_the_run_ends(monkeypatch):
    engine = HangingEngine()
    monkeypatch.setattr(engines, "load", lambda group, name: lambda settings: engine)
    threads = ComputeThreads(1, name="test")
    settings = RecognitionSettings(engine="odd", request_timeout_s=0.0005, server_wait_s=0.001, served_model="given")
    reader = await load_reader(settings, threads)
    assert (await reader.read(None)).problem.category == "timeout"
    reader.stop_waiting()
    assert not engine.waits
    assert reader.served_model == "some-model"
    assert CheckedReader(Engine(), settings).served_model == "given"
    CheckedReader(Engine(), ODD).stop_waiting()  # which it need not have
    await threads.close()
