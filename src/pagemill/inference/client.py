"""Takes requests to model servers: which server, how many at once, what when it fails."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from pagemill.errors import NetworkError, PagemillError, UsageError
from pagemill.inference.errors import RequestFailedError, RequestRefusedError, RequestTimeoutError
from pagemill.inference.exchange import AttemptFailedError, Cause, Exchange, NotThereError
from pagemill.inference.limits import AdaptiveLimit, FixedLimit
from pagemill.inference.metrics import requests_waiting
from pagemill.inference.models import ServedModel, choose_model, decode_models, not_served
from pagemill.inference.servers import PooledServer, ServerPool, server_root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagemill.inference.limits import Attempt

_log = logging.getLogger(__name__)

Decoded = TypeVar("Decoded")

API_KEY = "PAGEMILL_API_KEY"
"""Environment variable with the key that the servers want."""
_ENOUGH = 8
"""A request fails for good at this sum of what its failed attempts cost. A server that dies fails all that it had in
flight, so it must be allowed to do so a few times."""
_COST = {Cause.TIMEOUT: 3}
"""Of an attempt that failed; the others cost 1. Those of :data:`_FREE` say nothing about the request."""
_FREE = frozenset({Cause.UNREACHABLE, Cause.BUSY})
_FAULT = frozenset({Cause.CONNECTION, Cause.SERVER_ERROR})
"""Signs of a fault; of too much only where a server dies of it."""
_PATIENCE_S = 60.0
"""A server that answers nobody is sick; what it does to a request says nothing about the request for so long."""
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.25, 4.0
_FIRST_PROBE_S, _LONGEST_PROBE_S = 0.25, 5.0
_PROBE_TIMEOUT_S = 10.0
_QUICK_PROBES = 40
"""Most outages are short: a server is looked after at the first pace for so many times, then more and more seldom."""
_STREAK = 5
"""A server that fails so often in a row is left alone for a while, for longer with each further failure."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 3.0
_LAST_WAIT_S = 5.0
"""How long a server that is not there is waited for when the run is to end: time enough for one to start again."""
_POLL_S = 1.0
"""Time between two looks at a server's queue."""
_DECODED_AT_ONCE = 2**16
"""Bytes of JSON that take the event loop well under a millisecond; more is decoded on a thread."""


class ServerClient:
    """Sends requests to one of several servers that serve the same. Used on one event loop.

    Args:
        servers: Base URLs.
        workers: Requests in flight a server; 0 adapts them to what it bears.
        request_timeout_s: Of one attempt, in seconds.
        server_wait_s: How long a request waits while no server can be reached or all are busy, in seconds.
        api_key: Goes along with every request.
    """

    def __init__(
        self,
        servers: Sequence[str],
        *,
        workers: int = 0,
        request_timeout_s: float = 300.0,
        server_wait_s: float = 600.0,
        api_key: str | None = None,
    ) -> None:
        if not servers:
            raise UsageError("no model server is named", remedy="Name one with --server URL.")
        roots = dict.fromkeys(server_root(url) for url in servers)  # a server that is named twice is one server
        self.servers = tuple(PooledServer(root, FixedLimit(workers) if workers else AdaptiveLimit()) for root in roots)
        self.counts: Counter[str] = Counter()
        """``requests`` (HTTP requests that were made), ``answers``, ``refused`` (4xx), ``rejected`` (401, 404 and the
        like, which end the server's part in the run), and each :class:`Cause` by its
        value."""
        self._pool = ServerPool(self.servers, server_wait_s)
        self._request_timeout_s = request_timeout_s
        self._server_wait_s = server_wait_s
        self._api_key = api_key
        self._exchange: Exchange | None = None
        self._newest_answered = float("-inf")
        """When the newest request that was answered had been sent."""
        self._probes: dict[PooledServer, asyncio.Task[None]] = {}
        self._polls: dict[PooledServer, asyncio.Task[None]] = {}

    @property
    def in_flight(self) -> int:
        """Most requests that can be under way at once."""
        return sum(server.limit.largest for server in self.servers)

    def has_idle_capacity(self) -> bool:
        """Whether a request more would be sent at once."""
        return self._pool.has_room()

    async def post(self, path: str, body: bytes, decode: Callable[[bytes], tuple[Decoded, int]]) -> Decoded:
        """Send a request until it is answered.

        Args:
            path: After the base URL: ``/v1/chat/completions``.
            body: JSON.
            decode: Makes the answer and the number of its tokens of the bytes of a server. It raises ``ValueError`` or
                ``RecursionError`` for one that is none.

        Raises:
            RequestRefusedError: The request itself is refused.
            RequestFailedError: It failed on all attempts, while servers answered others.
            NetworkError: No server could be reached, or none answered anybody, for too long.
            UsageError: No server is left that takes our requests: the key or the model is wrong.
        """
        loop, exchange = asyncio.get_running_loop(), self._open()
        spent, failures, first_failure, avoid = 0, 0, 0.0, None
        while True:
            server = await self._pool.acquire(avoid)
            try:
                return await self._attempt(exchange, server, path, body, decode)
            except UsageError as error:
                self._count_out(server, error)
                avoid = server
                continue
            except AttemptFailedError as error:
                failure = error
            finally:
                self._pool.release(server)
            now = loop.time()
            first_failure = first_failure or now
            failures += 1
            if failure.cause not in _FREE:
                spent += _COST.get(failure.cause, 1)
            self._judge(failure, spent, now - first_failure, first_failure)
            avoid = server
            longest = min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2 ** min(failures, 10))
            if not server.up:  # another one takes it soon, or it waits until this one is up
                longest = _FIRST_DELAY_S
            await asyncio.sleep(random.uniform(0.0, longest))

    def stop_waiting(self) -> None:
        """Give up within seconds, with ``NetworkError``, whatever waits for a server that is not there."""
        self._server_wait_s = self._pool.wait_s = min(_LAST_WAIT_S, self._server_wait_s)
        self._pool.give_up_waiting()
        asyncio.get_running_loop().call_later(self._server_wait_s + 0.1, self._pool.give_up_waiting)

    async def aclose(self) -> None:
        """Close connections and end what runs beside the requests."""
        tasks = [*self._probes.values(), *self._polls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._exchange is not None:
            await self._exchange.close()
            self._exchange = None

    async def find_model(self, wanted: str | None, known: Sequence[str]) -> ServedModel:
        """Find out what the servers call a model. Those that do not serve it are asked no more.

        Args:
            wanted: The name the user gave; None to choose.
            known: Names that the model goes by, the best first.

        Raises:
            NetworkError: No server can be reached.
            UsageError: None takes our requests, or none serves the model.
        """
        served = await self.served_models()
        name = choose_model(served, wanted, known)
        for server in self.servers:
            if name not in served.get(server.root, [name]):
                self._count_out(server, not_served(name, {server.root: served[server.root]}))
        told = [models[name] for models in served.values() if name in models]
        return ServedModel(name, min((tokens for tokens in told if tokens is not None), default=None))

    async def served_models(self) -> dict[str, dict[str, int | None]]:
        """The models of each server that can be reached, by its base URL: names, and the most tokens of a request.

        Only vLLM and its like tell how many tokens; None where a server does not.

        Raises:
            NetworkError: None can be reached.
            UsageError: None is an OpenAI-compatible server that takes the API key.
        """
        found: dict[str, dict[str, int | None]] = {}
        silent: list[tuple[PooledServer, AttemptFailedError]] = []
        exchange, servers = self._open(), [server for server in self.servers if server.rejection is None]
        asked = await asyncio.gather(
            *(exchange.get(f"{server.root}/v1/models", _PROBE_TIMEOUT_S) for server in servers),
            return_exceptions=True,
        )
        for server, outcome in zip(servers, asked, strict=True):
            try:
                if isinstance(outcome, BaseException):
                    raise outcome
                found[server.root] = decode_models(outcome)
            except AttemptFailedError as error:
                if error.cause is Cause.BAD_ANSWER:
                    self._count_out(server, _not_compatible(server, error.message))
                else:
                    silent.append((server, error))
            except (NotThereError, RequestRefusedError, ValueError, RecursionError):
                self._count_out(server, _not_compatible(server, "it does not list its models"))
            except UsageError as error:
                self._count_out(server, error)
        if (rejection := self._pool.rejection()) is not None:
            raise rejection
        if not found:
            raise NetworkError(
                "no model server answers: " + "; ".join(error.message for _, error in silent),
                remedy="Start one (pagemill serve-model), or check --server.",
            )
        for server, failure in silent:
            self._mark_down(server, failure.message)
        return found

    def _open(self) -> Exchange:
        if self._exchange is None:
            self._exchange = Exchange(self._api_key, self.in_flight)
        return self._exchange

    async def _attempt(
        self,
        exchange: Exchange,
        server: PooledServer,
        path: str,
        body: bytes,
        decode: Callable[[bytes], tuple[Decoded, int]],
    ) -> Decoded:
        """One request to one server; what it tells of the server is kept."""
        loop = asyncio.get_running_loop()
        if server.limit.adaptive and server not in self._polls:
            self._polls[server] = asyncio.create_task(self._poll(server))
        ticket, start = server.limit.begin(server.in_flight), loop.time()
        self.counts["requests"] += 1
        try:
            reply = await exchange.post(server.root + path, body, self._request_timeout_s)
            try:
                if len(reply) < _DECODED_AT_ONCE:
                    answer, tokens = decode(reply)
                else:
                    answer, tokens = await asyncio.to_thread(decode, reply)
            except (ValueError, RecursionError) as error:
                raise AttemptFailedError(
                    Cause.BAD_ANSWER, f"{server.root} gives an answer that is none: {error}"
                ) from error
        except AttemptFailedError as failure:
            self.counts[failure.cause] += 1
            self._learn(server, ticket, start, failure)
            raise
        except RequestRefusedError:
            self.counts["refused"] += 1
            server.streak = 0  # it is well, and says so
            raise
        except UsageError:
            self.counts["rejected"] += 1
            raise
        now = loop.time()
        self.counts["answers"] += 1
        self._newest_answered = max(self._newest_answered, start)
        server.streak = 0
        server.limit.succeeded(ticket, now - start, tokens)
        return answer

    def _learn(self, server: PooledServer, ticket: Attempt, start: float, failure: AttemptFailedError) -> None:
        """What a failed attempt tells of its server."""
        _log.debug("%s", failure.message)
        if failure.cause is Cause.TIMEOUT:
            server.limit.overloaded(ticket)
        elif failure.cause is Cause.BUSY:
            server.limit.rejected(ticket)
        elif failure.cause in _FAULT:
            server.limit.failed(ticket)
        if failure.cause not in _FREE and start >= server.failed_at:  # a burst of failures is one
            server.failed_at = asyncio.get_running_loop().time()
            server.streak += 1
            if server.streak >= _STREAK:  # else the server that fails at once would be asked most
                self._pool.pause(server, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(server.streak - _STREAK, 10)))
        if failure.retry_after_s is not None:
            self._pool.pause(server, failure.retry_after_s)
        if failure.cause is Cause.UNREACHABLE:
            self._mark_down(server, failure.message)
        elif failure.cause is Cause.TIMEOUT:
            self._probe(server)

    def _judge(self, failure: AttemptFailedError, spent: int, seconds: float, since: float) -> None:
        """Raise when a request has failed for good.

        Args:
            failure: Its last.
            spent: What its failed attempts cost.
            seconds: Time since the first of them.
            since: When that was.
        """
        answered = self._newest_answered > since  # one that ends may still answer what it was sent before
        if answered and spent >= _ENOUGH:
            kind = RequestTimeoutError if failure.cause is Cause.TIMEOUT else RequestFailedError
            raise kind(f"{failure.message} (the last of several attempts)", remedy=None)
        patience = self._server_wait_s if failure.cause in _FREE else min(_PATIENCE_S, self._server_wait_s)
        if seconds >= patience and (spent >= _ENOUGH or failure.cause in _FREE):
            raise NetworkError(
                f"no server answers: {failure.message}, for {seconds:.0f} s",
                remedy="Look at the server's log; the same command goes on where it stopped.",
            )

    def _count_out(self, server: PooledServer, why: UsageError) -> None:
        """Ask a server no more that takes none of our requests."""
        if server.rejection is not None:  # another request has met with the same
            return
        self._pool.count_out(server, why)
        for running in (self._probes, self._polls):
            if server in running:
                running[server].cancel()
        if self._pool.rejection() is None:
            _log.warning("%s; going on without it. %s", why.message, why.remedy or "")

    def _mark_down(self, server: PooledServer, reason: str) -> None:
        if server.up:
            _log.warning("%s; waiting for it", reason)
        self._pool.mark_down(server)
        self._probe(server)

    def _probe(self, server: PooledServer) -> None:
        """Look after a server that is down, or may be, until it is up."""
        task = self._probes.get(server)
        if server.rejection is None and (task is None or task.done()):
            self._probes[server] = asyncio.create_task(self._probe_until_up(server))

    async def _probe_until_up(self, server: PooledServer) -> None:
        delay, probes = _FIRST_PROBE_S, 0
        while not await self._healthy(server):
            if server.up:
                _log.warning("%s is no longer healthy; waiting for it", server.root)
            self._pool.mark_down(server)
            self._pool.give_up_waiting()
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(delay, max(0.05, self._server_wait_s / 4)))
            probes += 1
            if probes >= _QUICK_PROBES:
                delay = min(_LONGEST_PROBE_S, 1.5 * delay)
        if not server.up:
            _log.warning("%s answers again", server.root)
            server.limit.returned()
            if (poll := self._polls.get(server)) is not None and poll.done():
                del self._polls[server]
        self._pool.mark_up(server)

    async def _healthy(self, server: PooledServer) -> bool:
        """Whether a server answers ``/health``; one that has no such path is healthy when it says so."""
        try:
            await self._open().get(f"{server.root}/health", _PROBE_TIMEOUT_S)
        except AttemptFailedError:
            return False
        except (UsageError, RequestRefusedError):
            return True
        return True

    async def _poll(self, server: PooledServer) -> None:
        """Tell an adaptive limit of the server's queue while there are requests, if the server tells of it."""
        while True:
            await asyncio.sleep(_POLL_S)
            if not server.in_flight or not server.up:
                continue
            with suppress(AttemptFailedError):
                try:
                    waiting = requests_waiting(await self._open().get(f"{server.root}/metrics", _PROBE_TIMEOUT_S))
                except PagemillError:
                    return
                if waiting is None:
                    return
                server.limit.queue(waiting)


def _not_compatible(server: PooledServer, reason: str) -> UsageError:
    return UsageError(
        f"{server.root} is not an OpenAI-compatible server: {reason}",
        remedy="Check --server: the base URL of a server that has /v1/models.",
    )
