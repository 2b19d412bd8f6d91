"""The host path of recognition by a model on a server, beside the ``glmocr`` package's own pipeline.

Encoded page -> decoding -> eight fixed boxes -> crops -> HTTP to a stub without a model -> record: no model computes,
so what is left is the cost of feeding one. Both get the same files, boxes, server and limit of requests in flight, in
turn, each run in a fresh process that warms up first. The stub is a process of its own, whose CPU time is not counted;
it takes its share of the cores from both.

Prints pages a second, CPU time a page and requests in flight (most at once, and the mean as a share of the limit)
beside what decoding alone takes, the physical limit of them all: on one thread, and as a rate on all cores. The share
is given twice: from the arrival of the first request to that of the last, and the same without the time until the
limit was first reached, which tells whether the server is kept busy while work remains. Then the peak memory of a short
and of a long run.

    python benchmarks/host_path.py --glmocr-python glm/bin/python
    python benchmarks/host_path.py --kinds JPEG --latencies 200 --rounds 1 --no-memory
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.bench.crops import BOXES, sample_page
from pagemill.bench.glmocr_process import glmocr_process
from pagemill.config.settings import available_cores
from pagemill.imaging.decode import decode_image

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion

Ask = Callable[[Any], Any]
MODEL = "glm-ocr"
DISTINCT = 8
WARM_UP = 4
LAYOUT_ENGINE = "fixed-boxes"
SAMPLE_S = 0.004


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one side."""

    seconds: float
    cpu_s: float
    peak_mib: float
    in_flight_most: int
    in_flight_mean: float
    """From the arrival of the first request to that of the last."""
    in_flight_once_full: float | None
    """The same from when the limit was first reached; None if it never was."""
    stub_cpu_s: float


@contextmanager
def child_process(role: str, **environment: str) -> Iterator[Ask]:
    """This program in another role: a process that is spoken to with a line of JSON each way."""
    command = [sys.executable, __file__, "--child", role]
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glmocr-python", type=Path, help="of an environment with glmocr 0.1.5; else ours alone")
    parser.add_argument("--pages", type=int, default=64)
    parser.add_argument("--many", type=int, default=400, help="pages of the long run, for its memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=["JPEG", "PNG"], choices=["JPEG", "PNG"])
    parser.add_argument("--latencies", nargs="+", type=int, default=[0, 200, 1000], metavar="MS")
    parser.add_argument("--in-flight", type=int, default=64, help="most requests at once, for both")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--child", choices=["stub", "pagemill"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        asyncio.run(serve_stub() if options.child == "stub" else parse_pages())
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = ["pagemill", *(["glmocr"] if options.glmocr_python else [])]
        bench = Bench(folder, options.glmocr_python, options.in_flight)
        for kind in options.kinds:
            files = write_pages(folder / kind, kind, options.pages if options.no_memory else options.many)
            size = statistics.mean(file.stat().st_size for file in files) / 1e6
            for latency in options.latencies:
                runs: dict[str, list[Run]] = {side: [] for side in sides}
                decoding: list[float] = []
                for _ in range(options.rounds):
                    decoding.append(decoding_ms(files[:DISTINCT]))
                    for side in sides:
                        runs[side].append(bench.run(side, files[: options.pages], latency))
                print_case(f"{kind} of {size:.1f} MB", latency, options, runs, decoding)
            if not options.no_memory:
                peaks = {
                    side: [bench.run(side, files[:count], 200).peak_mib for count in (options.pages, options.many)]
                    for side in sides
                }
                print_memory(kind, (options.pages, options.many), peaks)


class Bench:
    """Runs a side over files in a process of its own, against a stub of its own."""

    def __init__(self, folder: Path, glmocr_python: Path | None, in_flight: int) -> None:
        self._in_flight = in_flight
        self._packages = install_layout_engine(folder / "packages")
        self._glmocr_python = glmocr_python

    def run(self, side: str, files: Sequence[Path], latency: int) -> Run:
        """Warm up, then measure.

        Raises:
            SystemExit: Regions were lost.
        """
        with child_process("stub") as ask_stub, self._side(side) as ask:
            url = ask_stub({"latency_ms": latency, "in_flight": self._in_flight})["url"]
            ask({"url": url, "in_flight": self._in_flight, "boxes": BOXES})
            ask({"files": [str(file) for file in files[:WARM_UP]]})
            ask_stub({})
            answer = ask({"files": [str(file) for file in files]})
            seen = ask_stub({})
        if answer["read"] != len(files) * len(BOXES):
            raise SystemExit(f"{side} read {answer['read']} of {len(files) * len(BOXES)} regions")
        return Run(
            seconds=answer["seconds"],
            cpu_s=answer["cpu_s"],
            peak_mib=answer["peak_mib"],
            in_flight_most=seen["most"],
            in_flight_mean=seen["mean"] or 0.0,
            in_flight_once_full=seen["once_full"],
            stub_cpu_s=seen["cpu_s"],
        )

    def _side(self, side: str) -> AbstractContextManager[Ask]:
        if side == "glmocr":
            assert self._glmocr_python is not None
            return glmocr_process(self._glmocr_python, GLMOCR)
        paths = [str(self._packages), str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
        return child_process("pagemill", PYTHONPATH=os.pathsep.join(filter(None, paths)))


def write_pages(folder: Path, kind: str, count: int) -> list[Path]:
    """Files of A4 pages at 300 dpi. A comment makes each a page of its own: pagemill knows pages by their content."""
    folder.mkdir()
    pages = [sample_page(seed, kind) for seed in range(min(count, DISTINCT))]
    files = []
    for number in range(count):
        page, text = pages[number % len(pages)], f"page {number}".encode()
        files.append(folder / f"{number:05}.{kind.lower()}")
        files[-1].write_bytes(with_comment(page, text, kind))
    return files


def with_comment(page: bytes, text: bytes, kind: str) -> bytes:
    """An image file with a comment in it."""
    if kind == "JPEG":
        return page[:2] + b"\xff\xfe" + (len(text) + 2).to_bytes(2, "big") + text + page[2:]
    body = b"tEXtComment\0" + text
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    after_header = 8 + 25
    return page[:after_header] + chunk + page[after_header:]


# ---- the stub -------------------------------------------------------------------------------------------------------


async def serve_stub() -> None:
    """Be the server. A question sets the latency and gives what was in flight since the last one."""
    from pagemill.bench.stub_server import StubServer, StubSettings

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
    from pagemill.config.settings import ParseSettings, RecognitionSettings
    from pagemill.parsing.page import ParsedPage
    from pagemill.runtime.pipeline import Pipeline
    from pagemill.sources import SourceOptions

    async with aclosing(questions()) as asked:
        told = await anext(asked)
        answer()
        recognition = RecognitionSettings(
            engine="vlm", model=MODEL, servers=(told["url"],), served_model=MODEL, workers=told["in_flight"]
        )
        settings = ParseSettings(recognition=recognition, text_layer=recognition.text_layer, crops=False)
        async with Pipeline(settings, layout_engine=LAYOUT_ENGINE) as pipeline:
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


# ---- what is printed ------------------------------------------------------------------------------------------------


def decoding_ms(files: Sequence[Path]) -> float:
    """CPU milliseconds a page of what no pipeline around our decoder can do without."""
    decode_image(files[0])
    start = time.thread_time()
    for file in files:
        decode_image(file)
    return (time.thread_time() - start) * 1000 / len(files)


def print_case(
    what: str, latency: int, options: argparse.Namespace, runs: dict[str, list[Run]], decoding: Sequence[float]
) -> None:
    """One table: a row a side, medians of its runs, and the median ratio of the rounds."""
    pages, limit = options.pages, options.in_flight
    print(f"\n{pages} pages, {what}, {latency:,} ms, {limit} in flight at most")
    print(
        f"{'':18}{'pages/s':>9}{'CPU ms a page':>15}{'most':>6}{'share':>7}{'once full':>11}"
        f"{'peak MiB':>10}{'stub ms':>9}"
    )
    for side, each in runs.items():
        rate = statistics.median(pages / run.seconds for run in each)
        cpu = statistics.median(run.cpu_s * 1000 / pages for run in each)
        mean = statistics.median(run.in_flight_mean for run in each)
        once_full = [run.in_flight_once_full for run in each if run.in_flight_once_full is not None]
        print(
            f"{side:18}{rate:9.1f}{cpu:15.1f}{max(run.in_flight_most for run in each):6}{mean / limit:7.0%}"
            f"{f'{statistics.median(once_full) / limit:.1%}' if once_full else '-':>11}"
            f"{max(run.peak_mib for run in each):10.0f}"
            f"{statistics.median(run.stub_cpu_s * 1000 / pages for run in each):9.1f}"
        )
    alone = statistics.median(decoding)
    print(f"{'decoding alone':18}{available_cores() * 1000 / alone:9.1f}{alone:15.1f}")
    if "glmocr" in runs:
        pairs = list(zip(runs["pagemill"], runs["glmocr"], strict=True))
        faster = statistics.median(theirs.seconds / ours.seconds for ours, theirs in pairs)
        cheaper = statistics.median(ours.cpu_s / theirs.cpu_s for ours, theirs in pairs)
        print(f"{faster:.2f} times glmocr's pages a second, {cheaper:.2f} of its CPU time", flush=True)


def print_memory(kind: str, counts: tuple[int, int], peaks: dict[str, list[float]]) -> None:
    """The peaks of a short and of a long run."""
    print(f"\n{kind}, 200 ms: peak memory in MiB")
    print(f"{'':10}" + "".join(f"{f'{count} pages':>12}" for count in counts) + f"{'ratio':>8}")
    for side, (few, many) in peaks.items():
        print(f"{side:10}{few:12.0f}{many:12.0f}{many / few:8.2f}")
    if "glmocr" in peaks:
        share = [ours / theirs for ours, theirs in zip(peaks["pagemill"], peaks["glmocr"], strict=True)]
        print(f"of glmocr's {share[0]:.2f} and {share[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
