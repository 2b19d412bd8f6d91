"""A page that a model reads as a whole: the request, the record, places, pictures, what is kept and what is let go."""

import asyncio
import gc
import io
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pagemill.config.modes import PhotographMode, ReadingMode, TextLayerMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.document.identity import PageKey
from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.page import ContentFormat, Status
from pagemill.errors import EngineError, NetworkError
from pagemill.imaging import unwarping
from pagemill.imaging.page import DecodedPage
from pagemill.parsing.page import parse_page
from pagemill.recognition.base import PageElement, PageReading, Problem, RegionReader
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef

REF = PageRef(
    document=DocumentRef(doc_id="a", uri="a.png"),
    key=PageKey("0" * 64, 1),
    position=3,
    page_number=7,
    page_id="a_7",
    payload=EncodedImage(source=Path("a.png")),
    metadata={"year": 2024},
)
BY_PAGES = ParseSettings(recognition=RecognitionSettings(engine="fake"), text_layer=TextLayerMode.NEVER)
HEIGHT, WIDTH = 200, 100
FORMATS = {Label.TABLE: ContentFormat.HTML, Label.DISPLAY_FORMULA: ContentFormat.LATEX}


def element(label: Label, content: str | None, *boxes, problem: Problem | None = None) -> PageElement:
    """Boxes are given in pixels of the page."""
    shares = tuple((x1 / WIDTH, y1 / HEIGHT, x2 / WIDTH, y2 / HEIGHT) for x1, y1, x2, y2 in boxes)
    content_format = FORMATS.get(label, ContentFormat.MARKDOWN)
    return PageElement(label=label, boxes=shares, content=content, content_format=content_format, problem=problem)


def page_of(*elements: PageElement, problem: Problem | None = None) -> PageReading:
    return PageReading(elements=elements, engine="fake:model", problem=problem)


class Reader(RegionReader):
    name = "fake"
    in_flight = 4
    reads = ReadingMode.PAGES

    def __init__(self, answer):
        self.answer = answer
        self.prepared = []
        self.gate: asyncio.Event | None = None
        self.begun = asyncio.Event()

    def prepare(self, crop, task):
        if self.answer == "unprepared":
            raise EngineError("cannot be prepared")
        self.prepared.append((crop.shape[:2], task))
        return "prepared"

    async def read_page(self, prepared):
        assert prepared == "prepared"
        self.begun.set()
        if self.gate:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Services:
    def __init__(self, reader, pixels=None):
        self.reader = reader
        if pixels is None:
            pixels = np.full((HEIGHT, WIDTH, 3), 255, dtype=np.uint8)
            pixels[100:150, 20:80] = (200, 30, 30)
        self.pixels = pixels
        self.alive: weakref.ref | None = None

    async def decode(self, payload):
        pixels = self.pixels.copy()
        self.alive = weakref.ref(pixels)
        return DecodedPage(pixels=pixels, dpi=200.0, scale=0.5, notes=("decoded at 1/2 size",))

    async def detect_regions(self, pixels):
        raise AssertionError("no page is laid out here")

    async def region_reader(self):
        return self.reader

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)


class Ticket:
    def __init__(self):
        self.kept = self.requests = self.ended = 0

    def pixels_gone(self, *, kept_bytes, requests):
        self.kept, self.requests = kept_bytes, requests

    def request_ended(self):
        self.ended += 1


async def parsed(answer, settings=BY_PAGES, pixels=None, ticket=None):
    return await parse_page(REF, Services(Reader(answer), pixels), settings, ticket)


async def test_a_page_becomes_a_record_in_the_order_of_the_model():
    services = Services(
        Reader(
            page_of(
                element(Label.DOC_TITLE, "# The Mill", (10, 0, 90, 10)),
                element(Label.TEXT, "Below comes first.", (10, 160, 90, 180)),
                element(Label.IMAGE, None, (20, 100, 80, 150)),
                element(Label.FIGURE_TITLE, "Figure 1", (20, 151, 80, 158)),
                element(Label.TABLE, "<table><tr><td>1</td></tr></table>", (10, 20, 90, 40)),
                element(Label.DISPLAY_FORMULA, "a = b", (20, 50, 80, 60)),
                element(Label.FOOTER, "7", (45, 190, 55, 199)),
            )
        )
    )
    page = await parse_page(REF, services, replace(BY_PAGES, preview_pages=9))
    record = page.record
    assert services.reader.prepared == [((HEIGHT, WIDTH), Task.PAGE)]
    assert (record.status, record.errors, record.page_id, record.page_number) == (Status.DONE, [], "a_7", 7)
    assert (record.width, record.height, record.scale, record.dpi) == (WIDTH, HEIGHT, 0.5, 200.0)
    assert record.metadata == {"year": 2024, "notes": ["decoded at 1/2 size"]}
    assert (record.text_source, record.attempts) == ("ocr", 1)
    assert [region.index for region in record.regions] == list(range(7))
    title, _, image, caption, table, formula, footer = record.regions
    assert (title.level, title.bbox, title.bbox_2d) == (1, pytest.approx((10, 0, 90, 10)), (100, 0, 900, 50))
    assert title.content == "The Mill"  # without the mark of Markdown: the label says it
    assert (title.source, title.engine, title.score) == ("fake:model", "fake:model", None)
    assert (image.content, image.engine, caption.caption_of) == (None, None, image.index)
    assert (table.content_format, formula.content_format) == (ContentFormat.HTML, ContentFormat.LATEX)
    assert footer.content == "7"
    assert record.markdown.split("\n\n") == [
        "# The Mill", "Below comes first.", "![Figure 1](crops/a_7_crop_2.jpg)", "Figure 1",
        "<table><tr><td>1</td></tr></table>", "$$\na = b\n$$",
    ]  # fmt: skip
    assert page.preview
    assert {"decode", "unwarping", "preparation", "recognition", "analysis"} == record.timings.keys()


async def test_pictures_are_cut_out_of_the_page_in_full_resolution():
    page = await parsed(page_of(element(Label.IMAGE, None, (20, 100, 80, 150), (0, 0, 10, 10))))
    assert [region.label for region in page.record.regions] == [Label.IMAGE, Label.IMAGE]
    (path, encoded), (other, _) = page.crops
    assert [crop.path for crop in page.record.image_crops] == [path, other]
    assert (path, other) == ("crops/a_7_crop_0.jpg", "crops/a_7_crop_1.jpg")
    cut = np.asarray(Image.open(io.BytesIO(encoded)))
    assert cut.shape == (50, 60, 3)
    assert np.abs(cut.astype(int) - (200, 30, 30)).mean() < 3
    without = await parsed(page_of(element(Label.IMAGE, None, (20, 100, 80, 150))), replace(BY_PAGES, crops=False))
    assert (without.crops, without.record.image_crops) == ((), [])


async def test_a_text_in_several_pieces_is_one_region_around_them():
    page = await parsed(page_of(element(Label.TEXT, "One text.", (10, 10, 40, 60), (50, 5, 90, 20))))
    (region,) = page.record.regions
    assert region.bbox == pytest.approx((10, 5, 90, 60))


async def test_what_has_no_place_stands_somewhere_on_the_page():
    answer = page_of(element(Label.TEXT, "Somewhere"), element(Label.DISPLAY_FORMULA, "a"), element(Label.IMAGE, None))
    page = await parsed(answer)
    assert [(region.bbox_2d, region.source) for region in page.record.regions] == [
        ((0, 0, 1000, 1000), "whole-page")
    ] * 3
    assert page.crops == ()
    assert [(error.region, error.category) for error in page.record.errors] == [(2, "no_grounding")]
    assert page.record.markdown.startswith("Somewhere\n\n$$\na\n$$\n\n<!-- region 2 (image) could not be read")


async def test_problems_are_told_of_the_page_and_of_regions():
    answer = page_of(
        element(Label.TEXT, "Words", (0, 0, 10, 10)),
        element(Label.TABLE, None, (0, 20, 10, 30), problem=Problem("empty_text", "nothing")),
        problem=Problem("truncated", "the answer was cut off", "more tokens"),
    )
    record = (await parsed(answer)).record
    assert record.status is Status.DONE
    assert [(error.component, error.category, error.region, error.remedy) for error in record.errors] == [
        ("recognition", "truncated", None, "more tokens"),
        ("recognition", "empty_text", 1, None),
    ]
    assert record.markdown.startswith("Words")


async def test_what_took_several_attempts_is_told_of_all_that_is_on_the_page():
    answer = page_of(element(Label.TEXT, "Words", (0, 0, 10, 10)), element(Label.IMAGE, None, (0, 20, 10, 30)))
    record = (await parsed(replace(answer, attempts=3))).record
    assert [region.attempts for region in record.regions] == [3, 3]
    assert record.attempts == 1  # of the page as a whole: none failed


@pytest.mark.parametrize(
    ("category", "retryable"),
    [("engine", True), ("missing", False), ("unheard", True)],
)
async def test_a_page_of_which_nothing_was_read_has_failed(category, retryable):
    answer = PageReading(elements=None, engine="fake", problem=Problem(category, "no answer", "wait"))
    page = await parsed(answer)
    assert (page.record.status, page.retryable) == (Status.FAILED, retryable)
    (error,) = page.record.errors
    assert (error.component, error.category, error.message, error.remedy) == (
        "recognition",
        category,
        "no answer",
        "wait",
    )
    assert (page.record.page_id, page.record.page_number) == ("a_7", 7)


async def test_a_page_that_cannot_be_prepared_has_failed():
    page = await parsed("unprepared")
    assert (page.record.status, page.record.errors[0].message) == (Status.FAILED, "cannot be prepared")


async def test_no_server_is_the_run_s():
    page = await parsed(NetworkError("nobody answers"))
    assert page.unserved


async def test_a_blank_page_is_not_asked_about():
    ticket = Ticket()
    page = await parsed(None, pixels=np.full((HEIGHT, WIDTH, 3), 250, dtype=np.uint8), ticket=ticket)
    assert (page.record.status, page.record.regions, page.record.text_source) == (Status.DONE, [], "")
    assert (ticket.requests, ticket.kept) == (0, 0)


async def test_footnotes_that_are_not_wanted_keep_their_place():
    answer = page_of(element(Label.TEXT, "Text", (0, 0, 9, 9)), element(Label.FOOTNOTE, "1 See.", (0, 190, 90, 199)))
    assert (await parsed(answer)).record.markdown == "Text\n\n1 See."
    without = replace(BY_PAGES, recognition=replace(BY_PAGES.recognition, footnotes=False))
    record = (await parsed(answer, without)).record
    assert [(region.content, region.engine) for region in record.regions] == [("Text", "fake:model"), (None, None)]


async def test_pixels_are_let_go_while_the_page_waits():
    reader = Reader(page_of(element(Label.IMAGE, None, (20, 100, 80, 150))))
    reader.gate = asyncio.Event()
    services, ticket = Services(reader), Ticket()
    task = asyncio.create_task(parse_page(REF, services, BY_PAGES, ticket))
    await asyncio.wait_for(reader.begun.wait(), 60)
    gc.collect()
    assert services.alive() is None
    assert ticket.requests == 1
    assert 0 < ticket.kept < HEIGHT * WIDTH * 3
    assert ticket.ended == 0
    reader.gate.set()
    page = await task
    assert ticket.ended == 1
    assert len(page.crops) == 1


SHARE = st.floats(0, 1)
BOXES = st.lists(
    st.tuples(SHARE, SHARE, SHARE, SHARE).map(
        lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
    ),
    max_size=4,
)
ELEMENTS = st.lists(
    st.builds(
        PageElement,
        label=st.sampled_from(list(Label)),
        boxes=BOXES.map(tuple),
        content=st.sampled_from([None, "", "# Words", "<table><tr><td>1</td></tr></table>", "$x$ <b>"]),
        content_format=st.sampled_from(list(ContentFormat)),
    ),
    max_size=8,
).map(tuple)  # fmt: skip


@given(ELEMENTS)
def test_whatever_a_model_says_becomes_a_sound_record(elements: tuple[PageElement, ...]):
    page = asyncio.run(parsed(PageReading(elements=elements, engine="fake")))
    record = page.record
    assert record.status is Status.DONE
    expected = sum(max(1, len(each.boxes)) if TASK_OF_LABEL[each.label] is Task.SKIP else 1 for each in elements)
    assert [region.index for region in record.regions] == list(range(expected))
    for region in record.regions:
        x1, y1, x2, y2 = region.bbox
        assert 0 <= x1 <= x2 <= WIDTH
        assert 0 <= y1 <= y2 <= HEIGHT
    assert {path for path, _ in page.crops} == {crop.path for crop in record.image_crops}


async def test_a_photograph_goes_to_the_model_flat_and_its_boxes_come_back_to_the_photograph(monkeypatch):
    v, u = np.meshgrid(np.linspace(0.1, 0.9, 45), np.linspace(0.1, 0.9, 31), indexing="ij")
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: np.stack([u, v], axis=2).astype(np.float32))
    pixels = np.full((400, 300, 3), 200, dtype=np.uint8)
    pixels[150:250, 90:210] = (200, 30, 30)
    reader = Reader(page_of(PageElement(
        label=Label.IMAGE, boxes=((0.25, 0.25, 0.75, 0.75),), content=None, content_format=ContentFormat.MARKDOWN
    )))  # fmt: skip
    settings = replace(BY_PAGES, photographs=PhotographMode.ALWAYS, preview_pages=9)
    page = await parse_page(REF, Services(reader, pixels), settings)
    ((shown, task),) = reader.prepared
    (image,) = page.record.regions
    assert task is Task.PAGE and shown[0] < 400 and shown[1] < 300
    assert (page.record.width, page.record.height, page.record.unwarped) == (300, 400, "uvdoc")
    # The flat page reaches from 0.1 to 0.9 of the photograph, and a node of the mesh further on every side.
    reach_x, reach_y = 0.8 * (1 + 2 / 30), 0.8 * (1 + 2 / 44)
    left, top = 300 * (0.5 - reach_x / 4), 400 * (0.5 - reach_y / 4)
    assert image.bbox == pytest.approx((left, top, 300 - left, 400 - top), abs=1.5)
    ((path, crop),) = page.crops
    assert page.record.image_crops[0].path == path and page.record.image_crops[0].bbox == image.bbox_2d
    assert abs(int(np.asarray(Image.open(io.BytesIO(crop)))[..., 0].mean()) - 200) < 5  # in its own colours
    assert page.preview is not None
    assert Image.open(io.BytesIO(page.preview)).size == (300, 400)
