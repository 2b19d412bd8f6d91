"""The region reading service: one region engine for all pages in flight, its answers checked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from pagemill import tracing
from pagemill.config.modes import VLM, ReadingMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.labels import Task
from pagemill.document.page import ContentFormat
from pagemill.errors import EngineError, NetworkError, PagemillError, PageTimeoutError, UsageError
from pagemill.imaging.types import Pixels
from pagemill.recognition.base import PageReading, Problem, RegionReader, RegionReading
from pagemill.runtime import engines
from pagemill.runtime.contract import checked, checked_page_reading, checked_reading, engine_error
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.threads import ComputeThreads, unwanted

Answer = TypeVar("Answer")
Item = TypeVar("Item")

_LONGEST_ATTEMPTS = 20


async def load_reader(settings: RecognitionSettings, threads: ComputeThreads) -> CheckedReader:
    """Load the region engine of a run.

    Args:
        settings: The engine and its settings.
        threads: Threads on which it is loaded.

    Raises:
        PagemillError: It cannot be loaded; its class gives the cause.
    """
    create = await threads.run(engines.load, engines.REGION_ENGINES, settings.engine)
    engine = create(settings)
    if not isinstance(engine, RegionReader):
        raise EngineError(
            f"the region engine {settings.engine!r} is not a subclass of pagemill.recognition.base.RegionReader",
            remedy="Report this to the authors of the package that provides it.",
        )
    reader = CheckedReader(engine, settings, stuck=threads.stuck)
    if settings.reading not in (None, reader.reads):
        raise UsageError(
            f"the region engine {settings.engine!r} does not read {settings.reading}",
            remedy="Leave out --reading, or choose another engine.",
        )
    return reader


class _Batching:
    """The thread and the microbatches of an engine that computes in this process; implements ``base.Batching``.

    Args:
        what: The engine, for messages.
        stuck: See :class:`pagemill.runtime.threads.ComputeThreads`. The engine has a thread of its own, made on first
            use: a batch takes so long that pages would wait for one of theirs.
    """

    def __init__(self, what: str, stuck: asyncio.Event | None) -> None:
        self.used = False
        """Whether the engine computes in this process."""
        self._what = what
        self._own = ComputeThreads(1, name="pagemill.recognition", stuck=stuck)

    async def run(self, function: Callable[[], Answer]) -> Answer:
        return await self._own.run(function)

    def unwanted(self) -> bool:
        return unwanted()

    def batcher(
        self,
        call: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        max_batch: int,
        size: Callable[[Item], float],
        fill_s: float,
    ) -> MicroBatcher[Item, Answer]:
        self.used = True
        return MicroBatcher(
            call, name=self._what, threads=self._own, max_batch=max_batch, concurrency=1, size=size, fill_s=fill_s
        )

    async def close(self) -> None:
        await self._own.close()


class CheckedReader(RegionReader):
    """Wraps a region engine: validates its answers and turns its exceptions into errors of single regions.

    Args:
        engine: The engine.
        settings: Its name, the model name that the user gave, and how long requests and servers may take.
        stuck: Set once a batch of an engine that computes in this process hangs.
    """

    def __init__(
        self, engine: RegionReader, settings: RecognitionSettings, *, stuck: asyncio.Event | None = None
    ) -> None:
        self.name = settings.engine
        self.reads = ReadingMode(engine.reads)
        self._engine = engine
        self._what = f"the region engine {settings.engine!r}"
        self._served_model = settings.served_model
        # Far more than the attempts of one read and the waiting for a server may take together. The engine that comes
        # with pagemill has limits of its own, and waits for servers that start again.
        longest_s = _LONGEST_ATTEMPTS * settings.request_timeout_s + 2 * settings.server_wait_s
        self._longest_s = None if settings.engine == VLM else longest_s
        self._batching = _Batching(self._what, stuck)
        engine.attach(self._batching)

    @property
    def in_flight(self) -> int:  # type: ignore[override]  # a class variable there
        """Maximum number of requests that it keeps in flight, as far as the engine knows so far."""
        return max(1, int(self._engine.in_flight))

    @property
    def served_model(self) -> str | None:
        """The model's name on the servers if the settings do not determine it, else None."""
        known = self._engine.served_model
        return self._served_model if known is None else known or None

    async def check(self) -> None:
        """Detect errors early that would affect every region."""
        with tracing.stage(tracing.LOAD):
            await self._engine.check()

    def prepare(self, crop: Pixels, task: Task) -> Any:
        """Make a region ready to be sent.

        Raises:
            PagemillError: It cannot be; whatever the engine raised is reported as one.
        """
        try:
            return self._engine.prepare(crop, task)
        except Exception as error:
            raise engine_error(self._what, error) from error

    async def read(self, prepared: Any) -> RegionReading:
        """Read one region; an error of this region alone is in the answer.

        Raises:
            NetworkError: No server could be reached for so long that the page should fail and be tried again later.
            UsageError: The servers do not serve this run.
        """
        unread = partial(RegionReading, content=None, content_format=ContentFormat.TEXT, engine=self.name)
        return await self._answer(self._engine.read(prepared), checked_reading, unread)

    async def read_page(self, prepared: Any) -> PageReading:
        """Read one page; an error of this page alone is in the answer. Otherwise as :meth:`read`."""
        unread = partial(PageReading, elements=None, engine=self.name)
        return await self._answer(self._engine.read_page(prepared), checked_page_reading, unread)

    def stop_waiting(self) -> None:
        """See :meth:`pagemill.recognition.base.RegionReader.stop_waiting`."""
        self._engine.stop_waiting()

    async def aclose(self) -> None:
        """Close connections."""
        try:
            await self._engine.aclose()
        finally:
            await self._batching.close()

    async def _answer(
        self, reading: Awaitable[Answer], check: Callable[[Answer], Answer], unread: Callable[..., Answer]
    ) -> Answer:
        """Wait for an answer within a time limit: a page must end."""
        try:
            # Batches in this process are spans of their own thread.
            with nullcontext() if self._batching.used else tracing.span("request", "servers"):
                async with asyncio.timeout(self._longest_s) as limit:
                    return checked(self._what, check, await reading)
        except (NetworkError, UsageError):
            raise
        except Exception as raised:
            error: PagemillError = engine_error(self._what, raised)
            if limit.expired():  # else the engine's own
                error = PageTimeoutError(
                    f"{self._what} did not answer within {self._longest_s:g} s",
                    remedy="Allow more time with --request-timeout, or report the hang to its authors.",
                )
            return unread(problem=Problem(error.category, error.message, error.remedy))
