"""A run on a Ray cluster of this machine, beside runs without Ray: the same records, faults, scaling, overhead.

``records``: real engines over ``--pages`` pages of mixed sources and the samples, once without Ray, once on a head and
three nodes; prints in what the records differ but for timings.

``faults``: fast engines; ``--workers`` workers, ``--nodes`` nodes and ``--drivers`` drivers are killed at random while
the run goes on, and one page ends each worker that parses it; prints what was lost, doubled or different.

``scaling``: a simulated device, which each worker asks for microbatches of four pages at ``--batch-s`` seconds; prints
pages a second of 1, 2, 4 and 8 workers, counted at the devices, and of a run without Ray.

``engines``: the real engines over drawn pages: two workers of one thread, and one process with two threads, in turn.

    python benchmarks/ray_cluster.py records --pages 300
    python benchmarks/ray_cluster.py faults --workers 30 --nodes 4 --drivers 3
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))

from coded_pages import Corpus, CorpusMaker
from fault_engines import BATCH_VARIABLE, CALLS_VARIABLE, Fault
from pagemill_process import OPTIONS, PagemillProcess, environment, install_engines
from ray_cluster_nodes import SmallCluster
from ray_drill import RayDrill
from run_contents import contents, differences

_MIDDLE = (0.2, 0.9)
"""Shares of the pages between which rates are measured."""
PAGE = (1240, 1754)
SAMPLES = Path(__file__).parents[1] / "samples"


def mixed(folder: Path, pages: int, faults: dict[int, Fault] | None = None) -> Corpus:
    """So many pages: three in five of a PDF, the others images, frames of a TIFF, rows of a dataset."""
    folder.mkdir()
    maker = CorpusMaker(folder, faults or {})
    maker.pdf(pages * 3 // 5)
    maker.images(pages // 10)
    maker.tiff(pages // 10)
    maker.parquet(pages - pages * 3 // 5 - 2 * (pages // 10))
    return maker.corpus()


def parse(arguments: Sequence[str | Path], variables: dict[str, str], log: Path) -> tuple[int, float]:
    """Run ``pagemill parse`` to its end: status and seconds."""
    start = time.monotonic()
    process = PagemillProcess(["parse", *arguments], variables, log)
    status = process.wait()
    process.wait_until_gone()
    return status, time.monotonic() - start


def compare_records(folder: Path, pages: int) -> None:
    """Print whether records of a cluster are those of one machine."""
    corpus = mixed(folder / "in", pages)
    inputs = [*corpus.paths, SAMPLES]
    variables = environment(folder)
    status, seconds = parse([*inputs, "-r", "-o", folder / "plain", "--quiet"], variables, folder / "log")
    print(f"without Ray: status {status}, {seconds:.0f} s", flush=True)
    with SmallCluster(3, variables) as cluster:
        more = ["--quiet", "--threads", "1", "--ray", cluster.address]
        status, seconds = parse([*inputs, "-r", "-o", folder / "ray", *more], variables, folder / "log")
    print(f"head and three nodes: status {status}, {seconds:.0f} s")
    found, expected = contents(folder / "ray"), contents(folder / "plain")
    print(f"{len(expected['records'])} records, {len(expected['crops'])} crops, {len(expected['documents'])} files")
    print("\n".join(differences(found, expected)) or "no difference but timings")


def drill(folder: Path, pages: int, workers: int, nodes: int, drivers: int, seed: int) -> None:
    """Print what a run keeps of its pages while its processes are killed."""
    corpus = mixed(folder / "in", pages, {pages // 3: Fault.SEGFAULT})
    packages = install_engines(folder / "packages")
    variables = environment(packages)
    parse([*corpus.paths, "-o", folder / "plain", *OPTIONS], variables, folder / "plain.log")
    variables[BATCH_VARIABLE] = "0.25"
    start = time.monotonic()
    with SmallCluster(3, variables) as cluster:
        command: list[str | Path] = [
            "parse",
            *corpus.paths,
            "-o",
            folder / "out",
            *OPTIONS,
            "--threads",
            "1",
            "--ray",
            cluster.address,
        ]
        done = RayDrill(cluster, command, variables, folder / "out", folder / "ray.log", pages=pages)
        status = done.go(workers=workers, nodes=nodes, drivers=drivers, seed=seed)
    print(f"killed {dict(done.killed)} in {time.monotonic() - start:.0f} s; status {status}")
    found, expected = contents(folder / "out"), contents(folder / "plain")
    failed = [page["page_id"] for page in found["records"] if page["status"] == "failed"]
    print(f"{len(found['records'])} of {pages} records, failed: {', '.join(failed)}")
    for line in differences(found, expected):
        print(line)
    verified = subprocess.run([sys.executable, "-m", "pagemill", "verify", folder / "out"], check=False)
    print(f"verify: status {verified.returncode}")


class Calls(NamedTuple):
    """What simulated devices did in a run."""

    rate: float
    """Pages a second without the start and the end of the run, which a long one does not notice."""
    whole: float
    """Pages a second from the first call to the last."""
    pages: float
    """Of a call, on average."""


def calls_of(arguments: Sequence[str | Path], variables: dict[str, str], folder: Path, devices: int) -> Calls:
    """Parse, and look at the calls of the simulated devices."""
    notes = folder / "calls"
    notes.mkdir()
    command = [*arguments, "-o", folder / "out", "--fresh"]
    if parse(command, variables | {CALLS_VARIABLE: str(notes)}, folder / "log")[0]:
        raise SystemExit((folder / "log").read_text())
    calls = [[tuple(map(float, line.split())) for line in file.read_text().splitlines()] for file in notes.iterdir()]
    shutil.rmtree(notes)
    if len(calls) != devices:
        raise SystemExit(f"{len(calls)} of {devices} devices were used")
    every = sorted(call for device in calls for call in device)
    done = list(itertools.accumulate(int(count) for _, count in every))
    first, last = (bisect.bisect_left(done, done[-1] * share) for share in _MIDDLE)
    return Calls(
        rate=(done[last] - done[first]) / (every[last][0] - every[first][0]),
        whole=(done[-1] - done[0]) / (every[-1][0] - every[0][0]),
        pages=done[-1] / len(every),
    )


def scale(folder: Path, pages: int, batch_s: float, counts: list[int]) -> None:
    """Print the rates of more and more workers with a simulated device each."""
    variables = environment(install_engines(folder / "packages")) | {BATCH_VARIABLE: str(batch_s)}
    more = [*OPTIONS, "--threads", "1", "--pages-in-flight", "48", "--no-report"]
    base = mixed(folder / "in-0", pages)
    alone = calls_of([*base.paths, *more], variables, folder, 1)
    print(f"without Ray: {alone.rate:.2f} pages/s, {alone.pages:.2f} pages a call", flush=True)
    first = 0.0
    for count in counts:
        corpus = mixed(folder / f"in-{count}", pages * count)
        with SmallCluster(1, variables | {CALLS_VARIABLE: str(folder / "calls")}, cpus=count) as cluster:
            words: list[str | Path] = [*corpus.paths, *more, "--ray", cluster.address, "--ray-workers", str(count)]
            calls = calls_of(words, variables, folder, count)
        first = first or calls.rate
        print(
            f"{count} workers: {calls.rate:.2f} pages/s, efficiency {calls.rate / first / count:.3f}; "
            f"{calls.whole:.2f} pages/s with start and end, {calls.pages:.2f} pages a call"
            + (f"; {calls.rate / alone.rate:.3f} of the rate without Ray" if count == 1 else ""),
            flush=True,
        )


def time_engines(folder: Path, pages: int, rounds: int) -> None:
    """Print the rates of two workers and of two threads with the real engines, in turn."""
    from PIL import Image

    from pagemill_bench.testing.drawn_pages import draw_page

    dice = random.Random(5)
    for name, count in (("few", pages // 3), ("many", pages)):
        (folder / name).mkdir()
        for number in range(count):
            Image.fromarray(draw_page(dice.randrange(10_000), PAGE)).save(folder / name / f"page-{number:04d}.jpg")

    def rate(*options: str) -> float:
        """Pages a second of a run beyond what a shorter one takes: without start and end."""
        seconds = {}
        for name in ("few", "many"):
            words: list[str | Path] = [
                folder / name,
                "--quiet",
                "--no-report",
                "-o",
                folder / "out",
                "--fresh",
                *options,
            ]
            status, seconds[name] = parse(words, variables, folder / "log")
            if status not in (0, 3):  # some of the scripts that are drawn have no engine here
                raise SystemExit(f"status {status}: {(folder / 'log').read_text()}")
        return (pages - pages // 3) / (seconds["many"] - seconds["few"])

    variables = environment(folder)
    for _ in range(rounds):
        plain = rate("--threads", "2")
        with SmallCluster(1, variables, cpus=2) as cluster:
            ray = rate("--threads", "1", "--ray", cluster.address)
        print(f"two threads: {plain:.2f} pages/s; two workers: {ray:.2f} pages/s, {ray / plain:.3f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["records", "faults", "scaling", "engines"])
    parser.add_argument("--pages", type=int, default=300, help="with scaling: for each worker")
    parser.add_argument("--workers", type=int, default=30)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--drivers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch-s", type=float, default=1.6)
    parser.add_argument("--counts", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "records":
            compare_records(folder, given.pages)
        elif given.what == "faults":
            drill(folder, given.pages, given.workers, given.nodes, given.drivers, given.seed)
        elif given.what == "scaling":
            scale(folder, given.pages, given.batch_s, given.counts)
        else:
            time_engines(folder, given.pages, given.rounds)


if __name__ == "__main__":
    main()
