"""Flight control: how many pages, bytes of them and requests for them are in flight at once."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

ALONE_S = 10.0
"""Seconds for which a page that is retried in isolation has the services to itself. Most crash or fail within a second;
one that computes until its time limit must not hold up all other jobs for minutes."""


class Admission(Protocol):
    """Where a stream has its pages admitted."""

    max_bytes: int
    """A page of a larger announced size is admitted when nothing else is in flight."""

    async def enter(self, estimated_bytes: int) -> Ticket:
        """Wait until the page fits, then count it in."""


@dataclass(slots=True, eq=False)
class Share:
    """Pages in flight of a job, counted in those of its owner."""

    owner: Share | None = None
    pages: int = 0
    """In flight."""

    def add(self, pages: int) -> None:
        """Count pages in, or out."""
        self.pages += pages
        if self.owner is not None:
            self.owner.add(pages)

    @property
    def rank(self) -> tuple[int, int]:
        """The lowest is admitted first: whose owner, then whose job, has the fewest pages in flight."""
        return 0 if self.owner is None else self.owner.pages, self.pages

    @property
    def handicap(self) -> int:
        """How many pages admitted later may be computed before one of these: the more, the more of them are in flight.

        It is bounded, so that no page waits for ever while small jobs keep coming.
        """
        return sum(self.rank)


@dataclass(slots=True, eq=False)
class Turn(Share):
    """Pages that are admitted before those of later turns, so that they do not all end at the same time."""

    number: int = 0

    @property
    def rank(self) -> tuple[int, int]:
        """The lowest number is admitted first."""
        return self.number, 0

    @property
    def handicap(self) -> int:
        """None: the oldest page is computed first, whose turn it is."""
        return 0


TICKET: ContextVar[Ticket | None] = ContextVar("ticket", default=None)
"""Ticket of the page that is being parsed."""


def place() -> int:
    """Place of the current page, where calls wait for a thread or a microbatch: the lowest is next.

    The oldest page goes first, at whatever stage it is: pages leave as soon as they can, and few are in flight at once.
    """
    ticket = TICKET.get()
    return 0 if ticket is None else ticket.place


@dataclass(slots=True, eq=False)
class _Waiting:
    share: Share
    number: int = field(default_factory=itertools.count().__next__)

    @property
    def rank(self) -> tuple[int, int, int]:
        return *self.share.rank, self.number


class FlightControl:
    """Admits pages, one at a time, while all its bounds hold. Of several streams the one with the lowest rank is next.

    This is all the back-pressure there is: a page that is not admitted is not read from its source.
    A page larger than the whole byte budget is admitted when nothing else is in flight.

    A page whose regions are read elsewhere lets its pixels go and waits for seconds: it reports this
    (:meth:`Ticket.pixels_gone`), and makes room for the next one as long as few enough requests are outstanding.

    Args:
        max_pages: Most pages in flight.
        max_bytes: Most bytes of decoded pixels, and of what is kept of them, in flight, by estimate.
        max_with_pixels: Most pages that hold their pixels.
        enough_requests: Number of outstanding requests from which no page is admitted.
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
        self.admitted = 0
        self._max_with_pixels = max_with_pixels
        self._enough_requests = enough_requests
        self._waiting: list[_Waiting] = []

    def unbound(self) -> None:
        """Bound only the number of pages."""
        self.max_bytes, self._max_with_pixels, self._enough_requests = sys.maxsize, math.inf, math.inf

    async def enter(self, estimated_bytes: int, share: Share | None = None) -> Ticket:
        """Wait until the page fits and no other one is to go first, then count it in.

        Args:
            estimated_bytes: Estimated bytes of the page.
            share: Share that the page belongs to, where several streams use one control.
        """
        waiting = _Waiting(share or Share())
        self._waiting.append(waiting)
        try:
            # The first in line holds all others back, however small they are: else a large page would never fit.
            while min(self._waiting, key=lambda each: each.rank) is not waiting or not self._fits(estimated_bytes):
                self.changed.clear()
                await self.changed.wait()
            ticket = Ticket(self, estimated_bytes, waiting.share)
            self.tickets.add(ticket)
            return ticket
        finally:
            self._waiting.remove(waiting)
            self.changed.set()

    async def empty(self) -> None:
        """Wait until no page is in flight; no other caller may be waiting to enter."""
        while self.tickets:
            self.changed.clear()
            await self.changed.wait()

    def leave(self, share: Share) -> None:
        """Count out all pages of a share: an error ended their stream before they landed."""
        for ticket in [ticket for ticket in self.tickets if ticket.share is share]:
            ticket.leave()

    def _fits(self, estimated_bytes: int) -> bool:
        return not self.tickets or (
            len(self.tickets) < self.max_pages
            and sum(ticket.requests for ticket in self.tickets) < self._enough_requests
            and sum(ticket.has_pixels for ticket in self.tickets) < self._max_with_pixels
            and sum(ticket.bytes for ticket in self.tickets) + estimated_bytes <= self.max_bytes
        )


class Ticket:
    """A page's place in flight. Used on the event loop."""

    def __init__(self, flight: FlightControl, estimated_bytes: int, share: Share) -> None:
        self._flight = flight
        self.share = share
        flight.admitted += 1
        self._number: int | None = flight.admitted
        share.add(1)
        self.bytes = estimated_bytes
        self.has_pixels = True
        self.requests = 0

    @property
    def place(self) -> int:
        """Place of the page, where calls wait: the lowest is next."""
        return (self._flight.admitted if self._number is None else self._number) + self.share.handicap

    def admit_others(self) -> None:
        """The page has been alone for long enough: others join it, and their calls need not wait for its calls."""
        self._number = None
        self.shrink(0)

    def pixels_gone(self, *, kept_bytes: int, requests: int) -> None:
        """The page has released its pixels, and waits for answers.

        Args:
            kept_bytes: Bytes that are kept of it: crops, prepared requests.
            requests: Answers that it waits for; :meth:`request_ended` is to follow for each.
        """
        self.has_pixels = False
        self.bytes = min(kept_bytes, self.bytes)
        self.requests += requests
        self._flight.changed.set()

    def shrink(self, bytes: int) -> None:
        """Lower the bytes that the page holds."""
        self.bytes = min(bytes, self.bytes)
        self._flight.changed.set()

    def request_ended(self) -> None:
        """One of the answers is there, or will not come."""
        self.requests -= 1
        self._flight.changed.set()

    def leave(self) -> None:
        """Remove the page, with everything that it still holds."""
        if self in self._flight.tickets:
            self._flight.tickets.remove(self)
            self.share.add(-1)
        self._flight.changed.set()


class SharedAdmission:
    """Admits pages of one job to the flight of all. Implements :class:`Admission`.

    A page that is to run alone has the services to itself for :data:`ALONE_S` seconds; then others join it, and it
    counts as the youngest of them. The next one of the job waits for as long as it took, so that such pages take at
    most half of the time.

    Args:
        flight: Flight control of all jobs.
        share: Share of the job.
    """

    def __init__(self, flight: FlightControl, share: Share) -> None:
        self.max_bytes = flight.max_bytes
        self._flight = flight
        self._share = share
        self._started = 0.0
        self._alone: Ticket | None = None

    async def enter(self, estimated_bytes: int) -> Ticket:
        """Wait until the page fits and its job has its turn, then count it in."""
        if estimated_bytes <= self.max_bytes:
            return await self._flight.enter(estimated_bytes, self._share)
        if self._alone is not None:
            await asyncio.sleep(min(ALONE_S, time.monotonic() - self._started))
        ticket = await self._flight.enter(estimated_bytes, self._share)
        self._started, self._alone = time.monotonic(), ticket
        asyncio.get_running_loop().call_later(ALONE_S, ticket.admit_others)
        return ticket
