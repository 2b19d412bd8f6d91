"""The client: how many requests at once, and what servers serve."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from pagemill.errors import NetworkError, UsageError
from pagemill.inference.chat import Answer, ChatClient
from pagemill.inference.exchange import RequestRefusedError
from pagemill.inference.limits import InFlightLimit
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

from .conftest import BODY, WITH_IMAGE, Odd, closed_port, http, talking, until


async def test_an_answer():
    async with StubServer(StubSettings(text="hello")) as server, talking(server.url + "/v1/") as client:
        answer = await client.ask(BODY)
        assert answer == Answer(text="hello", finish_reason="stop", completion_tokens=2, prompt_tokens=300)
        assert client.counts == {"requests": 1, "answers": 1}


async def test_large_bodies_arrive_whole():
    async with StubServer(StubSettings(keep_bodies=1)) as server, talking(server.url) as client:
        body = BODY[:-1] + b',"x":"' + b"y" * 3_000_000 + b'"}'
        await client.ask(body)
        assert server.bodies[0] == body


async def test_connections_are_kept():
    async with StubServer() as server, talking(server.url, workers=4) as client:
        for _ in range(5):
            await asyncio.gather(*[client.ask(BODY) for _ in range(10)])
        assert server.counts["connections"] <= 4


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_fixed_limit_a_server_holds_and_is_filled(workers):
    settings = StubSettings(latency_ms=20)
    async with (
        StubServer(settings) as one,
        StubServer(settings) as two,
        talking(one.url, two.url, workers=workers) as c,
    ):
        assert c.in_flight == 2 * workers
        asks = [asyncio.create_task(c.ask(BODY)) for _ in range(20)]
        await until(lambda: one.in_flight == two.in_flight == workers)
        await asyncio.gather(*asks)
        assert one.counts["max_in_flight"] == two.counts["max_in_flight"] == workers


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault.SERVER_ERROR, "failed"),
        (Fault.RESET, "failed"),
        (Fault.UNAVAILABLE, "overloaded"),
        (Fault.HANG, "overloaded"),
    ],
)
async def test_what_the_limit_receives(monkeypatch, fault, told):
    heard = []
    for name in ("failed", "overloaded"):
        monkeypatch.setattr(InFlightLimit, name, lambda self, ticket, name=name: heard.append(name))
    async with (
        StubServer(StubSettings(faults={fault: 1.0})) as bad,
        StubServer() as good,
        talking(bad.url, good.url, request_timeout_s=0.2) as client,
    ):
        await client.ask(BODY)
    assert heard == [told]


async def test_a_refused_request_is_counted():
    async with StubServer(StubSettings(max_image_pixels=1)) as server, talking(server.url) as client:
        with pytest.raises(RequestRefusedError):
            await client.ask(WITH_IMAGE)
        assert client.counts == {"requests": 1, "refused": 1}


async def test_what_servers_serve():
    async with StubServer(StubSettings(model="a")) as one, StubServer(StubSettings(model="b")) as two:
        async with talking(one.url, two.url) as client:
            assert await client.served_models() == {one.url: {"a": 16384}, two.url: {"b": 16384}}
        async with talking(one.url, closed_port()) as client:
            assert await client.served_models() == {one.url: {"a": 16384}}
            assert [server.up for server in client.servers] == [True, False]
    async with talking(closed_port()) as client:
        with pytest.raises(NetworkError, match="no model server answers"):
            await client.served_models()


async def test_servers_are_asked_for_their_models_at_once():
    """Or many that do not answer would be waited for one after the other."""
    both = asyncio.Barrier(2)

    async def models(_: web.BaseRequest) -> web.Response:
        await asyncio.wait_for(both.wait(), 60)
        return web.json_response({"data": [{"id": "a"}]})

    async with AsyncExitStack() as stack:
        urls = []
        for _ in range(2):
            server = web.Server(models)
            listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
            stack.push_async_callback(server.shutdown, 0.0)
            stack.callback(listener.close)
            urls.append(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
        async with talking(*urls) as client:
            assert len(await client.served_models()) == 2


@pytest.mark.parametrize(
    "reply",
    [http(b"<html>"), http(b"{}"), http(b"{}", "404 Not Found"), http(b"", "400 Bad Request"), b"SSH-2.0\r\n\r\n"],
)
async def test_what_is_no_model_server(reply):
    async with Odd(reply) as odd, talking(odd) as client:
        with pytest.raises(UsageError) as caught:
            await client.served_models()
        assert caught.value.remedy
        assert odd in str(caught.value)


def test_no_server():
    with pytest.raises(UsageError, match="no model server is named"):
        ChatClient([])


def test_a_server_that_is_named_twice_is_one():
    assert len(ChatClient(["http://a:1/v1", "http://a:1"]).servers) == 1
