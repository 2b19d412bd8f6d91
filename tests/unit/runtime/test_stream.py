"""The page stream: nothing lost, back-pressure holds, errors surface, leaving early cleans up."""

from __future__ import annotations

import asyncio

import pytest

from pagemill.runtime.flight import FlightControl
from pagemill.runtime.stream import stream_pages
from pagemill.sources.base import DocumentRef, PageRef


def page(number: int) -> PageRef:
    document = DocumentRef(doc_id="d", uri="d.pdf")
    return PageRef(document=document, page_number=number, page_id=f"d_{number}", payload=None, estimated_bytes=1)


class Source:
    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.total = count
        self.given = 0
        self.error = error

    async def pages(self):
        for number in range(1, self.total + 1):
            self.given += 1
            yield page(number)
        if self.error:
            raise self.error


async def test_every_page_comes_out_as_it_finishes():
    gates = {number: asyncio.Event() for number in range(1, 4)}

    async def parse(position, ref):
        await gates[ref.page_number].wait()
        return ref.page_number

    order = []
    gates[3].set()
    async for number in stream_pages(Source(3), parse, FlightControl(max_pages=3, max_bytes=99)):
        order.append(number)
        gates[{3: 1, 1: 2, 2: 2}[number]].set()
    assert order == [3, 1, 2]


async def test_a_slow_consumer_holds_the_source_back():
    source = Source(1000)

    async def parse(position, ref):
        assert position == ref.page_number - 1
        return ref.page_number

    seen = 0
    async for _ in stream_pages(source, parse, FlightControl(max_pages=4, max_bytes=99)):
        seen += 1
        for _ in range(20):
            await asyncio.sleep(0)
        assert source.given <= seen + 5
    assert seen == 1000


async def test_an_error_of_the_source_comes_after_the_pages_before_it():
    async def parse(position, ref):
        return ref.page_number

    seen = []
    with pytest.raises(OSError, match="gone"):
        async for number in stream_pages(Source(2, OSError("gone")), parse, FlightControl(max_pages=9, max_bytes=99)):
            seen.append(number)
    assert seen == [1, 2]


async def test_leaving_early_cancels_the_pages_in_flight():
    cancelled = []

    async def parse(position, ref):
        if ref.page_number == 1:
            return 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(ref.page_number)
            raise

    stream = stream_pages(Source(3), parse, FlightControl(max_pages=3, max_bytes=99))
    async for _ in stream:
        break
    await stream.aclose()
    assert sorted(cancelled) == [2, 3]


async def test_no_pages_end_at_once():
    async def parse(position, ref):
        raise AssertionError

    stream = stream_pages(Source(0), parse, FlightControl(max_pages=1, max_bytes=1))
    assert [number async for number in stream] == []


async def test_a_consumer_that_is_cancelled_leaves_no_task_and_no_open_source():
    closed = asyncio.Event()

    class Watched(Source):
        async def pages(self):
            try:
                async for ref in super().pages():
                    yield ref
            finally:
                closed.set()

    async def parse(position, ref):
        await asyncio.Event().wait()

    async def consume():
        async for _ in stream_pages(Watched(9), parse, FlightControl(max_pages=2, max_bytes=99)):
            pass

    consumer = asyncio.create_task(consume())
    for _ in range(20):
        await asyncio.sleep(0)
    consumer.cancel()
    await asyncio.wait({consumer})
    await asyncio.sleep(0)
    assert closed.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}
