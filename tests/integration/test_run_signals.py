"""``pagemill run`` that is stopped or killed or loses its servers: what was done is kept, no process is left. Linux."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import urllib.request
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pagemill_process import PATIENCE_S, kill, wait_for
from run_pipeline import PAGES, Mill, draw_page
from serving_world import QUICK, until

from pagemill.app.run import PlannedStep, Step, StepRunner
from pagemill.errors import ExitCode, ServerError, WorkerCrashError
from pagemill.runtime.supervisor import SAME_REQUEST_S
from pagemill.serving.servers import ModelServers

pytest.importorskip("aiohttp")

if TYPE_CHECKING:
    from pagemill_process import PagemillProcess

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]

SLOW = "latency=400"
NEVER = "latency=600000"
MANY = 40
"""Pages that are not all in flight at once."""


def start_until(mill: Mill, step: Step, *arguments: str) -> PagemillProcess:
    """Start it and wait until a step is in flight."""
    run = mill.start(*mill.arguments(*arguments))
    wait_for(lambda: f"[{step}] pagemill" in mill.said or run.exit_code is not None, f"the step {step}")
    assert run.exit_code is None, mill.said
    return run


def asked(mill: Mill) -> set[str]:
    """What the server that runs was asked for, in the words of the stub server."""
    with urllib.request.urlopen(f"http://127.0.0.1:{mill.ports()[-1]}/counts", timeout=PATIENCE_S) as answer:
        return set(json.load(answer))


def assert_it_goes_on(mill: Mill, pages: int = PAGES) -> None:
    mill.words = ()
    assert mill.run() == ExitCode.OK, mill.said
    mill.assert_all_read(pages)
    assert np.load(mill.out / "embeddings" / "corpus_ocr_text.npy").shape == (pages, 8)


def test_a_signal_lets_pages_in_flight_end_and_stops_the_server(mill: Mill):
    for page in range(PAGES, MANY):
        draw_page(mill.scans / f"page-{page}.png", page)
    mill.words = (SLOW,)
    run = start_until(mill, Step.OCR, "--workers", "4")
    wait_for(mill.records, "a page")
    run.signal(signal.SIGTERM)
    assert run.wait() == ExitCode.INTERRUPTED, mill.said
    mill.assert_all_gone()
    done = mill.records()
    assert 0 < len(done) < MANY
    assert all(record["status"] == "done" for record in done)
    assert "[embed]" not in mill.said
    assert_it_goes_on(mill, MANY)


def test_a_second_signal_does_not_wait_for_answers(mill: Mill):
    mill.words = (NEVER,)
    run = start_until(mill, Step.OCR)
    wait_for(lambda: "requests" in asked(mill), "a request")  # without one the first signal ends it
    run.signal(signal.SIGTERM)
    wait_for(lambda: "Stopping" in mill.said, "the first signal to be heeded")
    assert run.exit_code is None
    time.sleep(SAME_REQUEST_S)  # what comes within that time was sent once
    run.signal(signal.SIGTERM)
    assert run.wait() == ExitCode.INTERRUPTED, mill.said
    mill.assert_all_gone()
    assert_it_goes_on(mill)


def test_a_signal_while_the_server_starts(mill: Mill):
    mill.words = ("hang",)
    run = mill.start(*mill.arguments())
    wait_for(mill.world.lives, "the server to begin")
    run.signal(signal.SIGINT)
    assert run.wait() == ExitCode.INTERRUPTED, mill.said
    mill.assert_all_gone()
    assert "[ocr]" not in mill.said
    assert "Traceback" not in mill.said


def test_a_signal_while_it_embeds(mill: Mill):
    assert mill.run(*mill.arguments("--step", "ocr")) == ExitCode.OK, mill.said
    mill.words = (NEVER,)
    run = start_until(mill, Step.EMBED)
    wait_for(lambda: "embeddings" in asked(mill), "a request")
    run.signal(signal.SIGTERM)
    assert run.wait() == ExitCode.INTERRUPTED, mill.said
    mill.assert_all_gone()
    assert_it_goes_on(mill)


@pytest.mark.parametrize("moment", ["start", "ocr"])
def test_sigkill_leaves_nothing_behind(mill: Mill, moment: str):
    mill.words = ("hang",) if moment == "start" else (NEVER,)  # a step waits longer for a server than this test for it
    run = mill.start(*mill.arguments())
    if moment == "start":
        wait_for(mill.world.lives, "the server to begin")
    else:
        wait_for(lambda: f"[{moment}] pagemill" in mill.said, f"the step {moment}")
        wait_for(lambda: asked(mill) & {"requests", "embeddings"}, "a request")
    kill([run.pid])
    run.wait_until_gone()
    mill.world.wait_until_gone()
    mill.assert_all_gone()
    assert_it_goes_on(mill)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of a step in this process are given up sooner."""
    monkeypatch.setitem(ModelServers.__init__.__kwdefaults__, "patience", QUICK)


def use_environment(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in mill.environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("impatient")
def test_servers_that_give_up_end_the_step_and_keep_what_was_done(mill: Mill, capfd, monkeypatch: pytest.MonkeyPatch):
    use_environment(mill, monkeypatch)
    mill.words = ("dies-after=7", "dies-again")
    spec = mill.world.spec(*mill.words, served_name="glm-ocr", command=lambda port: command_of(mill, port))
    step = PlannedStep(
        step=Step.OCR,
        arguments=("parse", str(mill.scans), "-o", str(mill.out), "--layout-engine", "fast", *READING),
        serving=SimpleNamespace(specs=(spec,)),
    )
    with pytest.raises(ServerError, match="died 4 times") as raised:
        asyncio.run(asyncio.wait_for(StepRunner([step], lambda text: None, mill.world.report).run(), 120))
    assert raised.value.remedy
    mill.world.wait_until_gone()
    assert all(record["status"] == "done" for record in mill.records())
    assert_it_goes_on(mill)


@pytest.mark.usefixtures("impatient")
def test_a_step_that_is_killed_is_reported_and_its_server_ended(mill: Mill, monkeypatch: pytest.MonkeyPatch):
    use_environment(mill, monkeypatch)
    mill.words = (NEVER,)
    spec = mill.world.spec(*mill.words, served_name="glm-ocr", command=lambda port: command_of(mill, port))
    step = PlannedStep(
        step=Step.OCR,
        arguments=("parse", str(mill.scans), "-o", str(mill.out), "--layout-engine", "fast", *READING),
        serving=SimpleNamespace(specs=(spec,)),
    )
    pipeline = StepRunner([step], lambda text: None, mill.world.report)

    async def kill_the_step() -> None:
        running = asyncio.create_task(pipeline.run())
        await until(lambda: pipeline._child, "the step to begin")
        assert pipeline._child is not None
        os.kill(pipeline._child.pid, signal.SIGKILL)
        await asyncio.wait_for(running, 60)

    with pytest.raises(WorkerCrashError, match="the step ocr died \\(SIGKILL\\)"):
        asyncio.run(kill_the_step())
    mill.world.wait_until_gone()


READING = ("--recognition-engine", "vlm", "--model", "glm-ocr", "--quiet")


def command_of(mill: Mill, port: int) -> list[str]:
    return [str(mill.world.program), "serve", "x", "--served-model-name", "glm-ocr", "--port", str(port)]
