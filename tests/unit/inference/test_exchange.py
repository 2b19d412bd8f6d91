"""One HTTP exchange: keys, proxies, redirects, and how failures are told."""

import asyncio
import logging
import traceback

import pytest
from aiohttp import web

from pagemill.errors import NetworkError, UsageError
from pagemill.inference import exchange
from pagemill_bench.testing.stub_server import StubServer, StubSettings

from .conftest import BODY, Odd, http, talking


async def test_the_api_key_is_sent_and_never_shown(caplog):
    caplog.set_level(logging.DEBUG)
    async with StubServer(StubSettings(api_key="hunter2")) as server:
        async with talking(server.url, api_key="hunter2") as client:
            assert (await client.ask(BODY)).text
            assert await client.served_models() == {server.url: {"stub": 16384}}
        async with talking(server.url, api_key="hunter3") as client:
            with pytest.raises(UsageError, match="401") as caught:
                await client.ask(BODY)
    told = caplog.text + "".join(traceback.format_exception(caught.value)) + str(caught.value.remedy)
    assert "401" in told
    assert "hunter" not in told


async def test_a_redirect_is_not_followed():
    reply = http(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n")
    async with Odd(reply) as odd, talking(odd) as client:
        with pytest.raises(UsageError, match="HTTP 307"):
            await client.ask(BODY)


@pytest.mark.parametrize(
    ("url", "variables", "proxy"),
    [
        ("http://models.example:8000/x", {"http_proxy": "http://proxy.example:3128"}, "http://proxy.example:3128"),
        ("https://models.example/x", {"HTTPS_PROXY": "http://proxy.example:3128"}, "http://proxy.example:3128"),
        ("https://models.example/x", {"http_proxy": "http://proxy.example:3128"}, None),
        ("https://models.example/x", {"all_proxy": "http://proxy.example:3128"}, "http://proxy.example:3128"),
        ("http://a.models.example/x", {"http_proxy": "http://p:1", "no_proxy": "models.example"}, None),
        ("http://127.0.0.1:8000/x", {"http_proxy": "http://proxy.example:3128"}, None),
        ("http://localhost:8000/x", {"http_proxy": "http://proxy.example:3128"}, None),
        ("http://[::1]:8000/x", {"http_proxy": "http://proxy.example:3128"}, None),
        ("http://0.0.0.0:8000/x", {"http_proxy": "http://proxy.example:3128"}, None),
        ("http://[::]:8000/x", {"http_proxy": "http://proxy.example:3128"}, None),
        ("http://10.1.2.3:8000/x", {"http_proxy": "http://p:1", "no_proxy": "a.example, 10.0.0.0/8"}, None),
        ("http://11.1.2.3:8000/x", {"http_proxy": "http://p:1", "no_proxy": "a.example, 10.0.0.0/8"}, "http://p:1"),
        ("http://[fd00::7]/x", {"http_proxy": "http://p:1", "no_proxy": "fd00::/8"}, None),
        ("http://models.example/x", {}, None),
    ],
)
def test_proxies_of_the_environment(monkeypatch, url, variables, proxy):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert exchange.proxy_for(url) == proxy


async def test_a_proxy_is_used(monkeypatch):
    asked = []

    async def proxy(request: web.BaseRequest) -> web.Response:
        asked.append((str(request.url), request.headers.get("Proxy-Authorization")))
        return web.json_response({"data": [{"id": "a"}]})

    server = web.Server(proxy)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    monkeypatch.setenv("http_proxy", f"http://miller:secret@{address}")
    monkeypatch.setattr(exchange, "proxy_bypass", lambda host: False)
    try:
        async with talking("http://models.invalid:8000") as client:
            assert list(await client.served_models()) == ["http://models.invalid:8000"]
    finally:
        listener.close()
        await server.shutdown(0.0)
    assert [url for url, _ in asked] == ["http://models.invalid:8000/v1/models"]
    assert asked[0][1] is not None


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://miller:secret@127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_reported_without_its_password(monkeypatch, proxy):
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.setattr(exchange, "proxy_bypass", lambda host: False)
    async with talking("https://models.invalid") as client:
        with pytest.raises((UsageError, NetworkError)) as caught:
            await client.served_models()
    assert "secret" not in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [("http://a..b:80", {}, "not a URL"), ("http://127.0.0.1:9", {"api_key": "a\nb"}, "API key contains")],
)
async def test_what_cannot_be_sent_is_reported_as_what_it_is(url, options, words):
    async with talking(url, **options) as client:
        with pytest.raises(UsageError, match=words):
            await client.served_models()


async def test_a_server_without_encryption_is_reported_as_such():
    async with StubServer() as server, talking(server.url.replace("http:", "https:")) as client:
        with pytest.raises(NetworkError, match="SSL: WRONG_VERSION"):
            await client.served_models()
