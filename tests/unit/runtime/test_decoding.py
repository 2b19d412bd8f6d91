"""The time limits of the decoding service, with a process that a test plays."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from pagemill.computing.cpu_time import Limit, Work
from pagemill.errors import PageTimeoutError
from pagemill.imaging.page import PdfRepair
from pagemill.runtime import decoding
from pagemill.runtime.decoding import DecodingService


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
