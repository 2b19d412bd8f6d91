"""The keeper of one server: a small process that outlives whoever asked for the server, just long enough to end it.

It imports nothing but the standard library and :mod:`pagemill.processes`, so that it starts in milliseconds and holds
little memory. Its standard input is the lifeline: as long as that is open the server is wanted.
It ends the server when the lifeline ends (the owner closed it, or died in any way, SIGKILL included), when a byte comes
through it (then at once), or when its parent is another than at the start. Whatever descends from the server is ended
with it: on Linux the keeper inherits processes that lose their parent, also those that left the server's group. When
the keeper itself is killed, the Linux kernel kills the server's group; what had left that is ended by the next start of
a server (:mod:`pagemill.serving.orphans`).

On standard output it says ``started PID`` or ``failed ERROR``, and ``ended STATUS`` when the server and all its
processes are gone. What the server prints goes to a log that is kept below twice a size; a disk that is full loses
lines of it and never stops the server.

Arguments: --log FILE --log-bytes N --grace SECONDS -- COMMAND...
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from pagemill.processes import die_with_parent

_PR_SET_CHILD_SUBREAPER = 36
_CHECK_S = 1.0
"""How often it looks whether its parent is still there."""
_CHUNK = 2**16


class BoundedLog:
    """A log file that is renamed to ``NAME.1``, over the one before, when it has reached its size."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._descriptor = self._open()
        self._size = os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> None:
        """Append; what cannot be written is lost."""
        with suppress(OSError):
            if self._size + len(data) > self._limit and self._size:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                os.close(self._descriptor)
                self._descriptor = self._open()
                self._size = 0
            self._size += os.write(self._descriptor, data)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


class Keeper:
    """Starts the server, watches the lifeline, and ends all that the server started.

    Args:
        command: Of the server.
        log: Takes what it prints.
        grace_s: Time between the request to end and the kill.
    """

    def __init__(self, command: list[str], log: BoundedLog, grace_s: float) -> None:
        self._log = log
        self._grace_s = grace_s
        self._parent = os.getppid()
        self._deadline: float | None = None
        self._asked = False
        self._wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ignore_but_wake)
        _become_subreaper()
        # Nobody writes to it, and nobody but this process holds the writing end: it ends with this process.
        end_of_keeper, self._held = os.pipe()
        watchdog = os.getpid()

        def die_with_keeper() -> None:
            die_with_parent(watchdog)
            _kill_group_at_the_end_of(end_of_keeper)

        self._server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            pass_fds=(end_of_keeper,),
            preexec_fn=die_with_keeper,
        )
        os.close(end_of_keeper)

    @property
    def pid(self) -> int:
        """Of the server; also its process group."""
        return self._server.pid

    def keep(self) -> int:
        """Wait for the end of the server, asked for or not, and bury it; gives its status, negative for a signal."""
        assert self._server.stdout is not None
        output = self._server.stdout.fileno()
        lifeline = sys.stdin.fileno()
        poll = select.poll()
        for descriptor in (output, lifeline, self._wake_read):
            poll.register(descriptor, select.POLLIN)
        while self._server.poll() is None:
            for descriptor, _ in poll.poll(self._patience_ms()):
                if descriptor == output:
                    data = os.read(output, _CHUNK)
                    self._log.write(data)
                    if not data:  # it closed its output and goes on
                        poll.unregister(output)
                elif descriptor == lifeline:
                    if os.read(lifeline, 1):
                        self._kill()
                    else:
                        poll.unregister(lifeline)
                        self._ask_to_end()
                else:
                    os.read(self._wake_read, _CHUNK)
            if self._asked or os.getppid() != self._parent:
                self._ask_to_end()
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._kill()
        self._bury()
        self._drain(output)
        return self._server.returncode

    def _ignore_but_wake(self, number: int, frame: object) -> None:
        if number != signal.SIGCHLD:
            self._asked = True

    def _patience_ms(self) -> float:
        left = _CHECK_S if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        return min(_CHECK_S, left) * 1000 + 1

    def _ask_to_end(self) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._grace_s
            self._signal(signal.SIGTERM)

    def _kill(self) -> None:
        self._deadline = self._deadline or time.monotonic()
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._server.pid, number)

    def _bury(self) -> None:
        """End what the server left behind: its group, and all that came to this process when it lost its parent."""
        self._signal(signal.SIGKILL)
        while True:
            for pid in _children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:  # no more
                return

    def _drain(self, output: int) -> None:
        os.set_blocking(output, False)
        with suppress(BlockingIOError):
            while data := os.read(output, _CHUNK):
                self._log.write(data)


def _become_subreaper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _kill_group_at_the_end_of(pipe: int) -> None:
    """Have the kernel kill the process group of this process when the last writer of a pipe is gone (Linux).

    The death signal of :func:`prctl` reaches a child alone, not what that has started: vLLM's engine processes, say.
    """
    if hasattr(fcntl, "F_SETSIG"):
        with suppress(OSError):  # a sandbox that stands in for the kernel need not know it
            fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)


def _children() -> list[int]:
    """Processes whose parent this is; empty where the system has no ``/proc``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            if int(entry.read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(entry.parent.name))
    return found


def _say(text: str) -> None:
    with suppress(OSError):  # the owner is gone
        os.write(sys.stdout.fileno(), f"{text}\n".encode(errors="replace"))


def main() -> int:
    """Keep one server to its end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--log-bytes", type=int, required=True)
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    try:
        keeper = Keeper(options.command, BoundedLog(options.log, options.log_bytes), options.grace)
    except OSError as error:
        _say(f"failed {error.strerror or error}: {error.filename or ''}")
        return 1
    _say(f"started {keeper.pid}")
    _say(f"ended {keeper.keep()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
