"""Concurrency limits: a fixed number of requests in flight per server, or an adaptive one.

The adaptive limit maximises throughput. A batching server answers twice the requests in hardly more time until its
batch is full; after that, more requests only wait longer. So the limit doubles while the time per token holds, then
probes in smaller steps up and down. It decreases by a factor on overload: HTTP 429 or 503, a timeout, or a crash that
loses everything in flight. Isolated failures between answers are not evidence of load.
(Multiplicative decrease: Chiu and Jain, 1989; latency as the signal: TCP Vegas, Brakmo and Peterson, 1995.)

This module knows nothing of time, sockets or servers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SMALLEST, FIRST, LARGEST = 4, 32, 256
_CUT = 0.7
"""Factor on the limit after an overload."""
_OVERLOADS = 3
_OVERLOAD_SHARE = 0.2
"""Signs within a window, absolute and as a share of the limit, that make an overload: a server with random faults gives
single ones, which would lower the limit to 1 for nothing."""
_BURST = 8
"""Failures without an answer in between, absolute and as a share of the limit, that mean the server crashed."""
_WORTH = 0.1
"""Minimum gain in throughput from twice the requests; a smaller step needs a proportional one."""
_PROBE = 1.25
"""Relative step of a probe."""
_REST = 6
"""Windows to wait after a probe without gain."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request in flight. How its outcome counts depends on when it started."""

    epoch: int
    full: bool
    """Whether it filled the limit. Others are not evidence: demand is lower, or the last raise is not yet used."""


class InFlightLimit:
    """Maximum number of requests in flight to one server: raised until throughput stops improving, lowered on overload.

    Fixed where ``smallest`` is ``largest``. Not thread-safe: used on one event loop.

    Args:
        first: Initial limit.
        smallest: Lower bound, at least 1.
        largest: Upper bound.
    """

    def __init__(self, first: int = FIRST, *, smallest: int = SMALLEST, largest: int = LARGEST) -> None:
        self.value = max(smallest, min(first, largest))
        self.smallest = smallest
        self.largest = largest
        self._epoch = 0
        """Incremented by every change: only requests that started since then are evidence for the present limit."""
        self._doubling = True
        self._up = True
        """Direction of the next probe: reversed when one gave nothing."""
        self._before: tuple[int, float] | None = None
        """The limit before the running probe, and the seconds per token then."""
        self._rest = 0
        self._answers = self._tokens = self._overloads = 0
        self._seconds = 0.0
        self._answered = True
        """Whether there was an answer since the limit was lowered: a full server answers some requests; one that fails
        all of them is out of service, which is not evidence of load, and a long outage counts once."""
        self._failures = 0
        """Consecutive failures without an answer."""

    def begin(self, in_flight: int) -> Attempt:
        """Record that a request is sent. ``in_flight`` includes it."""
        return Attempt(self._epoch, in_flight >= self.value)

    def succeeded(self, attempt: Attempt, seconds: float, tokens: int) -> None:
        """Record an answer, its latency in seconds and its length in tokens."""
        self.returned()
        # Latency at another limit, or with places free, is not evidence for this one.
        if attempt.epoch != self._epoch or not attempt.full:
            return
        self._answers += 1
        self._seconds += max(0.0, seconds)
        self._tokens += max(1, tokens)
        if self._answers >= self.value:
            self._end_window()

    def overloaded(self, attempt: Attempt) -> None:
        """Record a timeout or rejection (HTTP 429, 503). Requests of one burst that all fail lower the limit once."""
        if attempt.epoch != self._epoch or not self._answered:
            return
        self._overloads += 1
        if self._overloads >= max(_OVERLOADS, _OVERLOAD_SHARE * self.value):
            self._lower()

    def failed(self, attempt: Attempt) -> None:
        """Record a server error or lost connection: a fault, or a crash under load."""
        if attempt.epoch != self._epoch or not self._answered:
            return
        self._failures += 1
        if self._failures >= max(_BURST, _OVERLOAD_SHARE * self.value):
            self._lower()

    def returned(self) -> None:
        """Record that the server is reachable again after an outage."""
        self._failures = 0
        self._answered = True

    def _lower(self) -> None:
        self._doubling = False
        self._before = None
        self._answered = False
        self._rest = _REST
        self._change(math.floor(self.value * _CUT))

    def _end_window(self) -> None:
        """Adjust the limit after a window of as many answers as the limit allows requests."""
        pace = self._seconds / self._tokens
        self._clear_window()
        probe, self._before = self._before, None
        if probe is not None and probe[0] != self.value:
            raised = self.value > probe[0]
            if raised != _worth_it(*sorted((probe, (self.value, pace)))):  # no gain from more, or a loss from fewer
                self._doubling = False
                self._up = not raised
                self._rest = _REST
                self._change(probe[0])
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
        self._answers = self._tokens = self._overloads = 0
        self._seconds = 0.0


def _worth_it(lower: tuple[int, float], upper: tuple[int, float]) -> bool:
    """Whether the upper limit gives enough more throughput than the lower: limit over latency, by Little's law.

    Args:
        lower: A limit, and the seconds per token at it.
        upper: A larger limit, likewise.
    """
    step = upper[0] / lower[0]
    return step * lower[1] >= (1 + _WORTH * math.log2(step)) * upper[1]
