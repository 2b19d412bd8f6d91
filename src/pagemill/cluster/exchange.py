"""The actor between the driver and its workers: hands out units, and knows which of them are being parsed where."""

from __future__ import annotations

import asyncio
from enum import StrEnum


class Verdict(StrEnum):
    """What a worker should do with a unit."""

    PARSE = "parse"
    DIED = "died"
    """A worker has died over it: report that, and parse nothing."""
    SKIP = "skip"
    """The run is stopping, or the driver has given the pages to another unit."""


class Exchange:
    """Holds units from their offer until the driver has their result. An asyncio actor, without state on disk.

    Ray executes a task again when its worker dies. A second execution of a unit is how the driver learns of the death:
    nothing is parsed twice unseen, and the driver decides what follows for each page.
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
        """A worker, an actor of this id, is about to parse a unit."""
        if not await self.is_wanted(number):
            return Verdict.SKIP
        if number in self._workers:
            return Verdict.DIED
        self._workers[number] = worker
        return Verdict.PARSE

    async def begun(self) -> dict[int, str]:
        """Units that are parsed, each with its worker."""
        return dict(self._workers)

    async def is_wanted(self, number: int) -> bool:
        """Whether a worker may begin a unit."""
        return number in self._units and not self._stopped

    async def withdraw(self, numbers: list[int]) -> list[int]:
        """Take back units that no worker has begun, and say which: from now on, none can begin them."""
        taken = [number for number in numbers if number in self._units and number not in self._workers]
        for number in taken:
            del self._units[number]
        return taken

    async def done(self, number: int) -> None:
        """The driver has the result of a unit, or wants none any more."""
        self._units.pop(number, None)
        self._workers.pop(number, None)

    async def stop(self) -> None:
        """Units that no worker has begun are left."""
        self._stopped = True

    async def close(self) -> None:
        """There are no more units."""
        self._closed = True
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
