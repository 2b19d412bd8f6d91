"""One page through fake services: what its time limit covers, and how failures are told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from pagemill.config.settings import ParseSettings
from pagemill.document.page import Status
from pagemill.errors import ExitCode, PagemillError, TooLargeError
from pagemill.imaging.page import DecodedPage
from pagemill.parsing.page import parse_page
from pagemill.recognition.reader import ReadPage
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef


class Services:
    """Blank pages; what a test sets as ``before_decoding`` or ``before_reading`` is awaited first."""

    def __init__(self, *, before_decoding=None, before_reading=None):
        self.before_decoding, self.before_reading = before_decoding, before_reading

    async def decode(self, payload):
        if self.before_decoding:
            await self.before_decoding()
        return DecodedPage(pixels=np.full((60, 40, 3), 255, dtype=np.uint8), scale=0.5)

    async def read(self, pixels, languages):
        if self.before_reading:
            await self.before_reading()
        return ReadPage(lines=[])

    async def detect_regions(self, pixels):
        return []

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)


REF = PageRef(
    document=DocumentRef(doc_id="a", uri="a.png"),
    page_number=1,
    page_id="a_1",
    payload=EncodedImage(path=Path("a.png")),
    metadata={"year": 2024},
)


async def test_a_blank_page_is_done():
    page = await parse_page(REF, 3, Services(), ParseSettings())
    assert (page.record.status, page.exit_code, page.record.page_idx) == (Status.DONE, ExitCode.OK, 3)
    assert (page.record.width, page.record.height, page.record.scale) == (40, 60, 0.5)
    assert page.record.metadata == {"year": 2024}


async def test_waiting_to_be_decoded_does_not_use_up_the_time_of_a_page():
    turn = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, turn.set)
    page = await parse_page(REF, 0, Services(before_decoding=turn.wait), ParseSettings(page_timeout_s=0.1))
    assert not page.record.errors


async def test_a_page_over_its_time_limit_fails_with_its_stage():
    page = await parse_page(REF, 0, Services(before_reading=asyncio.Event().wait), ParseSettings(page_timeout_s=0.01))
    assert page.exit_code is ExitCode.TIMEOUT
    (error,) = page.record.errors
    assert (error.component, error.category) == ("recognition", "timeout")
    assert "--page-timeout" in (error.remedy or "")


@pytest.mark.parametrize(
    ("raised", "category", "code"),
    [
        (TooLargeError("big"), "too_large", ExitCode.INPUT),
        (PagemillError("ours"), "internal", ExitCode.INTERNAL),
        (ZeroDivisionError("defect"), "internal", ExitCode.INTERNAL),
        (TimeoutError("of a socket, not of the page"), "internal", ExitCode.INTERNAL),
    ],
)
async def test_errors_keep_category_exit_code_and_metadata(raised, category, code):
    async def fail():
        raise raised

    page = await parse_page(REF, 0, Services(before_decoding=fail), ParseSettings())
    assert (page.record.status, page.exit_code) == (Status.FAILED, code)
    assert [(error.component, error.category) for error in page.record.errors] == [("decode", category)]
    assert page.record.metadata == {"year": 2024}


async def test_cancelling_is_no_failure_of_the_page():
    page = asyncio.create_task(parse_page(REF, 0, Services(before_reading=asyncio.Event().wait), ParseSettings()))
    await asyncio.sleep(0)
    page.cancel()
    with pytest.raises(asyncio.CancelledError):
        await page
