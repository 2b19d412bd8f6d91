"""A REST server in the test's own process, with engines that take no time, and a client for it."""

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
from fastapi import FastAPI
from PIL import Image
from starlette.requests import HTTPConnection

from pagemill.config.machine import RuntimeSettings
from pagemill.document.labels import Label
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import DetectedLine, RecognizedText, RecognizerOffer
from pagemill.rest.app import application
from pagemill.rest.server import Server
from pagemill.rest.settings import ServeSettings
from pagemill.runtime import engines

WIDTH, HEIGHT = 120, 80


def image(shade: int = 250) -> bytes:
    """A page of one shade, which the recognizer reads as its text."""
    file = io.BytesIO()
    Image.fromarray(np.full((HEIGHT, WIDTH, 3), shade, np.uint8)).save(file, "PNG")
    return file.getvalue()


def animation() -> bytes:
    """A page with a warning: of its two frames only the first one is read."""
    file = io.BytesIO()
    first, second = (Image.open(io.BytesIO(image(shade))) for shade in (7, 8))
    first.save(file, "WEBP", save_all=True, append_images=[second], lossless=True)
    return file.getvalue()


def frames(count: int) -> bytes:
    """A TIFF of pages of the shades 1, 2 and so on: unlike a PDF it needs no process of its own to be decoded."""
    file = io.BytesIO()
    first, *others = (Image.open(io.BytesIO(image(shade))) for shade in range(1, count + 1))
    first.save(file, "TIFF", save_all=True, append_images=others)
    return file.getvalue()


def rows(*ids: str) -> bytes:
    """A dataset of pages with these ids, the first of shade 1."""
    import pyarrow as pa  # most tests need none of it
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"id": ids, "image": [image(shade) for shade in range(1, len(ids) + 1)]}), file)
    return file.getvalue()


def archive(answer: httpx.Response) -> zipfile.ZipFile:
    """The archive that the server answered with."""
    return zipfile.ZipFile(io.BytesIO(answer.content))


class FastEngines:
    """A layout engine, a detector and a recognizer in one: a page holds the word "shade" and a number."""

    name = "rapidocr"
    max_batch = 4
    languages = frozenset({"en"})

    def load(self, group: str, name: str) -> Any:
        """In place of the registry of engines."""
        if group == engines.TEXT_ENGINES:
            return lambda: [RecognizerOffer(name=self.name, languages=self.languages, create=lambda: self)]
        return (lambda: _Detector()) if group == engines.TEXT_DETECTORS else (lambda settings: _Layout())

    def recognize(self, lines: Any) -> list[RecognizedText]:
        """The shade of each line."""
        return [RecognizedText(text=f"shade {int(line[0, 0, 0])}", confidence=0.9) for line in lines]

    def close(self) -> None:
        """Nothing to free."""


class _Detector:
    name = "spotter"

    def detect(self, page: Any) -> list[DetectedLine]:
        return [DetectedLine(polygon=((10.0, 10.0), (90.0, 10.0), (90.0, 30.0), (10.0, 30.0)), score=1.0)]


class _Layout:
    name = "boxes"
    max_batch = 4

    def detect(self, pages: Any) -> list[list[DetectedRegion]]:
        box = (5.0, 5.0, 95.0, 40.0)
        return [[DetectedRegion(box=box, label=Label.TEXT, score=0.9, source="boxes")] for _ in pages]

    def close(self) -> None: ...


@dataclass
class World:
    """A server that runs, and a client."""

    server: Server
    client: httpx.AsyncClient

    async def send(self, *files: bytes | tuple[str, bytes], **more: Any) -> httpx.Response:
        """Send a job of files: "page 1.png" and so on where they have no names."""
        named = [(f"page {n}.png", file) if isinstance(file, bytes) else file for n, file in enumerate(files, 1)]
        return await self.client.post("/v1/jobs", files=[("files", each) for each in named], **more)

    async def finished(self, *files: bytes | tuple[str, bytes], **more: Any) -> dict[str, Any]:
        """Send a job and wait for its end."""
        answer = await self.send(*files, **more)
        assert answer.status_code == 202, answer.text
        return await self.ended(answer.json()["id"])

    async def ended(self, job: str) -> dict[str, Any]:
        """Wait for the end of a job."""
        return (await self.client.get(f"/v1/jobs/{job}?wait=30")).json()

    async def archive(self, job: str) -> zipfile.ZipFile:
        """The results of a job."""
        return archive(await self.client.get(f"/v1/jobs/{job}/download.zip"))


async def until(event: Callable[[], object]) -> None:
    """Wait until something is so."""
    for _ in iter(lambda: bool(event()), True):
        await asyncio.sleep(0.001)


class _CurrentServer:
    """Stands for the server of the moment, so that the application, which takes long to make, outlives it."""

    server: Server

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)

    async def owner(self, request: HTTPConnection) -> str:
        """A dependency of routes, which FastAPI looks at when they are made."""
        return await self.server.owner(request)


_FREE: list[tuple[FastAPI, _CurrentServer]] = []


@asynccontextmanager
async def rest_world(data: Path, *, headers: dict[str, str] | None = None, **settings: Any) -> AsyncIterator[World]:
    """A server with these settings, for as long as the block lasts."""
    if not _FREE:
        current = _CurrentServer()
        _FREE.append((application(cast("Server", current)), current))
    app, current = _FREE.pop()
    current.server = Server(ServeSettings(data=data, runtime=RuntimeSettings(threads=2, decoders=1), **settings))
    app.middleware_stack = None  # it is made of the settings, with the next request
    app.state.server = current.server
    async with current.server as server:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            yield World(server, client)
    _FREE.append((app, current))
