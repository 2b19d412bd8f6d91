"""A pagemill server inside this process, without a port: for assistants that have no server of their own."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from pagemill.client import AsyncClient
from pagemill.errors import LockedError
from pagemill.mcp.folder import MAX_BYTES, folder_of

if TYPE_CHECKING:
    from pagemill.rest.server import Server

KEEP_DAYS = 365.0
KEEP_GIB = 20.0
"""Size of parsed documents and their files, which are copied: the oldest are deleted. Not measured."""
_MAX_PROCESSES = 20
"""Assistants that use the same folder at the same time; each has a cache of its own."""


def client_in_process(root: Path, cache: Path) -> AsyncClient:
    """A client of a server in this process, which starts with the first request and stops with the client.

    Args:
        root: The folder whose files are parsed: its documents are kept apart from those of others.
        cache: Folder of parsed documents.

    Raises:
        UsageError: There is no such folder.
    """
    place = hashlib.sha256(str(folder_of(root)).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return AsyncClient("http://127.0.0.1", transport=_InProcess(cache / place))


class _InProcess(httpx.AsyncBaseTransport):
    """Passes requests on to the server. Assistants start all their servers: most never request a document."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._server: Server | None = None
        self._starting = asyncio.Lock()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # The first requests may come together, and must not start two servers.
        async with self._starting:
            if self._server is None:
                self._server, self._app = await self._started()
        return await self._app.handle_async_request(request)

    async def aclose(self) -> None:
        if self._server is not None:
            await self._server.__aexit__()

    async def _started(self) -> tuple[Server, httpx.ASGITransport]:
        from pagemill.rest.app import create_app
        from pagemill.rest.settings import MIB, LimitSettings, RetentionSettings, ServeSettings

        largest = MAX_BYTES // MIB
        for number in range(_MAX_PROCESSES):
            settings = ServeSettings(
                data=self._cache / str(number),
                limits=LimitSettings(max_file_mib=largest, max_job_mib=largest),
                retention=RetentionSettings(keep_days=KEEP_DAYS, keep_gib=KEEP_GIB),
            )
            app = create_app(settings)
            server: Server = app.state.server
            try:
                await server.__aenter__()
            except LockedError:  # by another assistant, which a server holds its folder for
                if number == _MAX_PROCESSES - 1:
                    raise
            else:
                return server, httpx.ASGITransport(app)
        raise AssertionError
