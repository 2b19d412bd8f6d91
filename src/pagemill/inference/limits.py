"""How many requests a server is given at once: a fixed number, or one that follows what the server bears.

The adaptive limit climbs the hill of throughput. A server that batches answers twice the requests in hardly more time
until it is full; from then on more requests only wait longer. So the limit is doubled as long as the time a token takes
holds, then probed in smaller steps up and down, and lowered by a factor when a server shows that it has too much: HTTP
429 or 503, a time limit overrun, a queue in its metrics, a death with all that it had in flight. Other failures, which
come at random between answers, say nothing of the load. (Lowering by a factor: Chiu and Jain, 1989; latency as the
signal: TCP Vegas, Brakmo and Peterson, 1995.)

Nothing here knows of time, sockets or servers.
"""

from __future__ import annotations

import math
from typing import Protocol

SMALLEST, FIRST, LARGEST = 4, 32, 256
_CUT = 0.7
"""What is left of the limit after an overload."""
_OVERLOADS = 3
_OVERLOAD_SHARE = 0.2
"""An overload is so many signs of it, and so many of the limit, within a window: not the odd one that a server with
random faults gives, which would bring the limit down to 1 for nothing."""
_BURST = 8
"""So many failures, and as large a share of the limit, without an answer in between are a death of the server."""
_QUEUE_CUT = 0.85
"""What is left of the limit when the server's queue is too long."""
_QUEUE_SHARE = 0.25
"""A queue longer than this share of the limit is too long; a shorter one keeps the server busy."""
_WORTH = 0.1
"""Twice the requests must give at least so much more throughput, and a smaller step in proportion."""
_PROBE = 1.25
"""Step of a probe."""
_REST = 6
"""Windows without a probe after one that gave nothing."""


class InFlightLimit(Protocol):
    """Most requests that a server is given at once. Not thread-safe: used on one event loop."""

    value: int
    """Requests, at least 1."""
    largest: int
    """What ``value`` can become."""
    adaptive: bool
    """Whether it wants to be told of the server's queue."""

    def begin(self, in_flight: int) -> Attempt:
        """A request is sent; so many are in flight now, this one included."""
        ...

    def succeeded(self, ticket: Attempt, seconds: float, tokens: int) -> None:
        """It was answered, after so many seconds, with so many tokens."""
        ...

    def overloaded(self, ticket: Attempt) -> None:
        """The server had too much: it gave no answer in time."""
        ...

    def rejected(self, ticket: Attempt) -> None:
        """The server had too much, or says that it serves nobody now (HTTP 429, 503)."""
        ...

    def failed(self, ticket: Attempt) -> None:
        """The server failed it, or lost the connection: a fault of its own, or its death of too much."""
        ...

    def returned(self) -> None:
        """The server was not there, and is again: when it dies anew, the limit is still too high."""
        ...

    def queue(self, waiting: int) -> None:
        """So many requests wait inside the server, by its metrics."""
        ...


class Attempt:
    """A request in flight: what its end tells depends on when it began."""

    __slots__ = ("epoch", "full")

    def __init__(self, epoch: int, full: bool) -> None:
        self.epoch = epoch
        self.full = full
        """Whether it filled the limit. Others tell nothing: there is no demand for more, or the last raise is not
        filled yet."""


class FixedLimit:
    """Always the same."""

    adaptive = False

    def __init__(self, value: int) -> None:
        self.value = self.largest = value

    def begin(self, in_flight: int) -> Attempt:
        """Nothing depends on it."""
        return Attempt(0, in_flight >= self.value)

    def succeeded(self, ticket: Attempt, seconds: float, tokens: int) -> None:
        """Nothing to learn."""

    def overloaded(self, ticket: Attempt) -> None:
        """The user wants it so."""

    def rejected(self, ticket: Attempt) -> None:
        """The user wants it so."""

    def failed(self, ticket: Attempt) -> None:
        """The user wants it so."""

    def returned(self) -> None:
        """Nothing to learn."""

    def queue(self, waiting: int) -> None:
        """The user wants it so."""


class AdaptiveLimit:
    """Follows what the server bears.

    Args:
        first: To begin with.
        smallest: Never under this.
        largest: Never over this.
    """

    adaptive = True

    def __init__(self, first: int = FIRST, *, smallest: int = SMALLEST, largest: int = LARGEST) -> None:
        self.value = max(smallest, min(first, largest))
        self.smallest = smallest
        self.largest = largest
        self._epoch = 0
        """Grows with every change: only requests that began since then tell of the present limit."""
        self._doubling = True
        self._up = True
        """Where the next probe goes: the other way when one gave nothing."""
        self._before: tuple[int, float] | None = None
        """The limit before a probe that is under way, and the seconds a token took then."""
        self._rest = 0
        self._settled = True
        """Whether a whole window has passed since the limit was lowered."""
        self._answers = self._tokens = self._queued = self._overloads = 0
        self._seconds = 0.0
        self._heard = True
        """Whether there was an answer since rejections lowered the limit: a server that is full answers some requests,
        one that rejects all of them is out of service, which says nothing of how many it bears."""
        self._failures = 0
        """In a row, without an answer in between; -1 from when they lowered the limit until the server answers again:
        an outage says nothing more, however long it is."""

    def begin(self, in_flight: int) -> Attempt:
        """As :meth:`InFlightLimit.begin`."""
        return Attempt(self._epoch, in_flight >= self.value)

    def succeeded(self, ticket: Attempt, seconds: float, tokens: int) -> None:
        """As :meth:`InFlightLimit.succeeded`."""
        self._failures = 0
        self._heard = True
        if ticket.epoch != self._epoch or not ticket.full:
            return
        self._answers += 1
        self._seconds += max(0.0, seconds)
        self._tokens += max(1, tokens)
        if self._answers >= self.value:
            self._end_window()

    def overloaded(self, ticket: Attempt) -> None:
        """As :meth:`InFlightLimit.overloaded`. Requests of one burst that all fail lower the limit once."""
        if ticket.epoch != self._epoch:
            return
        self._overloads += 1
        if self._overloads >= max(_OVERLOADS, _OVERLOAD_SHARE * self.value):
            self._lower(_CUT)

    def rejected(self, ticket: Attempt) -> None:
        """As :meth:`InFlightLimit.rejected`."""
        if self._heard:
            before = self.value
            self.overloaded(ticket)
            self._heard = self.value == before

    def failed(self, ticket: Attempt) -> None:
        """As :meth:`InFlightLimit.failed`."""
        if ticket.epoch != self._epoch or self._failures < 0:
            return
        self._failures += 1
        if self._failures >= max(_BURST, _OVERLOAD_SHARE * self.value):
            self._failures = -1
            self._lower(_CUT)

    def returned(self) -> None:
        """As :meth:`InFlightLimit.returned`."""
        self._failures = 0
        self._heard = True

    def queue(self, waiting: int) -> None:
        """As :meth:`InFlightLimit.queue`. A queue is looked at again only when the answer to the last cut is in."""
        self._queued = max(self._queued, waiting)
        if self._settled and waiting > max(1.0, _QUEUE_SHARE * self.value):
            self._lower(_QUEUE_CUT)

    def _lower(self, factor: float) -> None:
        self._doubling = False
        self._before = None
        self._settled = False
        self._rest = _REST
        self._change(math.floor(self.value * factor))

    def _end_window(self) -> None:
        """As many answers are in as the limit allows requests: decide."""
        pace, queued = self._seconds / self._tokens, self._queued
        self._settled = True
        self._clear_window()
        if self._before is not None:
            before, pace_before = self._before
            self._before = None
            if self.value > before and not _worth_it(before, pace_before, self.value, pace):
                self._doubling = False
                self._up = False
                self._rest = _REST
                self._change(before)
                return
            if self.value < before and _worth_it(self.value, pace, before, pace_before):
                self._up = True
                self._rest = _REST
                self._change(before)
                return
        if queued:  # the server has all that it can take
            self._doubling = False
            return
        if self._rest:
            self._rest -= 1
            return
        self._before = self.value, pace
        if self._up:
            self._change(2 * self.value if self._doubling else max(self.value + 1, round(self.value * _PROBE)))
        else:
            self._change(min(self.value - 1, round(self.value / _PROBE)))

    def _change(self, value: int) -> None:
        value = max(self.smallest, min(value, self.largest))
        if value != self.value:
            self.value = value
            self._epoch += 1
        self._clear_window()

    def _clear_window(self) -> None:
        self._answers = self._tokens = self._queued = self._overloads = 0
        self._seconds = 0.0


def _worth_it(lower: int, lower_pace: float, upper: int, upper_pace: float) -> bool:
    """Whether the upper limit gives enough more throughput than the lower: limit over latency, by Little's law.

    Args:
        lower: A limit.
        lower_pace: The seconds that a token takes with it.
        upper: A limit over it.
        upper_pace: As above.
    """
    step = upper / lower
    return step * lower_pace >= (1 + _WORTH * math.log2(step)) * upper_pace
