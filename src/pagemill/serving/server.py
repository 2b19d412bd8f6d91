"""Servers of a model: started, waited for, watched, started again when they die, and ended with whoever wanted them."""

from __future__ import annotations

import asyncio
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from pagemill.errors import ServerError, UsageError
from pagemill.serving.diagnosis import Cause, diagnose, exceptions
from pagemill.serving.orphans import end_orphans
from pagemill.serving.probe import Health, base_url, free_port, health, is_free, served_models
from pagemill.serving.process import ServerProcess, read_tail

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

FIRST_PORT = 8000
"""Where the first server listens unless a port is asked for or this one is taken; the next ones follow it."""
HOST = "127.0.0.1"
_TAIL_LINES = 15
_POLL_S = 0.25
"""How often a starting server is asked whether it is ready."""
_DIAGNOSED_LINES = 1000
_ROOT_LINES = 3
_LINE_WIDTH = 400
_LAST_WORD_S = 2.0
_SECRET_FLAGS = frozenset({"--api-key", "--hf-token"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long what may take, in seconds, and how often."""

    start_s: float = 1800.0
    """From the start to the first healthy answer; loading and compiling take minutes, a download longer."""
    check_s: float = 5.0
    """Between two looks at a server that runs."""
    answer_s: float = 20.0
    """For an answer of ``/health``."""
    sick_checks: int = 3
    """Bad answers in a row after which it is started again."""
    grace_s: float = 15.0
    """Between the request to end and the kill."""
    first_pause_s: float = 1.0
    """Before it is started again; doubled with every quick death."""
    longest_pause_s: float = 60.0
    quick_life_s: float = 120.0
    """A server that dies before it has been healthy for so long died quickly."""
    quick_deaths: int = 5
    """So many in a row are borne, not one more."""

    def __post_init__(self) -> None:
        if not self.start_s > 0:  # nor no number at all
            raise UsageError("a server needs some time to start", remedy="Check --start-timeout.")


class What(StrEnum):
    """What is told about a server."""

    STARTING = "starting"
    PROGRESS = "progress"
    READY = "ready"
    REUSED = "reused"
    DIED = "died"
    GIVEN_UP = "given up"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a server."""

    what: What
    url: str
    """Empty where it is about no server of this process."""
    text: str
    """The command, a line of the log, a reason."""


Tell = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """A server that is wanted."""

    command: Callable[[int], Sequence[str]]
    """The command line for a port."""
    environment: Mapping[str, str]
    served_name: str
    """What clients call the model."""
    model: str
    """What it is loaded from, as the server says in ``/v1/models``."""
    max_model_len: int = 0
    """Tokens that a server must take to be used in place of one of our own."""
    log: Path
    """Takes what the server prints."""
    host: str = HOST
    port: int | None = None
    """None: ``preferred_port``, or any other where that is taken."""
    preferred_port: int = FIRST_PORT


class Server:
    """One server: ours, or one with the same model that was there before."""

    def __init__(self, spec: ServerSpec, patience: Patience, tell: Tell) -> None:
        self._spec = spec
        self._patience = patience
        self._tell = tell
        self._port = spec.port or spec.preferred_port
        self._process: ServerProcess | None = None
        self._fixed = spec.port is not None
        self._healthy_at = 0.0
        self._since = 0
        """Size of the log before this life."""

    @property
    def url(self) -> str:
        """Where it is; the same for all its lives once it was healthy."""
        return base_url(self._spec.host, self._port)

    @property
    def reused(self) -> bool:
        """Whether it is one that was there before; it is not ended here."""
        return self._process is None

    async def start(self) -> None:
        """Find a server with this model, or start one, and wait until it is healthy.

        Raises:
            ServerError: It died, was not healthy in time, or its port is taken; the remedy says what to do.
        """
        while not await self._find():
            try:
                await self._launch()
            except _PortTakenError:
                if self._fixed:
                    raise
                self._port = free_port(self._spec.host)  # somebody was quicker
            else:
                break
        self._fixed = True
        self._healthy_at = time.monotonic()
        self._tell(Event(What.REUSED if self.reused else What.READY, self.url, self._spec.served_name))

    async def watch(self) -> None:
        """Keep it alive: start it again whenever it dies or falls silent. Returns never.

        Raises:
            ServerError: It died again and again.
        """
        quick = 0
        while True:
            reason = await self._until_bad()
            if time.monotonic() - self._healthy_at > self._patience.quick_life_s:
                quick = 0
            while True:
                quick += 1
                if quick > self._patience.quick_deaths:
                    self._tell(Event(What.GIVEN_UP, self.url, reason))
                    raise self._given_up(quick, reason)
                pause = min(self._patience.longest_pause_s, self._patience.first_pause_s * 2 ** (quick - 1))
                what, *log = reason.splitlines()
                self._tell(Event(What.DIED, self.url, "\n".join([f"{what}; starting again in {pause:g} s", *log])))
                await asyncio.sleep(pause)
                try:
                    await self.start()
                    break
                except ServerError as error:
                    reason = error.message

    async def stop(self) -> None:
        """End it and all its processes, when it is ours."""
        if self._process is not None:
            await self._process.stop()
            self._process = None

    def kill(self) -> None:
        """End it at once, when it is ours; :meth:`stop` still has to be awaited."""
        if self._process is not None:
            self._process.kill()

    async def _find(self) -> bool:
        """Whether a server with this model is there already; else see to a port that is free.

        Raises:
            ServerError: Something else listens on the port that has to be.
        """
        if is_free(self._spec.host, self._port):
            return False
        if await self._can_be_used():
            return True
        if self._fixed:
            raise _PortTakenError(
                f"something else listens on port {self._port}, no server of {self._spec.served_name} that can be used",
                remedy="Choose another with --port, or leave it out to get a free one.",
            )
        self._port = free_port(self._spec.host)
        return False

    async def _can_be_used(self) -> bool:
        """Whether what answers at the address is healthy and has this model, for requests as long as ours."""
        if await health(self.url, self._patience.answer_s) is not Health.HEALTHY:
            return False
        length = self._spec.max_model_len
        return any(
            served.name == self._spec.served_name
            and served.root in (None, self._spec.model)
            and (served.max_model_len or length) >= length
            for served in await served_models(self.url, self._patience.answer_s)
        )

    async def _may_be_ours(self) -> bool:
        """Whether what answers at the address is healthy and not known to serve another model.

        A server that wants a key for that names none.
        """
        if await health(self.url, self._patience.answer_s) is not Health.HEALTHY:
            return False
        names = [served.name for served in await served_models(self.url, self._patience.answer_s)]
        return not names or self._spec.served_name in names

    async def _launch(self) -> None:
        command = list(self._spec.command(self._port))
        self._since = self._spec.log.stat().st_size if self._spec.log.exists() else 0
        self._tell(Event(What.STARTING, self.url, shlex.join(without_secrets(command))))
        process = await ServerProcess.start(
            command, environment=self._spec.environment, log=self._spec.log, grace_s=self._patience.grace_s
        )
        try:
            await self._until_healthy(process)
        except BaseException:
            process.kill()
            await asyncio.shield(process.stop())
            raise
        self._process = process

    async def _until_healthy(self, process: ServerProcess) -> None:
        end = time.monotonic() + self._patience.start_s
        said = ""
        while True:
            if (status := await process.wait(_POLL_S)) is not None:
                raise self._failure(status)
            # vLLM binds its port minutes before it listens there: until then it may be somebody else who answers.
            if await self._may_be_ours():
                return
            if time.monotonic() > end:
                raise ServerError(
                    f"the server at {self.url} was not ready within {self._patience.start_s:g} s\n" + self._quoted(),
                    remedy="Look at the end of its log; pagemill serve-model --start-timeout gives it more time.",
                )
            if (last := "".join(read_tail(self._spec.log, 1, since=self._since))) != said:
                said = last
                self._tell(Event(What.PROGRESS, self.url, said))

    async def _until_bad(self) -> str:
        """Wait until it is dead or sick, and give the reason. A server of ours is ended then."""
        bad = 0
        while bad < self._patience.sick_checks:
            if await self._ended_within(self._patience.check_s):
                break
            state = await health(self.url, self._patience.answer_s)
            bad = 0 if state is Health.HEALTHY else bad + 1
        # It may be about to end, and then that is the reason.
        status = await self._process.wait(_LAST_WORD_S) if self._process is not None else None
        await self.stop()
        if status is None:
            return f"/health: {state}, {bad} times in a row"
        cause = diagnose(read_tail(self._spec.log, _DIAGNOSED_LINES, since=self._since), status).cause
        return f"it ended ({_describe(status)})" + ("" if cause is Cause.UNKNOWN else f": {cause}")

    async def _ended_within(self, seconds: float) -> bool:
        """Let time pass; whether a server of ours ends in it."""
        if self._process is None:
            await asyncio.sleep(seconds)
            return False
        return await self._process.wait(seconds) is not None

    def _failure(self, status: int) -> ServerError:
        found = diagnose(read_tail(self._spec.log, _DIAGNOSED_LINES, since=self._since), status)
        error = _PortTakenError if found.cause is Cause.PORT else ServerError
        return error(
            f"the server did not start ({_describe(status)}): {found.cause}\n{self._quoted()}",
            remedy=found.remedy,
        )

    def _quoted(self) -> str:
        log = read_tail(self._spec.log, _DIAGNOSED_LINES, since=self._since)
        tail = log[-_TAIL_LINES:]
        # vLLM's processes each print a traceback; the first exception is the cause, the last one says to look above.
        root = [line for line in exceptions(log)[:_ROOT_LINES] if line not in tail]
        lines = [*root, *(["..."] if root else []), *tail] or ["(it said nothing)"]
        return "\n".join(f"  | {line[:_LINE_WIDTH]}" for line in lines) + f"\n  log: {self._spec.log}"

    def _given_up(self, times: int, reason: str) -> ServerError:
        """It died again and again, the last time for this reason."""
        log = "" if str(self._spec.log) in reason else f"\n{self._quoted()}"
        return ServerError(
            f"the server at {self.url} died {times} times in quick succession: {reason}{log}",
            remedy=diagnose(read_tail(self._spec.log, _DIAGNOSED_LINES, since=self._since)).remedy,
        )


class Servers:
    """Servers of one model, as an async context manager: healthy when it is entered, gone when it is left.

    Args:
        specs: One for each server.
        patience: How long what may take.
        tell: Is called with everything that happens, on the event loop; it must not raise.
    """

    def __init__(self, specs: Sequence[ServerSpec], *, patience: Patience | None = None, tell: Tell) -> None:
        self._servers = [Server(spec, patience or Patience(), tell) for spec in specs]
        self._tell = tell
        self._watches: list[asyncio.Task[None]] = []

    @property
    def urls(self) -> tuple[str, ...]:
        """Where clients find them. A server that died comes back at the same place."""
        return tuple(server.url for server in self._servers)

    @property
    def ready(self) -> bool:
        """Whether all were healthy once."""
        return bool(self._watches)

    async def __aenter__(self) -> Self:
        if ended := await asyncio.to_thread(end_orphans):
            what = "a process" if ended == 1 else f"{ended} processes"
            self._tell(Event(What.CLEARED, "", f"{what} of a server that was left behind"))
        starts = [asyncio.create_task(server.start()) for server in self._servers]
        try:
            done, _ = await asyncio.wait(starts, return_when=asyncio.FIRST_EXCEPTION)
            for start in done:
                start.result()
        except BaseException:
            await _cancel(starts)
            await self._stop()
            raise
        self._watches = [asyncio.create_task(server.watch()) for server in self._servers]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await _cancel(self._watches)
        await self._stop()

    async def wait(self) -> None:
        """Wait until no server is left to be kept alive. As long as one is, the others may give up.

        Raises:
            ServerError: All have given up; the error of the last one.
        """
        waiting = set(self._watches)
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not waiting:
                for watch in done:
                    watch.result()

    def kill(self) -> None:
        """End all servers of ours at once, also while they are being stopped in order."""
        for server in self._servers:
            server.kill()

    async def _stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers))


def without_secrets(command: Sequence[str]) -> list[str]:
    """A command line as it may be shown: without the values of keys and tokens."""
    shown: list[str] = []
    hidden = False
    for word in command:
        name, mark, _ = word.partition("=")
        if name.startswith("--"):
            hidden = name.replace("_", "-") in _SECRET_FLAGS
            shown.append(f"{name}=..." if hidden and mark else word)
        else:
            shown.append("..." if hidden else word)
    return shown


class _PortTakenError(ServerError):
    """Somebody else listens on the port."""


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _describe(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"
