"""A running server: a process group under a watchdog, which stops it when this process ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pagemill.errors import ServerError
from pagemill.processes import module_command
from pagemill.serving import watchdog

LOG_BYTES = 8 * 2**20
"""Size at which the log is rotated; one older file is kept."""
_TAIL_BYTES = 2**18
_LINE_BYTES = 2**12
_WATCHDOG_START_S = 30.0
_WATCHDOG_END_S = 10.0


class ServerProcess:
    """A server under its watchdog, running or exited. Created by :meth:`start`."""

    def __init__(self, process: asyncio.subprocess.Process, pid: int, grace_s: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = pid
        """The server's process id, which is also its process group."""
        self._watchdog = process
        self._lifeline, self._reports = process.stdin, process.stdout
        self._grace_s = grace_s
        self._ending = asyncio.create_task(self._follow())

    @classmethod
    async def start(
        cls, command: Sequence[str], *, environment: Mapping[str, str], log: Path, grace_s: float
    ) -> ServerProcess:
        """Start a server.

        Args:
            command: Its command line.
            environment: Its environment.
            log: Its output is appended to this file.
            grace_s: Seconds between SIGTERM and SIGKILL.

        Raises:
            ServerError: The command cannot be run.
        """
        process = await asyncio.create_subprocess_exec(
            *module_command(watchdog.__name__, "-I", "-S"),
            *(str(log), str(LOG_BYTES), str(grace_s)),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C at the terminal reaches the owner alone, which stops the server in order
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        word = rest = reason = ""
        try:
            async with asyncio.timeout(_WATCHDOG_START_S):
                word, _, rest = (await process.stdout.readline()).decode("utf-8", "replace").strip().partition(" ")
                reason = rest or (await process.stderr.read(_TAIL_BYTES)).decode("utf-8", "replace").strip()
        except TimeoutError:
            reason = f"its watchdog did not start within {_WATCHDOG_START_S:g} s"
        finally:
            # Also on cancellation: without its lifeline the watchdog stops whatever it has started so far.
            if word != "started":
                process.stdin.close()
                with suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
        if word != "started":
            raise ServerError(
                f"{command[0]} cannot be started: {reason or 'its watchdog died'}", remedy="Check --vllm."
            )
        return cls(process, int(rest), grace_s)

    async def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until it and all its processes have exited.

        Returns:
            Its exit status, negative for a signal; None after the timeout.
        """
        done, _ = await asyncio.wait([self._ending], timeout=timeout_s)
        return self._ending.result() if done else None

    async def stop(self) -> None:
        """Terminate it, kill it after the grace period, and wait until all its processes have exited."""
        self._lifeline.close()
        if await self.wait(self._grace_s + _WATCHDOG_END_S) is None:  # the watchdog is stopped or stuck
            self.kill()
            await self.wait()

    def kill(self) -> None:
        """Kill its process group; the watchdog kills processes that have left the group."""
        if not self._ending.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def _follow(self) -> int:
        """Wait for the watchdog's last line. Without one the watchdog was killed, and the group is killed here."""
        word, _, status = (await self._reports.readline()).decode("utf-8", "replace").strip().partition(" ")
        if word != "ended":
            self.kill()
        await self._watchdog.wait()
        self._lifeline.close()
        return int(status) if word == "ended" else -signal.SIGKILL


def read_tail(log: Path, lines: int, *, since: int = 0) -> list[str]:
    """The last lines of a log, without empty ones and control characters; empty when there is none.

    Args:
        log: The file.
        lines: Maximum number of lines.
        since: Bytes at its start that were written before the last restart.
    """
    # Bounded, as a server may print one endless line; the few lines that are shown fit in it.
    most = min(_TAIL_BYTES, lines * _LINE_BYTES)
    try:
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            since = since if since <= size else 0  # rotated in between
            file.seek(max(since, size - most))
            text = file.read(most).decode("utf-8", "replace")
    except OSError:
        return []
    # A progress bar rewrites its line: only what follows the last carriage return was visible.
    rows = [shown for row in text.split("\n") if (shown := row.rstrip("\r").rpartition("\r")[2].strip())]
    return ["".join(filter(str.isprintable, row)) for row in rows[-lines:]]
