"""The pipeline: a stream of pages on services."""

from __future__ import annotations

import asyncio
import ctypes
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from pagemill.document.catalogue import Catalogue
from pagemill.parsing.page import ParsedPage, SkippedPage, parse_page
from pagemill.runtime.flight import TICKET, Share, SharedAdmission, Ticket
from pagemill.runtime.schedules import Schedule, make_schedule
from pagemill.runtime.services import Services
from pagemill.runtime.stream import EndedPages, Journal, PageStream
from pagemill.sources import SourceOptions
from pagemill.sources.base import PageRef
from pagemill.sources.stream import InputStream

if TYPE_CHECKING:
    from pagemill.describing.describer import KeptAnswers

_LARGE_PAGE_BYTES = 40 * 2**20
"""Bytes of decoded pixels: well over an A4 page at 300 dpi (26 MB)."""


class Pipeline:
    """Parses streams of pages, one at a time. An async context manager, which enters and leaves the services.

    Args:
        services: Services of this pipeline alone, or borrowed.
        share: Share in the flight of all who borrow the services; decides whose pages are admitted first. None for
            services of this pipeline alone.
    """

    is_remote: ClassVar = False
    """Pages are parsed in other processes and cannot cause the death of this one."""

    def __init__(self, services: Services, share: Share | None = None) -> None:
        self.services = services
        self.source: InputStream
        """Source of the stream in flight, once its first page is there."""
        self._share = share
        self._stream: EndedPages | None = None
        self._stopped = False
        self._schedule = Schedule()

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(self.services)
        if self._share is not None:  # others share the flight: it must not stay full
            self._stack.callback(self.services.flight.leave, self._share)
        self._stack.push_async_callback(self._close_stream)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def prepare(self) -> None:
        """See :meth:`pagemill.runtime.services.Services.prepare`."""
        await self.services.prepare()

    async def stream(
        self,
        inputs: Sequence[str | Path | bytes],
        options: SourceOptions,
        *,
        catalogue: Catalogue | None = None,
        journal: Journal | None = None,
        answers: KeptAnswers | None = None,
        max_attempts: int = 2,
    ) -> AsyncGenerator[ParsedPage | SkippedPage]:
        """Parse all pages of the inputs and yield each when it is final, in no particular order.

        Args:
            inputs: Inputs, see :class:`pagemill.sources.stream.InputStream`.
            options: Which pages to use.
            catalogue: Known inputs of earlier runs; None for a stream on its own.
            journal: Told about attempts before they begin and when they end badly.
            answers: Where descriptions are kept as they arrive; None for this process alone.
            max_attempts: Most attempts of a page that fails for a cause that may be gone next time (a crash, a time
                limit, an engine's error), those of earlier processes included; all but the first are made alone.
        """
        await self.services.keep_answers(answers)
        self.source = InputStream(
            inputs, options=options, decoder=self.services.decoding, catalogue=catalogue, planning=self.is_remote
        )
        self._stream = await self._make_stream(options, journal, max_attempts)
        if self._stopped:
            self._stream.stop_admitting()
        async with aclosing(self._stream.pages()) as pages:
            async for page in pages:
                yield page

    def stop_admitting(self) -> None:
        """End the stream early: pages in flight are finished, no others are started, postponed ones are left.

        A page in flight that waits for a server that is not there is left as well.
        """
        self._stopped = True
        if self._stream is not None:
            self._stream.stop_admitting()
        self.services.stop_waiting()

    async def _make_stream(self, options: SourceOptions, journal: Journal | None, max_attempts: int) -> EndedPages:
        """The stream of the pages of :attr:`source`."""
        services = self.services
        if self._share is None:
            flight = await services.flight_control()
            self._schedule = make_schedule(services.runtime.schedule, services.runtime.pages_in_flight)
            self._schedule.bound(flight)
        return PageStream(
            self.source,
            self._parse,
            flight if self._share is None else SharedAdmission(services.flight, self._share),
            max_attempts=max_attempts,
            max_postponed_bytes=services.runtime.postponed_bytes,
            journal=journal,
            drained=services.drained,
            schedule=self._schedule,
        )

    async def _parse(self, ref: PageRef, ticket: Ticket) -> ParsedPage:
        TICKET.set(ticket)  # of the task of this page: computing threads and microbatches go by it
        async with self._schedule.services(self.services) as services:
            page = await parse_page(ref, services, self.services.settings, ticket)
        if ref.estimated_bytes > _LARGE_PAGE_BYTES:
            await asyncio.to_thread(_return_memory)
        return page

    async def _close_stream(self) -> None:
        if self._stream is not None:  # the loop over it may have been left without closing it
            await self._stream.close()


def _return_memory() -> None:
    """Return freed memory of the C library to the system (glibc only).

    It keeps blocks of up to 32 MB by itself, in an arena for each thread: after some large pages that is gigabytes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
