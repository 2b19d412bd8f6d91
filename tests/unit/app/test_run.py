"""The steps of the pipeline, as far as they need no process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import pytest

from pagemill.app.run import Done, PlannedStep, Step, StepRunner
from pagemill.errors import ExitCode, OutputError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pagemill.serving.servers import ModelServers


PATIENCE_S = 30


class Told:
    def __init__(self) -> None:
        self.passed: list[tuple[Step, str]] = []
        self.ended = 0

    def step(self, step: Step, command: str) -> None:
        raise AssertionError(f"{step} is done")

    def skipped(self, step: Step, why: str) -> None:
        self.passed.append((step, why))

    def stopping(self, step: Step | None) -> None:
        self.ended += 1


def no_servers() -> ModelServers:
    raise AssertionError("servers are started")


def served(step: Step, done: Callable[[], Awaitable[Done | None]]) -> PlannedStep:
    return PlannedStep(step=step, arguments=("parse",), servers=no_servers, done=done)


def run(steps: list[PlannedStep], told: Told) -> int:
    return asyncio.run(asyncio.wait_for(StepRunner(steps, told).run(), PATIENCE_S))


def already(why: str, status: ExitCode = ExitCode.OK) -> Callable[[], Awaitable[Done | None]]:
    async def look() -> Done:
        return Done(why, status)

    return look


def test_steps_with_nothing_to_do_are_skipped_with_the_status_they_would_have():
    told = Told()
    steps = [served(Step.OCR, already("a", ExitCode.PAGES_FAILED)), served(Step.EMBED, already("b"))]
    assert run(steps, told) == ExitCode.PAGES_FAILED
    assert told.passed == [(Step.OCR, "a"), (Step.EMBED, "b")]


def test_one_whose_pages_all_failed_is_the_end():
    told = Told()
    steps = [served(Step.OCR, already("a", ExitCode.INPUT)), served(Step.EMBED, already("b"))]
    assert run(steps, told) == ExitCode.INPUT
    assert told.passed == [(Step.OCR, "a")]


def test_what_is_wrong_is_told_before_servers_are_started():
    async def look() -> NoReturn:
        raise OutputError("the directory is in use")

    with pytest.raises(OutputError, match="in use"):
        run([served(Step.OCR, look)], Told())


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_look_at_once(number: signal.Signals):
    async def look() -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    told = Told()
    assert run([served(Step.OCR, look)], told) == ExitCode.INTERRUPTED
    assert (told.passed, told.ended) == ([], 0)
