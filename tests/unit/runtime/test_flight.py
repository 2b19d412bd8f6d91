"""Flight control: bounds hold, order is kept, nothing waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.runtime.flight import FlightControl


async def test_pages_wait_for_a_free_slot():
    flight = FlightControl(max_pages=1, max_bytes=100)
    first = await flight.enter(10)
    second = asyncio.create_task(flight.enter(10))
    await asyncio.sleep(0)
    assert not second.done()
    first.leave()
    await second
    assert (flight.pages, flight.bytes) == (1, 10)


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
    await asyncio.wait_for(flight.enter(1), 1)


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(0, 200), max_size=40), pages=st.integers(1, 5), limit=st.integers(1, 120))
def test_bounds_hold_for_any_pages(sizes, pages, limit):
    async def go():
        flight = FlightControl(max_pages=pages, max_bytes=limit)
        order = []

        async def page(number, size):
            ticket = await flight.enter(size)
            order.append(number)
            assert flight.pages <= pages
            assert flight.bytes <= limit or flight.pages == 1
            await asyncio.sleep(0)
            ticket.leave()

        await asyncio.wait_for(asyncio.gather(*(page(i, s) for i, s in enumerate(sizes))), 5)
        assert (flight.pages, flight.bytes) == (0, 0)
        assert order == sorted(order)

    asyncio.run(go())
