"""Schedules: in which order the stages of pages run. All but streaming exist to be compared with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from pagemill import tracing
from pagemill.config.modes import ScheduleMode
from pagemill.runtime.flight import FlightControl
from pagemill.sources.base import PageRef

if TYPE_CHECKING:
    from pagemill.parsing.page_run import PageServices


class Schedule:
    """Streaming: a page continues to its next stage as soon as there is room, whatever others do."""

    def bound(self, flight: FlightControl) -> None:
        """Change the bounds of what is in flight to those of the schedule."""

    async def admitted(self, refs: AsyncGenerator[PageRef]) -> AsyncGenerator[PageRef]:
        """The pages of the source, each as soon as the schedule wants it."""
        async for ref in refs:
            yield ref

    def wait_for_no_more(self) -> None:
        """Let the pages in flight continue without pages that are not admitted yet."""

    @asynccontextmanager
    async def services(self, shared: PageServices) -> AsyncIterator[PageServices]:
        """The services as one page sees them, for as long as it is in flight."""
        yield shared


class Sequential(Schedule):
    """One page after the other, through all stages."""

    def bound(self, flight: FlightControl) -> None:
        """One page in flight."""
        flight.max_pages = 1


class ConcurrentRender(Schedule):
    """Pages are decoded ahead; what follows is done for one page at a time."""

    def __init__(self) -> None:
        self._after_decoding = asyncio.Lock()

    @asynccontextmanager
    async def services(self, shared: PageServices) -> AsyncIterator[PageServices]:
        """The services, of which all but decoding wait for the page's turn."""
        held = False

        async def turn() -> None:
            nonlocal held
            if not held:
                await self._after_decoding.acquire()
                held = True

        try:
            yield cast("PageServices", _Gated(shared, turn, decoding=False))
        finally:
            if held:
                self._after_decoding.release()


class Staged(Schedule):
    """Batches of pages with a barrier before each stage: all pages of a batch leave one before any enters the next.

    Args:
        pages: In a batch.
    """

    def __init__(self, pages: int) -> None:
        self._size = pages
        self._batch = _Batch()

    def bound(self, flight: FlightControl) -> None:
        """A batch is in flight as a whole, whatever its size: one that did not fit would never be complete."""
        flight.max_pages = self._size
        flight.unbound()
        self._flight = flight

    async def admitted(self, refs: AsyncGenerator[PageRef]) -> AsyncGenerator[PageRef]:
        """The pages, the next batch when all of the one before have finished."""
        given = 0
        try:
            async for ref in refs:
                # Closed before it is full where the source waits for a page to end, which would wait for the batch.
                if given == self._size or self._batch.closed:
                    self._batch.close()
                    await self._flight.empty()
                    self._batch, given = _Batch(), 0
                given += 1
                yield ref
        finally:
            self._batch.close()

    def wait_for_no_more(self) -> None:
        """The batch is complete as it is."""
        self._batch.close()

    @asynccontextmanager
    async def services(self, shared: PageServices) -> AsyncIterator[PageServices]:
        """The services, before each of which the page waits for the others of its batch."""
        batch, page = self._batch, object()
        batch.waiting[page] = None
        try:
            yield cast("PageServices", _Gated(shared, lambda: batch.arrive(page, tracing.STAGE.get())))
        finally:
            batch.leave(page)


class _Batch:
    """The pages of a batch, and where they wait."""

    def __init__(self) -> None:
        self.waiting: dict[object, tuple[str, asyncio.Future[None]] | None] = {}
        """By page; None while it computes."""
        self._stages: list[str] = []  # in the order in which they were first met
        self._at: dict[object, str] = {}
        self.closed = False
        """No more pages will come."""

    def close(self) -> None:
        """Let no more pages in."""
        self.closed = True
        self._open_barrier()

    async def arrive(self, page: object, stage: str) -> None:
        """Wait until all pages that are still in earlier stages have left them."""
        # The page asks a second service of its stage: the barrier was before the first.
        if self._at.get(page) == stage:
            return
        self._at[page] = stage
        if stage not in self._stages:
            self._stages.append(stage)
        release: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[page] = (stage, release)
        self._open_barrier()
        await release

    def leave(self, page: object) -> None:
        """The page has finished."""
        del self.waiting[page]
        self._open_barrier()

    def _open_barrier(self) -> None:
        places = [place for place in self.waiting.values() if place is not None]
        # A page that computes may still come to a stage before those where the others wait.
        if not self.closed or not places or len(places) < len(self.waiting):
            return
        first = min(self._stages.index(stage) for stage, _ in places)
        for page, place in self.waiting.items():
            if place is not None and self._stages.index(place[0]) == first:
                self.waiting[page] = None
                if not place[1].done():  # or its page was given up
                    place[1].set_result(None)


class _Gated:
    """The services of one page, each behind a gate. Implements :class:`pagemill.parsing.page_run.PageServices`.

    What is loaded once, or waits for servers, has none.
    """

    def __init__(self, services: PageServices, gate: Callable[[], Awaitable[None]], *, decoding: bool = True) -> None:
        self._services = services
        self._gate = gate
        self._gated = {"decode_with_regions", "detect_regions", "read", "read_formulas", "compute"}
        self._gated |= {"decode"} if decoding else set()

    def __getattr__(self, name: str) -> Any:
        service = getattr(self._services, name)

        async def gated(*args: Any, **kwargs: Any) -> Any:
            await self._gate()
            return await service(*args, **kwargs)

        return gated if name in self._gated else service


def make_schedule(mode: ScheduleMode, pages: int) -> Schedule:
    """The schedule of a name.

    Args:
        mode: Its name.
        pages: In flight, or in a batch.
    """
    schedules: dict[ScheduleMode, Callable[[], Schedule]] = {
        ScheduleMode.SEQUENTIAL: Sequential,
        ScheduleMode.CONCURRENT_RENDER: ConcurrentRender,
        ScheduleMode.STAGED: lambda: Staged(pages),
        ScheduleMode.STREAMING: Schedule,
    }
    return schedules[mode]()
