"""Requests that fail: tried again, elsewhere if there is an elsewhere, or given up."""

import asyncio
import errno

import aiohttp
import pytest
from aiohttp import web

from pagemill.errors import NetworkError, UsageError
from pagemill.inference import client as client_module
from pagemill.inference import exchange
from pagemill.inference.chat import Answer
from pagemill.inference.exchange import RequestFailedError, RequestRefusedError, RequestTimeoutError
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

from .conftest import BODY, WITH_IMAGE, Odd, http, talking, until


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.RESET, Fault.UNAVAILABLE])
async def test_a_failed_request_goes_to_the_other_server(fault):
    async with (
        StubServer(StubSettings(faults={fault: 1.0})) as bad,
        StubServer(StubSettings(latency_ms=20)) as good,
        talking(bad.url, good.url, workers=1) as client,
    ):
        await asyncio.gather(*[client.ask(BODY) for _ in range(5)])
        assert good.counts["answered"] == 5
        assert 0 < bad.counts[fault] == client.counts["requests"] - 5 <= 5  # each at most once, though it has room


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.UNAVAILABLE, Fault.RATE_LIMITED, Fault.RESET, Fault.HANG])
async def test_a_failed_request_is_tried_again_on_the_only_server(fault):
    settings = StubSettings(faults={fault: 0.5}, seed=3, retry_after_s=0.01)
    async with StubServer(settings) as server, talking(server.url, workers=4, request_timeout_s=0.3) as client:
        answers = await asyncio.gather(*[client.ask(BODY) for _ in range(12)], return_exceptions=True)
        assert server.counts[fault] > 0
        if fault is Fault.HANG:  # three in a row are the end
            assert all(isinstance(answer, Answer | RequestTimeoutError) for answer in answers)
        else:
            assert all(isinstance(answer, Answer) for answer in answers)


async def test_a_request_that_always_fails_fails_alone():
    async with StubServer() as server, talking(server.url, workers=2) as client:
        poison = BODY[:-1] + b',"poison":1}'
        usual = server._answer

        async def answer(request, number):
            if b"poison" in await request.read():
                server.counts["poisoned"] += 1
                return boom()
            return await usual(request, number)

        server._answer = answer
        failing = asyncio.create_task(client.ask(poison))
        while not failing.done():
            assert await client.ask(BODY)
        with pytest.raises(RequestFailedError, match="HTTP 500: boom"):
            await failing
        assert server.counts["poisoned"] >= 5


@pytest.mark.parametrize("is_image_alone", [True, False])
async def test_a_request_that_always_fails_is_distinguished_from_a_server_that_does(is_image_alone, monkeypatch):
    """With nothing else in flight, the server gets a request of the client's own."""
    if not is_image_alone:
        monkeypatch.setattr(client_module, "_PATIENCE_S", 0.05)
    async with StubServer() as server, talking(server.url) as client:
        usual = server._answer

        async def answer(request, number):
            if not is_image_alone or b"image" in await request.read():
                return boom()
            return await usual(request, number)

        server._answer = answer
        ends = await asyncio.gather(client.ask(WITH_IMAGE), client.ask(WITH_IMAGE), return_exceptions=True)
        assert {type(end) for end in ends} == {RequestFailedError if is_image_alone else NetworkError}
        if is_image_alone:
            assert client.counts["requests"] <= 2 * 10
            assert server.counts["answered"] == 1


async def test_an_unhealthy_server_is_not_tried_out():
    async def draining(_: web.BaseRequest) -> web.Response:
        return web.Response(status=503)

    async with StubServer() as server, talking(server.url, server_wait_s=0.05) as client:
        server._routes["GET", "/health"] = draining
        usual = server._answer

        async def answer(request, number):
            return boom() if b"image" in await request.read() else await usual(request, number)

        server._answer = answer
        with pytest.raises(NetworkError):
            await client.ask(WITH_IMAGE)
        assert server.counts["answered"] == 0


async def test_embeddings_that_always_fail_are_distinguished_from_a_server_that_does():
    async with StubServer() as server, talking(server.url) as client:
        usual = server._embeddings

        async def embed(request):
            return boom() if b"image" in await request.read() else await usual(request)

        server._routes["POST", "/v1/embeddings"] = embed
        with pytest.raises(RequestFailedError):
            await client.post("/v1/embeddings", WITH_IMAGE, lambda reply: (reply, 1))
        assert server.counts["embeddings"] == 1


def boom() -> web.Response:
    return web.Response(status=500, body=b'{"error":{"message":"boom"}}')


async def test_servers_that_answer_no_client_fail_the_page_not_the_region(monkeypatch):
    monkeypatch.setattr(client_module, "_PATIENCE_S", 0.05)
    async with StubServer(StubSettings(faults={Fault.SERVER_ERROR: 1.0})) as server, talking(server.url) as client:
        with pytest.raises(NetworkError, match="HTTP 500: EngineCore encountered an issue"):
            await client.ask(BODY)


async def test_a_busy_server_is_waited_for_only_so_long():
    settings = StubSettings(faults={Fault.RATE_LIMITED: 1.0}, retry_after_s=0.0)
    async with StubServer(settings) as server, talking(server.url, server_wait_s=0.2) as client:
        with pytest.raises(NetworkError, match="HTTP 429"):
            await client.ask(BODY)


async def test_retry_after_is_heeded_by_all_requests():
    settings = StubSettings(faults={Fault.RATE_LIMITED: 1.0}, retry_after_s=30)
    async with StubServer(settings) as server, talking(server.url, workers=1) as client:
        asks = [asyncio.create_task(client.ask(BODY)) for _ in range(5)]
        await until(lambda: server.counts[Fault.RATE_LIMITED])
        await until(lambda: client.servers[0].paused_until > asyncio.get_running_loop().time() + 20)
        assert server.counts["requests"] == 1
        for ask in asks:
            ask.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*asks, return_exceptions=True)
        )


async def test_a_hang_ends_at_the_time_limit_and_is_no_longer_computed():
    async with (
        StubServer(StubSettings(faults={Fault.HANG: 1.0})) as bad,
        StubServer() as good,
        talking(bad.url, good.url, request_timeout_s=0.1) as client,
    ):
        assert (await client.ask(BODY)).text
        assert good.counts["answered"] == bad.counts[Fault.HANG] == client.counts["timeout"] == 1
        await until(lambda: bad.in_flight == 0)


@pytest.mark.parametrize(
    ("options", "body", "error", "words"),
    [
        ({"api_key": "right"}, BODY, UsageError, "HTTP 401: Unauthorized"),
        ({}, BODY.replace(b"stub", b"other"), UsageError, "The model `other` does not exist"),
        ({"max_image_pixels": 1}, WITH_IMAGE, RequestRefusedError, "exceeds the pre-allocated encoder cache size"),
    ],
)
async def test_what_no_other_attempt_mends_fails_at_once(options, body, error, words):
    async with StubServer(StubSettings(**options)) as server, talking(server.url) as client:
        with pytest.raises(error, match=words):
            await client.ask(body)
        assert client.counts["requests"] == 1


HOSTILE = {
    "no JSON": http(b"<html>"),
    "no choices": http(b'{"choices":[]}'),
    "other types": http(b'{"choices":[{"message":{"content":{"a":1}}}]}'),
    "deep": http(b'{"choices":' + b"[" * 200_000),
    "no UTF-8": http(b'{"choices":[{"message":{"content":"\xff"}}]}'),
    "half a surrogate": http(b'{"choices":[{"message":{"content":"\\ud800"}}]}'),
    "compressed": http(b"x", headers="Content-Encoding: gzip\r\n"),
    "no HTTP": b"hello\r\n\r\n",
    "nothing": b"",
    "half": http(b"x" * 1000)[:-500],
    "long header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    "empty error": http(b"", "500 Oops"),
    "binary error": http(bytes(range(256)) * 500, "502 Bad Gateway"),
    "deep error": http(b"[" * 60_000, "500 Oops"),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_what_is_no_answer_is_tried_elsewhere(kind):
    async with Odd(HOSTILE[kind]) as odd, StubServer() as good, talking(odd, good.url) as client:
        assert (await client.ask(BODY)).text
        assert client.counts["requests"] == 2


async def test_an_endless_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr(exchange, "MAX_ANSWER", 100_000)
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n"
    reply += b"10000\r\n" + b" " * 65536 + b"\r\n"
    async with Odd(reply, keep_open=True) as odd, StubServer() as good, talking(odd, good.url) as client:
        assert (await client.ask(BODY)).text
        assert client.counts["bad answer"] == 1


async def test_too_many_open_files_are_no_fault_of_the_server(monkeypatch):
    async with StubServer() as server, talking(server.url) as client:
        request = aiohttp.ClientSession.request
        left = iter([True] * 3)

        def failing(self, *args, **options):
            if next(left, False):
                raise aiohttp.ClientConnectorError(None, OSError(errno.EMFILE, "Too many open files"))
            return request(self, *args, **options)

        monkeypatch.setattr(aiohttp.ClientSession, "request", failing)
        await client.ask(BODY)
        assert client.servers[0].up
        assert client.counts["busy"] == 3
