"""Compares the four schedules: wall time, first page, memory, how busy the scarce device is.

First with a simulated device: layout and recognition share one lock, and a microbatch costs a fixed time and a little
more for each page; rendering costs its own time on workers of its own. The pages carry nothing, so that what pagemill
itself costs shows. Then, with ``--pdf``, the same with a PDF and the embedded CPU engines, by ``pagemill profile``.

The bound of a run is what its busiest resource needs: the busy time of the device; with the CPU engines the CPU time of
all processes by the number of cores.

    python benchmarks/schedules.py
    python benchmarks/schedules.py --pages 250 --slow 12 --failing 7
    python benchmarks/schedules.py --pdf samples/report-scan.pdf --pages 25
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pypdfium2 as pdfium

from pagemill import tracing
from pagemill.config.machine import RuntimeSettings
from pagemill.config.modes import ScheduleMode
from pagemill.document.page import Status
from pagemill.errors import CorruptInputError
from pagemill.imaging.page import DecodedPage
from pagemill.parsing.page import ParsedPage
from pagemill.recognition.reader import ReadPage
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.runtime.threads import ComputeThreads
from pagemill.sources import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion
    from pagemill.sources.base import EncodedImage, PdfPage

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c6360000000020001e221bc330000000049454e44ae426082"
)
MAX_BATCH = 8


class Device:
    """One at a time: a microbatch takes a fixed time and some more for each page."""

    def __init__(self) -> None:
        self.busy = 0.0
        self._lock = threading.Lock()

    def compute(self, fixed_s: float, each_s: float, pages: int) -> None:
        """Hold the device as long as it takes."""
        with self._lock:
            begun = time.perf_counter()
            time.sleep(fixed_s + each_s * pages)
            self.busy += time.perf_counter() - begun


class Simulated(Services):
    """Layout and recognition on one device, rendering beside it."""

    def __init__(self, runtime: RuntimeSettings, options: argparse.Namespace) -> None:
        super().__init__(runtime=runtime)
        self.device = Device()
        self._options = options
        self._renderers = asyncio.Semaphore(2)
        self._waiting = ComputeThreads(2, name="device")
        self._layout_calls = self._batcher("layout", options.layout_ms, options.layout_page_ms, [])
        self._reading_calls = self._batcher("recognition", options.reading_ms, options.reading_page_ms, ReadPage([]))

    def _batcher(self, name: str, fixed_ms: float, each_ms: float, answer: Any) -> MicroBatcher[int, Any]:
        def call(items: Sequence[int]) -> list[Any]:
            self.device.compute(fixed_ms / 1000, each_ms / 1000, len(items))
            return [answer] * len(items)

        return MicroBatcher(call, name=name, threads=self._waiting, max_batch=MAX_BATCH, concurrency=1)

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Render for a while; blank pixels."""
        number = int(tracing.PAGE.get().rsplit("_", 1)[0].rsplit("-", 1)[-1] or 0)
        slow = 20 if number == self._options.slow else 1
        async with self._renderers:
            await asyncio.sleep(slow * self._options.render_ms / 1000)
        if number == self._options.failing:
            raise CorruptInputError("this page fails")
        return DecodedPage(pixels=np.full((64, 48, 3), 255, np.uint8))

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        """Nothing, at the cost of a microbatch."""
        found: list[DetectedRegion] = await self._layout_calls.submit(0)
        return found

    async def read(self, pixels: Pixels, languages: Sequence[str] | None, *, bends: bool = False) -> ReadPage:
        """Nothing, at the cost of a microbatch."""
        read: ReadPage = await self._reading_calls.submit(0)
        return read


async def simulate(mode: ScheduleMode, options: argparse.Namespace) -> tuple[float, float, float, int]:
    """Wall, first page, share of the time in which the device is busy, failed pages."""
    runtime = RuntimeSettings(schedule=mode, pages_in_flight=options.in_flight)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.pages + 1):
            comment = number.to_bytes(4, "big")  # beyond the image's end: the files differ
            Path(folder, f"page-{number:05d}.png").write_bytes(PNG + comment)
        simulated = Simulated(runtime, options)
        async with Pipeline(simulated) as pipeline:
            begun = time.perf_counter()
            first, failed = 0.0, 0
            async with aclosing(pipeline.stream([folder], SourceOptions(), max_attempts=1)) as pages:
                async for page in pages:
                    first = first or time.perf_counter() - begun
                    failed += isinstance(page, ParsedPage) and page.record.status is Status.FAILED
            wall = time.perf_counter() - begun
    return wall, first, simulated.device.busy / wall, failed


def profiled(mode: ScheduleMode, pdf: Path, in_flight: int) -> dict[str, Any]:
    """``pagemill profile`` of a PDF in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pagemill", "profile", str(pdf), "--no-free", "--json", "-o", folder]
        command += ["--schedule", mode, *(["--pages-in-flight", str(in_flight)] if mode is ScheduleMode.STAGED else [])]
        ended = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    figures: dict[str, Any] = json.loads(ended.stdout)
    return figures


def long_pdf(source: Path, pages: int, target: Path) -> Path:
    """A PDF with the pages of another, over and over."""
    with pdfium.PdfDocument(source) as given, pdfium.PdfDocument.new() as made:
        made.import_pages(given, [number % len(given) for number in range(pages)])
        made.save(target)
    return target


def main() -> None:
    """Measure the schedules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=25)
    parser.add_argument("--pdf", type=Path, help="measure the CPU engines on this PDF")
    parser.add_argument("--in-flight", type=int, default=24, help="pages in flight; of a batch, with staged")
    parser.add_argument("--render-ms", type=float, default=40)
    parser.add_argument("--layout-ms", type=float, default=40, help="of a microbatch")
    parser.add_argument("--layout-page-ms", type=float, default=5)
    parser.add_argument("--reading-ms", type=float, default=60, help="of a microbatch")
    parser.add_argument("--reading-page-ms", type=float, default=30)
    parser.add_argument("--slow", type=int, default=0, metavar="PAGE", help="takes 20 times as long to render")
    parser.add_argument("--failing", type=int, default=0, metavar="PAGE", help="fails")
    options = parser.parse_args()
    if options.pdf is None:
        print(f"{'schedule':18}{'wall s':>9}{'pages/s':>9}{'first s':>9}{'device busy':>13}{'failed':>8}")
        for mode in ScheduleMode:
            wall, first, busy, failed = asyncio.run(simulate(mode, options))
            print(f"{mode:18}{wall:9.2f}{options.pages / wall:9.2f}{first:9.2f}{busy:13.1%}{failed:8}")
        return
    with tempfile.TemporaryDirectory() as folder:
        pdf = long_pdf(options.pdf, options.pages, Path(folder, "pages.pdf"))
        print(f"{'schedule':18}{'wall s':>9}{'bound s':>9}{'wall/bound':>11}{'first s':>9}{'MiB':>7}{'overlap':>9}")
        for mode in ScheduleMode:
            figures = profiled(mode, pdf, options.pages)
            cores = next(each for each in figures["resources"] if each["name"] == "CPU cores")
            bound = cores["busy_s"] / cores["workers"]
            overlap = sum(each["concurrency"] for each in figures["stages"])
            wall = figures["wall_s"]
            print(
                f"{mode:18}{wall:9.2f}{bound:9.2f}{wall / bound:11.2f}{figures['first_page_s']:9.2f}"
                f"{figures['peak_memory_mib']:7.0f}{overlap:9.2f}"
            )


if __name__ == "__main__":
    main()
