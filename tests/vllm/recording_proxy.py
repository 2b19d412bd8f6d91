"""A proxy that keeps what goes to a server and what comes back: what pagemill really sent, seen from outside."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    from types import TracebackType

_MOST_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer."""

    path: str
    body: dict[str, Any]
    status: int
    answer: dict[str, Any]


class RecordingProxy:
    """Runs on a thread of its own for as long as the context lasts.

    Args:
        target: Base URL of the server.
    """

    def __init__(self, target: str) -> None:
        self.exchanges: list[Exchange] = []
        """All POST requests that were answered, in the order of their answers."""
        self.url = ""
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recording proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> str:
        self._session = aiohttp.ClientSession()
        application = web.Application(client_max_size=_MOST_BYTES)
        application.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _forward(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {"Content-Type": request.content_type} if body else {}
        url = self._target + request.path_qs
        try:
            async with self._session.request(request.method, url, data=body, headers=headers) as answer:
                told = await answer.read()
        except aiohttp.ClientError:  # the server is gone: so is this, for who asked
            if request.transport is not None:
                request.transport.abort()
            raise
        if request.method == "POST":
            self.exchanges.append(Exchange(request.path, json.loads(body), answer.status, json.loads(told)))
        return web.Response(body=told, status=answer.status, content_type=answer.content_type)
