"""One page through fake services: what its time limit covers, and how failures are told."""

import asyncio
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pagemill.config.modes import PhotographMode
from pagemill.config.settings import ParseSettings
from pagemill.document.identity import PageKey
from pagemill.document.page import Status, TextLine
from pagemill.errors import EngineError, PagemillError, TooLargeError
from pagemill.imaging import unwarping
from pagemill.imaging.page import DecodedPage, TextLayer
from pagemill.parsing.page import dead_page, parse_page
from pagemill.recognition.reader import ReadPage
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef
from pagemill.sources.stamp import FileStamp


class Services:
    """Blank pages; what a test sets as ``before_decoding`` or ``before_reading`` is awaited first."""

    def __init__(self, *, before_decoding=None, before_reading=None, read=None):
        self.before_decoding, self.before_reading = before_decoding, before_reading
        self.what_is_read = read or ReadPage(lines=[])

    async def decode(self, payload):
        if self.before_decoding:
            await self.before_decoding()
        return DecodedPage(pixels=np.full((60, 40, 3), 255, dtype=np.uint8), scale=0.5)

    async def read(self, pixels, languages, *, bends=False):
        if self.before_reading:
            await self.before_reading()
        return self.what_is_read

    async def detect_lines(self, pixels):
        return []

    async def detect_regions(self, pixels):
        return []

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)


REF = PageRef(
    document=DocumentRef(doc_id="a", uri="a.png"),
    key=PageKey("0" * 64, 1),
    position=3,
    page_number=1,
    page_id="a_1",
    payload=EncodedImage(source=Path("a.png")),
    metadata={"year": 2024},
)


def failing(error):
    async def fail():
        raise error

    return fail


async def test_a_blank_page_is_done():
    page = await parse_page(REF, Services(), ParseSettings())
    assert (page.record.status, page.record.page_idx) == (Status.DONE, 3)
    assert (page.record.width, page.record.height, page.record.scale) == (40, 60, 0.5)
    assert page.record.metadata == {"year": 2024}
    assert (page.record.page_key, page.record.attempts) == (f"{'0' * 64}/1", 1)


async def test_attempts_are_counted_over_processes():
    for services in (Services(), Services(before_decoding=failing(EngineError("odd")))):
        page = await parse_page(replace(REF, attempts=2), services, ParseSettings())
        assert page.record.attempts == 3
    dead = dead_page(replace(REF, attempts=2, death="SIGKILL"))
    assert (dead.record.attempts, dead.record.page_idx, dead.retryable) == (2, 3, False)


def lines_of(confidence: float, box=(2.0, 2.0, 30.0, 10.0), text="alpha beta") -> list[TextLine]:
    return [TextLine(text=text, box=box, confidence=confidence, engine="e")]


async def test_waiting_to_be_decoded_does_not_use_up_the_time_of_a_page():
    turn = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, turn.set)
    page = await parse_page(REF, Services(before_decoding=turn.wait), ParseSettings(page_timeout_s=0.1))
    assert not page.record.errors


async def test_a_page_over_its_time_limit_fails_with_its_stage():
    page = await parse_page(REF, Services(before_reading=asyncio.Event().wait), ParseSettings(page_timeout_s=0.01))
    (error,) = page.record.errors
    assert (error.component, error.category) == ("recognition", "timeout")
    assert "--page-timeout" in (error.remedy or "")


async def test_a_page_that_is_computed_slowly_on_a_busy_machine_is_not_over_its_limit(monkeypatch):
    looked = asyncio.Event()
    monkeypatch.setattr("pagemill.computing.cpu_time.Limit.left", lambda self: looked.set() or 0.001)
    page = await parse_page(REF, Services(before_reading=looked.wait), ParseSettings(page_timeout_s=0.001))
    assert not page.record.errors


@pytest.mark.parametrize(
    ("raised", "category", "retryable"),
    [
        (TooLargeError("big"), "too_large", False),
        (EngineError("odd"), "engine", True),
        (PagemillError("ours"), "internal", True),
        (MemoryError(), "internal", True),
        (ZeroDivisionError("defect"), "internal", True),
        (TimeoutError("of a socket, not of the page"), "internal", True),
    ],
)
async def test_errors_keep_category_and_metadata(raised, category, retryable):
    page = await parse_page(REF, Services(before_decoding=failing(raised)), ParseSettings())
    assert page.retryable is retryable
    assert page.record.status is Status.FAILED
    assert [(error.component, error.category) for error in page.record.errors] == [("decode", category)]
    assert page.record.metadata == {"year": 2024}


async def test_cancelling_is_no_failure_of_the_page():
    page = asyncio.create_task(parse_page(REF, Services(before_reading=asyncio.Event().wait), ParseSettings()))
    await asyncio.sleep(0)
    page.cancel()
    with pytest.raises(asyncio.CancelledError):
        await page


SHADED = np.clip(
    np.linspace(250, 140, 400)[:, None, None]
    - np.linspace(0, 40, 300)[None, :, None]
    + np.random.default_rng(0).normal(0, 1.5, (400, 300, 3)),
    0,
    255,
).astype(np.uint8)
"""A photograph of blank paper."""


class PhotographServices(Services):
    """A photograph; remembers the pixels that were read."""

    def __init__(self, text_layer=None):
        super().__init__(read=ReadPage(lines=lines_of(0.95, box=(20.0, 20.0, 120.0, 40.0))))
        self.text_layer, self.seen = text_layer, []

    async def decode(self, payload):
        return DecodedPage(pixels=SHADED, text_layer=self.text_layer)

    async def read(self, pixels, languages, *, bends=False):
        self.seen.append(pixels)
        return self.what_is_read


@pytest.fixture
def network(monkeypatch):
    """A network that sees a page 10 % inside of the photograph."""
    v, u = np.meshgrid(np.linspace(0.1, 0.9, 45), np.linspace(0.1, 0.9, 31), indexing="ij")
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: np.stack([u, v], axis=2).astype(np.float32))


async def test_a_photograph_is_read_flat_and_evenly_lit_and_its_boxes_lie_on_it(network):
    services = PhotographServices()
    parsed = await parse_page(replace(REF, position=0), services, ParseSettings(preview_pages=1))
    (seen,) = services.seen
    assert seen.shape[:2] != SHADED.shape[:2]
    assert seen.min() > 235
    record = parsed.record
    assert (record.unwarped, record.width, record.height) == ("uvdoc", 300, 400)
    left, top, *_ = record.regions[0].lines[0].box
    assert left == pytest.approx(20 + 30 - 8, abs=3) and top == pytest.approx(20 + 40 - 7, abs=3)
    assert parsed.preview is not None
    assert Image.open(io.BytesIO(parsed.preview)).size == (300, 400)


@pytest.mark.parametrize(
    ("layer", "mode", "is_unwarped"),
    [
        pytest.param(TextLayer(lines=(), characters=0, unmapped=0), "auto", True, id="PDF of a photograph"),
        pytest.param(TextLayer(lines=(), characters=0, unmapped=0), "never", False, id="never"),
        pytest.param(
            TextLayer(
                lines=(TextLine(text="A line of text that is sound.", box=(20.0, 20.0, 280.0, 380.0)),),
                characters=24,
                unmapped=0,
            ),
            "always",
            False,
            id="with a text layer",
        ),
        pytest.param(
            TextLayer(lines=(), characters=0, unmapped=0, marks=(TextLine(text="x", box=(1.0, 1.0, 9.0, 9.0)),)),
            "auto",
            False,
            id="with form fields",
        ),
    ],
)
async def test_no_page_whose_text_layer_is_used_is_unwarped(network, layer, mode, is_unwarped):
    services = PhotographServices(layer)
    parsed = await parse_page(REF, services, ParseSettings(photographs=PhotographMode(mode)))
    assert (parsed.record.unwarped == "uvdoc") == is_unwarped
    assert parsed.record.status is Status.DONE
    assert (parsed.record.width, parsed.record.height) == (300, 400)


async def test_a_page_of_a_file_that_was_changed_fails_by_name(tmp_path: Path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    stamp = FileStamp.of(path, "0" * 64, path.stat())
    ref = replace(REF, stamp=stamp)
    assert (await parse_page(ref, Services(), ParseSettings())).record.status is Status.DONE
    path.write_bytes(b"newer")
    page = await parse_page(ref, Services(), ParseSettings())
    assert (page.record.status, page.retryable) == (Status.FAILED, False)
    (error,) = page.record.errors
    assert (error.component, error.category) == ("decode", "changed")
    assert "a.png was changed while it was being read" in error.message
