"""A page read region by region: order, what a reader gets, the record, errors, when pixels are let go."""

import asyncio
import gc
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.config.modes import ReadingMode, TextLayerMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label, Task
from pagemill.document.page import ContentFormat, Status
from pagemill.errors import EngineError, NetworkError
from pagemill.imaging.page import DecodedPage
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.page import parse_page
from pagemill.parsing.regions import in_reading_order
from pagemill.recognition.base import Problem, RegionReader, RegionReading
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef

REF = PageRef(
    document=DocumentRef(doc_id="a", uri="a.png"),
    key=PageKey("0" * 64, 1),
    position=3,
    page_number=1,
    page_id="a_1",
    payload=EncodedImage(source=Path("a.png")),
    metadata={"year": 2024},
)
BY_REGIONS = ParseSettings(recognition=RecognitionSettings(engine="fake"), text_layer=TextLayerMode.NEVER)
FORMATS = {Task.TEXT: ContentFormat.MARKDOWN, Task.TABLE: ContentFormat.HTML, Task.FORMULA: ContentFormat.LATEX}


def region(label: Label, box, order=None, **more) -> DetectedRegion:
    return DetectedRegion(box=tuple(map(float, box)), label=label, score=0.9, source="fake", order=order, **more)


def reading(content, task: Task = Task.TEXT, problem: Problem | None = None) -> RegionReading:
    return RegionReading(content=content, content_format=FORMATS[task], engine="fake:model", problem=problem)


class Reader(RegionReader):
    """Answers with what a test says of each region's shape (height, width), or echoes the shape."""

    name = "fake"
    in_flight = 4
    reads = ReadingMode.REGIONS

    def __init__(self, answers=None):
        self.answers = answers or {}
        self.prepared = []
        self.gate: asyncio.Event | None = None
        self.begun = asyncio.Event()

    async def check(self):
        pass

    def prepare(self, crop, task):
        answer = self.answers.get(crop.shape[:2])
        if isinstance(answer, EngineError):
            raise answer
        self.prepared.append((crop.shape[:2], task, crop[-1, -1].tolist()))
        return crop.shape[:2], task

    async def read(self, prepared):
        shape, task = prepared
        self.begun.set()
        if self.gate:
            await self.gate.wait()
        await asyncio.sleep(0)
        answer = self.answers.get(shape, f"text {shape[1]}x{shape[0]}")
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, RegionReading) else reading(answer, task)

    async def aclose(self):
        pass


class Services:
    def __init__(self, regions, reader, pixels=None):
        self.regions, self.reader = regions, reader
        self.pixels = np.full((200, 100, 3), 128, dtype=np.uint8) if pixels is None else pixels
        self.alive: weakref.ref | None = None

    async def decode(self, payload):
        pixels = self.pixels.copy()
        self.alive = weakref.ref(pixels)
        return DecodedPage(pixels=pixels, dpi=200.0, scale=0.5, notes=("decoded at 1/2 size",))

    async def decode_with_regions(self, payload):
        return None

    async def read(self, pixels, languages, *, bends=False):
        raise AssertionError("no lines are read here")

    async def detect_regions(self, pixels):
        return self.regions

    async def region_reader(self):
        return self.reader

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)


class OneDevice(Services):
    """Decodes and lays out in one go."""

    async def decode_with_regions(self, payload):
        return await super().decode(payload), self.regions

    async def decode(self, payload):
        raise AssertionError("it is decoded already")

    async def detect_regions(self, pixels):
        raise AssertionError("it is laid out already")


class Ticket:
    def __init__(self, at_pixels_gone=lambda: None):
        self.kept = self.requests = self.ended = 0
        self.at_pixels_gone = at_pixels_gone

    def pixels_gone(self, *, kept_bytes, requests):
        self.at_pixels_gone()
        self.kept, self.requests = kept_bytes, requests

    def request_ended(self):
        self.ended += 1


async def parsed(regions, answers=None, settings=BY_REGIONS, pixels=None, ref=REF):
    return await parse_page(ref, Services(regions, Reader(answers), pixels), settings)


async def test_a_page_becomes_a_record():
    regions = [
        region(Label.TABLE, (10, 120, 90, 150), order=4),
        region(Label.DOC_TITLE, (10, 0, 90, 11), order=0),
        region(Label.PARAGRAPH_TITLE, (10, 20, 90, 32), order=1),
        region(Label.TEXT, (10, 40, 90, 53), order=2),
        region(Label.DISPLAY_FORMULA, (10, 60, 80, 74), order=3),
        region(Label.NUMBER, (45, 190, 55, 199), order=6),
        region(Label.IMAGE, (10, 155, 90, 185), order=5),
    ]
    answers = {
        (11, 80): "# The Mill",
        (12, 80): "## 2.1 Water",
        (13, 80): "Water is *high*.",
        (14, 70): "a+b",
        (30, 80): "<table><tr><td>1</td></tr></table>",
    }
    page = await parsed(regions, answers)
    record = page.record
    assert (record.status, record.width, record.height, record.dpi, record.scale) == (Status.DONE, 100, 200, 200.0, 0.5)
    assert record.metadata == {"year": 2024, "notes": ["decoded at 1/2 size"]}
    assert (record.page_idx, record.page_key, record.attempts) == (3, f"{'0' * 64}/1", 1)
    assert [r.label for r in record.regions] == [r.label for r in sorted(regions, key=lambda r: r.order)]
    assert [r.index for r in record.regions] == list(range(7))
    assert [r.level for r in record.regions] == [1, 3, None, None, None, None, None]
    assert [r.content for r in record.regions][-2:] == [None, None]
    assert {r.engine for r in record.regions if r.content} == {"fake:model"}
    assert [crop.label for crop in record.image_crops] == [Label.DISPLAY_FORMULA, Label.IMAGE]
    assert [path for path, _ in page.crops] == [crop.path for crop in record.image_crops]
    assert record.text_source == "ocr"
    assert not record.errors
    assert (
        record.markdown
        == (
            "# The Mill\n\n### 2.1 Water\n\nWater is *high*.\n\n$$\na+b\n$$\n\n| 1 |\n| --- |\n\n"
            f"![image]({record.image_crops[1].path})"
        )
        or "<table>" in record.markdown
    )


async def test_crops_hold_every_pixel_of_a_box_and_what_lies_outside_of_an_outline_is_white():
    outline = ((10.0, 10.0), (50.0, 10.0), (10.0, 50.0))
    regions = [
        region(Label.TEXT, (10.4, 100.6, 20.2, 110.1)),
        region(Label.TEXT, (10, 10, 50, 50), polygon=outline),
        region(Label.TEXT, (-2, 190, 120, 200)),
    ]
    services = Services(regions, Reader())
    await parse_page(REF, services, BY_REGIONS)
    corners = {shape: corner for shape, _, corner in services.reader.prepared}
    grey, white = [128] * 3, [255] * 3
    assert corners == {(11, 11): grey, (40, 40): white, (10, 100): grey}


async def test_tasks_follow_labels_and_abandoned_regions_are_kept_unread():
    regions = [region(label, (1, 1 + 3 * i, 1 + 2 * (i + 1), 3 + 3 * i), order=i) for i, label in enumerate(Label)]
    services = Services(regions, Reader())
    page = await parse_page(REF, services, BY_REGIONS)
    asked = {Label(list(Label)[width // 2 - 1]): task for (_, width), task, _ in services.reader.prepared}
    assert asked[Label.TABLE] is Task.TABLE
    assert asked[Label.DISPLAY_FORMULA] is asked[Label.INLINE_FORMULA] is Task.FORMULA
    assert asked[Label.SEAL] is Task.TEXT
    unread = set(Label) - set(asked)
    assert unread == {
        *(Label.CHART, Label.IMAGE, Label.ASIDE_TEXT, Label.FOOTER, Label.FOOTER_IMAGE),
        *(Label.HEADER, Label.HEADER_IMAGE, Label.NUMBER, Label.REFERENCE),
    }
    assert len(page.record.regions) == len(Label)


async def test_one_bad_region_costs_no_other():
    regions = [region(Label.TEXT, (0, 20 * i, 50 + i, 20 * i + 10), order=i) for i in range(4)]
    answers = {
        (10, 50): reading(None, problem=Problem("truncated", "the answer was cut off", "Give it more tokens.")),
        (10, 51): EngineError("the crop is odd"),
        (10, 52): reading("half", problem=Problem("repetition", "the end ran in circles")),
    }
    page = await parsed(regions, answers)
    record = page.record
    assert (record.status, page.retryable) == (Status.DONE, False)
    assert [r.content for r in record.regions] == [None, None, "half", "text 53x10"]
    told = [(error.region, error.component, error.category, error.remedy) for error in record.errors]
    assert told == [
        (0, "recognition", "truncated", "Give it more tokens."),
        (1, "recognition", "engine", None),
        (2, "recognition", "repetition", None),
    ]
    assert "<!-- region 0 (text) could not be read: the answer was cut off -->" in record.markdown


async def test_the_record_tells_how_often_a_region_was_asked_for():
    regions = [
        region(Label.TEXT, (0, 0, 50, 10), order=0),
        region(Label.TEXT, (0, 20, 51, 30), order=1),
        region(Label.TEXT, (0, 40, 52, 50), order=2),
        region(Label.IMAGE, (0, 60, 53, 70), order=3),
    ]
    answers = {
        (10, 51): replace(reading("strange"), attempts=4),
        (10, 52): replace(reading(None, problem=Problem("refused", "too large")), attempts=3),
    }
    record = (await parsed(regions, answers)).record
    assert [region.attempts for region in record.regions] == [1, 4, 3, 1]


async def test_no_server_fails_the_page_and_gives_its_other_regions_up():
    regions = [region(Label.TEXT, (0, 20 * i, 50 + i, 20 * i + 10), order=i) for i in range(3)]
    reader = Reader({(10, 51): NetworkError("no server answers", remedy="Start one.")})
    ticket = Ticket()
    page = await parse_page(REF, Services(regions, reader), BY_REGIONS, ticket)
    assert (page.record.status, page.retryable, page.unserved) == (Status.FAILED, True, True)
    (error,) = page.record.errors
    assert (error.component, error.category, error.remedy) == ("recognition", "network", "Start one.")
    assert ticket.ended == 3


async def test_a_page_that_is_decoded_with_its_regions_has_the_same_record():
    regions = [region(Label.TEXT, (10, 10, 90, 60)), region(Label.IMAGE, (10, 80, 90, 150))]
    usual = await parse_page(REF, Services(regions, Reader()), BY_REGIONS)
    services = OneDevice(regions, Reader())
    page = await parse_page(REF, services, BY_REGIONS)
    usual.record.timings = page.record.timings = {}
    assert (page.record, page.crops) == (usual.record, usual.crops)
    gc.collect()
    assert services.alive() is None


async def test_pixels_are_gone_before_anything_is_read():
    reader = Reader()
    reader.gate = asyncio.Event()
    services = Services([region(Label.TEXT, (0, 0, 50, 50)), region(Label.IMAGE, (50, 50, 99, 99))], reader)

    kept = []

    def look():
        gc.collect()
        kept.append(services.alive())

    ticket = Ticket(look)
    page = asyncio.create_task(parse_page(REF, services, BY_REGIONS, ticket))
    await reader.begun.wait()
    assert kept == [None]
    assert (ticket.requests, ticket.ended) == (1, 0)
    assert ticket.kept > 1250
    reader.gate.set()
    assert not (await page).record.errors
    assert ticket.ended == 1


async def test_the_time_limit_of_a_page_does_not_run_while_a_server_is_waited_for():
    reader = Reader()
    reader.gate = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, reader.gate.set)
    page = await parse_page(
        REF, Services([region(Label.TEXT, (0, 0, 50, 50))], reader), replace(BY_REGIONS, page_timeout_s=0.05)
    )
    assert not page.record.errors


async def test_a_page_on_which_nothing_is_found_is_read_as_a_whole_unless_it_is_blank():
    inked = np.full((200, 100, 3), 255, dtype=np.uint8)
    inked[20:40, 10:90] = 0
    page = await parsed([], pixels=inked)
    assert [(r.label, r.bbox, r.source) for r in page.record.regions] == [
        (Label.TEXT, (0.0, 0.0, 100.0, 200.0), "whole-page")
    ]
    blank = await parsed([])
    assert (blank.record.regions, blank.record.errors, blank.record.text_source) == ([], [], "")


@given(st.lists(st.tuples(st.sampled_from(list(Label)), st.integers(0, 90), st.integers(0, 190)), max_size=12))
def test_every_region_has_one_place(drawn):
    regions = [region(label, (x, y, x + 9, y + 9)) for label, x, y in drawn]
    assert sorted(map(id, in_reading_order(regions, 100, 200))) == sorted(map(id, regions))
    ranked = [replace(each, order=len(regions) - i) for i, each in enumerate(regions)]
    assert in_reading_order(ranked, 100, 200) == ranked[::-1]


async def test_captions_and_formula_numbers_find_what_they_belong_to():
    regions = [
        region(Label.IMAGE, (10, 10, 90, 60), order=0),
        region(Label.FIGURE_TITLE, (10, 62, 90, 69), order=1),
        region(Label.DISPLAY_FORMULA, (10, 80, 70, 95), order=2),
        region(Label.FORMULA_NUMBER, (80, 84, 90, 92), order=3),
        region(Label.FORMULA_NUMBER, (80, 150, 92, 159), order=4),
    ]
    answers = {(7, 80): "**Figure 2.** The wheel", (15, 60): "E = mc^2", (8, 10): "(3.1)", (9, 12): "(4)"}
    record = (await parsed(regions, answers)).record
    assert [r.caption_of for r in record.regions] == [None, 0, None, 2, None]
    assert record.markdown.split("\n\n") == [
        f"![Figure 2]({record.image_crops[0].path})",
        "**Figure 2.** The wheel",
        "$$\nE = mc^2 \\tag{3.1}\n$$",
        "(4)",
    ]


LEFT, RIGHT = (0, 100, 45, 180), (55, 10, 99, 60)


@pytest.mark.parametrize(
    ("first", "second", "between", "joined"),
    [
        ("The river that turns the wheel of the old mill comes", "from the hills.", None, True),
        ("The river that turns the wheel of the old mill comes", "From the hills.", None, False),
        ("The river that turns the wheel of the old mill comes.", "from the hills.", None, False),
        ("The river that turns the wheel of the old mill comes from", "a = b", Label.DISPLAY_FORMULA, False),
        ("The river that turns the wheel of the old mill comes", "from the hills.", Label.PARAGRAPH_TITLE, False),
        ("- The river that turns the wheel of the old mill\n- comes", "from the hills.", None, False),
        ("water-", "wheel", None, True),
        ("Name", "of the miller", None, False),
    ],
)
async def test_paragraphs_go_on_in_the_next_column(first, second, between, joined):
    regions = [region(Label.TEXT, LEFT, order=0), region(Label.TEXT, RIGHT, order=2)]
    if between:
        regions.append(region(between, (0, 185, 43, 195), order=1))
    answers = {(80, 45): first, (50, 44): second}
    record = (await parsed(regions, answers)).record
    assert record.regions[0].continues is joined
    if joined:
        assert record.markdown == ("waterwheel" if first == "water-" else f"{first} {second}")


async def test_footnotes_are_read_and_stand_at_the_end_unless_they_are_not_wanted():
    regions = [region(Label.FOOTNOTE, (0, 180, 60, 190), order=0), region(Label.TEXT, (0, 10, 50, 20), order=1)]
    answers = {(10, 60): "1 See <b> [here](x).", (10, 50): "Text"}
    record = (await parsed(regions, answers)).record
    assert record.markdown == "Text\n\n1 See &lt;b> [here]\\(x)."
    without = replace(BY_REGIONS, recognition=replace(BY_REGIONS.recognition, footnotes=False))
    record = (await parsed(regions, answers, without)).record
    assert [r.content for r in record.regions] == [None, "Text"]
