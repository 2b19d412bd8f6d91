"""The actor between the driver and its workers: hands out units, and knows which of them are being parsed where."""

from __future__ import annotations

import asyncio
from enum import StrEnum


class Verdict(StrEnum):
    """What a worker should do with a unit."""

    PARSE = "parse"
    DIED = "died"
    """A worker died while it parsed this unit: report that, and parse nothing."""
    SKIP = "skip"
    """The run is stopping, or the driver has given the pages to another unit."""


class Exchange:
    """Holds units from their offer until the driver has their result. An asyncio actor, without state on disk.

    Ray executes a task again when its worker dies. The second execution of a unit reports the death to the driver,
    which decides for each page whether it is retried: no page is parsed twice without its knowledge.
    """

    def __init__(self) -> None:
        self._units: dict[int, bytes] = {}
        self._offered = 0
        self._closed = self._stopped = False
        self._changed = asyncio.Event()
        self._workers: dict[int, str] = {}

    async def offer(self, unit: bytes) -> None:
        """Add the next unit."""
        self._units[self._offered] = unit
        self._offered += 1
        self._notify()

    async def take(self, number: int) -> bytes | None:
        """The unit of a number, once it is offered; None after the last one.

        Idempotent: when the task that reads units is executed again, it reads the same ones. Those that are done are
        empty, and are not handed out a second time.
        """
        while number >= self._offered and not self._closed:
            await self._changed.wait()
        return None if number >= self._offered else self._units.get(number, b"")

    async def begin(self, number: int, worker: str) -> Verdict:
        """Register a worker, by its actor id, for a unit that it is about to parse."""
        if not await self.is_wanted(number):
            return Verdict.SKIP
        if number in self._workers:
            return Verdict.DIED
        self._workers[number] = worker
        return Verdict.PARSE

    async def started(self) -> dict[int, str]:
        """Units in flight, each with its worker."""
        return dict(self._workers)

    async def is_wanted(self, number: int) -> bool:
        """Whether a worker may start a unit."""
        return number in self._units and not self._stopped

    async def withdraw(self, numbers: list[int]) -> list[int]:
        """Withdraw units that no worker has started, so that none can start them; return their numbers."""
        taken = [number for number in numbers if number in self._units and number not in self._workers]
        for number in taken:
            del self._units[number]
        return taken

    async def done(self, number: int) -> None:
        """Forget a unit: the driver has its result, or needs none."""
        self._units.pop(number, None)
        self._workers.pop(number, None)

    async def stop(self) -> None:
        """Let workers skip units that they have not started."""
        self._stopped = True

    async def close(self) -> None:
        """Report the end of the units."""
        self._closed = True
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
