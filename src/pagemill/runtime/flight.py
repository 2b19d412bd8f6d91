"""Flight control: how many pages, bytes of them and requests for them are in flight at once."""

from __future__ import annotations

import asyncio
import math
import sys


class FlightControl:
    """Admits pages, one caller at a time, while all its bounds hold.

    This is all the back-pressure there is: a page that is not admitted is not read from its source.
    A page larger than the whole byte budget is admitted when nothing else is in flight.

    A page whose regions are read elsewhere lets its pixels go and waits for seconds: it says so
    (:meth:`Ticket.pixels_gone`), and makes room for the next one as long as few enough requests are outstanding.

    Args:
        max_pages: Most pages in flight.
        max_bytes: Most bytes of decoded pixels, and of what is kept of them, in flight, by estimate.
        max_with_pixels: Most pages that hold their pixels.
        enough_requests: No page is admitted while so many requests are outstanding.
    """

    def __init__(
        self,
        *,
        max_pages: int,
        max_bytes: int,
        max_with_pixels: float = math.inf,
        enough_requests: float = math.inf,
    ) -> None:
        self.max_pages = max_pages
        self.max_bytes = max_bytes
        self.tickets: set[Ticket] = set()
        self.changed = asyncio.Event()
        self._max_with_pixels = max_with_pixels
        self._enough_requests = enough_requests
        self._turn = asyncio.Lock()

    def unbound(self) -> None:
        """Let the number of pages alone be bounded."""
        self.max_bytes, self._max_with_pixels, self._enough_requests = sys.maxsize, math.inf, math.inf

    async def enter(self, estimated_bytes: int) -> Ticket:
        """Wait until the page fits, then count it in."""
        async with self._turn:
            while not self._fits(estimated_bytes):
                self.changed.clear()
                await self.changed.wait()
            ticket = Ticket(self, estimated_bytes)
            self.tickets.add(ticket)
            return ticket

    async def empty(self) -> None:
        """Wait until no page is in flight; nobody else may be waiting to enter."""
        while self.tickets:
            self.changed.clear()
            await self.changed.wait()

    def _fits(self, estimated_bytes: int) -> bool:
        return not self.tickets or (
            len(self.tickets) < self.max_pages
            and sum(ticket.requests for ticket in self.tickets) < self._enough_requests
            and sum(ticket.has_pixels for ticket in self.tickets) < self._max_with_pixels
            and sum(ticket.bytes for ticket in self.tickets) + estimated_bytes <= self.max_bytes
        )


class Ticket:
    """A page's place in flight. Used on the event loop."""

    def __init__(self, flight: FlightControl, estimated_bytes: int) -> None:
        self._flight = flight
        self.bytes = estimated_bytes
        self.has_pixels = True
        self.requests = 0

    def pixels_gone(self, *, kept_bytes: int, requests: int) -> None:
        """The page has let its pixels go, and waits for answers.

        Args:
            kept_bytes: What is kept of it: crops, prepared requests.
            requests: Answers that it waits for; :meth:`request_ended` is to follow for each.
        """
        self.has_pixels = False
        self.bytes = min(kept_bytes, self.bytes)
        self.requests += requests
        self._flight.changed.set()

    def request_ended(self) -> None:
        """One of the answers is there, or will not come."""
        self.requests -= 1
        self._flight.changed.set()

    def leave(self) -> None:
        """Count the page out, with whatever it still holds."""
        self._flight.tickets.discard(self)
        self._flight.changed.set()
