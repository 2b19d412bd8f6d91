"""The pool of servers of a client: their state, the next one, and waiting requests."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pagemill.errors import NetworkError, PagemillError, UsageError
from pagemill.inference.limits import InFlightLimit

MAX_RETRY_AFTER_S = 60.0


def retry_after(value: str | None) -> float | None:
    """Seconds in a ``Retry-After`` header, from 0 to :data:`MAX_RETRY_AFTER_S`; None for a date, which few send."""
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S) if math.isfinite(seconds) else None


def server_root(url: str) -> str:
    """The base URL of a server as a user gives it, without ``/v1`` and trailing slashes.

    Raises:
        UsageError: It is not an HTTP URL, or it contains a password.
    """
    given = url.strip()
    remedy = "Give a base URL such as http://127.0.0.1:8000."
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        port = parts.port  # raises ValueError if invalid
    except ValueError as error:
        raise UsageError(f"the server {given!r} is not a URL: {error}", remedy=remedy) from error
    # Its URL is in messages and records: a password in it would be published.
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"the URL of the server {parts.hostname} contains a user name or password",
            remedy="Leave them out and set the environment variable PAGEMILL_API_KEY.",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or port == 0:
        raise UsageError(f"the server {given!r} is not the base URL of an HTTP server", remedy=remedy)
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


@dataclass(slots=True, eq=False)
class PooledServer:
    """A server and its state."""

    root: str
    """Base URL without ``/v1``."""
    limit: InFlightLimit
    in_flight: int = 0
    up: bool = True
    rejection: UsageError | None = None
    """The reason for rejecting all our requests (key, model), with the remedy; the server stays excluded."""
    rejected: int = 0
    """Consecutive rejections, though it lists the model; requests that were in flight together count once."""
    doubted: bool = False
    """Whether requests are withheld until the reason of a rejection is known."""
    paused_until: float = 0.0
    """Event loop time until which it is paused."""

    def open(self, now: float) -> bool:
        """Whether it can receive a request now."""
        return self.up and not self.doubted and now >= self.paused_until and self.in_flight < self.limit.value


@dataclass(slots=True, eq=False)
class _Waiter:
    future: asyncio.Future[PooledServer]
    avoid: PooledServer | None
    since: float


@dataclass(slots=True)
class ServerPool:
    """Assigns servers to waiting requests in order, least requests in flight first.

    Used on one event loop.
    """

    servers: Sequence[PooledServer]
    wait_s: float
    """How long a request waits while no server is up."""
    _waiting: deque[_Waiter] = field(default_factory=deque)
    _none_up_since: float = 0.0

    async def acquire(self, avoid: PooledServer | None = None) -> PooledServer:
        """Wait for a server with room; :meth:`release` it afterwards.

        Args:
            avoid: The server of the last failed attempt; used only while no other is up.

        Raises:
            NetworkError: No server was up for :attr:`wait_s`.
            UsageError: Every server rejects our requests.
        """
        if (rejection := self.rejection()) is not None:
            raise rejection
        loop = asyncio.get_running_loop()
        waiter = _Waiter(loop.create_future(), avoid, loop.time())
        if avoid is None:
            self._waiting.append(waiter)
        else:
            # A retry has waited once already: it goes before requests that have not been sent yet.
            self._waiting.appendleft(waiter)
        self._dispatch()
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
                # Cancelled just as it was assigned: without this the slot would be lost permanently.
                self.release(waiter.future.result())
            raise

    def release(self, server: PooledServer) -> None:
        """Return a server after a request."""
        server.in_flight -= 1
        self._dispatch()

    def pause(self, server: PooledServer, seconds: float) -> None:
        """Send nothing to a server for a while (Retry-After)."""
        loop = asyncio.get_running_loop()
        server.paused_until = max(server.paused_until, loop.time() + seconds)
        loop.call_at(server.paused_until, self._dispatch)

    def doubt(self, server: PooledServer, *, doubted: bool) -> None:
        """Withhold requests from a server until it is known whether it rejects all of them."""
        server.doubted = doubted
        self._dispatch()

    def mark_down(self, server: PooledServer) -> None:
        """Mark a server as unreachable: requests go elsewhere, or wait."""
        if server.up:
            server.up = False
            if not any(other.up for other in self.servers):
                self._none_up_since = asyncio.get_running_loop().time()
        self._dispatch()

    def mark_up(self, server: PooledServer) -> None:
        """Mark a server as reachable."""
        if not server.up and server.rejection is None:
            server.up, server.paused_until = True, 0.0
        self._dispatch()

    def count_out(self, server: PooledServer, why: UsageError) -> None:
        """Exclude a server that rejects our requests; they go elsewhere, or fail if it was the last one."""
        server.rejection = why
        self.mark_down(server)
        self.give_up_waiting()

    def rejection(self) -> UsageError | None:
        """The error if every server rejects our requests; None while one accepts them."""
        reasons = [server.rejection for server in self.servers if server.rejection is not None]
        if len(reasons) < len(self.servers):
            return None
        if len(reasons) == 1:
            return UsageError(reasons[0].message, remedy=reasons[0].remedy)
        return UsageError(
            "no model server accepts our requests: " + "; ".join(reason.message for reason in reasons),
            remedy=" ".join(dict.fromkeys(reason.remedy for reason in reasons if reason.remedy)) or None,
        )

    def give_up_waiting(self) -> None:
        """Fail requests if every server rejects them, or for which none was up for too long. Called periodically."""
        for waiter in self._waiting:
            if not waiter.future.done() and (error := self._hopeless(waiter.since)) is not None:
                waiter.future.set_exception(error)
        self._waiting = deque(waiter for waiter in self._waiting if not waiter.future.done())

    def _hopeless(self, since: float) -> PagemillError | None:
        """The error for a request that has waited since then; None while it may succeed."""
        if (rejection := self.rejection()) is not None or any(server.up for server in self.servers):
            return rejection
        if asyncio.get_running_loop().time() - max(since, self._none_up_since) < self.wait_s:
            return None
        names = ", ".join(server.root for server in self.servers if server.rejection is None)
        return NetworkError(
            f"no model server was reachable for {self.wait_s:g} s: {names}",
            remedy="Start it again; the same command resumes the run.",
        )

    def _pick(self, avoid: PooledServer | None) -> PooledServer | None:
        now = asyncio.get_running_loop().time()
        choice = [server for server in self.servers if server.open(now) and server is not avoid]
        if avoid is not None and not choice and avoid.open(now):
            if any(server.up and now >= server.paused_until for server in self.servers if server is not avoid):
                return None  # it will have room, or go down
            return avoid
        return min(choice, key=lambda server: server.in_flight, default=None)

    def _dispatch(self) -> None:
        """Assign free capacity to waiting requests, first come, first served."""
        now = asyncio.get_running_loop().time()
        held_back = []
        while self._waiting and any(server.open(now) for server in self.servers):
            waiter = self._waiting.popleft()
            if waiter.future.done():
                continue
            server = self._pick(waiter.avoid)
            if server is None:
                held_back.append(waiter)
            else:
                server.in_flight += 1
                waiter.future.set_result(server)
        self._waiting.extendleft(reversed(held_back))
