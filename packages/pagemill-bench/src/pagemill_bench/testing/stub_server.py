"""An OpenAI-compatible server without a model, for tests and benchmarks: latency, answers and faults as one sets them.

As a process it prints its URL, serves until it is asked to end, and prints its counts:

    python -m pagemill_bench.testing.stub_server --port 0 --latency-ms 200 --fault 500=0.05 --fault hang=0.01

``GET /counts`` reports what happened so far. It is cheap: bodies are searched, not parsed, as far as the settings let
it.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import hashlib
import os
import random
import signal
import sys
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self
from weakref import WeakSet

import msgspec
from aiohttp import web

from pagemill_bench.testing import stub_answers
from pagemill_bench.testing.stub_answers import Fault

_LARGEST_BODY = 1 << 28
_PROMPT_ZONE = 8192
"""Bytes at either end of a body in which the prompt is looked for."""
_IMAGE = "{image}"
_REFUSALS = {
    Fault.SERVER_ERROR: "EngineCore encountered an issue.",
    Fault.UNAVAILABLE: "The engine is currently busy and cannot accept new requests. Please try again later.",
    Fault.RATE_LIMITED: "Too many requests.",
}
"""Messages of faults that are HTTP statuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StubSettings:
    """How a stub server behaves."""

    model: str = "stub"
    max_model_len: int = 16384
    api_key: str | None = None
    """Wanted as a bearer token on ``/v1``."""
    latency_ms: float = 0.0
    """Time of a completion."""
    first_token_ms: float = 0.0
    """Part of it until the first token, for an answer that is streamed."""
    latency_ms_a_running: float = 0.0
    """Added for each request that runs at the same time: a batch that is computed together."""
    slots: int = 0
    """Requests that run at once; more of them wait. 0: no limit."""
    text: str = stub_answers.TEXT
    """The default answer, without a matching rule below. In this and the next, ``{image}`` stands for the start of the
    SHA-256 of the image file: answers that identify their region."""
    by_prompt: Mapping[str, str] = field(
        default_factory=lambda: {"Table Recognition": stub_answers.TABLE, "Formula Recognition": stub_answers.FORMULA}
    )
    """Answers by a piece of the prompt, looked for at both ends of the body; the first that is there."""
    by_image: Mapping[str, str] = field(default_factory=dict)
    """Answers by the SHA-256 (hex) of the image file that is sent: a replay. Goes before the others."""
    fault_by_prompt: Mapping[str, Fault] = field(default_factory=dict)
    """Faults that happen to every request with a piece in its prompt, likewise."""
    faults: Mapping[Fault, float] = field(default_factory=dict)
    """Rate of each fault, 0-1; at most one per request."""
    seed: int = 0
    """Seed of the faults: which of the first, second, ... completions has which."""
    retry_after_s: float = 1.0
    """What goes with HTTP 429."""
    max_image_pixels: int = 0
    """An image with more is refused with HTTP 400 as by a vLLM with a small encoder cache. 0: none is."""
    dies_after: int = 0
    """The server dies at this completion, with all that are in flight, and after as many again, if it is back by
    then. 0: never."""
    returns_after_s: float = 0.0
    """Seconds after which it listens again. 0: never."""
    dimension: int = 64
    """Dimension of the vectors of ``/v1/embeddings``."""
    keep_bodies: int = 0
    """Keep this many of the last bodies of completions, for tests to look at."""


class StubServer:
    """The server, in the running event loop. An async context manager."""

    def __init__(self, settings: StubSettings | None = None, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.settings = settings or StubSettings()
        """May be replaced while the server runs."""
        self.counts: Counter[str] = Counter()
        """``requests`` (completions), ``embeddings``, ``connections``, ``answered``, ``max_in_flight``, ``given_up``
        (by the client), ``deaths``, and each :class:`Fault` by its value."""
        self.bodies: deque[bytes] = deque(maxlen=self.settings.keep_bodies)
        """The last bodies of completions: :attr:`StubSettings.keep_bodies`."""
        self.in_flight = 0
        """Completions in flight, those that wait included."""
        self.died = asyncio.Event()
        """Set when the server has died of :attr:`StubSettings.dies_after` or :meth:`kill`."""
        self._host, self._port = host, port
        self._running = 0
        self._slots = asyncio.Semaphore(self.settings.slots or sys.maxsize)
        self._random = random.Random(self.settings.seed)
        self._web: web.Server | None = None
        self._seen: WeakSet[Any] = WeakSet()
        self._listener: asyncio.Server | None = None
        self._returning: asyncio.Task[None] | None = None
        self._routes: dict[tuple[str, str], Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {
            ("GET", "/health"): self._health,
            ("GET", "/counts"): self._report_counts,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/v1/models"): self._models,
            ("POST", "/v1/chat/completions"): self._completions,
            ("POST", "/v1/embeddings"): self._embeddings,
        }

    @property
    def url(self) -> str:
        """Base URL, without ``/v1``."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Listen; after :meth:`kill` on the same port again."""
        loop = asyncio.get_running_loop()
        make_request = functools.partial(web.BaseRequest, loop=loop, client_max_size=_LARGEST_BODY)
        self._web = web.Server(self._handle, access_log=None, handler_cancellation=True, request_factory=make_request)
        self._listener = await loop.create_server(self._web, self._host, self._port)
        self._port = self._listener.sockets[0].getsockname()[1]
        self.died.clear()

    async def kill(self) -> None:
        """Stop as a process does that is killed: nobody listens any more, connections are reset."""
        if self._listener is None or self._web is None:
            return
        self.counts["deaths"] += 1
        self._listener.close()
        self._listener = None
        for connection in self._web.connections:
            if connection.transport is not None:
                connection.transport.abort()
        self.died.set()

    async def close(self) -> None:
        """Stop for good."""
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
        await self.kill()
        if self._web is not None:
            await self._web.shutdown(0.0)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.counts["connections"] += request.transport not in self._seen
        self._seen.add(request.transport)
        route = self._routes.get((request.method, request.path))
        if route is None:
            return _error(404, "Not Found")
        key = self.settings.api_key
        if key and request.path.startswith("/v1") and request.headers.get("Authorization") != f"Bearer {key}":
            return _json(b'{"error":"Unauthorized"}', 401)
        return await route(request)

    async def _health(self, _: web.BaseRequest) -> web.Response:
        return web.Response()

    async def _report_counts(self, _: web.BaseRequest) -> web.Response:
        return _json(msgspec.json.encode(dict(self.counts)))

    async def _metrics(self, _: web.BaseRequest) -> web.Response:
        return web.Response(body=stub_answers.metrics(self.counts, self._running, self.in_flight - self._running))

    async def _models(self, _: web.BaseRequest) -> web.Response:
        model = {"id": self.settings.model, "object": "model", "created": 1_700_000_000, "owned_by": "vllm"}
        model |= {"root": self.settings.model, "parent": None, "max_model_len": self.settings.max_model_len}
        return _json(msgspec.json.encode({"object": "list", "data": [model]}))

    async def _completions(self, request: web.BaseRequest) -> web.StreamResponse:
        self.counts["requests"] += 1
        number = self.counts["requests"]
        self.in_flight += 1
        self.counts["max_in_flight"] = max(self.counts["max_in_flight"], self.in_flight)
        try:
            alive = self._listener is not None
            if alive and self.settings.dies_after and number % self.settings.dies_after == 0:
                await self.kill()
                if self.settings.returns_after_s:
                    self._returning = asyncio.create_task(self._return())
            return await self._answer(request, number)
        except asyncio.CancelledError:
            self.counts["given_up"] += 1
            raise
        finally:
            self.in_flight -= 1

    async def _return(self) -> None:
        await asyncio.sleep(self.settings.returns_after_s)
        await self.start()

    async def _answer(self, request: web.BaseRequest, number: int) -> web.StreamResponse:
        settings = self.settings
        fault = self._draw()
        body = await request.read()
        self.bodies.append(body)
        ends = body[:_PROMPT_ZONE] + body[-_PROMPT_ZONE:]
        fault = next((each for piece, each in settings.fault_by_prompt.items() if piece.encode() in ends), fault)
        if f'"{settings.model}"'.encode() not in body:
            return _wrong_model(msgspec.json.decode(body)["model"])
        if settings.max_image_pixels and (pixels := stub_answers.image_pixels(body)) > settings.max_image_pixels:
            return _error(400, stub_answers.too_large_message(pixels, settings.max_image_pixels))
        if fault is not None:
            self.counts[fault] += 1
        if fault is Fault.RESET:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if fault is Fault.HANG:
            await asyncio.Event().wait()
        if fault in _REFUSALS:
            response = _error(int(fault), _REFUSALS[fault])
            if fault is Fault.RATE_LIMITED:
                response.headers["Retry-After"] = f"{settings.retry_after_s:g}"
            return response
        streamed: web.StreamResponse | None = None
        async with self._slots:
            self._running += 1
            try:
                seconds = (settings.latency_ms + settings.latency_ms_a_running * self._running) / 1000
                text, reason = stub_answers.spoiled(fault, self._text_for(body))
                if b'"stream":true' in body:
                    first = min(seconds, settings.first_token_ms / 1000)
                    await asyncio.sleep(first)
                    streamed = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                    await streamed.prepare(request)
                    await streamed.write(stub_answers.first_pieces(settings.model, number, text))
                    seconds -= first
                await asyncio.sleep(seconds)
            finally:
                self._running -= 1
        self.counts["answered"] += 1
        self.counts["output_tokens"] += stub_answers.tokens_of(text)
        if streamed is None:
            return _json(stub_answers.completion(settings.model, number, text, reason))
        await streamed.write(stub_answers.last_pieces(settings.model, number, text, reason))
        await streamed.write_eof()
        return streamed

    def _draw(self) -> Fault | None:
        rates = self.settings.faults
        return self._random.choices((*rates, None), (*rates.values(), 1 - sum(rates.values())))[0]

    def _text_for(self, body: bytes) -> str:
        settings = self.settings
        ends = body[:_PROMPT_ZONE] + body[-_PROMPT_ZONE:]
        text = next((answer for piece, answer in settings.by_prompt.items() if piece.encode() in ends), settings.text)
        if not settings.by_image and _IMAGE not in text:
            return text
        digest = hashlib.sha256(stub_answers.image_bytes(body) or b"").hexdigest()
        return settings.by_image.get(digest) or text.replace(_IMAGE, digest[:16])

    async def _embeddings(self, request: web.BaseRequest) -> web.Response:
        self.counts["embeddings"] += 1
        asked = msgspec.json.decode(await request.read())
        if asked.get("model") != self.settings.model:
            return _wrong_model(asked.get("model"))
        await asyncio.sleep(self.settings.latency_ms / 1000)
        data = stub_answers.embeddings(asked["messages"], self.settings.dimension)
        return _json(msgspec.json.encode({"object": "list", "model": self.settings.model, "data": data}))


def _wrong_model(asked: object) -> web.Response:
    return _error(404, f"The model `{asked}` does not exist.")


def _error(status: int, message: str) -> web.Response:
    return _json(stub_answers.error_body(status, message), status)


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _plain_settings() -> dict[str, Any]:
    """Settings that are options of the command line as they are, with their defaults."""
    return {each.name: each.default for each in fields(StubSettings) if each.default is not MISSING}


async def _serve(arguments: argparse.Namespace) -> None:
    faults = {Fault(name): float(rate) for name, _, rate in (given.partition("=") for given in arguments.fault)}
    settings = StubSettings(**{name: getattr(arguments, name) for name in _plain_settings()}, faults=faults)
    server = StubServer(settings, host=arguments.host, port=arguments.port)
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    dies_for_good = not settings.returns_after_s
    if dies_for_good:
        server.died = end
    async with server:
        print(server.url, flush=True)
        await end.wait()
        print(msgspec.json.encode(dict(server.counts)).decode(), flush=True)
        if server.counts["deaths"] and dies_for_good:
            os._exit(1)  # as one that was killed


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until its planned crash; print the counts at the end."""
    parser = argparse.ArgumentParser(
        prog="python -m pagemill_bench.testing.stub_server",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one; the URL is printed")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=RATE", help="one of " + ", ".join(Fault))
    for name, default in _plain_settings().items():
        kind = str if default is None else type(default)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=f"default: {default}")
    asyncio.run(_serve(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()
