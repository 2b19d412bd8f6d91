"""Questions to a server over HTTP, and to the machine about its ports; with the standard library alone."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

_MAX_ANSWER = 2**20
_OK = 200


class Health(StrEnum):
    """What ``/health`` said."""

    HEALTHY = "healthy"
    SICK = "sick"  # it answers otherwise than with 200
    SILENT = "silent"  # it took the connection, or did not, and said nothing within the time
    ABSENT = "absent"  # nobody listens


@dataclass(frozen=True, slots=True)
class Served:
    """A model of a server, from ``/v1/models``."""

    name: str
    root: str | None
    """The folder or the name on the Hub that it was loaded from, where the server tells."""
    max_model_len: int | None


async def fetch(url: str, path: str, timeout_s: float) -> tuple[int, bytes]:
    """GET a path of a server: status and body, of which no more than a mebibyte is read.

    HTTP/1.0, so that the answer ends with the connection and comes in one piece.

    Raises:
        OSError: It cannot be reached, or what answers does not speak HTTP; TimeoutError where it says nothing.
    """
    place = urlsplit(url)
    host, port = place.hostname or "127.0.0.1", place.port or 80
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
            answer = b""
            while len(answer) < _MAX_ANSWER and (chunk := await reader.read(_MAX_ANSWER - len(answer))):
                answer += chunk
        finally:
            writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise OSError(f"{url} does not speak HTTP")
    return int(words[1]), body


async def health(url: str, timeout_s: float) -> Health:
    """How a server is."""
    try:
        status, _ = await fetch(url, "/health", timeout_s)
    except ConnectionRefusedError:
        return Health.ABSENT
    except TimeoutError:
        return Health.SILENT
    except OSError:
        return Health.SICK
    return Health.HEALTHY if status == _OK else Health.SICK


async def served_models(url: str, timeout_s: float) -> list[Served]:
    """The models that a server offers; empty where it offers none or does not answer as it should."""
    try:
        status, body = await fetch(url, "/v1/models", timeout_s)
        rows = json.loads(body)["data"] if status == _OK else []
        return [_served(row) for row in rows if isinstance(row["id"], str)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def free_port(host: str) -> int:
    """A port that nobody listens on, chosen by the system."""
    with socket.socket(_family(host)) as listener:
        listener.bind((host, 0))
        return int(listener.getsockname()[1])


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there."""
    with suppress(OSError), socket.socket(_family(host)) as listener:
        listener.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # connections of a server that ended do not count
        listener.bind((host, port))
        return True
    return False


def base_url(host: str, port: int) -> str:
    """Where clients on this machine find a server."""
    if host in ("0.0.0.0", ""):
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _served(row: dict[str, object]) -> Served:
    root, length = row.get("root"), row.get("max_model_len")
    return Served(
        name=str(row["id"]),
        root=root if isinstance(root, str) else None,
        max_model_len=length if isinstance(length, int) else None,
    )
