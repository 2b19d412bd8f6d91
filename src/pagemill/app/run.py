"""The whole pipeline: steps that are commands of their own, around model servers that live while one needs them."""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from pagemill.errors import ExitCode, ServerError, WorkerCrashError
from pagemill.processes import die_with_parent
from pagemill.runtime.supervisor import SAME_REQUEST_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pagemill.serving.servers import ModelServers

_GOES_ON_AFTER = frozenset({ExitCode.OK, ExitCode.PAGES_FAILED})
"""Statuses of a step after which the next one makes sense: some pages may have failed, the others are there."""
_IMPORTING_S = 1.0
"""A step that is younger gets SIGTERM for Ctrl-C: Python would answer with a traceback, and there is nothing to end."""
_DRAIN_S = 10.0
"""So long a step may take to end after each request to do so once nobody waits for it any more."""


class Step(StrEnum):
    """A step of the pipeline."""

    OCR = "ocr"
    EMBED = "embed"
    UPLOAD = "upload"


@dataclass(frozen=True, slots=True)
class Done:
    """That there is nothing to do."""

    why: str
    """As in ``all 6 pages are parsed``."""
    status: ExitCode = ExitCode.OK
    """With which the step would end."""


class Tell(Protocol):
    """Told how the pipeline goes."""

    def passed_over(self, step: Step, why: str) -> None:
        """A step has nothing to do, so that its servers are not started."""
        ...

    def step(self, step: Step, command: str) -> None:
        """A step begins; ``command`` does the same on its own, while its servers run."""
        ...

    def ending(self, step: Step | None) -> None:
        """A signal asks for the end; the step that is under way, if one is, may end in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step that is to be done."""

    step: Step
    arguments: tuple[str, ...]
    """Of ``pagemill``, without the addresses of servers that are started for it."""
    servers: Callable[[], ModelServers] | None = None
    """Makes its servers; None for a step that needs none of ours."""
    done: Callable[[], Awaitable[Done | None]] | None = None
    """Looks whether there is anything to do; asked before servers are started. May raise what the step would."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What this step alone may know, such as a token: not for the command line, which everybody can read."""

    def command(self, urls: Sequence[str]) -> list[str]:
        """Its command line, with the addresses of its servers."""
        return ["pagemill", *self.arguments, *(word for url in urls for word in ("--server", url))]


class Pipeline:
    """Does steps one after the other, each in a process of its own, which ends with this one.

    Args:
        steps: In their order.
        tell: Told as it goes.
    """

    def __init__(self, steps: Sequence[PlannedStep], tell: Tell) -> None:
        self._steps = steps
        self._tell = tell
        self._step: Step | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._child_since = 0.0
        self._servers: ModelServers | None = None
        self._looking = False
        self._working: asyncio.Task[int] | None = None
        self._requests = 0
        """How often a signal asked for the end."""
        self._requested_at = -math.inf

    async def run(self) -> int:
        """Do all steps; gives the exit status: that of the step that ended it, or 3 when some pages failed on the way.

        A first SIGINT or SIGTERM lets the step under way end in order, and is the end of the pipeline; a second one
        ends step and servers at once. Call it in the main thread.

        Raises:
            ServerError: The servers of a step did not start, or died for good.
            WorkerCrashError: A step died.
        """
        loop = asyncio.get_running_loop()
        self._working = asyncio.create_task(self._run())
        handlers: dict[signal.Signals, Callable[[], None]] = {
            signal.SIGINT: lambda: self._end(signal.SIGINT),
            signal.SIGTERM: lambda: self._end(signal.SIGTERM),
            signal.SIGTSTP: self._pause,
        }
        heeded = [number for number in handlers if signal.getsignal(number) is not signal.SIG_IGN]  # as under nohup
        for number in heeded:
            loop.add_signal_handler(number, handlers[number])
        try:
            return await self._working
        except asyncio.CancelledError:
            if self._requests:
                return ExitCode.INTERRUPTED
            raise
        finally:
            for number in heeded:
                loop.remove_signal_handler(number)

    async def _run(self) -> int:
        status: int = ExitCode.OK
        for planned in self._steps:
            if planned.servers is None:
                code = await self._do(planned, ())
            elif done := await self._look(planned):
                self._tell.passed_over(planned.step, done.why)
                code = done.status
            else:
                code = await self._do_served(planned)
            if self._requests:
                return ExitCode.INTERRUPTED
            if code not in _GOES_ON_AFTER:
                return code
            status = status or code
        return status

    async def _look(self, planned: PlannedStep) -> Done | None:
        """Whether a step has nothing to do."""
        if planned.done is None or self._requests:
            return None
        self._looking = True
        try:
            return await planned.done()
        finally:
            self._looking = False

    async def _do_served(self, planned: PlannedStep) -> int:
        """Start the servers of a step, do it as long as one of them is alive or comes back, and end them."""
        assert planned.servers is not None
        servers = self._servers = planned.servers()
        async with servers:
            doing = asyncio.create_task(self._do(planned, servers.urls))
            watching = asyncio.create_task(servers.wait())
            try:
                await asyncio.wait({doing, watching}, return_when=asyncio.FIRST_COMPLETED)
                if not doing.done():
                    await self._end_child()
                    await asyncio.wait({doing})
                    if not self._requests:
                        await watching  # raises why
                        raise ServerError(f"the servers of the step {planned.step} are gone")
                return await doing
            finally:
                for task in (doing, watching):
                    task.cancel()
                await asyncio.gather(doing, watching, return_exceptions=True)
                if self._requests > 1:
                    servers.kill()

    async def _do(self, planned: PlannedStep, urls: Sequence[str]) -> int:
        """Do a step in a process of its own; gives its exit status."""
        if self._requests:
            return ExitCode.INTERRUPTED
        command = planned.command(urls)
        self._tell.step(planned.step, shlex.join(command))
        self._step = planned.step
        child = self._child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *command),
            env={**os.environ, **planned.environment},
            stdin=asyncio.subprocess.DEVNULL,
            process_group=0,  # the terminal's Ctrl-C comes to this process alone, which passes it on once
            preexec_fn=_as_background_child(),
        )
        self._child_since = time.monotonic()
        if self._requests:  # while it was made
            child.terminate()
        try:
            code = await child.wait()
        except asyncio.CancelledError:
            self._signal_child(signal.SIGKILL)
            await child.wait()
            raise
        finally:
            self._child = None
        if code >= 0:
            return code
        if self._requests or -code in (signal.SIGINT, signal.SIGTERM):
            return ExitCode.INTERRUPTED
        raise WorkerCrashError(
            f"the step {planned.step} died ({_name(-code)})",
            remedy="Give the same command again: it goes on where it stopped. SIGKILL mostly means too little memory.",
        )

    async def _end_child(self) -> None:
        """Ask the step to end in order, then at once, then end it: it may wait for servers that do not come back."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if (child := self._child) is None:
                return
            self._signal_child(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await child.wait()

    def _end(self, number: signal.Signals) -> None:
        now = time.monotonic()
        if now - self._requested_at < SAME_REQUEST_S:
            return
        self._requests += 1
        self._requested_at = now
        if self._looking and self._working is not None:
            self._working.cancel()  # there is nothing to end yet
            return
        self._tell.ending(self._step if self._child else None)
        self._signal_child(number if now - self._child_since > _IMPORTING_S else signal.SIGTERM)
        if self._requests > 1:
            asyncio.get_running_loop().call_later(_DRAIN_S, self._signal_child, signal.SIGKILL)
            if self._servers is not None and self._child is None:
                self._servers.kill()
        elif self._servers is not None and not self._servers.ready and self._working is not None:
            self._working.cancel()  # nobody needs what is being started

    def _pause(self) -> None:
        """Ctrl-Z: the step is stopped with this process, and goes on with it. Its servers wait."""
        self._signal_child(signal.SIGTSTP)
        signal.raise_signal(signal.SIGSTOP)
        self._signal_child(signal.SIGCONT)

    def _signal_child(self, number: signal.Signals) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.send_signal(number)


def _as_background_child() -> Callable[[], None]:
    """What a child does before it becomes ``pagemill``.

    It may write to the terminal from a group of its own, and the kernel kills it when its parent dies (Linux).
    """
    parent = os.getpid()

    def prepare() -> None:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        die_with_parent(parent)

    return prepare


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
