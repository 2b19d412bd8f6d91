"""Tasks that must finish or end, and coroutines for synchronous callers, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import RLock, Thread, current_thread
from typing import Any, Self, TypeVar

from pagemill.errors import UsageError

T = TypeVar("T")
log = logging.getLogger(__name__)

_END: Any = object()


async def to_the_end(work: Awaitable[T]) -> T:
    """Await work that must not be interrupted. A cancelled caller leaves only once the work has finished."""
    finishing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(finishing)
    except asyncio.CancelledError:
        while not finishing.done():  # a caller may be cancelled more than once
            with suppress(asyncio.CancelledError):
                await asyncio.wait({finishing})
        if not finishing.cancelled() and (error := finishing.exception()) is not None:
            log.warning("failed after its caller was cancelled: %s", error)
        raise


async def cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have finished, whatever they raise: none may outlive what it works on."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class LoopThread:
    """Runs coroutines for callers that have no event loop, or one that they must not block, as in notebooks.

    A context manager. Nobody has to close it: its thread ends with the object, and with the interpreter.

    Args:
        name: Name of the thread.
        at_end: Awaited at the end, when no other coroutine runs any more.
    """

    def __init__(self, name: str, at_end: Callable[[], Coroutine[Any, Any, object]] | None = None) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._open = opened = set[AsyncGenerator[Any]]()
        # A daemon: the interpreter does not wait at its exit for one that nobody closed.
        self._thread = Thread(target=lambda: asyncio.run(_serve(started, opened, at_end)), name=name, daemon=True)
        self._thread.start()
        self.loop, stopping = started.result()
        self._stop = weakref.finalize(self, self.loop.call_soon_threadsafe, stopping.set)
        self._stop.atexit = False
        # What is handed to the loop before its end is asked for gets cancelled; later it would wait forever.
        self._handing = RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel what still runs, and end the thread. Idempotent."""
        with self._handing:
            self._stop()
        if self._thread is not current_thread():
            self._thread.join()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine. It is cancelled when the caller is interrupted, by Ctrl-C for example."""
        with self._handing:
            if not self._stop.alive:
                work.close()
                raise self._closed()
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except CancelledError:
            if self._stop.alive:
                raise
            raise self._closed() from None
        except BaseException:
            future.cancel()
            raise

    def _closed(self) -> UsageError:
        return UsageError(f"{self._thread.name} is closed", remedy="Create a new one.")

    def each(self, items: AsyncGenerator[T]) -> Generator[T]:
        """The items of an asynchronous generator, which is closed with this one, also in the middle of a step."""
        step = asyncio.Lock()

        async def following() -> T:
            async with step:
                return await anext(items, _END)

        async def closing() -> None:
            async with step:  # the step of a caller that was interrupted is being cancelled
                await items.aclose()

        self._open.add(items)
        try:
            while (item := self.call(following())) is not _END:
                yield item
        finally:
            self._open.discard(items)
            if self._stop.alive:
                self.call(closing())


async def _serve(
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]],
    opened: set[AsyncGenerator[Any]],
    at_end: Callable[[], Coroutine[Any, Any, object]] | None,
) -> None:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    started.set_result((loop, stopping))
    await stopping.wait()
    await cancelled(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
    try:
        for items in tuple(opened):
            await items.aclose()
    finally:
        if at_end is not None:
            await at_end()
