"""One model server: started, probed until healthy, watched, restarted when it dies, and stopped with its owner."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Sequence

from pagemill.errors import PagemillError, ServerError
from pagemill.inference.exchange import AttemptFailedError, Exchange
from pagemill.inference.models import Served, decode_served
from pagemill.processes import exit_reason
from pagemill.serving.addresses import base_url, free_port, is_free
from pagemill.serving.diagnosis import StartFailure, diagnose, exceptions
from pagemill.serving.process import ServerProcess, read_tail
from pagemill.serving.spec import Event, Patience, Report, ServerSpec, What

_TAIL_LINES = 15
_POLL_S = 0.25
"""Interval of readiness checks while a server starts."""
_DIAGNOSED_LINES = 1000
_ROOT_LINES = 3
_LINE_WIDTH = 400
_LAST_WORD_S = 2.0
"""Wait for the exit of a server that fails its health checks: its status is more specific."""
_SECRET = re.compile(r"(--(?:api[-_]key|hf[-_]token)[ =])(?:(?! --).)*")


async def complaint(exchange: Exchange, url: str, timeout_s: float) -> str | None:
    """Check ``/health`` of a server; return the error, None if it is healthy."""
    try:
        await exchange.request(f"{url}/health", timeout_s)
    except (AttemptFailedError, PagemillError) as error:
        return error.message
    return None


async def served_models(exchange: Exchange, url: str, timeout_s: float) -> list[Served]:
    """The models that a server offers; empty when it offers none or returns an invalid response."""
    try:
        return decode_served(await exchange.request(f"{url}/v1/models", timeout_s))
    except (AttemptFailedError, PagemillError, ValueError, RecursionError):
        return []


class ModelServer:
    """One server: started by us, or one with the same model that was running before."""

    def __init__(self, spec: ServerSpec, exchange: Exchange, patience: Patience, report: Report) -> None:
        self._spec = spec
        self._exchange = exchange
        self._patience = patience
        self._report = report
        self._port = spec.port or spec.preferred_port
        self._process: ServerProcess | None = None
        self._fixed = spec.port is not None
        self._healthy_at = 0.0
        self._since = 0
        """Size of the log before this life."""

    @property
    def url(self) -> str:
        """Its base URL; constant across restarts once it was healthy."""
        return base_url(self._spec.host, self._port)

    async def start(self) -> None:
        """Find a running server of this model, or start one, and wait until it is healthy.

        Raises:
            ServerError: It died, was not healthy in time, or its port is taken; the remedy names the fix.
        """
        while not await self._find():
            try:
                await self._launch()
            except _PortTakenError:
                if self._fixed:
                    raise
                # Between our check and its bind another process took the port: try with a new one.
                self._port = free_port(self._spec.host)
            else:
                break
        # Clients have the address from now on: a restart must listen at the same one.
        self._fixed = True
        self._healthy_at = time.monotonic()
        self._report(Event(What.READY if self._process else What.REUSED, self.url, self._spec.served_name))

    async def watch(self) -> None:
        """Keep it alive: restart it whenever it dies or fails its health checks. Never returns.

        Raises:
            ServerError: It died too often in quick succession.
        """
        quick, reason = 0, ""
        while True:
            try:
                if reason:
                    await self.start()
                reason = await self._until_bad()
                # After a long healthy life a death is news, not one more of the series that ends in giving up.
                if time.monotonic() - self._healthy_at > self._patience.quick_life_s:
                    quick = 0
            except ServerError as error:
                reason = error.message
            quick += 1
            if quick > self._patience.quick_deaths:
                self._report(Event(What.GIVEN_UP, self.url, reason))
                log = "" if str(self._spec.log) in reason else f"\n{self._quoted()}"
                raise ServerError(
                    f"the server at {self.url} died {quick} times in quick succession: {reason}{log}",
                    remedy=diagnose(self._log()).remedy,
                )
            pause = min(self._patience.longest_pause_s, self._patience.first_pause_s * 2 ** (quick - 1))
            what, *log_lines = reason.splitlines()
            self._report(Event(What.DIED, self.url, "\n".join([f"{what}; starting again in {pause:g} s", *log_lines])))
            await asyncio.sleep(pause)

    async def stop(self) -> None:
        """Stop it and all its processes, if we started it."""
        if self._process is not None:
            await self._process.stop()
            self._process = None

    def kill(self) -> None:
        """Kill it, if we started it; :meth:`stop` still has to be awaited."""
        if self._process is not None:
            self._process.kill()

    async def _find(self) -> bool:
        """Whether a server with this model is running already; otherwise choose a free port.

        Raises:
            ServerError: Something else listens on the only port that may be used.
        """
        if is_free(self._spec.host, self._port):
            return False
        if await self._is_usable():
            return True
        if self._fixed:
            raise _PortTakenError(
                f"something else listens on port {self._port}, no server of {self._spec.served_name} that can be used",
                remedy="Choose another with --port, or leave it out to get a free one.",
            )
        self._port = free_port(self._spec.host)
        return False

    async def _is_usable(self, *, ours: bool = False) -> bool:
        """Whether the server at the address is healthy and serves this model, for requests as long as ours.

        For one that we started it is enough that it lists no other model: a server that requires a key lists none.
        """
        if await complaint(self._exchange, self.url, self._patience.answer_s):
            return False
        spec, models = self._spec, await served_models(self._exchange, self.url, self._patience.answer_s)
        named = [served for served in models if served.name == spec.served_name]
        if ours:
            return bool(named) or not models
        return any(
            served.root in (None, spec.model) and (served.max_model_len or spec.max_model_len) >= spec.max_model_len
            for served in named
        )

    async def _launch(self) -> None:
        command = list(self._spec.command(self._port))
        self._since = self._spec.log.stat().st_size if self._spec.log.exists() else 0
        self._report(Event(What.STARTING, self.url, without_secrets(command)))
        process = await ServerProcess.start(
            command, environment=self._spec.environment, log=self._spec.log, grace_s=self._patience.grace_s
        )
        try:
            await self._until_healthy(process)
            self._process = process
        finally:
            # Not healthy in time, or cancelled: a server that nobody holds would keep the accelerator for itself.
            if self._process is None:
                process.kill()
                await asyncio.shield(process.stop())

    async def _until_healthy(self, process: ServerProcess) -> None:
        end = time.monotonic() + self._patience.start_s
        last_line = ""
        while True:
            if (status := await process.wait(_POLL_S)) is not None:
                found = diagnose(self._log(), status)
                error = _PortTakenError if found is StartFailure.PORT else ServerError
                message = f"the server did not start ({exit_reason(status)}): {found.cause}\n{self._quoted()}"
                raise error(message, remedy=found.remedy)
            # vLLM binds its port minutes before it listens on it: until then another process may answer there.
            if await self._is_usable(ours=True):
                return
            if time.monotonic() > end:
                raise ServerError(
                    f"the server at {self.url} was not ready within {self._patience.start_s:g} s\n" + self._quoted(),
                    remedy="Check the end of its log; pagemill serve-model --start-timeout allows more time.",
                )
            if (line := "".join(self._log(1))) != last_line:
                last_line = line
                self._report(Event(What.PROGRESS, self.url, line))

    async def _until_bad(self) -> str:
        """Wait until it exits or fails its health checks; return the reason. A server of ours is then stopped."""
        bad = 0
        while bad < self._patience.failed_checks:
            if self._process is None:
                await asyncio.sleep(self._patience.check_s)
            elif await self._process.wait(self._patience.check_s) is not None:
                break
            wrong = await complaint(self._exchange, self.url, self._patience.answer_s)
            bad = bad + 1 if wrong else 0
        # A server that dies first stops answering: if it exits now, its exit is the cause, and not the failed checks.
        status = await self._process.wait(_LAST_WORD_S) if self._process is not None else None
        await self.stop()
        if status is None:
            return f"{wrong}, {bad} times in a row"
        found = diagnose(self._log(), status)
        return f"it ended ({exit_reason(status)})" + ("" if found is StartFailure.UNKNOWN else f": {found.cause}")

    def _log(self, lines: int = _DIAGNOSED_LINES) -> list[str]:
        """The last lines of its log since it was last started."""
        return read_tail(self._spec.log, lines, since=self._since)

    def _quoted(self) -> str:
        log = self._log()
        tail = log[-_TAIL_LINES:]
        # Each process of vLLM prints a traceback. The first exception is the cause, the last one only refers to it.
        root = [line for line in exceptions(log)[:_ROOT_LINES] if line not in tail]
        lines = [*root, *(["..."] if root else []), *tail] or ["(no output)"]
        return "\n".join(f"  | {line[:_LINE_WIDTH]}" for line in lines) + f"\n  log: {self._spec.log}"


def without_secrets(command: Sequence[str]) -> str:
    """A command line for display, with the values of keys and tokens removed."""
    return _SECRET.sub(r"\1...", shlex.join(command))


class _PortTakenError(ServerError):
    """Another process listens on the port."""
