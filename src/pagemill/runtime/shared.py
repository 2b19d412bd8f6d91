"""Many streams at once, each with its own settings, on the services of one pipeline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from pagemill.config.settings import ParseSettings
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.describing import describing
from pagemill.runtime.flight import Admission, FlightControl, Share, Ticket
from pagemill.runtime.pipeline import Pipeline

ALONE_S = 10.0
"""So long a page that is retried in isolation has the services to itself. Most crash or fail within a second; one that
computes until its time limit must not hold up all other jobs for minutes."""


_SERVICES = (
    *("_threads", "_layout_threads", "_decoding_threads", "_decoding"),
    *("_layout", "_text", "_formulas", "_tables", "_reader"),
)
"""Attributes of a pipeline that are those of the shared one in a job's."""


class SharedPipeline(Pipeline):
    """A pipeline whose engines, threads and processes many :class:`JobPipeline` use: they batch pages of all jobs."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            self.flight = await self._flight_control()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def prepare(self) -> None:
        """As of a pipeline; and load the layout engine now, so that the first job does not wait for it."""
        await super().prepare()
        if self.settings.recognition.asked is None:
            await self._layout.get()

    async def check_languages(self, languages: Sequence[str]) -> None:
        """Raise a LanguageError when no installed engine reads one of the languages."""
        await self._text.check(languages)

    async def languages(self) -> list[str]:
        """Codes of the languages that installed engines read."""
        return await self._text.languages()

    @property
    def decoding(self) -> DecodingService:
        """Decodes pages."""
        return self._decoding


class JobPipeline(Pipeline):
    """A pipeline with settings and a stream of its own, on the services of a shared one.

    Args:
        shared: Entered. It decides about the layout engine, the recognition model and its servers.
        settings: Of the job.
        share: Of the flight: decides whose pages are admitted first.
        own_describer: False where answers are not kept by job: the shared pipeline, of the same settings, describes.
    """

    def __init__(
        self, shared: SharedPipeline, settings: ParseSettings, share: Share, *, own_describer: bool = True
    ) -> None:
        super().__init__(settings, shared._asked_runtime, shared._layout_choice)
        self.stuck = shared.stuck
        self._shared = shared
        self._share = share
        self._own_describer = own_describer

    async def __aenter__(self) -> Self:
        shared = self._shared
        for service in _SERVICES:
            setattr(self, service, getattr(shared, service))
        self._stack = AsyncExitStack()
        self._stack.callback(shared.flight.leave, self._share)  # others share the flight: it must not stay full
        self._describer = shared._describer
        if self._own_describer:  # answers are kept in the run of the job
            self._describer = describing(self.settings, self._threads)
            self._stack.push_async_callback(self._describer.close)
        self._stack.push_async_callback(self._close_stream)
        return self

    def stop_admitting(self) -> None:
        """As of a pipeline, but the servers that other jobs need, too, are waited for."""
        self._stopped = True
        if self._stream is not None:
            self._stream.stop_admitting()
        if self._own_describer and self._describer.made is not None:
            self._describer.made.stop_waiting()

    async def _admission(self) -> Admission:
        return SharedAdmission(self._shared.flight, self._share)


class SharedAdmission:
    """Admits pages of one job to the flight of all. Implements :class:`pagemill.runtime.flight.Admission`.

    A page that is to run alone has the services to itself for ``alone_s`` seconds; then others join it, and it counts
    as the youngest of them. The next one of the job waits for as long as it took, so that such pages take half of the
    time at most.

    Args:
        flight: Of all jobs.
        share: Of the job.
        alone_s: As said.
    """

    def __init__(self, flight: FlightControl, share: Share, *, alone_s: float = ALONE_S) -> None:
        self.max_bytes = flight.max_bytes
        self._flight = flight
        self._share = share
        self._alone_s = alone_s
        self._began = 0.0
        self._alone: Ticket | None = None

    async def enter(self, estimated_bytes: int) -> Ticket:
        """Wait until the page fits and its job has its turn, then count it in."""
        if estimated_bytes <= self.max_bytes:
            return await self._flight.enter(estimated_bytes, self._share)
        if self._alone is not None:
            await asyncio.sleep(min(self._alone_s, time.monotonic() - self._began))
        ticket = await self._flight.enter(estimated_bytes, self._share)
        self._began, self._alone = time.monotonic(), ticket
        asyncio.get_running_loop().call_later(self._alone_s, ticket.admit_others)
        return ticket
