"""The page stream: nothing lost, back-pressure holds, errors surface, leaving early cleans up, stopping drains."""

import asyncio
from typing import ClassVar

import pytest
from msgspec.structs import replace

from pagemill.document.identity import PageKey
from pagemill.document.page import PageError, PageResult, Status
from pagemill.errors import NetworkError
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.flight import FlightControl, Ticket
from pagemill.runtime.stream import PageStream
from pagemill.sources.base import DocumentRef, PageRef


def page(number: int, **more) -> PageRef:
    document = DocumentRef(doc_id="d", uri="d.pdf")
    return PageRef(
        document=document,
        key=PageKey("0" * 64, number),
        position=number - 1,
        page_number=number,
        page_id=f"d_{number}",
        payload=None,
        estimated_bytes=1,
        **more,
    )


def ended(ref: PageRef, *, retryable: bool | None = None) -> ParsedPage:
    """A page that is done; one that failed when ``retryable`` says in which way."""
    failed = retryable is not None
    record = PageResult(
        page_id=ref.page_id,
        page_idx=ref.position,
        doc_id="d",
        source="d.pdf",
        page_number=ref.page_number,
        status=Status.FAILED if failed else Status.DONE,
        errors=[PageError(component="layout", category="engine", message="bad")] if failed else [],
        attempts=ref.attempts + 1,
    )
    return ParsedPage(document=ref.document, record=record, retryable=bool(retryable))


class Source:
    skipped_earlier = 0
    skipped_files: ClassVar[dict[str, int]] = {}
    skipped_links: ClassVar[list[str]] = []
    skipped_tables: ClassVar[list[str]] = []
    complete = False

    def __init__(self, *refs: PageRef, error: Exception | None = None) -> None:
        self.refs = refs
        self.total = len(refs)
        self.given = 0
        self.error = error
        self.closed = False

    async def pages(self):
        try:
            for ref in self.refs:
                self.given += 1
                yield ref
            if self.error:
                raise self.error
        finally:
            self.closed = True


def stream(source, parse, *, pages=9, max_attempts=2, max_postponed_bytes=2**20, journal=None, drained=None):
    return PageStream(
        source,
        parse,
        FlightControl(max_pages=pages, max_bytes=99),
        max_attempts=max_attempts,
        max_postponed_bytes=max_postponed_bytes,
        journal=journal,
        drained=drained,
    )


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def at_once(ref: PageRef, ticket: Ticket) -> ParsedPage:
    return ended(ref)


async def test_every_page_comes_out_as_it_finishes():
    gates = {number: asyncio.Event() for number in range(1, 4)}

    async def parse(ref, ticket):
        await gates[ref.page_number].wait()
        return ended(ref)

    order = []
    gates[3].set()
    async for result in stream(Source(*map(page, (1, 2, 3))), parse).pages():
        order.append(result.record.page_number)
        gates[{3: 1, 1: 2, 2: 2}[order[-1]]].set()
    assert order == [3, 1, 2]


async def test_a_slow_consumer_holds_the_source_back():
    source = Source(*map(page, range(1, 1001)))
    seen = 0
    async for _ in stream(source, at_once, pages=4).pages():
        seen += 1
        await turns()
        assert source.given <= seen + 5
    assert seen == 1000


async def test_pages_to_be_skipped_are_handed_on_and_hold_the_source_back_too():
    source = Source(*(page(number, skip="duplicate of c") for number in range(1, 101)))
    seen = 0
    async for result in stream(source, None, pages=4).pages():
        seen += 1
        assert (result.ref.page_number, result.reason, result.document.doc_id) == (seen, "duplicate of c", "d")
        await turns()
        assert source.given <= seen + 5
    assert seen == 100


async def test_an_error_of_the_source_comes_after_the_pages_before_it():
    seen = []

    async def parse(ref, ticket):
        return ended(ref, retryable=True if ref.page_number == 2 else None)

    with pytest.raises(OSError, match="gone"):
        async for result in stream(Source(*map(page, (1, 2, 3)), error=OSError("gone")), parse).pages():
            seen.append(result.record.page_number)
    assert seen == [1, 3]  # what is to be tried again is left for the next run


async def test_an_exception_that_escapes_ends_the_stream_at_once():
    async def parse(ref, ticket):
        if ref.page_number == 1:
            await asyncio.Event().wait()
        raise ZeroDivisionError

    source = Source(*map(page, (1, 2)))
    with pytest.raises(ZeroDivisionError):
        async for _ in stream(source, parse).pages():
            pass
    assert source.closed


async def test_leaving_early_cancels_the_pages_in_flight():
    cancelled = []

    async def parse(ref, ticket):
        if ref.page_number == 1:
            return ended(ref)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(ref.page_number)
            raise

    pages = stream(Source(*map(page, (1, 2, 3))), parse).pages()
    async for _ in pages:
        break
    await pages.aclose()
    assert sorted(cancelled) == [2, 3]


async def test_a_consumer_that_is_cancelled_leaves_no_task_and_no_open_source():
    source = Source(*map(page, range(1, 10)))

    async def parse(ref, ticket):
        await asyncio.Event().wait()

    async def consume():
        async for _ in stream(source, parse, pages=2).pages():
            pass

    consumer = asyncio.create_task(consume())
    await turns()
    consumer.cancel()
    await asyncio.wait({consumer})
    await turns(1)
    assert source.closed
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_stream_has_ended_only_when_its_source_is_closed():
    class SlowToClose(Source):
        async def pages(self):
            try:
                for ref in self.refs:
                    yield ref
            finally:
                await turns()
                self.closed = True

    source = SlowToClose(*map(page, range(1, 10)))
    running = stream(source, at_once, pages=1)
    pages = running.pages()
    await anext(pages)
    await pages.aclose()
    assert source.closed


async def test_stopping_lets_the_pages_in_flight_land_and_begins_no_other():
    go = asyncio.Event()
    starts = []

    async def parse(ref, ticket):
        starts.append(ref.page_number)
        await go.wait()
        return ended(ref, retryable=True if ref.page_number == 1 else None)

    source = Source(*map(page, range(1, 10)))
    running = stream(source, parse, pages=3)
    results = asyncio.create_task(collect(running))
    await turns()
    running.stop_admitting()
    await turns()
    assert source.closed
    assert not results.done()
    go.set()
    assert sorted(result.record.page_number for result in await results) == [2, 3]
    assert starts == [1, 2, 3]  # the first is to be tried again, but not now


async def test_stopping_while_a_page_runs_alone_lets_it_land_and_leaves_the_others():
    alone, go, starts = asyncio.Event(), asyncio.Event(), []

    async def parse(ref, ticket):
        starts.append(ref.page_number)
        alone.set()
        await go.wait()
        return ended(ref)

    running = stream(Source(page(1, attempts=1), page(2, attempts=1)), parse)
    results = asyncio.create_task(collect(running))
    await alone.wait()
    running.stop_admitting()
    await turns()
    go.set()
    assert [result.record.page_number for result in await results] == [1]
    assert starts == [1]


async def test_a_stream_that_is_stopped_before_it_begins_is_empty():
    source = Source(page(1))
    running = stream(source, at_once)
    running.stop_admitting()
    assert await collect(running) == []
    assert source.given == 0


async def collect(running: PageStream) -> list:
    return [result async for result in running.pages()]


def unserved(ref: PageRef) -> ParsedPage:
    error = PageError(component="recognition", category="network", message="no server answers", remedy="Start one.")
    page = ended(ref, retryable=True)
    page.record.errors[:] = [error]
    return replace(page, unserved=True)


async def test_a_page_that_no_server_reads_ends_the_stream_and_those_in_flight_land():
    gate = asyncio.Event()
    starts = []

    async def parse(ref, ticket):
        starts.append(ref.page_number)
        if ref.page_number == 2:
            gate.set()
            return unserved(ref)
        await gate.wait()
        await turns(3)
        return ended(ref)

    source = Source(*map(page, range(1, 101)))
    out = []
    with pytest.raises(NetworkError) as raised:
        async for result in stream(source, parse, pages=3).pages():
            out.append(result.record.page_number)
    assert (raised.value.message, raised.value.remedy) == ("no server answers", "Start one.")
    assert set(out) == set(starts) - {2}
    assert len(starts) < 10
    assert source.closed


async def test_a_page_that_waits_for_a_server_is_left_when_the_user_stops_the_stream():
    postponed = []

    class Notes:
        async def started(self, ref, *, alone):
            running.stop_admitting()

        async def postponed(self, page):
            postponed.append((page.record.page_number, page.record.attempts))

    async def parse(ref, ticket):
        return unserved(ref)

    running = stream(Source(page(1, attempts=1), page(2)), parse, journal=Notes())
    assert await collect(running) == []  # and no error: whoever stops a run knows that it is not at its end
    assert postponed == [(2, 0)]


async def test_a_page_that_no_server_reads_when_it_is_alone_has_failed():
    async def parse(ref, ticket):
        return unserved(ref)

    out = []
    with pytest.raises(NetworkError):
        async for result in stream(Source(page(1, attempts=1), page(2, attempts=1)), parse).pages():
            out.append((result.record.page_number, result.record.status))
    assert out == [(1, Status.FAILED)]
