"""The region reading service: one region engine for all pages in flight, its answers checked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from pagemill.config.modes import VLM, ReadingMode
from pagemill.document.page import ContentFormat
from pagemill.errors import EngineError, NetworkError, PagemillError, PageTimeoutError, UsageError
from pagemill.recognition.base import PageReading, Problem, RegionReader, RegionReading
from pagemill.runtime import engines
from pagemill.runtime.contract import checked_page_reading, checked_reading, engine_error
from pagemill.runtime.once import Once

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pagemill.config.settings import RecognitionSettings
    from pagemill.document.labels import Task
    from pagemill.imaging.types import Pixels
    from pagemill.runtime.threads import ComputeThreads

Answer = TypeVar("Answer")

_LONGEST_ATTEMPTS = 20


class RegionReadingService:
    """Loads the region engine of a run once, and closes it.

    Args:
        settings: Which engine, and what it is given.
        threads: Where it is loaded.
    """

    def __init__(self, settings: RecognitionSettings, threads: ComputeThreads) -> None:
        self._settings = settings
        self._threads = threads
        self._reader: Once[CheckedReader] = Once(self._load)

    async def reader(self) -> CheckedReader:
        """The engine, loaded.

        Raises:
            PagemillError: It cannot be loaded; the class says why.
        """
        return await self._reader.get()

    def stop_waiting(self) -> None:
        """Have the engine give up what waits for servers that are not there."""
        if reader := self._reader.made:
            reader.stop_waiting()

    async def close(self) -> None:
        """Close the engine's connections."""
        await self._reader.cancel()
        if reader := self._reader.made:
            await reader.aclose()

    async def _load(self) -> CheckedReader:
        settings = self._settings
        create = await self._threads.run(engines.load, engines.REGION_ENGINES, settings.engine)
        engine = create(settings)
        if not isinstance(engine, RegionReader):
            raise EngineError(
                f"the region engine {settings.engine!r} is not a subclass of pagemill.recognition.base.RegionReader",
                remedy="Report this to the authors of the package that provides it.",
            )
        # The engine that comes with pagemill has limits of its own, and waits for servers that start again.
        longest_s = None if settings.engine == VLM else _longest_s(settings)
        reader = CheckedReader(engine, settings.engine, served_model=settings.served_model, longest_s=longest_s)
        if settings.reading not in (None, reader.reads):
            raise UsageError(
                f"the region engine {settings.engine!r} does not read {settings.reading}",
                remedy="Leave out --reading, or choose another engine.",
            )
        return reader


class CheckedReader(RegionReader):
    """Wraps a region engine: validates its answers and turns its exceptions into errors of single regions.

    Args:
        engine: The engine.
        name: Its name.
        served_model: The model name that the user gave.
        longest_s: Time limit of one read in seconds; None for no limit.
    """

    def __init__(
        self, engine: RegionReader, name: str, *, served_model: str | None = None, longest_s: float | None = None
    ) -> None:
        self.name = name
        self.in_flight = max(1, int(engine.in_flight))
        self.reads = ReadingMode(engine.reads)
        self._engine = engine
        self._what = f"the region engine {name!r}"
        self._served_model = served_model
        self._longest_s = longest_s

    @property
    def served_model(self) -> str | None:
        """The model's name on the servers if the settings do not determine it, else None."""
        known = self._engine.served_model
        return self._served_model if known is None else known or None

    async def check(self) -> None:
        """Find out now what would fail for every region."""
        await self._engine.check()

    def prepare(self, crop: Pixels, task: Task) -> Any:
        """Make a region ready to be sent.

        Raises:
            PagemillError: It cannot be; whatever the engine raised is told as one.
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
        try:
            return checked_reading(self._what, await self._in_time(self._engine.read(prepared)))
        except (NetworkError, UsageError):
            raise
        except Exception as raised:
            error: PagemillError = engine_error(self._what, raised)
            return RegionReading(
                content=None,
                content_format=ContentFormat.TEXT,
                engine=self.name,
                problem=Problem(error.category, error.message, error.remedy),
            )

    async def read_page(self, prepared: Any) -> PageReading:
        """Read one page; an error of this page alone is in the answer. Otherwise as :meth:`read`."""
        try:
            return checked_page_reading(self._what, await self._in_time(self._engine.read_page(prepared)))
        except (NetworkError, UsageError):
            raise
        except Exception as raised:
            error: PagemillError = engine_error(self._what, raised)
            problem = Problem(error.category, error.message, error.remedy)
            return PageReading(elements=None, engine=self.name, problem=problem)

    def stop_waiting(self) -> None:
        """As :meth:`pagemill.recognition.base.RegionReader.stop_waiting`."""
        self._engine.stop_waiting()

    async def aclose(self) -> None:
        """Close connections."""
        await self._engine.aclose()

    async def _in_time(self, reading: Awaitable[Answer]) -> Answer:
        """Wait for an answer, but not for ever: a page would never end."""
        try:
            async with asyncio.timeout(self._longest_s) as limit:
                return await reading
        except TimeoutError:
            if not limit.expired():  # the engine's own
                raise
            raise PageTimeoutError(
                f"{self._what} did not answer within {self._longest_s:g} s",
                remedy="Give it more time with --request-timeout, or report to its makers that it hangs.",
            ) from None


def _longest_s(settings: RecognitionSettings) -> float:
    """Far more than the attempts of one read and the waiting for a server may take together."""
    return _LONGEST_ATTEMPTS * settings.request_timeout_s + 2 * settings.server_wait_s
