"""Several streams on one set of services: a fair share for each, and isolation that holds up nobody for long."""

import asyncio
import threading
from types import SimpleNamespace

from pagemill.config.settings import ParseSettings
from pagemill.runtime import flight as flight_control
from pagemill.runtime.flight import TICKET, FlightControl, Share, SharedAdmission, Ticket, Turn
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.runtime.threads import ComputeThreads


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_job_with_the_fewest_pages_in_flight_is_next():
    flight = FlightControl(max_pages=2, max_bytes=100)
    owner = Share()
    large, small = Share(owner), Share(owner)
    tickets = [await flight.enter(1, large), await flight.enter(1, large)]
    third = asyncio.create_task(flight.enter(1, large))
    await settle()
    first_of_small = asyncio.create_task(flight.enter(1, small))
    await settle()
    tickets[0].leave()
    await settle()
    assert (first_of_small.done(), third.done()) == (True, False)  # although the large job has waited for longer


async def test_an_owner_with_many_jobs_gets_no_more_than_one_with_one_job():
    flight = FlightControl(max_pages=3, max_bytes=100)
    busy, quiet = Share(), Share()
    tickets = [await flight.enter(1, Share(busy)) for _ in range(3)]
    more = asyncio.create_task(flight.enter(1, Share(busy)))  # of a job that has nothing in flight
    await settle()
    other = asyncio.create_task(flight.enter(1, Share(quiet)))
    await settle()
    tickets[0].leave()
    await settle()
    assert (other.done(), more.done()) == (True, False)
    assert (busy.pages, quiet.pages) == (2, 1)


async def test_pages_of_an_earlier_turn_are_admitted_first_however_many_are_in_flight():
    flight = FlightControl(max_pages=2, max_bytes=100)
    first, second = Turn(number=1), Turn(number=2)
    tickets = [await flight.enter(1, first), await flight.enter(1, first)]
    of_second = asyncio.create_task(flight.enter(1, second))
    await settle()
    of_first = asyncio.create_task(flight.enter(1, first))
    await settle()
    tickets[0].leave()
    await settle()
    assert (of_first.done(), of_second.done()) == (True, False)
    tickets[1].leave()
    await settle()
    assert of_second.done()
    assert (first.handicap, second.handicap) == (0, 0)


async def test_a_ticket_that_leaves_twice_is_counted_once():
    flight, share = FlightControl(max_pages=2, max_bytes=100), Share(Share())
    ticket = await flight.enter(1, share)
    ticket.leave()
    ticket.leave()
    assert (share.pages, share.owner.pages, len(flight.tickets)) == (0, 0, 0)


async def test_pages_of_a_job_that_did_not_land_leave_with_it():
    async with Services() as shared:
        shared.flight = await shared.flight_control()
        other, mine = await shared.flight.enter(1, Share()), Share()
        async with Pipeline(shared.borrowed(), mine):
            await SharedAdmission(shared.flight, mine).enter(1)
        assert shared.flight.tickets == {other}


async def test_a_page_that_is_retried_alone_has_the_services_to_itself_for_a_bounded_time(monkeypatch):
    for alone_s in (3600.0, 0.0):
        monkeypatch.setattr(flight_control, "ALONE_S", alone_s)
        flight = FlightControl(max_pages=4, max_bytes=100)
        ticket = await SharedAdmission(flight, Share()).enter(101)
        beside = asyncio.create_task(SharedAdmission(flight, Share()).enter(10))
        if alone_s:
            await settle()
            assert not beside.done()
            beside.cancel()
        else:
            other = await asyncio.wait_for(beside, 60)
            assert ticket.place == other.place  # whose calls do not wait for those of the page alone
        assert ticket in flight.tickets  # the page alone has not left


async def test_the_next_page_alone_waits_for_as_long_as_the_last_one_took(monkeypatch):
    monkeypatch.setattr(flight_control, "ALONE_S", 0.05)
    flight = FlightControl(max_pages=4, max_bytes=100)
    alone, waited = SharedAdmission(flight, Share()), []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    (await alone.enter(101)).leave()
    monkeypatch.setattr(asyncio, "sleep", sleep)
    (await alone.enter(101)).leave()
    assert len(waited) == 1
    assert 0 < waited[0] <= 0.05


async def test_computing_threads_and_microbatches_take_the_page_of_the_smaller_job_first():
    threads = ComputeThreads(1, name="test")
    started, release, order = threading.Event(), threading.Event(), []

    def call(items):
        order.append(list(items))
        return items

    batcher = MicroBatcher(call, name="model", threads=threads, max_batch=1, concurrency=1)
    flight = FlightControl(max_pages=6, max_bytes=100)
    large, small = Share(pages=5), Share(pages=1)

    async def page(share: Share, name: str) -> None:
        TICKET.set(Ticket(flight, 1, share))
        await batcher.submit(name)
        await threads.run(order.append, name)

    def block() -> None:
        started.set()
        release.wait(60)

    blocked = asyncio.create_task(threads.run(block))
    await asyncio.to_thread(started.wait, 60)
    pages = [asyncio.create_task(page(large, f"large {n}")) for n in range(3)]
    await settle()
    pages.append(asyncio.create_task(page(small, "small")))
    await settle()
    release.set()
    await asyncio.gather(blocked, *pages)
    await batcher.close()
    await threads.close()
    # The batch with the first page had started; then the page of the small job goes before those that wait for longer.
    assert order.index(["small"]) == 1
    assert order.index("small") < order.index(["large 2"])


async def test_a_job_has_the_services_of_all_and_a_describer_of_its_own():
    calls = []
    made = SimpleNamespace(stop_waiting=lambda: calls.append("stop_waiting"))
    async with Services() as shared:
        shared.flight = await shared.flight_control()
        shared._reader = SimpleNamespace(made=made, close=lambda: calls.append("close"))
        async with Pipeline(shared.borrowed(ParseSettings(languages=("ko",))), Share()) as job:
            assert job.services._layout is shared._layout
            assert (job.services.settings.languages, shared.settings.languages) == (("ko",), None)
            assert job.services._describer is not shared._describer
            job.services._describer = SimpleNamespace(made=SimpleNamespace(stop_waiting=lambda: calls.append("own")))
            job.services._own = (job.services._describer,)
            job.stop_admitting()
    assert calls == ["own"]


async def test_jobs_may_describe_with_one_client_that_outlives_them():
    calls = []
    made = SimpleNamespace(stop_waiting=lambda: calls.append("stop_waiting"))
    async with Services() as shared:
        shared.flight = await shared.flight_control()
        shared._describer = SimpleNamespace(made=made, close=lambda: calls.append("close"))
        async with Pipeline(shared.borrowed(), Share()) as job:
            job.stop_admitting()
            assert job.services._describer is shared._describer
    assert not calls
