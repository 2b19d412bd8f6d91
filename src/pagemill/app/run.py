"""Run the steps of ``pagemill run`` as separate commands, with model servers started only while a step needs them."""

from __future__ import annotations

import asyncio
import math
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pagemill.app.doctor import Area
from pagemill.app.parse_process import GOES_ON_AFTER
from pagemill.blocking import cancelled
from pagemill.config.serving import ServingOptions
from pagemill.errors import ExitCode, PagemillError, ServerError, WorkerCrashError
from pagemill.processes import die_with_parent, exit_reason
from pagemill.runtime.supervisor import SAME_REQUEST_S
from pagemill.serving.replicas import Serving
from pagemill.serving.spec import Report

if TYPE_CHECKING:  # they talk to servers, for which a plan needs no packages
    from pagemill.serving.servers import ModelServers

_IMPORTING_S = 1.0
"""A step younger than this gets SIGTERM for Ctrl-C: it is still importing, and SIGINT would print a traceback."""
_DRAIN_S = 10.0
"""Time that a step gets to stop after each request."""


class Step(StrEnum):
    """A step of the pipeline."""

    OCR = "ocr"
    EMBED = "embed"
    UPLOAD = "upload"


@dataclass(frozen=True, slots=True)
class Done:
    """There is nothing to do."""

    why: str
    """Such as ``all 6 pages are parsed``."""
    status: int = ExitCode.OK
    """The exit status that the step would have."""


@dataclass(frozen=True, slots=True)
class RemoteServing:
    """Servers that are started on the machines of a cluster."""

    options: ServingOptions
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step to run, and what it needs."""

    step: Step
    arguments: tuple[str, ...]
    """Arguments of ``pagemill``, without the addresses of servers that are started for the step."""
    serving: Serving | None = None
    """Its servers on this machine; None for a step for which none are started here."""
    remote: RemoteServing | None = None
    """Its servers on a cluster."""
    done: Callable[[], Awaitable[Done | None]] | None = None
    """Whether there is anything to do, before servers are started. May raise the same errors as the step."""
    areas: tuple[Area, ...] = ()
    """What the machine needs for it."""
    asked: tuple[str, ...] = ()
    """Servers that it uses but does not start."""
    notes: tuple[str, ...] = ()
    """Notes for the user before the start."""
    lacking: tuple[PagemillError, ...] = ()
    """Missing requirements on this machine, for a dry run."""

    def command(self, urls: Sequence[str]) -> list[str]:
        """Its command line, with the addresses of its servers."""
        # Options after it would be taken for inputs.
        end = self.arguments.index("--") if "--" in self.arguments else len(self.arguments)
        servers = [word for url in urls for word in ("--server", url)]
        return ["pagemill", *self.arguments[:end], *servers, *self.arguments[end:]]


def of_embedding(error: PagemillError) -> PagemillError:
    """An error about the server of the embedding model, with the names that its options have in ``pagemill run``."""
    message, remedy = (
        re.sub(r"--(?=(?:weights|model)\b)", "--embedding-", text or "") for text in (error.message, error.remedy)
    )
    return type(error)(message, remedy=remedy or None)


class StepRunner:
    """Runs steps one after the other, each in a child process, which does not outlive this one.

    Args:
        steps: The steps, in order.
        note: Called with what happens, in a sentence.
        report: Called with the events of servers.
    """

    _working: asyncio.Task[int]

    def __init__(self, steps: Sequence[PlannedStep], note: Callable[[str], object], report: Report) -> None:
        self._steps = steps
        self._note = note
        self._report = report
        self._child: asyncio.subprocess.Process | None = None
        self._child_since = 0.0
        self._servers: ModelServers | None = None
        self._looking = False
        self._requests = 0
        """Number of signals that asked to stop."""
        self._requested_at = -math.inf

    async def run(self) -> int:
        """Run all steps and return the exit status: that of the step that stopped the run, or 3 if some pages failed.

        On a first SIGINT or SIGTERM the running step finishes in order and the run stops; a second one stops step and
        servers at once. Call it in the main thread.

        Raises:
            ServerError: The servers of a step did not start, or died permanently.
            WorkerCrashError: A step died.
        """
        loop = asyncio.get_running_loop()
        self._working = asyncio.create_task(self._run())
        handlers = {signal.SIGINT: self._end, signal.SIGTERM: self._end, signal.SIGTSTP: self._pause}
        heeded = [number for number in handlers if signal.getsignal(number) is not signal.SIG_IGN]  # as under nohup
        for number in heeded:
            loop.add_signal_handler(number, handlers[number], number)
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
            if planned.serving is None and planned.remote is None:
                code = await self._do(planned, ())
            elif planned.done and (done := await self._look(planned.done)):
                self._note(f"[{planned.step}] Nothing to do, and no server started: {done.why}.")
                code = done.status
            else:
                try:
                    code = await self._do_served(planned)
                except PagemillError as error:
                    raise (of_embedding(error) if planned.step is Step.EMBED else error) from error
            if self._requests:
                return ExitCode.INTERRUPTED
            if code not in GOES_ON_AFTER:
                return code
            status = status or code
        return status

    async def _look(self, done: Callable[[], Awaitable[Done | None]]) -> Done | None:
        """Whether a step has nothing to do."""
        self._looking = True
        try:
            return await done()
        finally:
            self._looking = False

    async def _do_served(self, planned: PlannedStep) -> int:
        """Run a step around its servers, for as long as one of them is alive or restarting, then stop them."""
        servers = self._servers = self._servers_of(planned)
        async with servers:
            doing = asyncio.create_task(self._do(planned, servers.urls))
            watching = asyncio.create_task(servers.wait())
            try:
                await asyncio.wait({doing, watching}, return_when=asyncio.FIRST_COMPLETED)
                # A server is gone permanently: the step would wait for it, retry after retry.
                if not doing.done():
                    await self._end_child()
                    await asyncio.wait({doing})
                    if not self._requests:
                        await watching  # raises why
                        raise ServerError(f"the servers of the step {planned.step} have stopped")
                return await doing
            finally:
                await cancelled(doing, watching)
                if self._requests > 1:
                    servers.kill()

    def _servers_of(self, planned: PlannedStep) -> ModelServers:
        from pagemill.cluster.servers import ClusterServers
        from pagemill.serving.servers import ModelServers

        if planned.remote is None:
            assert planned.serving is not None
            return ModelServers(planned.serving.specs, report=self._report)
        return ClusterServers(planned.remote.options, planned.remote.address, report=self._report)

    async def _do(self, planned: PlannedStep, urls: Sequence[str]) -> int:
        """Run a step in a child process and return its exit status."""
        if self._requests:
            return ExitCode.INTERRUPTED
        command = planned.command(urls)
        self._note(f"[{planned.step}] {shlex.join(command)}")
        child = self._child = await _start(command)
        self._child_since = time.monotonic()
        if self._requests:  # a signal came while it was started
            child.terminate()
        try:
            code = await child.wait()
        except asyncio.CancelledError:
            self._signal_child(signal.SIGKILL)
            await child.wait()
            raise
        finally:
            self._child = None
        # Negative: the number of the signal that ended it.
        if code >= 0:
            return code
        if self._requests or -code in (signal.SIGINT, signal.SIGTERM):
            return ExitCode.INTERRUPTED
        raise WorkerCrashError(
            f"the step {planned.step} died ({exit_reason(code)})",
            remedy="Repeat the command to resume. SIGKILL mostly means that the machine ran out of memory.",
        )

    async def _end_child(self) -> None:
        """Ask the step to finish, then to stop at once, then kill it: it may wait for servers that do not come back."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if (child := self._child) is None:
                return
            self._signal_child(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await child.wait()

    def _end(self, number: signal.Signals) -> None:
        now = time.monotonic()
        # `timeout` signals its child and then the whole group: one request, not two.
        if now - self._requested_at < SAME_REQUEST_S:
            return
        self._requests += 1
        self._requested_at = now
        if self._looking:
            self._working.cancel()  # nothing has been started yet
            return
        what = "the step finishes its pages in flight" if self._child else "the servers are stopped"
        self._note(f"Stopping: {what}; press Ctrl-C again to stop everything at once.")
        self._signal_child(number if now - self._child_since > _IMPORTING_S else signal.SIGTERM)
        if self._requests > 1:
            # A step that is stuck in a driver does not answer to signals that it could handle.
            asyncio.get_running_loop().call_later(_DRAIN_S, self._signal_child, signal.SIGKILL)
            if self._servers is not None and self._child is None:
                self._servers.kill()
        elif self._servers is not None and not self._servers.ready:
            self._working.cancel()  # nothing needs the servers that are starting

    def _pause(self, _: signal.Signals) -> None:
        """Ctrl-Z: suspend and continue the step together with this process. Its servers wait."""
        self._signal_child(signal.SIGTSTP)
        # SIGTSTP itself is handled here, and so would not stop this process.
        signal.raise_signal(signal.SIGSTOP)
        self._signal_child(signal.SIGCONT)

    def _signal_child(self, number: signal.Signals) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.send_signal(number)


async def _start(command: Sequence[str]) -> asyncio.subprocess.Process:
    """Start a command as a child process, which the kernel kills when this one dies (Linux)."""
    parent = os.getpid()

    def prepare() -> None:
        """Between fork and exec: let it write to the terminal from a process group of its own."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        die_with_parent(parent)

    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command),
        stdin=asyncio.subprocess.DEVNULL,
        process_group=0,  # the terminal's Ctrl-C comes to this process alone, which passes it on once
        preexec_fn=prepare,
    )
