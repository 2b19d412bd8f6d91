"""The stream of pages: admit, parse, retry failures in isolation, yield as they finish."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pagemill.blocking import cancelled
from pagemill.parsing.page import ParsedPage, SkippedPage, dead_page
from pagemill.runtime.flight import Admission, Ticket
from pagemill.runtime.schedules import Schedule
from pagemill.sources.base import EncodedImage, PageRef

if TYPE_CHECKING:
    from pagemill.sources.stream import InputStream

log = logging.getLogger(__name__)

UNKNOWN_PAGE_BYTES = 32 * 2**20
"""Estimate for a page whose size the source does not know: A4 at 200 dpi (2480x1754 RGB is 13 MB) with its copies."""

_REFERENCE_BYTES = 2048
"""Approximate size of a page reference without its payload: names, identity, metadata."""


class Journal(Protocol):
    """Records the progress of pages, for the next process if this one is killed."""

    async def started(self, ref: PageRef, *, alone: bool) -> None:
        """An attempt starts; ``alone`` if no other page is in flight."""

    async def postponed(self, page: ParsedPage) -> None:
        """An attempt failed; the page will be retried in isolation."""

    async def unopened(self, page: ParsedPage) -> ParsedPage:
        """The source of a page that was started cannot be opened; returns the page that stands for the source."""


class EndedPages(Protocol):
    """A stream of final pages."""

    def pages(self) -> AsyncGenerator[ParsedPage | SkippedPage]:
        """Yield each page once, in no particular order. To be called once."""

    def stop_admitting(self) -> None:
        """End the stream when the pages in flight are finished."""

    async def close(self) -> None:
        """End the stream at once, as leaving the loop over it does. Idempotent."""


class PageStream:
    """Parses the pages of a source. All retrying is done here.

    - A page that ends with a retryable error is postponed, until it has had ``max_attempts`` attempts.
    - Postponed pages, and those that come with bad attempts of an earlier process, run one at a time with nothing else
      in flight: when the source has finished, or sooner when what is postponed takes too many bytes.
    - A page that no server reads for ends the stream with that error when the pages in flight have landed: it was one
      attempt, and a later run begins where this one ended.
      A stream that was stopped before only leaves such pages.
    - A page that took the process with it when it was alone, and has had its attempts, is failed without another one.

    Args:
        source: The pages.
        parse: Turns a reference into a result, its own errors included: an exception that escapes ends the stream. It
            may give back early, by the ticket, what the page holds of the bounds of flight.
        flight: Bounds what is in flight.
        max_attempts: Most attempts of a page, those of earlier processes included.
        max_postponed_bytes: Most bytes of encoded pages that wait to be tried again.
        journal: Told about attempts; an exception of it ends the stream.
        drained: Awaited before a page runs alone: waits for what pages that were given up have left running.
        schedule: Decides when pages are admitted, and lets those in flight continue before postponed ones run; None for
            streaming.
    """

    def __init__(
        self,
        source: InputStream,
        parse: Callable[[PageRef, Ticket], Awaitable[ParsedPage]],
        flight: Admission,
        *,
        max_attempts: int = 2,
        max_postponed_bytes: int,
        journal: Journal | None = None,
        drained: Callable[[], Awaitable[None]] | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        self._source = source
        self._parse = parse
        self._flight = flight
        self._max_attempts = max_attempts
        self._max_postponed_bytes = max_postponed_bytes
        self._journal = journal
        self._drained = drained
        self._schedule = schedule or Schedule()
        self._postponed: deque[PageRef] = deque()
        self._postponed_bytes = 0
        self._ended: asyncio.Queue[tuple[ParsedPage | SkippedPage, Ticket] | None] = asyncio.Queue()
        self._producer: asyncio.Task[None] | None = None
        self._admitting: asyncio.Task[None] | None = None
        self._in_flight: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._failure: Exception | None = None

    def stop_admitting(self) -> None:
        """Close the source and end the stream when the pages in flight are finished; postponed ones do not run."""
        self._stopped = True
        if self._admitting is not None:
            self._admitting.cancel()

    async def pages(self) -> AsyncGenerator[ParsedPage | SkippedPage]:
        """Yield each page once, when it is final, in no particular order. To be called once.

        A page holds its place in flight until the consumer has taken its result *and* asks for the next one, so a slow
        consumer holds the source back. An exception from the source is raised when the pages in flight have landed.
        Leaving the loop early cancels the pages in flight.
        """
        self._producer = asyncio.create_task(self._produce())
        try:
            while (ended := await self._ended.get()) is not None:
                page, ticket = ended
                yield page
                ticket.leave()
            await self._producer
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the source and cancel the pages in flight, as leaving the loop does."""
        if self._producer is not None:
            await cancelled(self._producer)

    async def _produce(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                if not self._stopped:
                    self._admitting = tasks.create_task(self._admit(tasks))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._ended.put_nowait(None)
        if self._failure is not None:
            raise self._failure

    async def _admit(self, tasks: asyncio.TaskGroup) -> None:
        try:
            async with (
                aclosing(self._source.pages()) as source,
                aclosing(self._schedule.admitted(source)) as refs,
            ):
                async for ref in refs:
                    await self._admit_page(ref, tasks)
                    if self._postponed_bytes > self._max_postponed_bytes:
                        await self._run_postponed(tasks)
        except Exception as error:
            self._failure = error  # raised when the pages in flight have landed
            return
        await self._run_postponed(tasks)

    async def _admit_page(self, ref: PageRef, tasks: asyncio.TaskGroup) -> None:
        if ref.skip is not None:
            await self._pass_on(SkippedPage(ref=ref, reason=ref.skip))
        elif ref.death is not None and ref.attempts >= self._max_attempts:
            await self._pass_on(dead_page(ref))
        elif ref.attempts:
            self._postpone(ref)
        else:
            size = ref.estimated_bytes or UNKNOWN_PAGE_BYTES
            self._launch(ref, await self._flight.enter(size), tasks, alone=False)

    async def _pass_on(self, page: ParsedPage | SkippedPage) -> None:
        ticket = await self._flight.enter(0)  # it needs no work, but the consumer's time
        self._ended.put_nowait((page, ticket))

    async def _run_postponed(self, tasks: asyncio.TaskGroup) -> None:
        """Wait for the pages in flight, then run what is postponed one by one."""
        self._schedule.wait_for_no_more()  # else a batch would wait for pages that come after those postponed
        if self._in_flight:
            await asyncio.wait(self._in_flight)
        while self._postponed:
            if self._drained is not None:
                await self._drained()
            whole = self._flight.max_bytes + 1  # admits a page when nothing else is in flight, and nothing beside it
            ticket = await self._flight.enter(whole)
            ref = self._postponed.popleft()
            self._postponed_bytes -= _kept_bytes(ref)
            await asyncio.wait({self._launch(ref, ticket, tasks, alone=True)})

    def _launch(self, ref: PageRef, ticket: Ticket, tasks: asyncio.TaskGroup, *, alone: bool) -> asyncio.Task[None]:
        task = tasks.create_task(self._run_page(ref, ticket, alone=alone))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        return task

    async def _run_page(self, ref: PageRef, ticket: Ticket, *, alone: bool) -> None:
        if self._journal is not None:
            await self._journal.started(ref, alone=alone)
        page = await self._parse(ref, ticket)
        attempts = ref.attempts + 1
        # The user does not want to wait for servers: the page has not been tried, and the run is to continue later.
        is_left = page.unserved and self._stopped and self._failure is None
        if is_left:
            page.record.attempts = ref.attempts
        else:
            if page.unserved:
                self._end_unserved(page)
            if not page.retryable or attempts >= self._max_attempts:
                self._ended.put_nowait((page, ticket))
                return
            why = page.record.errors[0].message
            log.info("%s: attempt %d failed, to be retried in isolation: %s", ref.page_id, attempts, why)
            self._postpone(replace(ref, attempts=attempts))
        if self._journal is not None:
            await self._journal.postponed(page)
        ticket.leave()

    def _end_unserved(self, page: ParsedPage) -> None:
        """End the stream, as there is no server: the next pages would wait as long, and fail as well."""
        error = page.record.errors[0]
        if self._failure is None:
            self._failure = error.exception()
        self.stop_admitting()

    def _postpone(self, ref: PageRef) -> None:
        self._postponed.append(ref)
        self._postponed_bytes += _kept_bytes(ref)


def _kept_bytes(ref: PageRef) -> int:
    source = ref.payload.source if isinstance(ref.payload, EncodedImage) else None
    return _REFERENCE_BYTES + (len(source) if isinstance(source, bytes) else 0)
