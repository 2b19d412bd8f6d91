"""The REST server is killed again and again under a load of uploads and jobs: what it acknowledged finishes, once."""

import json
import os
import random
import sqlite3
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from coded_pages import CorpusMaker
from pagemill_process import OPTIONS, PATIENCE_S, PagemillProcess, Target, wait_for
from run_contents import VOLATILE
from serving_world import own_ports

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NO_REUSE = httpx.Limits(max_keepalive_connections=0)  # servers are killed between two requests
# One for all: httpx.get() reads the CA certificates anew, which takes 20 ms.
HTTP = httpx.Client(limits=NO_REUSE)
KILLS = 100 if os.environ.get("PAGEMILL_TEST_LARGE") else 8
CLIENTS = 3
WORKER_KILLS = 2
"""Of one server: a worker that is killed more often is taken for killed by its pages."""
JOB_FILES = (1, 2, 5)


class ServerProcess:
    """``pagemill serve`` over one data folder, which can be killed and started again at the same port."""

    def __init__(self, folder: Path, surroundings: dict[str, str]) -> None:
        self.port = own_ports()
        self.data = folder / "data"
        self._log = folder / "serve.log"
        self._surroundings = surroundings
        self.process: PagemillProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        options = [each for each in OPTIONS if each != "--quiet"]
        arguments = ["serve", "--port", self.port, "--data", self.data, "--threads", 2, "--decoders", 1, *options]
        self.process = PagemillProcess(arguments, self._surroundings, self._log)

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.exit_code is None, self._log.read_text()[-3000:]
        with suppress(httpx.TransportError):
            return HTTP.get(f"{self.url}/readyz", timeout=2).status_code == 200
        return False

    def kill(self, target: Target) -> None:
        assert self.process is not None
        self.process.kill(target)
        if target is not Target.WORKER:
            self.process.wait_until_gone()

    def clear(self) -> None:
        if self.process is not None:
            self.process.clear()


@dataclass
class Load:
    """Clients that send jobs until they are told to stop; each job is sent again until it is acknowledged."""

    url: str
    files: list[Path]
    acknowledged: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By idempotency key: the id, and which files it has."""
    problems: list[str] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)

    def run(self, number: int) -> None:
        dice, sent = random.Random(number), 0
        while not self.enough.is_set():
            key, count = f"{number}-{sent}", dice.choice(JOB_FILES)
            files = [("files", (path.name, path.read_bytes())) for path in self.files[:count]]
            while not self.enough.is_set():
                try:
                    answer = HTTP.post(f"{self.url}/v1/jobs", files=files, headers={"Idempotency-Key": key}, timeout=10)
                except httpx.TransportError:
                    time.sleep(0.02)
                    continue
                if answer.status_code == 202:
                    self.acknowledged[key] = answer.json()["id"], count
                    break
                if answer.status_code not in (429, 503):
                    self.problems.append(answer.text)
                time.sleep(0.1)
            sent += 1


def records_of(url: str, id: str) -> list[dict]:
    """All records of a job but what may differ between two runs."""
    pages = HTTP.get(f"{url}/v1/jobs/{id}/pages?limit=500", timeout=PATIENCE_S).json()["pages"]
    found = [HTTP.get(f"{url}/v1/jobs/{id}/pages/{page['n']}", timeout=PATIENCE_S).json() for page in pages]
    return [{key: value for key, value in record.items() if key not in VOLATILE} for record in found]


def finished(url: str, id: str) -> dict:
    """A job when it has ended."""
    jobs: list[dict] = []

    def is_ended() -> bool:
        jobs.append(HTTP.get(f"{url}/v1/jobs/{id}?wait=30", timeout=60).json())
        return jobs[-1]["finished"] is not None

    wait_for(is_ended, f"job {id} to end")
    return jobs[-1]


def test_what_was_acknowledged_finishes_once_however_often_the_server_is_killed(tmp_path, surroundings):
    maker = CorpusMaker(tmp_path)
    maker.images(2)
    maker.pdf(8)
    maker.images(2)
    files = list(maker.corpus().paths)
    server = ServerProcess(tmp_path, surroundings)
    load, dice = Load(server.url, files), random.Random(7)
    clients = [threading.Thread(target=load.run, args=(number,)) for number in range(CLIENTS)]
    try:
        server.start()
        for client in clients:
            client.start()
        workers = 0
        for _ in range(KILLS):
            if dice.random() < 0.8:  # else also while it starts
                wait_for(server.is_ready, "the server to start")
            time.sleep(dice.uniform(0, 0.7))
            target = dice.choice(list(Target))
            if target is Target.WORKER and workers < WORKER_KILLS:
                workers += 1
                server.kill(Target.WORKER)
                continue
            server.kill(Target.GROUP if target is Target.WORKER else target)
            workers = 0
            server.start()
        load.enough.set()
        for client in clients:
            client.join(60)
        wait_for(server.is_ready, "the server to start")
        assert load.problems == []
        assert len(load.acknowledged) >= KILLS / 4
        expected: dict[int, list[dict]] = {}
        for count in JOB_FILES:  # by the server as it is now, which nothing happens to any more
            content = [("files", (path.name, path.read_bytes())) for path in files[:count]]
            id = HTTP.post(f"{server.url}/v1/jobs", files=content, timeout=PATIENCE_S).json()["id"]
            assert finished(server.url, id)["state"] == "finished"
            expected[count] = records_of(server.url, id)
        for id, count in load.acknowledged.values():
            job = finished(server.url, id)
            assert (job["state"], job["pages"]["failed"]) == ("finished", 0), json.dumps(job)
            assert records_of(server.url, id) == expected[count]
            lines = (server.data / "jobs" / id / "run" / "ocr_results.jsonl").read_text().splitlines()
            assert len(lines) == len(expected[count])
        # What was accepted without the client's knowing is at most one job for each key, and nothing else is there.
        with sqlite3.connect(server.data / "jobs.sqlite") as table:
            ids = {id for (id,) in table.execute("SELECT id FROM jobs")}
            keys = [key for (key,) in table.execute("SELECT idempotency FROM jobs WHERE idempotency IS NOT NULL")]
        assert len(keys) == len(set(keys)) <= len(load.acknowledged) + CLIENTS
        assert {path.name for path in (server.data / "jobs").iterdir()} == ids
    finally:
        load.enough.set()
        server.clear()
