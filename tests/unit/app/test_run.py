"""The steps of the pipeline, as far as they need no process."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn

import pytest

from pagemill.app.run import Done, PlannedStep, Step, StepRunner
from pagemill.errors import ExitCode, OutputError

PATIENCE_S = 30


class NoServers:
    """Servers that are not to be started."""

    @property
    def specs(self) -> NoReturn:
        raise AssertionError("servers are started")


def served(step: Step, done: Callable[[], Awaitable[Done | None]]) -> PlannedStep:
    return PlannedStep(step=step, arguments=("parse",), serving=NoServers(), done=done)  # type: ignore[arg-type]


def run(steps: list[PlannedStep], told: list[str]) -> int:
    runner = StepRunner(steps, told.append, lambda event: None)
    return asyncio.run(asyncio.wait_for(runner.run(), PATIENCE_S))


def skipped(step: Step, why: str) -> str:
    return f"[{step}] Nothing to do, and no server started: {why}."


def already(why: str, status: ExitCode = ExitCode.OK) -> Callable[[], Awaitable[Done | None]]:
    async def look() -> Done:
        return Done(why, status)

    return look


def test_steps_with_nothing_to_do_are_skipped_with_the_status_they_would_have():
    told: list[str] = []
    steps = [served(Step.OCR, already("a", ExitCode.PAGES_FAILED)), served(Step.EMBED, already("b"))]
    assert run(steps, told) == ExitCode.PAGES_FAILED
    assert told == [skipped(Step.OCR, "a"), skipped(Step.EMBED, "b")]


def test_one_whose_pages_all_failed_is_the_end():
    told: list[str] = []
    steps = [served(Step.OCR, already("a", ExitCode.INPUT)), served(Step.EMBED, already("b"))]
    assert run(steps, told) == ExitCode.INPUT
    assert told == [skipped(Step.OCR, "a")]


def test_what_is_wrong_is_reported_before_servers_are_started():
    async def look() -> NoReturn:
        raise OutputError("the directory is in use")

    with pytest.raises(OutputError, match="in use"):
        run([served(Step.OCR, look)], [])


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_look_at_once(number: signal.Signals):
    async def look() -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    told: list[str] = []
    assert run([served(Step.OCR, look)], told) == ExitCode.INTERRUPTED
    assert told == []
