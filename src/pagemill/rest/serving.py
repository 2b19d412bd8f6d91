"""Runs the application: a socket that outlives its process, signals, and connections within bounds."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pagemill.errors import ExitCode
from pagemill.rest.app import create_app
from pagemill.rest.server import Server
from pagemill.rest.settings import ServeSettings
from pagemill.runtime.supervisor import RECYCLE, Life

log = logging.getLogger(__name__)

HEAD_S = 10.0
"""Time limit of the head of a request, from the connection or the answer before."""
KEEP_ALIVE_S = 75
"""Far longer than ``Retry-After``: a client that comes back must not meet a connection that is just being closed."""
_DRAIN_S = 10
"""Grace period in seconds for answers in flight when the server shuts down."""


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit for the head of a request, which uvicorn does not have."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Start the clock with the first byte of a request, and stop it when its head is there."""
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # it has become a WebSocket, whose protocol has its own limits
            return
        # The head is there and the answer has started: from here on the time limits of the body hold.
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_clock()
        elif self._head is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: object) -> None:
        """Stop the clock: another protocol takes over the connection."""
        self._stop_clock()
        super().handle_websocket_upgrade(event)  # type: ignore[arg-type]

    def _await_head(self) -> None:
        self._head = self.loop.call_later(HEAD_S, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class _Uvicorn(uvicorn.Server):
    """Uvicorn, whose signals are handled by :func:`serve`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def serve(settings: ServeSettings, listening: socket.socket, life: Life) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit status.

    The first signal drains the server: no connection is accepted, pages in flight are finished and written, jobs
    continue with the next start. A second one ends the process at once.

    Args:
        settings: Settings of the server.
        listening: It outlives a worker that dies: clients wait for the next one.
        life: State of this process.
    """
    return asyncio.run(_serve(settings, listening, life))


def log_to_standard_error() -> None:
    """Log requests and jobs: ids, states and times; never names, queries or contents."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("pagemill.rest", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)


async def _serve(settings: ServeSettings, listening: socket.socket, life: Life) -> int:
    app = create_app(settings, life)
    server: Server = app.state.server
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        lifespan="off",  # its errors would be log lines: here they are messages and exit codes
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=64 * 1024,
        timeout_keep_alive=KEEP_ALIVE_S,
        limit_concurrency=settings.limits.max_connections,
        h11_max_incomplete_event_size=64 * 1024,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    running = _Uvicorn(config)
    recycles = False

    def stop() -> None:
        # The second signal: the user does not want to wait for pages in flight. Nothing is lost, they are parsed again.
        if running.should_exit:
            signal.raise_signal(signal.SIGKILL)
        running.should_exit = True
        log.info("stopping when the pages in flight are finished; unfinished jobs resume at the next start")
        server.stop()

    async def leave_when_stuck() -> None:
        await server.services.stuck.wait()
        log.warning("a computation hangs: the jobs continue in a new process")
        life.vitals.hung = True
        recycle()

    async def leave_when_broken() -> None:
        await server.broken.wait()
        recycle()

    def recycle() -> None:
        nonlocal recycles
        # Without a parent that starts another process, going on with a lost thread is better than an end.
        if life.supervised and not running.should_exit:
            recycles = True
            stop()

    loop = asyncio.get_running_loop()
    async with server:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        beating = asyncio.create_task(life.beat())
        watching = [asyncio.create_task(watch()) for watch in (leave_when_stuck, leave_when_broken)]
        await running.serve(sockets=[listening])
        for task in watching:
            task.cancel()
    # Not before: the server, which finishes pages in flight, would pass for one that hangs.
    beating.cancel()
    return RECYCLE if recycles else ExitCode.OK
