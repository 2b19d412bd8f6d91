"""A pipeline over engines that misbehave: only their pages fail, what hangs is found alone, and the end is quick."""

import asyncio
import gc
import io
import itertools
import json
import logging
import threading
import weakref
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pagemill.config.machine import RuntimeSettings
from pagemill.config.modes import ScheduleMode, TextLayerMode
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.document.labels import Label
from pagemill.document.page import Status
from pagemill.errors import MissingInputError
from pagemill.imaging.decode import decode_image
from pagemill.layout.base import DecodedLayout, DetectedRegion
from pagemill.parsing import line_reading
from pagemill.recognition.base import DetectedLine, RecognizedText, RecognizerOffer
from pagemill.runtime import engines, services
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.runtime.stream import PageStream
from pagemill.sources import SourceOptions
from pagemill.sources.base import EncodedImage, PdfPage

GOOD, HANGS, RAISES, NAN_BOX, NO_TEXT, NAN_CONFIDENCE, NAN_LINE, HANGS_READING = 250, 10, 20, 30, 40, 50, 60, 70


def image(shade: int, width: int = 120) -> bytes:
    """A page that tells by its shade what the engines do with it."""
    file = io.BytesIO()
    Image.fromarray(np.full((80, width, 3), shade, np.uint8)).save(file, "PNG")
    return file.getvalue()


class Engines:
    """A layout engine, a detector and a recognizer in one."""

    name = "rapidocr"
    languages = frozenset({"en"})
    max_batch = 4

    def __init__(self) -> None:
        self.hangs, self.release = threading.Event(), threading.Event()
        self.closed: set[str] = set()
        self.seen: list[weakref.ref] = []

    def load(self, group, name):
        if group == engines.TEXT_ENGINES:
            return lambda: [RecognizerOffer(name=self.name, languages=self.languages, create=lambda: self)]
        if group == engines.TEXT_DETECTORS:
            return lambda: Detector()
        return lambda settings: Layout(self)

    def recognize(self, lines):
        shades = [int(line[0, 0, 0]) for line in lines]
        if HANGS_READING in shades:
            self.release.wait(60)
        return [
            RecognizedText(
                text="" if shade == NO_TEXT else "alpha", confidence=np.nan if shade == NAN_CONFIDENCE else 0.9
            )
            for shade in shades
        ]

    def close(self):
        self.closed.add("recognition")


class Detector:
    name = "spotter"

    def detect(self, page):
        left = float("nan") if int(page[0, 0, 0]) == NAN_LINE else 10.0
        return [DetectedLine(polygon=((left, 10.0), (90.0, 10.0), (90.0, 30.0), (10.0, 30.0)), score=1.0)]


class Layout:
    name = "boxes"
    max_batch = 4

    def __init__(self, engines: Engines) -> None:
        self.engines = engines

    def detect(self, pages):
        self.engines.seen.extend(map(weakref.ref, pages))
        shades = [int(page[0, 0, 0]) for page in pages]
        if HANGS in shades:
            self.engines.hangs.set()
            self.engines.release.wait(60)
        if RAISES in shades:
            raise ValueError("lost")
        left = [float("nan") if shade == NAN_BOX else 5.0 for shade in shades]
        return [[DetectedRegion(box=(x, 5.0, 95.0, 40.0), label=Label.TEXT, score=0.9, source="boxes")] for x in left]

    def close(self):
        self.engines.closed.add("layout")


@pytest.fixture
def fake(monkeypatch):
    made = Engines()
    monkeypatch.setattr(engines, "load", made.load)
    monkeypatch.setattr(engines, "names", lambda group: [made.name])
    monkeypatch.setattr(services, "STUCK_AFTER_S", 0.05)
    yield made
    made.release.set()


def make(*, pages_in_flight: int = 0, **settings) -> Pipeline:
    runtime = RuntimeSettings(threads=2, decoders=1, pages_in_flight=pages_in_flight)
    return Pipeline(Services(ParseSettings(crops=False, **settings), runtime))


async def records(running: Pipeline, inputs, **more) -> dict[int, object]:
    found = {}
    async with aclosing(running.stream(inputs, SourceOptions(), **more)) as pages:
        async for page in pages:
            assert page.record.page_idx not in found
            found[page.record.page_idx] = page.record
    return found


async def test_a_faulty_answer_fails_its_page_alone_and_names_the_engine(fake):
    async with make() as running:
        found = await records(
            running, [image(shade) for shade in (GOOD, RAISES, NAN_BOX, NAN_CONFIDENCE, GOOD, NAN_LINE)]
        )
    assert {index: (record.status, record.attempts) for index, record in found.items()} == {
        0: (Status.DONE, 1),
        1: (Status.FAILED, 2),
        2: (Status.FAILED, 2),
        3: (Status.FAILED, 2),
        4: (Status.DONE, 1),
        5: (Status.FAILED, 2),
    }
    told = {index: record.errors[0] for index, record in found.items() if record.errors}
    assert {index: (error.component, error.category) for index, error in told.items()} == {
        1: ("layout", "engine"),
        2: ("layout", "engine"),
        3: ("recognition", "engine"),
        5: ("recognition", "engine"),
    }
    assert told[1].message == "the layout engine 'onnx' failed: ValueError: lost"
    assert told[2].message.startswith("the layout engine 'onnx' returned an invalid answer: the box (nan,")
    assert told[3].message.startswith(
        "the recognition engine 'rapidocr' returned an invalid answer: the confidence nan"
    )
    assert told[5].message.startswith("the text detector 'spotter' returned an invalid answer: the line ((nan, ")
    assert fake.closed == {"layout", "recognition"}


async def test_lines_without_text_are_reported_on_a_page_that_is_done(fake):
    async with make() as running:
        found = await records(running, [image(NO_TEXT), image(GOOD)])
    assert [record.status for record in found.values()] == [Status.DONE] * 2
    assert [error.category for error in found[0].errors] == ["empty_text"]
    assert not found[1].errors


@pytest.fixture
def no_collection():
    """Only what nothing refers to any more is freed: what lies in a cycle would wait for the collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def test_the_pixels_of_a_page_go_when_it_ends_however_that_is(fake, no_collection, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL)  # records of the log that pytest keeps hold tracebacks

    def analyse(ref, page, detected, lines):
        raise ZeroDivisionError

    async with make() as running:
        await records(running, [image(shade) for shade in (GOOD, RAISES, NAN_BOX)])
        monkeypatch.setattr(line_reading, "analyse_page", analyse)
        await records(running, [image(GOOD)])
    assert len(fake.seen) >= 5
    assert [pixels() for pixels in fake.seen] == [None] * len(fake.seen)


class NothingLeftRunning:
    """A journal: pages run alone only after what hangs was told from what is slow."""

    def __init__(self, running: Pipeline) -> None:
        self.running = running

    async def started(self, ref, *, alone):
        assert not alone or self.running.services.stuck.is_set()

    async def postponed(self, page):
        assert page.record.errors[0].category == "timeout"


@pytest.mark.parametrize(("shade", "closed"), [(HANGS, {"recognition"}), (HANGS_READING, {"layout"})])
async def test_what_hangs_is_found_alone_and_holds_nobody_up(fake, shade, closed):
    async with asyncio.timeout(60):
        async with make(page_timeout_s=1.0) as running:
            assert not running.services.stuck.is_set()
            inputs = [image(each) for each in (GOOD, shade, GOOD, GOOD, GOOD)]
            found = await records(running, inputs, journal=NothingLeftRunning(running))
            await running.services.stuck.wait()
    assert fake.closed == closed  # the other model is in use as long as the process lives
    assert found[1].status is Status.FAILED
    assert (found[1].attempts, found[1].errors[0].category) == (2, "timeout")
    for index in (0, 2, 3, 4):  # those that shared its batch were tried again
        assert (found[index].status, found[index].errors) == (Status.DONE, [])


async def test_stopping_leaves_the_rest_of_the_input(fake):
    async with make() as running:
        found = []
        async with aclosing(
            running.stream([image(GOOD, 100 + index) for index in range(50)], SourceOptions())
        ) as pages:
            async for page in pages:
                found.append(page.record.status)
                running.stop_admitting()
        assert 0 < len(found) <= 8  # pages in flight, and one more for each that was handed on
        assert set(found) == {Status.DONE}
        assert not running.source.complete
        assert await records(running, [image(GOOD)]) == {}


async def test_a_pipeline_that_is_left_in_the_middle_ends_what_is_in_flight(fake):
    async with asyncio.timeout(60):
        async with make(pages_in_flight=2) as running:
            pages = running.stream([image(shade) for shade in (GOOD, GOOD, HANGS, HANGS)], SourceOptions())
            assert {(await anext(pages)).record.page_idx for _ in range(2)} == {0, 1}
            await asyncio.to_thread(fake.hangs.wait)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await pages.aclose()


async def test_an_interruption_while_the_stream_is_closed_leaves_nothing_open(fake, monkeypatch):
    async def interrupted(stream):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        async with make() as running:
            await records(running, [image(GOOD)])
            monkeypatch.setattr(PageStream, "close", interrupted)
    assert fake.closed == {"layout", "recognition"}


async def test_an_input_read_to_its_end_is_complete(fake):
    async with make() as running:
        await records(running, [image(GOOD)])
        source = running.source
        assert (source.total, source.skipped_earlier, source.complete) == (1, 0, True)


async def test_identity_holds_what_decides_about_results_and_nothing_else(tmp_path):
    async def identity(model: Path | None = None, engine: str = "onnx", **settings) -> dict:
        async with Services(ParseSettings(**settings), layout=LayoutChoice(engine=engine, model=model)) as running:
            return await running.identity()

    model, copy, folder = tmp_path / "a.onnx", tmp_path / "b.onnx", tmp_path / "folder"
    model.write_bytes(b"weights")
    copy.write_bytes(b"weights")
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "weights").write_bytes(b"1")
    plain = await identity()
    assert plain.keys() == {"languages", "text_layer", "crops", "layout_engine", "layout_model", "schema_version"}
    named = await identity(languages=("ko", "en"))
    assert json.loads(json.dumps(named)) == named
    assert plain == await identity(page_timeout_s=1.0, preview_pages=9)
    assert await identity(model) == await identity(copy) != plain
    for changed in (
        {"languages": ("ko",)},
        {"text_layer": TextLayerMode.NEVER},
        {"crops": False},
        {"photographs": "never"},
        {"engine": "x"},
    ):
        assert await identity(**changed) != plain
    before = await identity(folder)
    (folder / "inner" / "weights").rename(folder / "inner" / "others")
    renamed = await identity(folder)
    (folder / "inner" / "others").write_bytes(b"2")
    assert len({str(each) for each in (before, renamed, await identity(folder))}) == 3
    with pytest.raises(MissingInputError, match="absent"):
        await identity(tmp_path / "absent.onnx")


class JpegLayout(Layout):
    """An engine whose device decodes JPEGs, but for those that it refuses, gives in another size, or breaks on."""

    decodes_jpegs = True

    def __init__(self, engines: Engines) -> None:
        super().__init__(engines)
        self.refused: set[bytes] = set()
        self.shrunk: set[bytes] = set()
        self.broken: set[bytes] = set()

    def detect_jpegs(self, pages):
        if self.broken & set(pages):
            raise RuntimeError("an illegal memory access")
        found = []
        for data in pages:
            pixels = decode_image(data).pixels
            pixels = pixels[:50] if data in self.shrunk else pixels
            found.append(None if data in self.refused else DecodedLayout(pixels, self.detect([pixels])[0]))
        return found


def jpeg(shade: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((80, 120, 3), shade, np.uint8)).save(file, "JPEG", dpi=(150, 150))
    return file.getvalue()


async def test_jpegs_are_decoded_on_the_device_of_the_layout_engine_and_all_else_as_usual(fake, monkeypatch):
    layout = JpegLayout(fake)
    monkeypatch.setattr(fake, "load", lambda group, name: lambda settings: layout)
    monkeypatch.setattr(engines, "load", fake.load)
    good, refused, shrunk, broken, nan = jpeg(GOOD), jpeg(251), jpeg(252), jpeg(253), jpeg(NAN_BOX)
    layout.refused, layout.shrunk, layout.broken = {refused}, {shrunk}, {broken}
    async with make() as running:
        sources = [good, refused, shrunk, broken, nan, image(GOOD), good[:-2], good]
        found = await asyncio.gather(
            *(running.services.decode_with_regions(EncodedImage(source=data)) for data in sources)
        )
        assert await running.services.decode_with_regions(PdfPage(path=Path("a.pdf"), page_index=0)) is None
    assert [both is None for both in found] == [False, *[True] * 6, False]
    page, regions = found[0]
    usual = decode_image(good)
    np.testing.assert_array_equal(page.pixels, usual.pixels)
    one = usual.pixels[0, 0, 0]  # in place of arrays, whose comparison is no truth value
    assert replace(page, pixels=one) == replace(usual, pixels=one)
    assert [region.box for region in regions] == [(5.0, 5.0, 95.0, 40.0)]
    assert fake.closed == {"layout"}


async def test_pages_are_made_ready_while_the_device_of_the_layout_engine_computes(fake, monkeypatch):
    detect_text, detect_regions = Detector.detect, Layout.detect
    pages, read, all_read, seen = 12, itertools.count(1), threading.Event(), []

    def counted(detector, page):
        if next(read) == pages:
            all_read.set()
        return detect_text(detector, page)

    def waiting(layout, batch):
        if not seen:
            seen.append(all_read.wait(10))
        return detect_regions(layout, batch)

    monkeypatch.setattr(Detector, "detect", counted)
    monkeypatch.setattr(Layout, "detect", waiting)
    runtime = RuntimeSettings(threads=1, decoders=1, pages_in_flight=pages)
    async with Pipeline(Services(ParseSettings(crops=False), runtime)) as running:
        assert len(await records(running, [image(GOOD) for _ in range(pages)])) == pages
    assert seen == [True]


async def test_an_engine_that_decodes_nothing_gets_pixels(fake):
    async with make() as running:
        assert await running.services.decode_with_regions(EncodedImage(source=jpeg(GOOD))) is None


@pytest.mark.parametrize("schedule", list(ScheduleMode))
async def test_every_schedule_gives_the_same_pages(fake, schedule):
    runtime = RuntimeSettings(threads=2, decoders=1, pages_in_flight=2, schedule=schedule)
    pages = [image(GOOD, 120 + number) for number in range(5)] + [image(RAISES)]
    async with Pipeline(Services(ParseSettings(crops=False), runtime)) as running:
        found = await records(running, pages, max_attempts=1)
    assert [found[place].status for place in sorted(found)] == [Status.DONE] * 5 + [Status.FAILED]
