"""Servers that end, die and return, or are not there at all."""

import asyncio

import pytest
from aiohttp import web

from pagemill.errors import NetworkError
from pagemill.inference import client as client_module
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

from .conftest import BODY, closed_port, talking, until


async def test_a_server_that_ends_in_order_loses_no_request():
    """It answers what it has and refuses all else (``vllm serve --shutdown-timeout``), until another is there."""
    async with StubServer(StubSettings(latency_ms=50)) as server, talking(server.url) as client:
        old = asyncio.create_task(client.ask(BODY))
        await until(lambda: server.in_flight)
        server.settings = StubSettings(faults={Fault.SERVER_ERROR: 1.0})
        new = asyncio.create_task(client.ask(BODY))
        await until(lambda: server.counts[Fault.SERVER_ERROR])
        assert await old
        failed = server.counts[Fault.SERVER_ERROR]
        await until(lambda: server.counts[Fault.SERVER_ERROR] > failed + 2 * client_module._ENOUGH)
        server.settings = StubSettings()
        assert await new


async def test_a_server_that_is_down_is_waited_for():
    async with StubServer(StubSettings(dies_after=3, latency_ms=5)) as server, talking(server.url, workers=4) as client:
        asks = [asyncio.create_task(client.ask(BODY)) for _ in range(20)]
        await server.died.wait()
        await until(lambda: not client.servers[0].up)
        server.settings = StubSettings()
        await server.start()
        assert len(await asyncio.gather(*asks)) == 20
        assert client.servers[0].up


async def test_a_server_that_cannot_handle_the_load_is_given_less():
    settings = StubSettings(latency_ms=10, dies_after=20, returns_after_s=0.01)
    async with StubServer(settings) as server, talking(server.url) as client:
        assert len(await asyncio.gather(*[client.ask(BODY) for _ in range(100)])) == 100
        assert server.counts["deaths"] > 1
        assert client.servers[0].limit.value < 20


async def test_one_of_two_dies_and_the_other_does_all_the_work():
    dying = StubServer(StubSettings(dies_after=4, latency_ms=5))
    async with (
        dying,
        StubServer(StubSettings(latency_ms=5)) as other,
        talking(dying.url, other.url, workers=3) as client,
    ):
        answers = await asyncio.gather(*[client.ask(BODY) for _ in range(40)])
        assert len(answers) == dying.counts["answered"] + other.counts["answered"] == 40
        assert not client.servers[0].up


async def test_a_server_behind_a_gateway_is_waited_for():
    """The gateway answers while the server starts again, which may take longer than failures are tolerated."""

    async def no_server(*_: object) -> web.Response:
        return web.Response(status=502)

    async with StubServer() as server, talking(server.url) as client:
        usual = server._routes["GET", "/health"], server._answer
        server._routes["GET", "/health"] = server._answer = no_server
        ask = asyncio.create_task(client.ask(BODY))
        await until(lambda: not client.servers[0].up or ask.done())
        server._routes["GET", "/health"], server._answer = usual
        assert await ask


async def test_no_server_for_too_long():
    async with talking(closed_port(), server_wait_s=0.2) as client:
        with pytest.raises(NetworkError, match=r"no model server was reachable for 0.2 s"):
            await client.ask(BODY)


async def test_whoever_stops_waiting_gives_up_within_seconds(monkeypatch):
    monkeypatch.setattr(client_module, "_LAST_WAIT_S", 0.02)
    async with talking(closed_port(), server_wait_s=3600) as client:
        asking = asyncio.create_task(client.ask(BODY))
        await until(lambda: not client.servers[0].up)
        client.stop_waiting()
        async with asyncio.timeout(60):
            with pytest.raises(NetworkError):
                await asking
            with pytest.raises(NetworkError):
                await client.ask(BODY)
