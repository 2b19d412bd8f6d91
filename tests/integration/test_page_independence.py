"""A page's record does not depend on what else is read: its neighbours, their order, or the number of threads."""

import io
import random
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont

from pagemill.config.machine import RuntimeSettings
from pagemill.config.settings import ParseSettings
from pagemill.imaging.types import Pixels
from pagemill.parsing.page import ParsedPage
from pagemill.recognition import rapidocr_engine
from pagemill.recognition.rapidocr_engine import RapidOcrRecognizer
from pagemill.recognition.tesseract_engine import TesseractRecognizer, installed_languages
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources import SourceOptions

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SAMPLES = Path(__file__).parents[2] / "samples"
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
WORDS = [
    "the",
    "mill",
    "turns",
    "slowly",
    "in",
    "spring",
    "when",
    "water",
    "is",
    "high;",
    "paper",
    "dries",
    "on",
    "long",
    "racks",
    "(1871)",
    "and",
    "Größe",
    "zählt.",
]


def line_image(seed: int) -> Pixels:
    """A noisy line of one to five words."""
    dice = random.Random(seed)
    text = " ".join(dice.choices(WORDS, k=dice.randint(1, 5)))
    font = ImageFont.truetype(FONT, dice.choice([17, 22, 30]))
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (round(right - left) + 12, round(bottom - top) + 12), "white")
    ImageDraw.Draw(image).text((6 - left, 6 - top), text, font=font, fill=(40, 40, 40))
    noisy = np.asarray(image, np.float32) + np.random.default_rng(seed).normal(0, 12, (image.height, image.width, 1))
    return noisy.clip(0, 255).astype(np.uint8)


def page_image(seed: int) -> bytes:
    """A page of twelve such lines; PNG."""
    page = np.full((720, 700, 3), 255, np.uint8)
    for row in range(12):
        line = line_image(100 * seed + row)
        page[40 + 54 * row : 40 + 54 * row + line.shape[0], 60 : 60 + line.shape[1]] = line[:, : 700 - 60]
    buffer = io.BytesIO()
    Image.fromarray(page).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_line_reads_the_same_to_the_last_bit_in_every_batch():
    recognizer = rapidocr_engine.RapidOcrRecognizer()
    lines = [line_image(seed) for seed in range(24)]
    alone = [recognizer.recognize([line])[0] for line in lines]
    order = random.Random(1).sample(range(24), 24)
    shuffled = recognizer.recognize([lines[index] for index in order])
    assert [shuffled[order.index(index)] for index in range(24)] == alone


@pytest.mark.skipif("en" not in installed_languages(), reason="Tesseract with English is not installed")
def test_a_line_reads_the_same_in_every_batch_of_tesseract():
    recognizer = TesseractRecognizer("en")
    lines = [line_image(seed) for seed in range(8)]
    assert recognizer.recognize(lines[::-1])[::-1] == [recognizer.recognize([line])[0] for line in lines]


async def records(runs: Sequence[Sequence[Any]], threads: int, in_flight: int = 0) -> list[bytes]:
    """The encoded records of the pages of one run after another, without what tells time and place."""
    encoded: list[bytes] = []
    async with Pipeline(
        Services(ParseSettings(), RuntimeSettings(threads=threads, pages_in_flight=in_flight))
    ) as pipeline:
        for pages in runs:
            found: dict[int, bytes] = {}
            async with aclosing(pipeline.stream(pages, SourceOptions())) as results:
                async for page in results:
                    assert isinstance(page, ParsedPage)
                    record = msgspec.structs.replace(
                        page.record,
                        timings={},
                        page_id="",
                        page_idx=0,
                        doc_id="",
                        source="",
                        page_number=None,
                        page_key="",
                        image_crops=[
                            msgspec.structs.replace(crop, path=f"{crop.region}") for crop in page.record.image_crops
                        ],
                        markdown=page.record.markdown.replace(page.record.page_id, ""),
                    )
                    found[page.record.page_idx] = msgspec.json.encode(record)
            encoded.extend(found[index] for index in sorted(found))
    return encoded


def half_a_page(name: str) -> bytes:
    """The upper half of the first page of a sample as PNG."""
    buffer = io.BytesIO()
    with pypdfium2.PdfDocument(SAMPLES / name) as document:
        page = document[0].render(scale=1.5).to_pil()
        page.crop((0, 0, page.width, page.height // 2)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


async def test_pages_read_the_same_alone_turned_round_with_more_threads_and_in_larger_batches(monkeypatch):
    korean = "ko" in installed_languages()
    pages = [half_a_page("report.pdf"), *[half_a_page("notice-ko.pdf")] * korean, page_image(0)]
    for engine in (RapidOcrRecognizer, TesseractRecognizer):
        monkeypatch.setattr(engine, "max_batch", 1)
    alone = await records([[page] for page in pages], 1, 1)
    assert b"mill" in alone[-1] or b"paper" in alone[-1]
    assert (b"\xea" in b"".join(alone)) == korean, "no Korean was read"
    for engine in (RapidOcrRecognizer, TesseractRecognizer):
        monkeypatch.setattr(engine, "max_batch", 8)
    assert await records([pages[::-1]], 2, 8) == alone[::-1]


async def test_the_pages_of_a_document_are_the_same_with_one_thread_and_in_another_order_of_documents():
    documents = [SAMPLES / "report.pdf", SAMPLES / "notice-ko.pdf", page_image(1)]
    in_order = await records([[document] for document in documents], 1, 1)
    assert len(in_order) > len(documents)
    together = await records([documents], 2, 8)
    assert together == in_order
