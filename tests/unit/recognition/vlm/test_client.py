"""The client against stub servers that fail in every way they can."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from pagemill.bench.stub_answers import Fault
from pagemill.bench.stub_server import StubServer, StubSettings
from pagemill.errors import NetworkError, UsageError
from pagemill.recognition.vlm import client as client_module
from pagemill.recognition.vlm import exchange
from pagemill.recognition.vlm.answer import Answer, RequestFailedError, RequestRefusedError, RequestTimeoutError
from pagemill.recognition.vlm.client import ChatClient
from pagemill.recognition.vlm.limits import AdaptiveLimit
from pagemill.recognition.vlm.replies import choose_model, decode_completion

BODY = b'{"model":"stub","messages":[{"role":"user","content":"OCR:"}]}'

WITH_IMAGE = (
    b'{"model":"stub","image":"data:image/png;base64,'
    b'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADUlEQVR4nGNgQAWMAAAOAAFhfO9KAAAAAElFTkSuQmCC"}'
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Delays so short that tests need not wait; what is tested does not depend on them."""
    monkeypatch.setattr(client_module, "_FIRST_DELAY_S", 0.001)
    monkeypatch.setattr(client_module, "_LONGEST_DELAY_S", 0.01)
    monkeypatch.setattr(client_module, "_FIRST_PROBE_S", 0.01)
    monkeypatch.setattr(client_module, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(client_module, "_LONGEST_PAUSE_S", 0.01)


@asynccontextmanager
async def talking(*urls: str, **options) -> AsyncIterator[ChatClient]:
    client = ChatClient(urls, **options)
    try:
        yield client
    finally:
        await client.aclose()
        leftover = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in leftover if "client.py" in str(task.get_coro())]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the stub has no event for all that may be waited for
            await asyncio.sleep(0.001)


def closed_port() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"


class Odd:
    """A server that sends the bytes it is given to everybody."""

    def __init__(self, reply: bytes, *, keep_open: bool = False) -> None:
        self._reply, self._keep_open = reply, keep_open

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        writer.write(self._reply)
        if not self._keep_open:
            writer.close()


def http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


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
        assert c.has_idle_capacity()
        asks = [asyncio.create_task(c.ask(BODY)) for _ in range(20)]
        await until(lambda: one.in_flight == two.in_flight == workers)
        assert not c.has_idle_capacity()
        await asyncio.gather(*asks)
        assert one.counts["max_in_flight"] == two.counts["max_in_flight"] == workers
        assert c.has_idle_capacity()


async def test_the_adaptive_limit_grows_with_a_server_that_bears_it():
    async with StubServer(StubSettings(latency_ms=20)) as server, talking(server.url) as client:
        await asyncio.gather(*[client.ask(BODY) for _ in range(600)])
        assert server.counts["max_in_flight"] > client_module.AdaptiveLimit().value


async def test_the_adaptive_limit_is_told_of_the_queue(monkeypatch):
    monkeypatch.setattr(client_module, "_POLL_S", 0.01)
    async with StubServer(StubSettings(latency_ms=30, slots=2)) as server, talking(server.url) as client:
        await asyncio.gather(*[client.ask(BODY) for _ in range(80)])
        assert client.servers[0].limit.value < 32


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


def boom() -> web.Response:
    return web.Response(status=500, body=b'{"error":{"message":"boom"}}')


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


async def test_servers_that_answer_nobody_fail_the_page_not_the_region(monkeypatch):
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
        assert not client.has_idle_capacity()
        assert server.counts["requests"] == 1
        for ask in asks:
            ask.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*asks, return_exceptions=True)
        )


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("3", 3), ("0.5", 0.5), ("86400", 60), ("-5", 0), ("nan", None), ("inf", None), ("soon", None)],
)
def test_retry_after(value, seconds):
    assert exchange.retry_after(value) == seconds


def test_retry_after_as_a_date():
    assert exchange.retry_after("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    assert exchange.retry_after("Fri, 31 Dec 2199 23:59:59 GMT") == 60


@given(st.text(max_size=40))
def test_retry_after_of_anything(value):
    seconds = exchange.retry_after(value)
    assert seconds is None or 0 <= seconds <= 60


async def test_a_server_that_is_down_is_waited_for():
    async with StubServer(StubSettings(dies_after=3, latency_ms=5)) as server, talking(server.url, workers=4) as client:
        asks = [asyncio.create_task(client.ask(BODY)) for _ in range(20)]
        await server.died.wait()
        await until(lambda: not client.servers[0].up)
        assert not client.has_idle_capacity()
        server.settings = StubSettings()
        await server.start()
        assert len(await asyncio.gather(*asks)) == 20
        assert client.servers[0].up


async def test_a_server_that_cannot_bear_the_load_is_given_less():
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


async def test_no_server_for_too_long():
    async with talking(closed_port(), server_wait_s=0.2) as client:
        with pytest.raises(NetworkError, match=r"no model server could be reached for 0.2 s"):
            await client.ask(BODY)


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


async def test_the_api_key_goes_along_and_is_told_nowhere(caplog):
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


async def test_a_redirect_is_not_followed():
    reply = http(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n")
    async with Odd(reply) as odd, talking(odd) as client:
        with pytest.raises(UsageError, match="HTTP 307"):
            await client.ask(BODY)


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.floats(),
        lambda s: st.lists(s)
        | st.dictionaries(
            st.text() | st.sampled_from(["choices", "message", "content", "usage", "completion_tokens"]), s
        ),
    )
)
def test_any_json_is_an_answer_or_a_value_error(value):
    try:
        answer, tokens = decode_completion(msgspec.json.encode(value))
    except ValueError:
        return
    assert isinstance(answer.text, str)
    assert tokens >= 0


def test_numbers_of_tokens_that_cannot_be():
    raw = b'{"choices":[{"message":{"content":"abc"}}],"usage":{"completion_tokens":-1,"prompt_tokens":99999999999999}}'
    answer, tokens = decode_completion(raw)
    assert (answer.completion_tokens, answer.prompt_tokens, tokens) == (None, None, 2)


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
        await asyncio.wait_for(both.wait(), 20)
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
    ("fault", "told"),
    [
        (Fault.SERVER_ERROR, "failed"),
        (Fault.RESET, "failed"),
        (Fault.UNAVAILABLE, "rejected"),
        (Fault.HANG, "overloaded"),
    ],
)
async def test_what_the_limit_is_told(monkeypatch, fault, told):
    heard = []
    for name in ("failed", "rejected", "overloaded"):
        monkeypatch.setattr(AdaptiveLimit, name, lambda self, ticket, name=name: heard.append(name))
    async with (
        StubServer(StubSettings(faults={fault: 1.0})) as bad,
        StubServer() as good,
        talking(bad.url, good.url, request_timeout_s=0.2) as client,
    ):
        await client.ask(BODY)
    assert heard == [told]


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
async def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch, proxy):
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.setattr(exchange, "proxy_bypass", lambda host: False)
    async with talking("https://models.invalid") as client:
        with pytest.raises((UsageError, NetworkError)) as caught:
            await client.served_models()
    assert "secret" not in str(caught.value)
    assert caught.value.remedy


async def test_too_many_open_files_are_no_fault_of_the_server(monkeypatch):
    async with StubServer() as server, talking(server.url) as client:
        post = exchange.Exchange.post
        left = iter([True] * 3)

        async def failing(self, url, body, timeout_s):
            if next(left, False):
                raise exchange.AttemptFailedError(
                    *exchange.unreachable(url, OSError(errno.EMFILE, "Too many open files"))
                )
            return await post(self, url, body, timeout_s)

        monkeypatch.setattr(exchange.Exchange, "post", failing)
        await client.ask(BODY)
        assert client.servers[0].up
        assert client.counts["busy"] == 3


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


@pytest.mark.parametrize(
    ("served", "wanted", "chosen"),
    [
        ({"s": ["x"]}, None, "x"),
        ({"s": ["x", "glm-ocr"]}, None, "glm-ocr"),
        ({"s": ["x", "zai-org/GLM-OCR"]}, None, "zai-org/GLM-OCR"),
        ({"s": ["x", "y"]}, "y", "y"),
        ({"s": ["x", "y"], "t": ["y"]}, "y", "y"),
        ({"s": ["x"], "t": ["x"]}, None, "x"),
    ],
)
def test_choice_of_the_model(served, wanted, chosen):
    assert choose_model(served, wanted, ("glm-ocr", "zai-org/GLM-OCR")) == chosen


@pytest.mark.parametrize(
    ("served", "wanted"),
    [
        ({"s": []}, None),
        ({"s": ["x", "y"]}, None),
        ({"s": ["x"], "t": ["y"]}, None),
        ({"s": ["x"]}, "y"),
        ({"s": ["x"], "t": ["y"]}, "x"),
        ({"s": ["x", "y"], "t": ["x"]}, None),
    ],
)
def test_a_model_that_is_not_served_by_all(served, wanted):
    with pytest.raises(UsageError) as caught:
        choose_model(served, wanted, ("glm-ocr",))
    assert "s serves" in caught.value.remedy


def test_no_server():
    with pytest.raises(UsageError, match="no model server is named"):
        ChatClient([])


def test_a_server_that_is_named_twice_is_one():
    assert len(ChatClient(["http://a:1/v1", "http://a:1"]).servers) == 1


async def test_whoever_stops_waiting_gives_up_within_seconds(monkeypatch):
    monkeypatch.setattr(client_module, "_LAST_WAIT_S", 0.02)
    async with talking(closed_port(), server_wait_s=3600) as client:
        asking = asyncio.create_task(client.ask(BODY))
        await until(lambda: not client.servers[0].up)
        client.stop_waiting()
        async with asyncio.timeout(20):
            with pytest.raises(NetworkError):
                await asking
            with pytest.raises(NetworkError):
                await client.ask(BODY)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [("http://a..b:80", {}, "no URL"), ("http://127.0.0.1:9", {"api_key": "a\nb"}, "API key holds")],
)
async def test_what_cannot_be_sent_is_told_as_what_it_is(url, options, words):
    async with talking(url, **options) as client:
        with pytest.raises(UsageError, match=words):
            await client.served_models()


async def test_a_server_without_encryption_is_told_as_such():
    async with StubServer() as server, talking(server.url.replace("http:", "https:")) as client:
        with pytest.raises(NetworkError, match="no secure connection"):
            await client.served_models()


@pytest.mark.parametrize("usage", ["null", "7", "[]", '"many"', '{"completion_tokens":7.0}', '{"prompt_tokens":"5"}'])
def test_no_answer_is_lost_for_the_numbers_beside_it(usage):
    reply = f'{{"choices":[{{"message":{{"content":"words"}}}}],"usage":{usage}}}'
    answer, tokens = decode_completion(reply.encode())
    assert (answer.text, answer.completion_tokens, answer.prompt_tokens) == ("words", None, None)
    assert tokens == 2


def test_names_that_a_server_gives_do_nothing_to_a_terminal():
    served = {"http://a:1": {f"\x1b[2J{number}": None for number in range(30)}}
    with pytest.raises(UsageError) as caught:
        choose_model(served, None, ["glm-ocr"])
    assert "\x1b" not in str(caught.value.remedy)
    assert "and 10 more" in str(caught.value.remedy)


async def test_a_refused_request_is_counted_and_no_fault_of_the_server():
    async with StubServer(StubSettings(max_image_pixels=1)) as server, talking(server.url) as client:
        client.servers[0].streak = 3
        with pytest.raises(RequestRefusedError):
            await client.ask(WITH_IMAGE)
        assert client.servers[0].streak == 0
        assert client.counts == {"requests": 1, "refused": 1}
