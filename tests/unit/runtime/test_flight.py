"""Flight control: bounds hold, order is kept, nothing waits for ever."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.runtime.flight import FlightControl, Ticket


def counts(flight: FlightControl) -> tuple[int, int, int, int]:
    """Pages in flight, those of them with pixels, their bytes, and outstanding requests."""
    tickets = flight.tickets
    with_pixels, size = sum(ticket.has_pixels for ticket in tickets), sum(ticket.bytes for ticket in tickets)
    return len(tickets), with_pixels, size, sum(ticket.requests for ticket in tickets)


async def test_a_page_over_the_whole_budget_flies_alone():
    flight = FlightControl(max_pages=4, max_bytes=100)
    first = await flight.enter(10)
    giant = asyncio.create_task(flight.enter(1000))
    small = asyncio.create_task(flight.enter(1))
    await asyncio.sleep(0)
    assert not giant.done()
    assert not small.done()  # no overtaking: the giant would starve
    first.leave()
    ticket = await giant
    assert not small.done()
    ticket.leave()
    await small


async def test_a_cancelled_wait_gives_its_place_up():
    flight = FlightControl(max_pages=1, max_bytes=100)
    first = await flight.enter(1)
    waiting = asyncio.create_task(flight.enter(1))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.leave()
    await asyncio.wait_for(flight.enter(1), 60)


@given(sizes=st.lists(st.integers(0, 200), max_size=40), pages=st.integers(1, 5), limit=st.integers(1, 120))
def test_bounds_hold_for_any_pages(sizes, pages, limit):
    async def go():
        flight = FlightControl(max_pages=pages, max_bytes=limit)
        order = []

        async def page(number, size):
            ticket = await flight.enter(size)
            order.append(number)
            in_flight, _, size, _ = counts(flight)
            assert in_flight <= pages
            assert size <= limit or in_flight == 1
            await asyncio.sleep(0)
            ticket.leave()

        await asyncio.wait_for(asyncio.gather(*(page(i, s) for i, s in enumerate(sizes))), 60)
        assert not flight.tickets
        assert order == sorted(order)

    asyncio.run(go())


async def admitted(flight: FlightControl, size: int = 10) -> Ticket | None:
    """A ticket where there is room at once."""
    entering = asyncio.create_task(flight.enter(size))
    await asyncio.sleep(0)
    if not entering.done():
        entering.cancel()
        return None
    return entering.result()


async def test_a_page_without_pixels_makes_room_for_one_with():
    flight = FlightControl(max_pages=9, max_bytes=100, max_with_pixels=2, enough_requests=99)
    first, second = await flight.enter(40), await flight.enter(40)
    assert await admitted(flight) is None
    waiting = asyncio.create_task(flight.enter(50))
    await asyncio.sleep(0)
    first.pixels_gone(kept_bytes=5, requests=3)
    await waiting
    assert counts(flight) == (3, 2, 95, 3)
    for ticket in (first, second, waiting.result()):
        ticket.leave()
    assert not flight.tickets


async def test_no_page_is_admitted_while_enough_requests_are_outstanding():
    flight = FlightControl(max_pages=9, max_bytes=100, enough_requests=4)
    first = await flight.enter(1)
    first.pixels_gone(kept_bytes=0, requests=5)
    assert await admitted(flight) is None
    waiting = asyncio.create_task(flight.enter(1))
    await asyncio.sleep(0)
    first.request_ended()
    await asyncio.sleep(0)
    assert not waiting.done()
    first.request_ended()
    await waiting


async def test_what_a_page_reports_after_it_has_left_counts_no_more():
    flight = FlightControl(max_pages=9, max_bytes=100)
    ticket = await flight.enter(10)
    ticket.pixels_gone(kept_bytes=200, requests=2)
    assert counts(flight)[2] == 10  # never more than it was estimated at
    ticket.leave()
    ticket.request_ended()
    assert not flight.tickets


@given(
    sizes=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 12)), max_size=30),
    with_pixels=st.integers(1, 3),
    enough=st.integers(1, 10),
)
def test_bounds_hold_for_pages_that_wait_for_answers(sizes, with_pixels, enough):
    async def go():
        flight = FlightControl(max_pages=8, max_bytes=100, max_with_pixels=with_pixels, enough_requests=enough)

        async def page(size, requests):
            ticket = await flight.enter(size)
            assert counts(flight)[1] <= with_pixels or len(flight.tickets) == 1
            await asyncio.sleep(0)
            ticket.pixels_gone(kept_bytes=size // 4, requests=requests)
            assert counts(flight)[3] < enough + with_pixels * 12
            for _ in range(requests):
                await asyncio.sleep(0)
                ticket.request_ended()
            ticket.leave()

        await asyncio.wait_for(asyncio.gather(*(page(*each) for each in sizes)), 60)
        assert not flight.tickets

    asyncio.run(go())
