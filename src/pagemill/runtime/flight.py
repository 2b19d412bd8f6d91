"""Flight control: how many pages, bytes of them and requests for them are under way at once."""

from __future__ import annotations

import asyncio
from collections import deque


class FlightControl:
    """Admits pages while all its bounds hold, in the order they ask.

    This is all the back-pressure there is: a page that is not admitted is not read from its source.
    A page larger than the whole byte budget is admitted when nothing else is in flight.

    A page whose regions are read elsewhere lets its pixels go and waits for seconds: it says so
    (:meth:`Ticket.pixels_gone`), and makes room for the next one as long as few enough requests are outstanding.

    Args:
        max_pages: Most pages in flight.
        max_bytes: Most bytes of decoded pixels, and of what is kept of them, in flight, by estimate.
        max_with_pixels: Most pages that hold their pixels; None: as many as may be in flight.
        enough_requests: No page is admitted while so many requests are outstanding; None for no bound.
    """

    def __init__(
        self,
        *,
        max_pages: int,
        max_bytes: int,
        max_with_pixels: int | None = None,
        enough_requests: int | None = None,
    ) -> None:
        if max_pages < 1 or max_bytes < 1:
            raise ValueError("max_pages and max_bytes are at least 1")
        self.max_pages = max_pages
        self.max_bytes = max_bytes
        self.pages = 0
        self.bytes = 0
        self.with_pixels = 0
        self.requests = 0
        self._max_with_pixels = max_pages if max_with_pixels is None else max(1, max_with_pixels)
        self._enough_requests = enough_requests
        self._waiting: deque[tuple[int, asyncio.Future[Ticket]]] = deque()

    async def enter(self, estimated_bytes: int) -> Ticket:
        """Wait until the page fits, then count it in."""
        if not self._waiting and self._fits(estimated_bytes):
            return self._admit(estimated_bytes)
        future: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append((estimated_bytes, future))
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                future.result().leave()  # admitted and cancelled in the same turn
            raise

    def admit_waiting(self) -> None:
        """Count in those that wait and fit by now."""
        while self._waiting:
            size, future = self._waiting[0]
            if future.done():
                self._waiting.popleft()
            elif self._fits(size):
                self._waiting.popleft()
                future.set_result(self._admit(size))
            else:
                break

    def _fits(self, estimated_bytes: int) -> bool:
        if self.pages == 0:
            return True
        if self._enough_requests is not None and self.requests >= self._enough_requests:
            return False
        return (
            self.pages < self.max_pages
            and self.with_pixels < self._max_with_pixels
            and self.bytes + estimated_bytes <= self.max_bytes
        )

    def _admit(self, estimated_bytes: int) -> Ticket:
        self.pages += 1
        self.bytes += estimated_bytes
        self.with_pixels += 1
        return Ticket(self, estimated_bytes)


class Ticket:
    """A page's place in flight. Used on the event loop."""

    def __init__(self, flight: FlightControl, estimated_bytes: int) -> None:
        self._flight = flight
        self._bytes = estimated_bytes
        self._has_pixels = True
        self._requests = 0

    def pixels_gone(self, *, kept_bytes: int, requests: int) -> None:
        """The page has let its pixels go, and waits for answers.

        Args:
            kept_bytes: What is kept of it: crops, prepared requests.
            requests: Answers that it waits for; :meth:`request_ended` is to follow for each.
        """
        flight, kept = self._flight, min(kept_bytes, self._bytes)
        flight.with_pixels -= self._has_pixels
        flight.bytes -= self._bytes - kept
        flight.requests += requests
        self._has_pixels, self._bytes = False, kept
        self._requests += requests
        flight.admit_waiting()

    def request_ended(self) -> None:
        """One of the answers is there, or will not come."""
        if not self._requests:  # the page has left
            return
        self._requests -= 1
        self._flight.requests -= 1
        self._flight.admit_waiting()

    def leave(self) -> None:
        """Count the page out, with whatever it still holds."""
        flight = self._flight
        flight.pages -= 1
        flight.bytes -= self._bytes
        flight.with_pixels -= self._has_pixels
        flight.requests -= self._requests
        self._has_pixels, self._bytes, self._requests = False, 0, 0
        flight.admit_waiting()
