"""Servers that take none of our requests: they are asked no more, and the run ends with the last of them."""

import asyncio
import logging

import pytest
from aiohttp import web

from pagemill.errors import NetworkError, UsageError
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

from .conftest import BODY, Odd, closed_port, http, talking, until

REJECTIONS = [
    (StubSettings(api_key="right"), "HTTP 401: Unauthorized", "PAGEMILL_API_KEY"),
    (StubSettings(model="other"), "The model `stub` does not exist", "--served-model"),
]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(("changed", "words", "remedy"), REJECTIONS)
async def test_the_others_continue_without_one_that_rejects_requests(changed, words, remedy, caplog):
    async with StubServer() as one, StubServer() as other, talking(one.url, other.url, workers=4) as client:
        await asyncio.gather(*[client.ask(BODY) for _ in range(8)])
        assert one.counts["answered"] == other.counts["answered"] == 4
        one.settings = changed
        await asyncio.gather(*[client.ask(BODY) for _ in range(20)])
        asked = client.counts["rejected"]
        await asyncio.gather(*[client.ask(BODY) for _ in range(20)])
        assert other.counts["answered"] == 44
        assert 1 <= client.counts["rejected"] == asked <= 4
        assert client.counts["requests"] == 48 + asked
    (warning,) = warnings(caplog)
    assert one.url in warning
    assert words in warning
    assert remedy in warning


def rejecting(server: StubServer, times: int, *, path: tuple[str, str] = ("POST", "/v1/chat/completions")) -> None:
    """Have a server answer so many requests with 403, as a proxy does that restarts."""
    usual = server._routes[path]

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        server.counts["forbidden"] += 1
        return web.Response(status=403) if server.counts["forbidden"] <= times else await usual(request)

    server._routes[path] = answer


async def test_one_rejection_is_a_failed_attempt(caplog):
    async with StubServer() as server, talking(server.url, workers=4) as client:
        rejecting(server, 4)  # of requests in flight together
        await asyncio.gather(*[client.ask(BODY) for _ in range(8)])
        assert server.counts["answered"] == 8
        assert client.servers[0].rejection is None
        assert client.servers[0].rejected == 0  # answers count for it again
    assert warnings(caplog) == []


async def test_a_rejection_of_the_first_look_is_looked_at_again(caplog):
    async with StubServer() as server, talking(server.url) as client:
        rejecting(server, 1, path=("GET", "/v1/models"))
        assert list(await client.served_models()) == [server.url]
    assert warnings(caplog) == []


async def test_a_server_that_lists_the_model_and_rejects_all_requests_is_left_out():
    async with StubServer() as server, talking(server.url, workers=4) as client:
        rejecting(server, 1000)
        ends = await asyncio.gather(*[client.ask(BODY) for _ in range(8)], return_exceptions=True)
        assert {type(end) for end in ends} == {UsageError}
        assert server.counts["forbidden"] <= 3 * 4


async def test_a_redirect_is_a_rejection(caplog):
    reply = http(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n")
    async with Odd(reply) as odd, StubServer() as good, talking(odd, good.url) as client:
        await asyncio.gather(*[client.ask(BODY) for _ in range(4)])
        assert good.counts["answered"] == 4
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize(("changed", "words", "remedy"), REJECTIONS)
async def test_the_last_one_ends_all_that_is_asked(changed, words, remedy, caplog):
    async with StubServer(changed) as one, StubServer(changed) as other, talking(one.url, other.url, workers=2) as c:
        ends = await asyncio.gather(*[c.ask(BODY) for _ in range(20)], return_exceptions=True)
        assert {type(end) for end in ends} == {UsageError}
        told = ends[0]
        assert isinstance(told, UsageError)
        assert one.url in told.message
        assert other.url in told.message
        assert words in told.message
        assert remedy in (told.remedy or "")
        asked = c.counts["requests"]
        assert asked <= 4
        with pytest.raises(UsageError, match=words):
            await c.ask(BODY)
        assert c.counts["requests"] == asked
    assert len(warnings(caplog)) == 1  # the error tells of both


async def test_the_only_server_is_reported_in_its_own_words(caplog):
    async with StubServer(StubSettings(api_key="right")) as server, talking(server.url) as client:
        with pytest.raises(UsageError, match=f"^{server.url}/v1/chat/completions answers with HTTP 401"):
            await client.ask(BODY)
    assert warnings(caplog) == []


async def test_one_that_is_down_is_waited_for_while_the_other_rejects_requests():
    down = StubServer()
    await down.start()
    await down.kill()
    async with StubServer(StubSettings(api_key="right")) as strict, talking(strict.url, down.url) as client:
        asks = [asyncio.create_task(client.ask(BODY)) for _ in range(4)]
        await until(lambda: client.servers[0].rejection and not client.servers[1].up)
        assert not any(ask.done() for ask in asks)
        await down.start()
        await asyncio.gather(*asks)
    await down.close()


async def test_waiting_for_one_that_is_down_ends_though_the_other_rejects_requests():
    gone = closed_port()
    async with StubServer(StubSettings(api_key="right")) as strict:
        async with talking(strict.url, gone, server_wait_s=0.2) as client:
            with pytest.raises(NetworkError, match=r"was reachable for 0\.2 s: ") as caught:
                await asyncio.gather(*[client.ask(BODY) for _ in range(4)])
        assert gone in caught.value.message
        assert strict.url not in caught.value.message


async def test_one_that_is_being_looked_after_stays_out():
    async with (
        StubServer(StubSettings(faults={Fault.HANG: 1.0})) as sick,
        StubServer() as good,
        talking(sick.url, good.url, workers=1, request_timeout_s=0.1) as client,
    ):
        sick._routes["GET", "/health"] = never
        await client.ask(BODY)  # overruns its time at the sick one, which is looked after from now on
        assert client.counts["timeout"] == 1
        sick.settings = StubSettings(api_key="right")
        await asyncio.gather(*[client.ask(BODY) for _ in range(4)])
        assert client.servers[0].rejection
        await until(lambda: client._probes[client.servers[0]].done())
        received = sick.counts["requests"]
        await asyncio.gather(*[client.ask(BODY) for _ in range(4)])
        assert sick.counts["requests"] == received > 0


async def test_nobody_looks_after_one_that_is_out():
    async with (
        StubServer(StubSettings(faults={Fault.HANG: 1.0})) as sick,
        StubServer() as good,
        talking(sick.url, good.url, workers=2, request_timeout_s=1.0) as client,
    ):
        hanging = asyncio.create_task(client.ask(BODY))
        await until(lambda: sick.in_flight)
        sick.settings = StubSettings(api_key="right")
        await asyncio.gather(*[client.ask(BODY) for _ in range(4)])
        assert client.servers[0].rejection
        await hanging
        assert client.counts["timeout"] == 1
        assert client._probes == {}


async def never(_: web.BaseRequest) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def test_one_that_is_out_is_not_asked_for_its_models_again():
    async with (
        StubServer(StubSettings(api_key="right")) as strict,
        StubServer() as good,
        talking(strict.url, good.url) as client,
    ):
        assert list(await client.served_models()) == [good.url]
        strict.settings = StubSettings()
        assert list(await client.served_models()) == [good.url]


@pytest.mark.parametrize(
    "reply", [http(b"<html>"), http(b"{}", "404 Not Found"), http(b"", "401 Unauthorized"), b"SSH-2.0\r\n\r\n"]
)
async def test_one_that_does_not_list_its_models_has_no_part_in_the_run(reply, caplog):
    async with Odd(reply) as odd, StubServer() as good, talking(odd, good.url) as client:
        assert list(await client.served_models()) == [good.url]
        await asyncio.gather(*[client.ask(BODY) for _ in range(4)])
        assert good.counts["answered"] == client.counts["requests"] == 4
    (warning,) = warnings(caplog)
    assert odd in warning


async def test_one_that_does_not_serve_the_model_has_no_part_in_the_run(caplog):
    async with (
        StubServer(StubSettings(model="other", max_model_len=1000)) as wrong,
        StubServer(StubSettings(max_model_len=2000)) as good,
        talking(wrong.url, good.url) as client,
    ):
        found = await client.find_model("stub", ["glm-ocr"])
        assert (found.name, found.max_model_len) == ("stub", 2000)
        await asyncio.gather(*[client.ask(BODY) for _ in range(4)])
        assert good.counts["answered"] == client.counts["requests"] == 4
    (warning,) = warnings(caplog)
    assert f"{wrong.url} does not serve 'stub'" in warning
    assert f"{wrong.url} serves other" in warning


async def test_a_model_that_nobody_serves_counts_nobody_out():
    async with StubServer() as one, StubServer() as other, talking(one.url, other.url) as client:
        with pytest.raises(UsageError, match="do not serve 'glm-ocr'"):
            await client.find_model("glm-ocr", ["glm-ocr"])
        await client.ask(BODY)


async def test_none_lists_its_models(caplog):
    reply = http(b"", "401 Unauthorized")
    async with Odd(reply) as one, Odd(reply) as other, talking(one, other) as client:
        with pytest.raises(UsageError) as caught:
            await client.served_models()
    assert one in caught.value.message
    assert other in caught.value.message
    assert (caught.value.remedy or "").count("PAGEMILL_API_KEY") == 1
