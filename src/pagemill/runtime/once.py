"""Load an object once, on first use, for many coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from pagemill import tracing
from pagemill.blocking import cancelled

Thing = TypeVar("Thing")


class Once(Generic[Thing]):
    """Creates an object on first use; concurrent callers wait for the same one, and share its failure.

    A call after a failure retries: memory may be free by then. A page that gives up waiting does not
    stop the making.

    Args:
        make: Makes it.
        dispose: Called by :meth:`close` with what was made.
    """

    def __init__(
        self,
        make: Callable[[], Coroutine[Any, Any, Thing]],
        dispose: Callable[[Thing], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._make = make
        self._dispose = dispose
        self._task: asyncio.Task[Thing] | None = None

    async def get(self) -> Thing:
        """The thing.

        Raises:
            Exception: Whatever making it raised, for all who wait.
        """
        # After a failure it is tried again: a server may be back, a file may be there now.
        if self._task is None or (self._task.done() and self.made is None):
            self._task = asyncio.create_task(self._load())
        # A page that is given up while it waits must not cancel what others wait for.
        return await asyncio.shield(self._task)

    async def _load(self) -> Thing:
        with tracing.stage(tracing.LOAD):
            return await self._make()

    @property
    def made(self) -> Thing | None:
        """The object, if it exists already."""
        task = self._task
        if task is None or not task.done() or task.cancelled() or task.exception():
            return None
        return task.result()

    async def close(self) -> None:
        """Cancel its creation, or dispose of it."""
        if self._task is not None and not self._task.done():
            await cancelled(self._task)
        if self._dispose and self.made is not None:
            await self._dispose(self.made)
