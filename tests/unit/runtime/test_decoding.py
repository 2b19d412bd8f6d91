"""The decoding service: its time limits, with a process that a test plays; a process that is forked."""

import asyncio
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from pagemill.computing.cpu_time import Limit, Work
from pagemill.errors import PageTimeoutError
from pagemill.imaging.page import PdfRepair
from pagemill.runtime import decoding
from pagemill.runtime.decoding import DecodingService

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("computed", "is_over"), [(3600.0, False), (0.0, True)])
async def test_the_limit_counts_the_cpu_time_of_the_process_that_is_asked(
    monkeypatch: pytest.MonkeyPatch, computed: float, is_over: bool
):
    looked = threading.Event()  # at the time of a process that has computed; the other one is killed

    class Process:
        def __init__(self, command: object, memory: object) -> None:
            self.work = Work(lambda: computed)

        def receive(self) -> None: ...

        def ask(self, request: object) -> PdfRepair:
            looked.wait()
            return PdfRepair(program="", loops=False, announced=1)

        def retained_bytes(self) -> int:
            return 0

        def kill(self) -> None:
            looked.set()

    def left(limit: Limit) -> float:
        if limit._clock() > 100:  # more than the thread that waits
            looked.set()
            return 0.001
        return 0.0

    monkeypatch.setattr(decoding, "DecodingProcess", Process)
    monkeypatch.setattr(Limit, "left", left)
    async with DecodingService(workers=1, timeout_s=0.001) as service:
        with pytest.raises(PageTimeoutError, match=r"repairing a\.pdf") if is_over else nullcontext():
            assert (await service.repair_pdf(Path("a.pdf"), Path("b.pdf"))).announced == 1


@pytest.mark.parametrize(("computed", "most"), [(0.1, 1), (2.0, 3)])
async def test_further_processes_start_when_the_first_has_worked_for_a_while(
    monkeypatch: pytest.MonkeyPatch, computed: float, most: int
):
    processes = []

    class Process:
        def __init__(self, command: object, memory: object) -> None:
            self.work = Work(lambda: computed)
            processes.append(self)

        def receive(self) -> None: ...

        def ask(self, request: object) -> PdfRepair:
            return PdfRepair(program="", loops=False, announced=1)

        def retained_bytes(self) -> int:
            return 0

        def kill(self) -> None: ...

    monkeypatch.setattr(decoding, "DecodingProcess", Process)
    async with DecodingService(workers=3) as service:
        await service.repair_pdf(Path("a.pdf"), Path("b.pdf"))
        assert len(processes) == 1
        for _ in range(3):
            await asyncio.gather(*(service.repair_pdf(Path("a.pdf"), Path("b.pdf")) for _ in range(9)))
    assert len(processes) == most


@pytest.mark.skipif(sys.platform != "linux", reason="no other system forks its decoding processes")
def test_a_process_that_is_forked_ahead_answers_within_its_limits_and_holds_no_file_of_its_parent():
    script = """
import asyncio, os
from pathlib import Path
from pagemill.runtime import decoding

async def ask():
    async with decoding.DecodingService(workers=1) as service:
        info = await service.probe_pdf(Path("samples/report.pdf"))
        (process,) = service._idle
        fds = {os.readlink(fd) for fd in Path(f"/proc/{process.pid}/fd").iterdir()}
        limits = Path(f"/proc/{process.pid}/limits").read_text()
    print(info.page_count, forked.pid == process.pid, any("pyproject" in fd for fd in fds), str(2**31) in limits)

with open("pyproject.toml"):
    decoding.fork_ahead(2**31)
    (forked,) = decoding._ahead.values()
    asyncio.run(ask())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "2 True False True\n", done.stderr
