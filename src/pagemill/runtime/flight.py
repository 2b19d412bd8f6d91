"""Flight control: how many pages, and how many bytes of them, are under way at once."""

from __future__ import annotations

import asyncio
from collections import deque


class FlightControl:
    """Admits pages while both their number and their bytes stay within bounds, in the order they ask.

    This is all the back-pressure there is: a page that is not admitted is not read from its source.
    A page larger than the whole byte budget is admitted when nothing else is in flight.

    Args:
        max_pages: Most pages in flight.
        max_bytes: Most bytes of decoded pixels in flight, by estimate.
    """

    def __init__(self, *, max_pages: int, max_bytes: int) -> None:
        if max_pages < 1 or max_bytes < 1:
            raise ValueError("max_pages and max_bytes are at least 1")
        self.max_pages = max_pages
        self.max_bytes = max_bytes
        self.pages = 0
        self.bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, estimated_bytes: int) -> None:
        """Wait until the page fits, then count it in."""
        if not self._waiting and self._fits(estimated_bytes):
            self._admit(estimated_bytes)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((estimated_bytes, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.leave(estimated_bytes)  # admitted and cancelled in the same turn
            raise

    def leave(self, estimated_bytes: int) -> None:
        """Count a page out; its bytes are the estimate it entered with."""
        self.pages -= 1
        self.bytes -= estimated_bytes
        while self._waiting:
            size, future = self._waiting[0]
            if future.done():
                self._waiting.popleft()
            elif self._fits(size):
                self._waiting.popleft()
                self._admit(size)
                future.set_result(None)
            else:
                break

    def _fits(self, estimated_bytes: int) -> bool:
        if self.pages == 0:
            return True
        return self.pages < self.max_pages and self.bytes + estimated_bytes <= self.max_bytes

    def _admit(self, estimated_bytes: int) -> None:
        self.pages += 1
        self.bytes += estimated_bytes
