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
import os
import statistics
import tempfile
import time
import zlib
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crops import BOXES, sample_page
from glmocr_process import glmocr_process
from host_path_sides import GLMOCR, child_process, install_layout_engine
from pagemill.config.machine import available_cores
from pagemill.imaging.decode import decode_image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from host_path_sides import Ask

DISTINCT = 8
WARM_UP = 4


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
    options = parser.parse_args()
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
