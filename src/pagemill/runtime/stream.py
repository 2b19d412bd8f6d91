"""The stream of pages: admit, parse, hand over as they finish."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from pagemill.runtime.flight import FlightControl
    from pagemill.sources.base import PageRef, PageSource

Result = TypeVar("Result")

UNKNOWN_PAGE_BYTES = 32 * 2**20
"""Estimate for a page whose size the source cannot tell: A4 at 200 dpi (2480x1754 RGB is 13 MB) with its copies."""


async def stream_pages(
    source: PageSource, parse: Callable[[int, PageRef], Awaitable[Result]], flight: FlightControl
) -> AsyncGenerator[Result]:
    """Parse the pages of a source and yield the results as they finish, in no particular order.

    ``parse`` gets each page with its position in the input, from 0, and turns its own errors into results: an exception
    that escapes from it ends the stream at once. One from the source ends it when the pages in flight have landed.
    A page holds its place in flight until the consumer has taken its result *and* asks for the next one, so a slow
    consumer holds the source back. Leaving the loop early cancels the pages in flight.
    """
    finished: asyncio.Queue[tuple[Result, int]] = asyncio.Queue()

    async def fly(position: int, ref: PageRef, size: int) -> None:
        finished.put_nowait((await parse(position, ref), size))

    async def feed() -> None:
        failure: Exception | None = None
        async with asyncio.TaskGroup() as pages:
            position = 0
            try:
                async with aclosing(source.pages()) as refs:
                    async for ref in refs:
                        size = ref.estimated_bytes or UNKNOWN_PAGE_BYTES
                        await flight.enter(size)
                        pages.create_task(fly(position, ref, size))
                        position += 1
            except Exception as error:
                failure = error  # raised when the pages in flight have landed
        if failure:
            raise failure

    feeder = asyncio.create_task(feed())
    try:
        while True:
            get = asyncio.ensure_future(finished.get())
            try:
                await asyncio.wait({get, feeder}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not get.done():
                    get.cancel()
            if not get.done():
                if not finished.empty():
                    continue
                try:
                    await feeder
                except ExceptionGroup as group:
                    raise group.exceptions[0] from None
                return
            result, size = get.result()
            yield result
            flight.leave(size)
    finally:
        feeder.cancel()
        await asyncio.gather(feeder, return_exceptions=True)
