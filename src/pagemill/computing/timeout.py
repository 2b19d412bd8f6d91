"""A time limit for a block of a coroutine, in CPU time of the computations that it starts."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from pagemill.computing.cpu_time import METER, Limit, Meter


class Timeout:
    """A time limit for the block, as :func:`asyncio.timeout`, that counts the CPU time of a meter."""

    def __init__(self) -> None:
        self.meter = Meter()
        """The meter of the current task within the block."""
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._before: Meter | None = None

    def start(self, seconds: float) -> None:
        """Give the block ``seconds`` from now on."""
        self.stop()
        self._look_after(seconds, Limit(seconds, self.meter.clock, self.meter.waits))

    def stop(self) -> None:
        """Set no limit from now on."""
        if self._timer is not None:
            self._timer.cancel()

    def expired(self) -> bool:
        """Whether the limit ended the block."""
        return self._timeout.expired()

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._before = METER.get()
        METER.set(self.meter)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        # Not by token: an asynchronous generator may be closed in another context than it was entered in.
        METER.set(self._before)
        await self._timeout.__aexit__(kind, error, traceback)

    def _look_after(self, seconds: float, limit: Limit) -> None:
        # By a timer of our own: asyncio.timeout knows only the clock, and its deadline is set when the CPU time is up.
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look, limit)

    def _look(self, limit: Limit) -> None:
        if left := limit.left():
            self._look_after(left, limit)
        else:
            self._timeout.reschedule(asyncio.get_running_loop().time())
