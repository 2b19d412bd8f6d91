import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pagemill.inference.exchange import Exchange
from pagemill.inference.models import Served
from pagemill.serving.addresses import base_url, free_port, is_free
from pagemill.serving.server import complaint, served_models


@pytest.fixture
async def exchange() -> AsyncIterator[Exchange]:
    pool = Exchange()
    yield pool
    await pool.close()


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[str]:
    """A server that says the same to everybody, or, with None, nothing."""
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await done.wait()
        else:
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield base_url("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        done.set()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP 503"),
        (b"SSH-2.0-OpenSSH\r\n", "does not speak HTTP"),
        (b"", "closed the connection"),
        (None, "did not answer"),
    ],
)
async def test_what_is_wrong_with_a_server(exchange: Exchange, answer: bytes | None, words: str):
    async with answering(answer) as url:
        assert words in (await complaint(exchange, url, 0.2 if answer is None else 30) or "")


async def test_a_healthy_server(exchange: Exchange):
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n") as url:
        assert await complaint(exchange, url, 30) is None


async def test_no_server(exchange: Exchange):
    url = base_url("127.0.0.1", free_port("127.0.0.1"))
    assert "cannot be reached" in (await complaint(exchange, url, 5) or "")


async def test_an_endless_list_of_models_is_not_read(exchange: Exchange):
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 17 * 2**20 + b'{"data": [{"id": "a"}]}') as url:
        assert await served_models(exchange, url, 30) == []


async def test_the_models_of_a_server(exchange: Exchange):
    rows = [{"id": "a", "root": "x/a", "max_model_len": 4096}, {"id": "b", "root": None, "max_model_len": "many"}]
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps({"data": rows}).encode()) as url:
        assert await served_models(exchange, url, 30) == [Served("a", "x/a", 4096), Served("b", None, None)]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": 3}', b'{"data": [{}]}', b"[" * 100_000, b"\xff"])
async def test_what_makes_no_sense_is_no_model(exchange: Exchange, body: bytes):
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n" + body) as url:
        assert await served_models(exchange, url, 30) == []


def test_a_port_that_somebody_listens_on_is_not_free():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not is_free("127.0.0.1", port)
    assert is_free("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::", "http://[::1]:1"),
        ("gpu-box", "http://gpu-box:1"),
    ],
)
def test_where_clients_find_it(host: str, url: str):
    assert base_url(host, 1) == url
