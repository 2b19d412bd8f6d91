"""A client without its delays, and servers that answer as they please."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from pagemill.errors import UsageError
from pagemill.inference import client as client_module
from pagemill.inference.chat import ChatClient
from pagemill.inference.exchange import AttemptFailedError, RequestRefusedError

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
    monkeypatch.setattr(client_module, "_LOOK_AGAIN_S", (0.0, 0.001))


class CountingClient(ChatClient):
    """Counts HTTP requests by what became of them."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.counts: Counter[str] = Counter()

    async def _attempt(self, *args):
        self.counts["requests"] += 1
        try:
            answer = await super()._attempt(*args)
        except AttemptFailedError as error:
            self.counts[error.cause] += 1
            raise
        except (RequestRefusedError, UsageError) as error:
            self.counts["refused" if isinstance(error, RequestRefusedError) else "rejected"] += 1
            raise
        self.counts["answers"] += 1
        return answer


@asynccontextmanager
async def talking(*urls: str, **options) -> AsyncIterator[CountingClient]:
    client = CountingClient(urls, **options)
    try:
        async with asyncio.timeout(60):  # or a client that waits for nothing would do so for ever
            yield client
    finally:
        await client.aclose()
        leftover = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in leftover if "client.py" in str(task.get_coro())]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
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
