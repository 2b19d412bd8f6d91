"""A REST server with scripted engines on a port of its own, and jobs whose records are given. For browser tests."""

import hashlib
import io
import math
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from PIL import Image
from synthetic_run import write_run

from pagemill.config.machine import RuntimeSettings
from pagemill.document.jobs import JobState
from pagemill.document.labels import Label
from pagemill.document.page import PageResult
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import DetectedLine, RecognizedText, RecognizerOffer
from pagemill.rest.app import create_app
from pagemill.rest.jobs import JobFile, JobTable
from pagemill.rest.settings import ServeSettings
from pagemill.runtime import engines

WIDTH, HEIGHT = 240, 320
BOX = (20.0, 40.0, 220.0, 80.0)
"""Of the one region that each page has."""
_PATIENCE_S = 60.0
_THREADS = 8
"""More than pages ever wait at once: each that waits holds one."""


def page_file(shade: int) -> bytes:
    """A page of one grey, which says what is read on it: see :meth:`ScriptedEngines.recognize`."""
    stream = io.BytesIO()
    Image.fromarray(np.full((HEIGHT, WIDTH, 3), shade, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


class ScriptedEngines:
    """Layout engine, detector and recognizer in one. A test says how many pages may pass, and which fail."""

    name = "rapidocr"
    languages = frozenset({"en", "ko"})

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._allowed = math.inf
        self.broken: set[int] = set()
        """Shades of the pages that fail."""

    def allow(self, pages: float) -> None:
        """Let so many more pages pass; those after them wait."""
        with self._changed:
            self._allowed = pages
            self._changed.notify_all()

    def load(self, group: str, name: str) -> Any:
        """In place of the registry of engines."""
        if group == engines.TEXT_ENGINES:
            return lambda: [RecognizerOffer(name=self.name, languages=self.languages, create=lambda: self)]
        return (lambda: _Detector()) if group == engines.TEXT_DETECTORS else (lambda settings: _Layout(self))

    def wait(self, shade: int) -> None:
        """Wait until the page may pass.

        Raises:
            ValueError: It is one of those that fail.
        """
        with self._changed:
            assert self._changed.wait_for(lambda: self._allowed > 0, _PATIENCE_S)
            self._allowed -= 1
        if shade in self.broken:
            raise ValueError("the model lost its place")

    @property
    def max_batch(self) -> int:
        """One page at a time, so that the count is exact."""
        return 1

    def recognize(self, lines: Sequence[np.ndarray]) -> list[RecognizedText]:
        """The wheel, and the shade of each line."""
        return [RecognizedText(text=f"The wheel of mill {int(line[0, 0, 0])}", confidence=0.9) for line in lines]

    def close(self) -> None:
        """Nothing to free."""


class _Detector:
    name = "spotter"

    def detect(self, page: np.ndarray) -> list[DetectedLine]:
        x1, y1, x2, y2 = BOX
        return [DetectedLine(polygon=((x1, y1), (x2, y1), (x2, y2), (x1, y2)), score=1.0)]


class _Layout:
    name = "boxes"
    max_batch = 1

    def __init__(self, script: ScriptedEngines) -> None:
        self._script = script

    def detect(self, pages: Sequence[np.ndarray]) -> list[list[DetectedRegion]]:
        for page in pages:
            self._script.wait(int(page[0, 0, 0]))
        return [[DetectedRegion(box=BOX, label=Label.TEXT, score=0.9, source="boxes")] for _ in pages]

    def close(self) -> None: ...


@contextmanager
def scripted_engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEngines]:
    """Engines in place of the installed ones; at the end nothing waits."""
    script = ScriptedEngines()
    monkeypatch.setattr(engines, "load", script.load)
    monkeypatch.setattr(engines, "names", lambda group: [script.name])
    yield script
    script.allow(math.inf)


@contextmanager
def web_server(data: Path, **settings: Any) -> Iterator[str]:
    """A server for as long as the block lasts; its address."""
    chosen = ServeSettings(data=data, runtime=RuntimeSettings(threads=_THREADS, decoders=1), **settings)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(chosen), log_level="warning", timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        deadline = time.monotonic() + _PATIENCE_S
        while not server.started and thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(_PATIENCE_S)


def store_job(data: Path, name: str, pages: Sequence[PageResult], *, owner: str = "") -> str:
    """Put a finished job with these pages of one document into the data of a server that does not run; its id."""
    job = hashlib.sha256(name.encode()).hexdigest()[:20]
    folder = data / "jobs" / job
    (folder / "inputs").mkdir(parents=True)
    write_run(folder / "run", pages)
    table = JobTable(data / "jobs.sqlite")
    row = table.create(
        id=job,
        owner=owner,
        name=name,
        collection=None,
        options={},
        password=None,
        size=1,
        documents=[JobFile(number=1, name=name, file="0001.pdf")],
        idempotency=None,
    )
    counts = {"pages": len(pages), "ended": len(pages), "failed": 0, "size": 1}
    table.end(row, JobState.FINISHED, error=None, document_pages={"0001": len(pages)}, **counts)
    table.close()
    return job


def store_cancelled_jobs(data: Path, count: int) -> None:
    """Put jobs without pages into the data of a server that does not run."""
    table = JobTable(data / "jobs.sqlite")
    for number in range(count):
        row = table.create(
            id=f"{number:020x}",
            owner="",
            name=f"{number}.pdf",
            collection=None,
            options={},
            password=None,
            size=1,
            documents=[JobFile(number=1, name=f"{number}.pdf", file="0001.pdf")],
            idempotency=None,
        )
        table.end(row, JobState.CANCELLED, error=None, document_pages={}, pages=None, ended=0, failed=0, size=0)
    table.close()
