"""The processes of ``host_path.py``: the stub without a model, pagemill's pipeline in front of it, and glmocr's.

Each is spoken to with a line of JSON each way. The two sides are first told of the stub, then given files to read.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crops import BOXES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion

Ask = Callable[[Any], Any]
MODEL = "glm-ocr"
LAYOUT_ENGINE = "fixed-boxes"
SAMPLE_S = 0.004


@contextmanager
def child_process(role: str, **environment: str) -> Iterator[Ask]:
    """This program in another role: a process that is spoken to with a line of JSON each way."""
    command = [sys.executable, __file__, role]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(question: Any) -> Any:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("answer:"):  # packages may print as well
                    return json.loads(line.removeprefix("answer:"))
            raise SystemExit(f"{role} ended with status {process.wait()}")

        yield ask
        process.stdin.close()  # it ends by itself


# ---- the stub -------------------------------------------------------------------------------------------------------


async def serve_stub() -> None:
    """Be the server. A question sets the latency and gives what was in flight since the last one."""
    from pagemill_bench.testing.stub_server import StubServer, StubSettings

    async with StubServer(StubSettings(model=MODEL)) as stub:
        samples: list[tuple[float, int, int]] = []

        async def watch() -> None:
            while True:
                samples.append((time.perf_counter(), stub.in_flight, stub.counts["requests"]))
                await asyncio.sleep(SAMPLE_S)

        watching = asyncio.create_task(watch())
        limit = 0
        cpu_s = time.process_time()
        async with aclosing(questions()) as asked:
            async for question in asked:
                answer(
                    url=stub.url,
                    mean=mean_in_flight(samples),
                    once_full=mean_in_flight(samples, full=limit),
                    most=stub.counts.pop("max_in_flight", 0),
                    cpu_s=time.process_time() - cpu_s,
                )
                samples.clear()
                cpu_s = time.process_time()
                if "latency_ms" in question:
                    stub.settings = StubSettings(model=MODEL, latency_ms=question["latency_ms"])
                    limit = question["in_flight"]
        watching.cancel()


def mean_in_flight(samples: Sequence[tuple[float, int, int]], *, full: int = 0) -> float | None:
    """Mean in flight from the arrival of the first request to that of the last.

    Args:
        samples: Time, in flight, requests so far.
        full: Begin when so many are in flight.

    Returns:
        None if there never were so many, or nothing was sampled.
    """
    if not samples:
        return None
    first, last = samples[0][2], samples[-1][2]
    within = [(after[0] - now[0], now[1]) for now, after in itertools.pairwise(samples) if first < now[2] < last]
    within = list(itertools.dropwhile(lambda sample: sample[1] < full, within))
    seconds = sum(duration for duration, _ in within)
    return sum(duration * in_flight for duration, in_flight in within) / seconds if seconds else None


# ---- our side -------------------------------------------------------------------------------------------------------


async def parse_pages() -> None:
    """Be pagemill: its pipeline with regions read by a server, and the layout of :func:`create_layout`."""
    from pagemill.config.recognition import RecognitionSettings
    from pagemill.config.settings import LayoutChoice, ParseSettings
    from pagemill.parsing.page import ParsedPage
    from pagemill.runtime.pipeline import Pipeline
    from pagemill.runtime.services import Services
    from pagemill.sources import SourceOptions

    async with aclosing(questions()) as asked:
        told = await anext(asked)
        answer()
        recognition = RecognitionSettings(
            engine="vlm", model=MODEL, servers=(told["url"],), served_model=MODEL, workers=told["in_flight"]
        )
        settings = ParseSettings(recognition=recognition, text_layer=recognition.text_layer, crops=False)
        async with Pipeline(Services(settings, layout=LayoutChoice(engine=LAYOUT_ENGINE))) as pipeline:
            await pipeline.prepare()
            async for question in asked:
                files = [Path(file) for file in question["files"]]
                start, spent, read = time.perf_counter(), cpu_seconds(), 0
                async with aclosing(pipeline.stream(files, SourceOptions())) as pages:
                    async for page in pages:
                        assert isinstance(page, ParsedPage)
                        if page.record.errors:
                            print(page.record.errors, file=sys.stderr)
                        read += sum(bool(region.content) for region in page.record.regions)
                answer(
                    read=read,
                    seconds=time.perf_counter() - start,
                    cpu_s=cpu_seconds() - spent,
                    peak_mib=peak_mib(),
                )


class FixedBoxes:
    """A layout engine that gives every page the same eight regions of text."""

    name = LAYOUT_ENGINE
    max_batch = 1

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """The boxes, in pixels of each page."""
        from pagemill.document.labels import Label
        from pagemill.layout.base import DetectedRegion

        return [
            [
                DetectedRegion(
                    box=(
                        left * page.shape[1] / 1000,
                        top * page.shape[0] / 1000,
                        right * page.shape[1] / 1000,
                        bottom * page.shape[0] / 1000,
                    ),
                    label=Label.TEXT,
                    score=0.9,
                    source=LAYOUT_ENGINE,
                    order=order,
                )
                for order, (left, top, right, bottom) in enumerate(BOXES)
            ]
            for page in pages
        ]

    def close(self) -> None:
        """Nothing to free."""


def create_layout(settings: object) -> FixedBoxes:
    """Make the engine; the entry point."""
    return FixedBoxes()


def install_layout_engine(folder: Path) -> Path:
    """Lay the engine's entry point out as pip does; the folder is for ``PYTHONPATH``."""
    about = folder / "fixed_boxes-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-boxes\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(
        f"[pagemill.layout_engines]\n{LAYOUT_ENGINE} = {Path(__file__).stem}:create_layout\n", encoding="utf-8"
    )
    return folder


async def questions() -> AsyncGenerator[Any]:
    """The lines of standard input, from JSON."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield json.loads(line)


def answer(**values: Any) -> None:
    """Print an answer."""
    print("answer:" + json.dumps(values), flush=True)


def cpu_seconds() -> float:
    """CPU time of this process and of its children that ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def peak_mib() -> float:
    """Peak resident memory of this process (Linux), its start as a copy of another one left out."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


# ---- glmocr ---------------------------------------------------------------------------------------------------------

GLMOCR = """
import resource, sys, time
from pathlib import Path

for package in ("torch", "transformers"):  # no layout model runs: they would only take memory
    sys.modules[package] = None

from glmocr.config import load_config
from glmocr.layout.base import BaseLayoutDetector
from glmocr.pipeline import Pipeline

class FixedBoxes(BaseLayoutDetector):
    batch_size = 1
    boxes = ()

    def process(self, images, save_visualization=False, global_start_idx=0, use_polygon=False):
        found = {"label": "text", "score": 0.9, "task_type": "text"}
        return [[{**found, "index": i, "bbox_2d": list(box)} for i, box in enumerate(self.boxes)] for _ in images], {}

    def start(self): ...
    def stop(self): ...

def cpu_seconds():
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)

config = load_config().pipeline
pipeline = None

def answer(question):
    global pipeline
    if "url" in question:
        config.ocr_api.api_url = question["url"] + "/v1/chat/completions"
        config.max_workers = question["in_flight"]
        FixedBoxes.boxes = question["boxes"]
        pipeline = Pipeline(config, layout_detector=FixedBoxes(config.layout))
        return pipeline.start()
    content = [{"type": "image_url", "image_url": {"url": file}} for file in question["files"]]
    start, spent, read = time.perf_counter(), cpu_seconds(), 0
    for result in pipeline.process({"messages": [{"role": "user", "content": content}]}):
        read += sum(bool(region["content"]) for page in result.raw_json_result for region in page)
    seconds, spent = time.perf_counter() - start, cpu_seconds() - spent
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    return {"read": read, "seconds": seconds, "cpu_s": spent, "peak_mib": peak}
"""


if __name__ == "__main__":
    asyncio.run({"stub": serve_stub, "pagemill": parse_pages}[sys.argv[1]]())
