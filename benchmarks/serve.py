"""The REST server under load: latency, many clients, fairness between jobs, memory over thousands of jobs.

Four measurements, each of a ``pagemill serve`` of its own with the embedded engines:

- latency: a one-page PDF with a text layer, from the request to the Markdown, on an idle server; and the same page with
  ``pagemill.parse`` in a warm process, in turns.
- load: ``--clients`` clients send small PDFs for ``--seconds``, and come back after a 429. Errors other than 429 are
  counted; so are jobs that do not finish.
- fairness: a job of three pages on an idle server, then during a job of ``--large`` pages.
- memory: memory (PSS) of all processes of the server after every ``--few`` of ``--many`` jobs, for ``--seconds`` at
  most, and its CPU time for each job. ``--engine`` passes options to the server, such as a layout engine that costs
  nothing: then it is the server that is measured. Old jobs are removed meanwhile with ``--keep-gib``.

    python benchmarks/serve.py --json serve.json
    python benchmarks/serve.py --only latency fairness --large 100
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import multiprocessing
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pikepdf
import psutil

PARTS = ("latency", "load", "fairness", "memory")
_PATIENCE_S = 600.0


def pdf_of(source: Path, pages: int) -> bytes:
    """A PDF of so many pages: those of another one, over and over."""
    file = io.BytesIO()
    with pikepdf.open(source) as given, pikepdf.new() as made:
        for number in range(pages):
            made.pages.append(given.pages[number % len(given.pages)])
        made.save(file)
    return file.getvalue()


class Serving:
    """A server process."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "pagemill", "serve", "--port", str(port), "--data", str(folder / "data")]
        with (folder / "serve.log").open("wb") as log:
            self.process = subprocess.Popen([*command, *options], stdout=log, stderr=log)
        end = time.monotonic() + _PATIENCE_S
        while not self._is_ready():
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit((folder / "serve.log").read_text())
            time.sleep(0.1)

    def processes(self) -> list[psutil.Process]:
        """The parent, the process that serves and parses, and its decoding processes."""
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def pss_mib(self) -> float:
        """Memory of all processes; what several share counts once."""
        return float(sum(each.memory_full_info().pss for each in self.processes()) / 2**20)

    def cpu_s(self) -> float:
        """CPU time of all processes."""
        times = [each.cpu_times() for each in self.processes()]
        return sum(each.user + each.system for each in times)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def serving(*options: str) -> Iterator[Serving]:
    """A server with these options, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="pagemill-serve-") as folder:
        server = Serving(Path(folder), list(options))
        try:
            yield server
        finally:
            server.process.terminate()
            server.process.wait(60)


async def send(client: httpx.AsyncClient, content: bytes, counts: Counter[str] | None = None) -> str:
    """Send a job, again and again while the queue is full; its id."""
    while True:
        answer = await client.post("/v1/jobs", files=[("files", ("page.pdf", content))])
        if counts is not None:
            counts[str(answer.status_code)] += 1
        if answer.status_code != 429:
            return str(answer.raise_for_status().json()["id"])
        await asyncio.sleep(float(answer.headers["retry-after"]))


async def ended(client: httpx.AsyncClient, id: str) -> dict[str, Any]:
    """A job when it has ended."""
    while True:
        job: dict[str, Any] = (await client.get(f"/v1/jobs/{id}?wait=60")).raise_for_status().json()
        if job["finished"] is not None:
            return job


async def seconds_of(client: httpx.AsyncClient, content: bytes) -> float:
    """From the request to the Markdown."""
    start = time.perf_counter()
    job = await ended(client, await send(client, content))
    assert job["state"] == "finished", job
    (await client.get(f"/v1/jobs/{job['id']}/documents/0001.md")).raise_for_status()
    return time.perf_counter() - start


def parse_in_process(orders: Any, answers: Any) -> None:
    """Parse what comes, in a process of its own, and answer with the seconds."""
    import pagemill

    while (content := orders.get()) is not None:
        start = time.perf_counter()
        pagemill.parse(content).markdown  # noqa: B018 - it is made when it is asked for
        answers.put(time.perf_counter() - start)


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of the values is."""
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def figures(values: list[float]) -> dict[str, float]:
    """Of seconds."""
    return {"n": len(values), "p50": round(percentile(values, 0.5), 3), "p95": round(percentile(values, 0.95), 3)}


async def latency(arguments: argparse.Namespace) -> dict[str, Any]:
    """One page on an idle server, and in process, in turns."""
    page = pdf_of(arguments.pdf, 1)
    context = multiprocessing.get_context("spawn")
    orders, answers = context.Queue(), context.Queue()
    other = context.Process(target=parse_in_process, args=(orders, answers))
    other.start()
    served: list[float] = []
    parsed: list[float] = []
    with serving() as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=_PATIENCE_S) as client:
            for number in range(arguments.rounds + 2):
                orders.put(page)
                seconds = await asyncio.to_thread(answers.get)
                if number >= 2:  # the first load models
                    parsed.append(seconds)
                seconds = await seconds_of(client, page)
                if number >= 2:
                    served.append(seconds)
    orders.put(None)
    other.join()
    found = {"server": figures(served), "in_process": figures(parsed)}
    return found | {"p95_ratio": round(found["server"]["p95"] / found["in_process"]["p95"], 3)}


async def load(arguments: argparse.Namespace) -> dict[str, Any]:
    """Many clients at once."""
    page = pdf_of(arguments.pdf, 1)
    counts: Counter[str] = Counter()
    states: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    taken: list[float] = []
    with serving("--max-queued", str(arguments.clients // 2), *arguments.engine) as server:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=server.url, timeout=_PATIENCE_S, limits=limits) as client:
            end = time.monotonic() + arguments.seconds

            async def one() -> None:
                while time.monotonic() < end:
                    start = time.perf_counter()
                    try:
                        job = await ended(client, await send(client, page, counts))
                    except httpx.HTTPError as error:
                        errors[repr(error)] += 1
                        continue
                    states[job["state"]] += 1
                    taken.append(time.perf_counter() - start)

            start = time.monotonic()
            await asyncio.gather(*(one() for _ in range(arguments.clients)))
            seconds = time.monotonic() - start
    return {
        "clients": arguments.clients,
        "seconds": round(seconds),
        "answers_to_post": dict(counts),
        "jobs": dict(states),
        "errors": dict(errors),
        "jobs_per_second": round(len(taken) / seconds, 2),
        "job_seconds": figures(taken),
    }


async def fairness(arguments: argparse.Namespace) -> dict[str, Any]:
    """A small job beside a large one."""
    small, large = pdf_of(arguments.pdf, 3), pdf_of(arguments.pdf, arguments.large)
    with serving() as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=_PATIENCE_S) as client:
            await seconds_of(client, small)
            alone = [await seconds_of(client, small) for _ in range(3)]
            id = await send(client, large)
            before = (await client.get(f"/v1/jobs/{id}")).json()
            while (before["pages"]["finished"] or 0) < min(20, arguments.large // 4):
                await asyncio.sleep(0.1)
                before = (await client.get(f"/v1/jobs/{id}")).json()
            beside: list[float] = []
            meanwhile: list[int] = []
            for _ in range(3):
                start = (await client.get(f"/v1/jobs/{id}")).json()["pages"]["finished"]
                beside.append(await seconds_of(client, small))
                after = (await client.get(f"/v1/jobs/{id}")).json()
                meanwhile.append(after["pages"]["finished"] - start)
                if after["finished"] is not None:
                    raise SystemExit("the large job has ended too soon: raise --large")
            await client.delete(f"/v1/jobs/{id}")
    return {
        "large_pages": arguments.large,
        "small_job_alone_s": round(statistics.median(alone), 2),
        "small_job_beside_s": round(statistics.median(beside), 2),
        "all_beside_s": [round(each, 2) for each in beside],
        "seconds_per_page_of_large": round(1 / before["pages_per_second"], 3),
        "pages_of_large_meanwhile": meanwhile,
    }


async def memory(arguments: argparse.Namespace) -> dict[str, Any]:
    """Memory as jobs come and go."""
    page = pdf_of(arguments.pdf, 1)
    samples: dict[int, float] = {}
    with serving(*arguments.engine) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=_PATIENCE_S) as client:
            await seconds_of(client, page)  # loads the models
            done, cpu, end = 0, server.cpu_s(), time.monotonic() + arguments.seconds

            async def one() -> None:
                nonlocal done
                while done < arguments.many and time.monotonic() < end:
                    done += 1
                    number = done
                    await seconds_of(client, page)
                    if number % arguments.few == 0:
                        samples[number] = round(await asyncio.to_thread(server.pss_mib), 1)
                        print(f"{number} jobs: {samples[number]} MiB", file=sys.stderr, flush=True)

            await asyncio.gather(*(one() for _ in range(8)))
            samples[done] = round(server.pss_mib(), 1)
            kept = len((await client.get("/v1/jobs?limit=500")).json()["jobs"])
            cpu = server.cpu_s() - cpu
    ratio = round(samples[max(samples)] / samples[min(samples)], 3)
    return {"pss_mib": samples, "ratio": ratio, "jobs_kept_up_to_500": kept, "cpu_ms_per_job": round(1000 * cpu / done)}


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pdf", type=Path, default=Path("samples/report.pdf"), help="with a text layer")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=30, help="pages of the latency measurement")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--large", type=int, default=1000, help="pages of the large job")
    parser.add_argument("--few", type=int, default=500, help="jobs")
    parser.add_argument("--many", type=int, default=5000, help="jobs")
    parser.add_argument("--engine", type=str.split, default=[], help="options of the server, in load and memory")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    measured = {"latency": latency, "load": load, "fairness": fairness, "memory": memory}
    found = {}
    for name in arguments.only:
        found[name] = asyncio.run(measured[name](arguments))
        print(json.dumps({name: found[name]}, indent=2), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
