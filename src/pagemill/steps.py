"""The whole pipeline: steps that are commands of their own, around model servers that live while one needs them."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from pagemill.errors import ExitCode, ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pagemill.serving.server import Servers

_GOES_ON_AFTER = frozenset({ExitCode.OK, ExitCode.PAGES_FAILED})
"""Statuses of a step after which the next one makes sense: some pages may have failed, the others are there."""
_PR_SET_PDEATHSIG = 1
_DRAIN_S = 10.0
"""So long a step may take to end once its servers are gone for good; what it has done by then is kept."""


class Step(StrEnum):
    """A step of the pipeline."""

    OCR = "ocr"
    EMBED = "embed"
    UPLOAD = "upload"


class Tell(Protocol):
    """Told how the pipeline goes."""

    def step(self, step: Step, command: str) -> None:
        """A step begins; ``command`` does the same on its own, while its servers run."""
        ...


class MakesServers(Protocol):
    """Makes the servers of a step."""

    def __call__(self) -> Servers:
        """Servers that are not started yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step that is to be done."""

    step: Step
    arguments: tuple[str, ...]
    """Of ``pagemill``, without the servers' addresses."""
    servers: MakesServers | None = None
    """None for a step without a model server of ours."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the step alone may know, such as a token: not for the command line, which everybody can read."""

    def command(self, urls: Sequence[str]) -> list[str]:
        """The arguments with the addresses of its servers."""
        return [*self.arguments, *(word for url in urls for word in ("--server", url))]


class Pipeline:
    """Does steps one after the other, each in a process of its own, which ends with this one.

    Args:
        steps: In their order.
        tell: Told as it goes.
    """

    def __init__(self, steps: Sequence[PlannedStep], tell: Tell) -> None:
        self._steps = steps
        self._tell = tell
        self._child: asyncio.subprocess.Process | None = None
        self._servers: Servers | None = None
        self._signals = 0
        self._working: asyncio.Task[int] | None = None

    async def run(self) -> int:
        """Do all steps; gives the exit status: that of the step that ended it, or 3 when some pages failed on the way.

        A first signal lets the step under way end in order, and ends the pipeline; a second one ends both at once.

        Raises:
            ServerError: The servers of a step did not start, or died for good.
        """
        loop = asyncio.get_running_loop()
        self._working = asyncio.create_task(self._run())
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            return await self._working
        except asyncio.CancelledError:
            if self._signals:
                return ExitCode.INTERRUPTED
            raise
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def _run(self) -> int:
        status: int = ExitCode.OK
        for planned in self._steps:
            if planned.servers is None:
                code = await self._do(planned, ())
            else:
                servers = self._servers = planned.servers()
                async with servers:
                    code = await self._do_beside(planned, servers)
                self._servers = None
            if self._signals:
                return ExitCode.INTERRUPTED
            if code not in _GOES_ON_AFTER:
                return code
            status = status or code
        return status

    async def _do_beside(self, planned: PlannedStep, servers: Servers) -> int:
        """Do a step as long as one of its servers is alive, or comes back."""
        doing = asyncio.create_task(self._do(planned, servers.urls))
        watching = asyncio.create_task(servers.wait())
        try:
            await asyncio.wait({doing, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                await self._end_child()
                await asyncio.wait({doing})
                if not self._signals:
                    await watching  # raises why
                    raise ServerError("the servers ended")
            return await doing
        finally:
            for task in (doing, watching):
                task.cancel()
            await asyncio.gather(doing, watching, return_exceptions=True)

    async def _do(self, planned: PlannedStep, urls: Sequence[str]) -> int:
        arguments = planned.command(urls)
        self._tell.step(planned.step, shlex.join(["pagemill", *arguments]))
        child = self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "pagemill", *arguments),
            env={**os.environ, **planned.environment},
            process_group=0,  # the terminal's Ctrl-C comes here, and goes to it once
            preexec_fn=_dying_with_parent(),
        )
        try:
            code = await child.wait()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            raise
        finally:
            self._child = None
        return code if code >= 0 else ExitCode.INTERRUPTED if -code in (signal.SIGINT, signal.SIGTERM) else 128 - code

    async def _end_child(self) -> None:
        """Ask the step to end in order, then to end at once: it waits for servers that do not come back."""
        for _ in range(2):
            if (child := self._child) is None:
                return
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await child.wait()
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.kill()

    def _on_signal(self, number: int) -> None:
        self._signals += 1
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.send_signal(number)
        elif self._working is not None:  # servers are being started or ended
            self._working.cancel()
        if self._signals > 1 and self._servers is not None:
            self._servers.kill()


def _dying_with_parent() -> Callable[[], None] | None:
    """What a child does before it becomes ``pagemill``: have the kernel kill it when its parent dies (Linux)."""
    if sys.platform != "linux":
        return None
    import ctypes

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()  # nothing is imported between fork and exec

    def die_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(ExitCode.INTERRUPTED)

    return die_with_parent
