"""Lazy loading: made once, for all who ask; those who wait share a failure."""

import asyncio

from pagemill.runtime.once import Once


async def test_it_is_made_once_for_everybody():
    made = []

    async def make():
        await asyncio.sleep(0)
        made.append(1)
        return object()

    once = Once(make)
    assert once.made is None
    first, second = await asyncio.gather(once.get(), once.get())
    assert first is second is once.made
    assert made == [1]


async def test_waiting_callers_share_a_failure_and_the_next_call_retries():
    outcomes = [ValueError("no memory"), 7]

    async def make():
        await asyncio.sleep(0)
        outcome = outcomes.pop(0)
        if isinstance(outcome, ValueError):
            raise outcome
        return outcome

    once = Once(make)
    shared = await asyncio.gather(once.get(), once.get(), return_exceptions=True)
    assert [str(error) for error in shared] == ["no memory"] * 2
    assert once.made is None
    assert await once.get() == once.made == 7


async def test_one_who_gives_up_does_not_stop_the_making():
    gate = asyncio.Event()

    async def make():
        await gate.wait()
        return 7

    once = Once(make)
    impatient = asyncio.create_task(once.get())
    await asyncio.sleep(0)
    impatient.cancel()
    patient = asyncio.create_task(once.get())
    await asyncio.sleep(0)
    gate.set()
    assert await patient == 7
