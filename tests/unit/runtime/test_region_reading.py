"""The border to region engines: what they answer is checked, what they raise is the region's, and they load once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from pagemill.config.settings import RecognitionSettings
from pagemill.document.labels import Task
from pagemill.document.page import ContentFormat
from pagemill.errors import EngineError, NetworkError, UsageError
from pagemill.recognition.base import Problem, RegionReading
from pagemill.runtime import engines
from pagemill.runtime.region_reading import CheckedReader, RegionReadingService
from pagemill.runtime.threads import ComputeThreads

GOOD = RegionReading(content="text", content_format=ContentFormat.MARKDOWN, engine="odd:1")
CROP = np.zeros((4, 4, 3), dtype=np.uint8)


class Engine:
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
    assert await CheckedReader(Engine(), "odd").read(None) is GOOD


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("text", "str instead of the reading"),
        (replace(GOOD, content=None), "neither a content nor a reason"),
        (replace(GOOD, content=b"bytes"), "content that is bytes"),
        (replace(GOOD, content="x" * 2_000_001), "2,000,001 characters"),
        (replace(GOOD, content_format="markdown?"), "none of ours"),
        (replace(GOOD, problem="broken"), "problem that is str"),
        (ValueError("lost its dictionary"), "ValueError: lost its dictionary"),
        (EngineError("too odd"), "too odd"),
    ],
)
async def test_what_breaks_the_contract_is_said_of_the_region(answer, said):
    reading = await CheckedReader(Engine(answer), "odd").read(None)
    assert reading.content is None
    assert isinstance(reading.problem, Problem)
    assert reading.problem.category == "engine"
    assert said in reading.problem.message


@pytest.mark.parametrize("error", [NetworkError("gone"), UsageError("another model"), asyncio.CancelledError()])
async def test_what_concerns_the_run_is_passed_on(error):
    with pytest.raises(type(error)):
        await CheckedReader(Engine(error), "odd").read(None)


def test_a_crop_that_cannot_be_prepared_is_an_error_that_names_the_engine():
    with pytest.raises(EngineError, match="the region engine 'odd' failed: ValueError: side over"):
        CheckedReader(Engine(ValueError("side over 65,535")), "odd").prepare(CROP, Task.TEXT)


async def test_the_engine_is_made_once_and_closed(monkeypatch):
    made = []

    def create(settings):
        made.append(settings)
        return Engine()

    monkeypatch.setattr(engines, "load", lambda group, name: create)
    threads = ComputeThreads(1, name="test")
    settings = RecognitionSettings(engine="odd")
    service = RegionReadingService(settings, threads)
    one, other = await asyncio.gather(service.reader(), service.reader())
    assert one is other
    assert (made, one.in_flight) == ([settings], 3)
    await service.close()
    await threads.close()
    assert one._engine.closed


async def test_what_is_not_used_is_not_loaded(monkeypatch):
    monkeypatch.setattr(engines, "load", None)
    threads = ComputeThreads(1, name="test")
    await RegionReadingService(RecognitionSettings(engine="odd"), threads).close()
    await threads.close()
