"""The servers of one model, one per accelerator, as a context manager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from pagemill.blocking import cancelled
from pagemill.errors import first_of
from pagemill.inference.exchange import Exchange
from pagemill.serving.server import ModelServer
from pagemill.serving.spec import Patience, Report, ServerSpec


class ModelServers:
    """Servers of one model, as an async context manager: healthy when it is entered, gone when it is left.

    Args:
        specs: One for each server.
        patience: Timeouts and tolerated failures.
        report: Called with each event, on the event loop; must not raise.
    """

    def __init__(self, specs: Sequence[ServerSpec], *, patience: Patience | None = None, report: Report) -> None:
        self._specs = specs
        self._patience = patience or Patience()
        self._report = report
        self.urls: tuple[str, ...] = ()
        """Their base URLs. A server that is restarted keeps its URL."""
        self._servers: list[ModelServer] = []
        self._watches: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """Whether all were healthy once."""
        return bool(self._watches)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            await self._start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def wait(self) -> None:
        """Wait until no server is left; while one is alive, the others may fail.

        Raises:
            ServerError: All have been given up, or their machines are gone; the error of the last one.
        """
        waiting = set(self._watches)
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            # Only the last failure ends the wait: the pool of the client works with the servers that are left.
            if not waiting:
                for watch in done:
                    watch.result()

    def kill(self) -> None:
        """Kill the servers that we started, also while they are being stopped in order."""
        for server in self._servers:
            server.kill()

    async def _start(self) -> None:
        self._exchange = Exchange()
        self._servers = [ModelServer(spec, self._exchange, self._patience, self._report) for spec in self._specs]
        try:
            async with asyncio.TaskGroup() as starts:
                for server in self._servers:
                    starts.create_task(server.start())
        except BaseExceptionGroup as group:
            raise first_of(group) from None
        self.urls = tuple(server.url for server in self._servers)
        self._watches = [asyncio.create_task(server.watch()) for server in self._servers]

    async def _stop(self) -> None:
        await cancelled(*self._watches)  # first, or a watch would restart what is stopped here
        await asyncio.gather(*(server.stop() for server in self._servers))
        await self._exchange.close()
