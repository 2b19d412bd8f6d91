"""Lazy loading: made once, for all who ask, failures shared."""

from __future__ import annotations

import asyncio

import pytest

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


async def test_everybody_sees_the_failure():
    async def make():
        raise ValueError("no model")

    once = Once(make)
    for _ in range(2):
        with pytest.raises(ValueError, match="no model"):
            await once.get()
    assert once.made is None


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
