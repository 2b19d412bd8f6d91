"""Computing threads that cannot be blocked forever: one that hangs is abandoned and replaced."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import math
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, ParamSpec, TypeVar

from pagemill import tracing
from pagemill.computing.cpu_time import Limit, counted
from pagemill.runtime import flight

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

STUCK_AFTER_S = 10.0
"""A call that runs this long after it was given up hangs; normal calls take a second or two."""


_here = threading.local()


def unwanted() -> bool:
    """Whether the call on this thread was given up, so that its answer is no longer needed."""
    call: Call[Any] | None = getattr(_here, "call", None)
    return call is not None and call.given_up


class StuckError(Exception):
    """A call was given up and hangs."""


class Call(Future[R]):
    """A function on its way through a thread. Made by :meth:`ComputeThreads.start` on the event loop."""

    def __init__(self, function: Callable[[], R]) -> None:
        super().__init__()
        self.function: Callable[[], R] | None = function
        self.thread: threading.Thread | None = None
        self.given_up = False
        self.work = counted()
        """Its CPU time."""
        self.answer = asyncio.wrap_future(self)
        """Result or exception of the function; cancelled when it was given up before it started; :class:`StuckError`
        when it was given up and hangs."""

    def run(self) -> None:
        """Call the function, unless it was given up before."""
        if not self.set_running_or_notify_cancel():
            return
        self.work.begin()
        self.thread = threading.current_thread()
        function, self.function = self.function, None
        assert function is not None
        _here.call = self
        try:
            deliver = functools.partial(self.set_result, function())
        except BaseException as error:
            if isinstance(error, StopIteration) or not isinstance(error, Exception):
                # From an engine that calls sys.exit, or panics: it must not end the event loop.
                error = RuntimeError(f"{type(error).__name__}: {error}")
            deliver = functools.partial(self.set_exception, error)
        finally:
            _here.call = None
            self.work.end()
        deliver()
        del self, deliver, function  # an exception's traceback holds this frame, and with it the arguments


class ComputeThreads:
    """A pool of threads for what computes outside of the interpreter lock; made for one event loop.

    Unlike :class:`concurrent.futures.ThreadPoolExecutor` it continues when a call hangs in native code: some seconds
    after the call was given up a new thread takes the place of the one that hangs, and neither closing the pool nor
    the end of the process waits for it.

    Args:
        threads: Calls that run at once.
        name: Name of the threads.
        stuck: Set once a call hangs that nobody waits for; one event may serve several pools.
        grace_s: Seconds, of CPU time if it uses any, until a call that was given up counts as stuck.
    """

    def __init__(
        self, threads: int, *, name: str, stuck: asyncio.Event | None = None, grace_s: float = STUCK_AFTER_S
    ) -> None:
        self.stuck = stuck or asyncio.Event()
        self._size = threads
        self._name = name
        self._grace_s = grace_s
        self._queue: queue.PriorityQueue[tuple[float, int, Call[Any] | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._threads: set[threading.Thread] = set()
        self._calls: set[Call[Any]] = set()  # without an answer yet

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function on a thread; cancelling the caller gives the call up."""
        call = self.start(functools.partial(function, *args, **kwargs))
        try:
            return await asyncio.shield(call.answer)
        except asyncio.CancelledError:
            self.give_up(call)
            raise
        finally:
            del call  # an exception's traceback holds this frame, and with it the arguments

    def start(
        self, function: Callable[[], R], *, operation: str = "", items: int = 1, place: int | None = None
    ) -> Call[R]:
        """Call a function on a thread as soon as one is free.

        Args:
            function: The function.
            operation: Name of a microbatch, for traces.
            items: Number of items in the microbatch.
            place: Place in the queue, the lowest is next; by default that of the current page.
        """
        if len(self._threads) < self._size:
            self._add_thread()
        call = Call(tracing.timed(function, self._name, operation=operation, items=items))
        self._calls.add(call)
        call.answer.add_done_callback(lambda _: self._calls.discard(call))
        self._queue.put((flight.place() if place is None else place, next(self._numbers), call))
        return call

    def give_up(self, call: Call[Any]) -> None:
        """Cancel a call whose answer is not needed: a queued call does not run, a running call should stop early."""
        if not call.given_up:
            call.given_up = True
            # Looked at, so that asyncio does not complain that nobody has: errors of such a call are not news.
            call.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
            if not call.cancel():
                limit = Limit(self._grace_s, lambda: call.work.cpu_s)
                asyncio.get_running_loop().call_later(self._grace_s, self._leave_behind, call, limit)

    async def drained(self) -> None:
        """Wait until the calls that were given up have ended, or hang."""
        while answers := {call.answer for call in self._calls if call.given_up}:
            await asyncio.wait(answers)

    async def close(self) -> None:
        """Give up calls in flight and end the threads, except those that hang."""
        for call in self._calls:
            self.give_up(call)
        await self.drained()
        threads, self._threads = self._threads, set()
        for _ in threads:
            self._queue.put((math.inf, next(self._numbers), None))
        for thread in threads:
            thread.join()  # it has nothing left to do

    def _leave_behind(self, call: Call[Any], limit: Limit) -> None:
        if not call.answer.done() and (left := limit.left()):
            asyncio.get_running_loop().call_later(left, self._leave_behind, call, limit)
            return
        try:
            call.set_exception(StuckError("a computation hangs"))
        except InvalidStateError:  # it has finished
            return
        assert call.thread is not None
        log.info("a computation hangs; its thread %s is abandoned", call.thread.name)
        self.stuck.set()
        self._threads.discard(call.thread)
        self._add_thread()

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        thread.start()
        self._threads.add(thread)

    def _work(self) -> None:
        while (call := self._queue.get()[-1]) is not None:
            try:
                call.run()
            except InvalidStateError:  # it was left behind, and this thread with it
                return
            finally:
                del call
