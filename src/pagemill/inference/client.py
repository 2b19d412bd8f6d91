"""Client of model servers: balancing, concurrency limits, retries."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from pagemill.blocking import cancelled
from pagemill.errors import NetworkError, PagemillError, UsageError
from pagemill.inference.exchange import (
    AttemptFailedError,
    Cause,
    Exchange,
    RequestFailedError,
    RequestRefusedError,
    RequestTimeoutError,
)
from pagemill.inference.limits import InFlightLimit
from pagemill.inference.models import Served, choose_model, decode_served, not_served
from pagemill.inference.servers import PooledServer, ServerPool, server_root

_log = logging.getLogger(__name__)

Decoded = TypeVar("Decoded")

API_KEY = "PAGEMILL_API_KEY"
"""Environment variable with the API key of the servers."""
_ENOUGH = 8
"""A request fails permanently at this total cost of failed attempts. A server that crashes fails everything it had in
flight, so a few crashes must be affordable."""
_COST = {Cause.UNREACHABLE: 0, Cause.BUSY: 0, Cause.TIMEOUT: 3}
"""Cost of a failed attempt, 1 by default; 0 for failures that are not evidence against the request."""
_PATIENCE_S = 60.0
"""Seconds for which failures of a server that answers no request do not count against the request."""
_TRIALS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "."}], "max_tokens": 1},
    "/v1/embeddings": {"messages": [[{"role": "user", "content": [{"type": "text", "text": "."}]}]]},
}
"""By path the smallest request: a server that answers it works, so a request that keeps failing there is the cause."""
_LOOK_AGAIN_S = (0.25, 0.75)
"""Pauses between looks at the models of a server that rejects us: a proxy that restarts does so for a moment."""
_REJECTIONS = 3
"""Rejections in a row after which a server is excluded although it lists the model: its gateway may allow no more."""
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.25, 4.0
_FIRST_PROBE_S, _LONGEST_PROBE_S = 0.25, 5.0
_PROBE_TIMEOUT_S = 10.0
_PROBE_SHARE = 1 / 40
"""Interval of probes as a share of the outage so far: most outages are short."""
_LAST_WAIT_S = 5.0
"""Seconds to wait for an unreachable server when the run is ending: enough for a restart."""


class ServerClient:
    """Sends each request to one of several equivalent servers. Used on one event loop.

    Args:
        servers: Base URLs.
        workers: Requests in flight per server; 0 for an adaptive limit.
        request_timeout_s: Time limit of one attempt, in seconds.
        server_wait_s: Seconds that a request waits while no server is reachable or all are busy.
        api_key: Sent with every request.
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
            raise UsageError("no model server is named", remedy="Pass one with --server URL.")
        roots = dict.fromkeys(server_root(url) for url in servers)  # a server named twice counts once
        bounds = {"smallest": workers, "largest": workers} if workers else {}
        self.servers = tuple(PooledServer(root, InFlightLimit(**bounds)) for root in roots)
        self._pool = ServerPool(self.servers, server_wait_s)
        self._request_timeout_s = request_timeout_s
        self._api_key = api_key
        self._exchange: Exchange | None = None
        self._newest_answered = float("-inf")
        """When the most recently sent of the answered requests was sent."""
        self._probes: dict[PooledServer, asyncio.Task[None]] = {}
        self._looks: dict[PooledServer, asyncio.Task[None]] = {}
        self._trials: dict[PooledServer, asyncio.Task[None]] = {}

    @property
    def in_flight(self) -> int:
        """Maximum number of requests that can be in flight at once."""
        return sum(server.limit.largest for server in self.servers)

    async def post(self, path: str, body: bytes, decode: Callable[[bytes], tuple[Decoded, int]]) -> Decoded:
        """Send a request, with retries, and return its decoded answer.

        Args:
            path: Path after the base URL, such as ``/v1/chat/completions``.
            body: JSON.
            decode: Decodes the body of a response to the answer and its number of tokens; raises ``ValueError`` or
                ``RecursionError`` if it is invalid.

        Raises:
            RequestRefusedError: The request itself is refused.
            RequestFailedError: All attempts failed while servers answered other requests.
            NetworkError: No server was reachable, or none answered any request, for too long.
            UsageError: No server accepts our requests: the key or the model is wrong.
        """
        loop = asyncio.get_running_loop()
        spent, failures, first_failure, avoid = 0, 0, 0.0, None
        while True:
            server = await self._pool.acquire(avoid)
            try:
                return await self._attempt(server, path, body, decode)
            except UsageError as error:
                await self._shared(self._looks, server, self._look, _model_in(body), error)
                if server.rejection is not None:
                    avoid = server
                    continue
                failure = AttemptFailedError(Cause.SERVER_ERROR, error.message)
            except AttemptFailedError as error:
                failure = error
            finally:
                self._pool.release(server)
            first_failure = first_failure or loop.time()
            failures += 1
            spent += _COST.get(failure.cause, 1)
            self._judge(failure, spent, first_failure)
            # Nothing was answered since the first failure: is it the request, or the server? The smallest request finds
            # out, and the next attempt decides.
            if spent >= _ENOUGH:
                await self._shared(self._trials, server, self._try_out, path, body)
            avoid = server
            # If the server is down, another one takes the request soon, or it waits for this one.
            longest = _FIRST_DELAY_S * 2.0 ** min(failures, 10) if server.up else _FIRST_DELAY_S
            await asyncio.sleep(random.uniform(0.0, min(longest, _LONGEST_DELAY_S)))

    def stop_waiting(self) -> None:
        """Fail requests that wait for an unreachable server within seconds, with ``NetworkError``."""
        # Not at once: a server that is just being restarted may still finish what is in flight.
        self._pool.wait_s = min(_LAST_WAIT_S, self._pool.wait_s)
        self._pool.give_up_waiting()
        asyncio.get_running_loop().call_later(self._pool.wait_s + 0.1, self._pool.give_up_waiting)

    async def aclose(self) -> None:
        """Close connections and cancel background tasks."""
        await cancelled(*self._probes.values(), *self._looks.values(), *self._trials.values())
        if self._exchange is not None:
            await self._exchange.close()
            self._exchange = None

    async def find_model(self, wanted: str | None, known: Sequence[str]) -> Served:
        """Find the name of a model on the servers, and exclude servers without it.

        Args:
            wanted: The name that the user gave; None to choose.
            known: Known names of the model, most specific first.

        Raises:
            NetworkError: No server is reachable.
            UsageError: No server accepts our requests, or none serves the model.
        """
        served = await self.served_models()
        name = choose_model(served, wanted, known)
        # A server without the model would refuse each request that the balancing sends to it.
        for server in self.servers:
            if name not in served.get(server.root, [name]):
                self._count_out(server, not_served(name, {server.root: served[server.root]}))
        reported = [models[name] for models in served.values() if name in models]
        # Any server may get any request: the shortest limit is that of all.
        return Served(name, max_model_len=min((tokens for tokens in reported if tokens is not None), default=None))

    async def served_models(self) -> dict[str, dict[str, int | None]]:
        """The models of each reachable server by base URL: names, and the longest request in tokens.

        vLLM reports that length; None for servers that do not.

        Raises:
            NetworkError: No server is reachable.
            UsageError: No server is OpenAI-compatible and accepts the API key.
        """
        found: dict[str, dict[str, int | None]] = {}
        silent: dict[PooledServer, str] = {}

        async def ask(server: PooledServer) -> None:
            try:
                found[server.root] = await self._models_at_last(server)
            except AttemptFailedError as error:
                silent[server] = error.message
            except UsageError as error:
                self._count_out(server, error)

        await asyncio.gather(*(ask(server) for server in self.servers if server.rejection is None))
        if (rejection := self._pool.rejection()) is not None:
            raise rejection
        if not found:
            raise NetworkError(
                f"no model server answers: {'; '.join(silent.values())}",
                remedy="Start one (pagemill serve-model), or check --server.",
            )
        for server, reason in silent.items():
            self._mark_down(server, reason)
        return found

    async def _models_at_last(self, server: PooledServer) -> dict[str, int | None]:
        """The models of a server that may reject the first requests."""
        for pause in _LOOK_AGAIN_S:
            try:
                return await self._models_of(server)
            except UsageError:
                await asyncio.sleep(pause)
        return await self._models_of(server)

    async def _models_of(self, server: PooledServer) -> dict[str, int | None]:
        try:
            served = decode_served(await self._open().request(f"{server.root}/v1/models", _PROBE_TIMEOUT_S))
        except AttemptFailedError as error:
            if error.cause is not Cause.BAD_ANSWER:
                raise
            reason = error.message
        except (RequestRefusedError, ValueError, RecursionError):
            reason = "it does not list its models"
        else:
            return {model.name: model.max_model_len for model in served}
        raise UsageError(
            f"{server.root} is not an OpenAI-compatible server: {reason}",
            remedy="Check --server: the base URL of a server that has /v1/models.",
        )

    def _open(self) -> Exchange:
        if self._exchange is None:
            self._exchange = Exchange(self._api_key, self.in_flight)
        return self._exchange

    async def _attempt(
        self, server: PooledServer, path: str, body: bytes, decode: Callable[[bytes], tuple[Decoded, int]]
    ) -> Decoded:
        """Send one request to one server, and record what its outcome shows about the server."""
        loop = asyncio.get_running_loop()
        attempt, start = server.limit.begin(server.in_flight), loop.time()
        try:
            answer, tokens = decode(await self._open().request(server.root + path, self._request_timeout_s, body))
        except AttemptFailedError as error:
            failure = error
        except (ValueError, RecursionError) as error:
            failure = AttemptFailedError(Cause.BAD_ANSWER, f"{server.root} returned an invalid response: {error}")
        else:
            self._newest_answered = max(self._newest_answered, start)
            server.rejected = 0
            server.limit.succeeded(attempt, loop.time() - start, tokens)
            return answer
        _log.debug("%s", failure.message)
        if failure.cause in (Cause.TIMEOUT, Cause.BUSY):
            server.limit.overloaded(attempt)
        elif failure.cause in (Cause.CONNECTION, Cause.SERVER_ERROR):  # of overload only if the server crashes
            server.limit.failed(attempt)
        if failure.retry_after_s is not None:
            self._pool.pause(server, failure.retry_after_s)
        if failure.cause is Cause.UNREACHABLE:
            self._mark_down(server, failure.message)
        elif failure.cause is Cause.TIMEOUT:
            self._probe(server)
        raise failure

    async def _look(self, server: PooledServer, model: str, why: UsageError) -> None:
        """Exclude a server that rejected a request if it does not list its model, or has rejected several."""
        self._pool.doubt(server, doubted=True)
        try:
            served = await self._models_at_last(server)
            server.rejected += 1
            rejects_all = model not in served or server.rejected >= _REJECTIONS
        except UsageError:
            rejects_all = True
        except AttemptFailedError as error:
            rejects_all = False
            self._mark_down(server, error.message)
        if rejects_all:
            self._count_out(server, why)
        self._pool.doubt(server, doubted=False)

    async def _try_out(self, server: PooledServer, path: str, body: bytes) -> None:
        """Send the smallest request to a healthy server; its answer counts as that of any other request.

        One that is not healthy is waited for as one that is unreachable: a gateway before a server that starts again
        answers, or closes the connection, for as long as that takes.

        Raises:
            NetworkError: No server was healthy for too long.
        """
        if not await self._healthy(server):
            self._mark_down(server, f"{server.root} is not healthy")
            self._pool.release(await self._pool.acquire(server))
            if not server.up:  # another one takes the requests
                return
        start = asyncio.get_running_loop().time()
        if path in _TRIALS:
            trial = msgspec.json.encode({"model": _model_in(body), **_TRIALS[path]})
            try:
                await self._open().request(server.root + path, min(_PATIENCE_S, self._request_timeout_s), trial)
            except RequestRefusedError:  # it was read
                pass
            except (AttemptFailedError, UsageError):
                return
        self._newest_answered = max(self._newest_answered, start)

    async def _shared(
        self,
        tasks: dict[PooledServer, asyncio.Task[None]],
        server: PooledServer,
        begin: Callable[..., Coroutine[Any, Any, None]],
        *arguments: object,
    ) -> None:
        """Wait for a task that is shared by concurrent requests to a server."""
        task = tasks.get(server)
        if task is None or task.done():
            task = tasks[server] = asyncio.create_task(begin(server, *arguments))
        # Shielded: a request that is cancelled must not cancel what the others wait for.
        await asyncio.shield(task)

    def _judge(self, failure: AttemptFailedError, spent: int, since: float) -> None:
        """Raise if a request has failed permanently.

        Args:
            failure: The last failed attempt.
            spent: Total cost of its failed attempts.
            since: When the first of them failed.
        """
        answered = self._newest_answered > since  # a server that shuts down may still answer earlier requests
        if answered and spent >= _ENOUGH:
            kind = RequestTimeoutError if failure.cause is Cause.TIMEOUT else RequestFailedError
            raise kind(f"{failure.message} (the last of several attempts)")
        is_free = _COST.get(failure.cause) == 0
        patience = self._pool.wait_s if is_free else min(_PATIENCE_S, self._pool.wait_s)
        seconds = asyncio.get_running_loop().time() - since
        if seconds >= patience and (is_free or spent >= _ENOUGH):
            raise NetworkError(
                f"no server answers: {failure.message}, for {seconds:.0f} s",
                remedy="Check the server's log; the same command resumes the run.",
            )

    def _count_out(self, server: PooledServer, why: UsageError) -> None:
        """Exclude a server that rejects all our requests."""
        if server.rejection is not None:  # another request was rejected first
            return
        self._pool.count_out(server, why)
        if server in self._probes:
            self._probes[server].cancel()
        if self._pool.rejection() is None:
            _log.warning("%s; continuing without it. %s", why.message, why.remedy or "")

    def _mark_down(self, server: PooledServer, reason: str) -> None:
        if server.up:
            _log.warning("%s; waiting for it", reason)
        self._pool.mark_down(server)
        self._probe(server)

    def _probe(self, server: PooledServer) -> None:
        """Probe a server that is or may be down until it is up."""
        task = self._probes.get(server)
        if server.rejection is None and (task is None or task.done()):
            self._probes[server] = asyncio.create_task(self._probe_until_up(server))

    async def _probe_until_up(self, server: PooledServer) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        while not await self._healthy(server):
            if server.up:
                _log.warning("%s is no longer healthy; waiting for it", server.root)
            self._pool.mark_down(server)
            self._pool.give_up_waiting()
            longest = min(_LONGEST_PROBE_S, max(0.05, self._pool.wait_s / 4))
            # The longer the outage, the longer it is likely to last; jitter, as all clients of a server probe it.
            delay = min(longest, max(_FIRST_PROBE_S, _PROBE_SHARE * (loop.time() - since)))
            await asyncio.sleep(random.uniform(0.5, 1.0) * delay)
        if not server.up:
            _log.warning("%s answers again", server.root)
            server.limit.returned()
        self._pool.mark_up(server)

    async def _healthy(self, server: PooledServer) -> bool:
        """Whether a server is healthy by ``/health``; one without that path is healthy if it refuses the request."""
        try:
            await self._open().request(f"{server.root}/health", _PROBE_TIMEOUT_S)
        except AttemptFailedError:
            return False
        except PagemillError:
            pass
        return True


class _Asked(msgspec.Struct):
    model: str = ""


def _model_in(body: bytes) -> str:
    """The model that the body of a request names."""
    return msgspec.json.decode(body, type=_Asked).model
