"""Time limits of computation. They count CPU time: on a busy machine an honest page may take any time by the clock.

What gets no CPU time although it could run cannot be distinguished from what waits, so a computation that makes no
progress (less than 2 % of a core) has the same limit in seconds of the clock. macOS does not report the CPU time of
another thread or process: there all limits are in seconds of the clock.

For another process, the busiest thread counts: where one thread holds the interpreter's lock for ever, each of
the others wakes up 200 times a second to ask for it, and a dozen of them together look like work.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar

IDLE_SHARE = 0.02
"""Share of a core below which a computation makes no progress: at load 25 on two cores each thread gets 0.08; a thread
that wakes up 200 times a second to ask for a lock takes 0.001, and 0.008 on a virtual machine."""
_LEAST_LOOK_S = 0.05
"""Shortest interval between two checks: what is left of a limit may be microseconds."""

Clock = Callable[[], float]
"""CPU time so far, in seconds."""


def process_clock(pid: int) -> Clock:
    """The CPU time of a process: the sum, over all readings, of the time of the thread that gained most since the last.

    It does not advance where the system does not report it (macOS), nor after the process has ended. Threads that start
    and end between two readings do not count.
    """
    total, before = 0.0, dict[str, int]()

    def read() -> float:
        nonlocal total, before
        now = dict(_thread_times(pid))
        gained = [spent - before.get(thread, 0) for thread, spent in now.items()]
        # The busiest thread, not the sum: helper threads must not use up the limit of the one that computes.
        total += max([0, *gained]) / 1e9  # a new thread may have the number of one that has finished, and less time
        before = now
        return total

    return read


def _thread_times(pid: int) -> Iterator[tuple[str, int]]:
    """The CPU time of each thread of a process, in nanoseconds: the first field of schedstat in proc(5).

    Asked several times a page: objects for paths would cost more than the system's answer.
    """
    with suppress(OSError), os.scandir(f"/proc/{pid}/task") as threads:
        for thread in threads:
            with suppress(OSError), open(f"{thread.path}/schedstat", "rb") as file:  # noqa: PTH123 - or it has finished
                yield thread.name, int(file.read().split()[0])


def thread_clock(ident: int) -> Clock:
    """The CPU time of a running thread of this process; 0 where the system does not report it (macOS)."""
    get = getattr(time, "pthread_getcpuclockid", None)
    return (lambda: 0.0) if get is None else _clock(get(ident))


def _clock(number: int) -> Clock:
    def read() -> float:
        with suppress(OSError, AttributeError):
            return time.clock_gettime(number)
        return 0.0

    return read


class Limit:
    """A limit in seconds of CPU time.

    Args:
        seconds: The limit.
        clock: CPU time of what computes, from any point on.
        waits: Whether it is only queued, which no limit counts.
    """

    def __init__(self, seconds: float, clock: Clock, waits: Callable[[], bool] = lambda: False) -> None:
        self._seconds = seconds
        self._clock = clock
        self._waits = waits
        self._started = self._last = clock()
        self._looked = time.monotonic()

    def left(self, passed: float | None = None) -> float:
        """Seconds until the next check; 0 if the time is up. First called after ``seconds`` by the clock.

        Args:
            passed: Seconds since the last check; by default those of the clock.
        """
        now, spent = time.monotonic(), self._clock()
        gained, passed = spent - self._last, now - self._looked if passed is None else passed
        self._last, self._looked = spent, now
        # A call that is queued gains nothing and is not the fault of its page; one that runs and gains nothing hangs.
        left = self._seconds - (spent - self._started)
        if left <= 0 or (gained < IDLE_SHARE * passed and not self._waits()):
            return 0.0
        return max(left, _LEAST_LOOK_S)


class Work:
    """The CPU time of a computation. Holds no reference to the computation itself.

    Args:
        clock: CPU time of the process that computes; None for a computation between :meth:`begin` and :meth:`end`.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.waits = clock is None
        """Whether it has not started."""
        self.part_of: Work | None = None
        """The microbatch it is part of."""
        self._clock = clock
        self._offset = 0.0

    def begin(self) -> None:
        """Record that it starts on this thread."""
        self._offset = -time.thread_time()
        self._clock, self.waits = thread_clock(threading.get_ident()), False

    def end(self) -> None:
        """Record that it has finished on this thread."""
        self._clock, self._offset = None, self._offset + time.thread_time()

    @property
    def cpu_s(self) -> float:
        """CPU time so far, in seconds."""
        if self.part_of is not None:
            return self.part_of.cpu_s
        clock = self._clock
        return max(0.0, self._offset + (clock() if clock is not None else 0.0))


class Meter:
    """The CPU time of all computations for a page."""

    def __init__(self) -> None:
        self._works: list[Work] = []

    def add(self, work: Work) -> None:
        """Count a computation."""
        self._works.append(work)

    def clock(self) -> float:
        """CPU time so far, in seconds."""
        return sum(work.cpu_s for work in self._works)

    def waits(self) -> bool:
        """Whether a computation waits for a thread or a microbatch."""
        return any((work.part_of or work).waits for work in self._works)


METER: ContextVar[Meter | None] = ContextVar("pagemill.meter", default=None)
"""Meter of the current page."""


def counted() -> Work:
    """Register a computation with the meter of the current page, if there is one."""
    work = Work()
    if (meter := METER.get()) is not None:
        meter.add(work)
    return work
