"""Docling's own service client against the server, over a socket: files, URLs, several at once."""

import asyncio
import io
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rest_world import FastEngines, image

from pagemill.config.machine import RuntimeSettings
from pagemill.rest import runner, serving
from pagemill.rest.settings import ServeSettings
from pagemill.runtime import engines
from pagemill.runtime.supervisor import Life

HEAD_S = 2.0
"""Time limit of the head of a request: a WebSocket must outlive it."""
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class SlowEngines(FastEngines):
    """The first page takes longer than a client may take for the head of a request."""

    def __init__(self) -> None:
        self._delays = [2 * HEAD_S]

    def recognize(self, lines: Any) -> Any:
        """As the fast ones, the first time later."""
        if self._delays:
            time.sleep(self._delays.pop())
        return super().recognize(lines)


@asynccontextmanager
async def served(tmp_path: Path, **settings: Any) -> AsyncIterator[str]:
    """The URL of a server."""
    chosen = ServeSettings(data=tmp_path, runtime=RuntimeSettings(threads=2, decoders=1), **settings)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = asyncio.create_task(serving._serve(chosen, listening, Life()))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            signal.raise_signal(signal.SIGTERM)
            await running


def stream(shade: int) -> Any:
    from docling.datamodel.base_models import DocumentStream

    return DocumentStream(name=f"page {shade}.png", stream=io.BytesIO(image(shade)))


def text_of(result: Any) -> str:
    return " ".join(text.text for text in result.document.texts)


async def test_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here, as every process that collects tests imports the modules of slow ones, too: this takes a second.
    from docling.datamodel.base_models import ConversionStatus, DocumentStream, OutputFormat
    from docling.datamodel.service.options import ConvertDocumentsOptions
    from docling.datamodel.service.targets import ZipTarget
    from docling.service_client import AsyncDoclingServiceClient, ChunkerKind, DoclingServiceClient
    from docling.service_client.exceptions import TaskExecutionError

    monkeypatch.setattr(engines, "load", SlowEngines().load)
    monkeypatch.setattr(serving, "HEAD_S", HEAD_S)
    monkeypatch.setattr(runner, "fetch", lambda _, path, __, **___: path.write_bytes(image(99)))
    key = "a-key-of-the-test"

    def use(url: str) -> None:
        options = ConvertDocumentsOptions(to_formats=[OutputFormat.JSON], do_chart_extraction=True)
        with DoclingServiceClient(url=url, api_key=key, ws_fallback_to_poll=False) as client:
            result = client.convert(stream(7), options=options)
            assert (result.status, text_of(result)) == (ConversionStatus.SUCCESS, "shade 7")
            assert ["do_chart_extraction" in each.error_message for each in result.errors] == [True]
            several = client.convert_all([stream(shade) for shade in (1, 2, 3)], max_concurrency=3)
            assert {text_of(each) for each in several} == {"shade 1", "shade 2", "shade 3"}
            assert text_of(client.convert("http://example.org/page.png")) == "shade 99"
            archive = client.submit(stream(5), target=ZipTarget(), output_formats=[OutputFormat.MARKDOWN]).result()
            assert archive.content.startswith(b"PK")
            chunks = client.chunk(stream(6), chunker=ChunkerKind.HYBRID).chunks
            assert [chunk.text for chunk in chunks] == ["shade 6"]
            with pytest.raises(TaskExecutionError, match=r"bad\.png"):
                client.convert(DocumentStream(name="bad.png", stream=io.BytesIO(b"no picture")))

    async with served(tmp_path, allow_urls=True, api_keys=(key,)) as url:
        await asyncio.to_thread(use, url)
        async with AsyncDoclingServiceClient(url=url, api_key=key) as client:
            jobs = [await client.submit(stream(shade)) for shade in (10, 11, 12)]
            results = await asyncio.gather(*(job.result() for job in jobs))
        assert [text_of(each) for each in results] == ["shade 10", "shade 11", "shade 12"]
