"""The watchdog of one server: a small process that stops the server when its owner is gone.

It imports nothing but the standard library and :mod:`pagemill.processes`, so that it starts in milliseconds and holds
little memory. Its standard input is the lifeline: while that is open, the server is wanted. The watchdog stops the
server when the lifeline closes (the owner closed it, or died in any way, SIGKILL included), and when its own parent
changes. Every descendant of the server is stopped with it: on Linux the
watchdog is a subreaper and inherits orphaned processes, also those that left the server's process group. If the
watchdog itself is killed, the Linux kernel kills the server's group.

On standard output it prints ``started PID`` or ``failed ERROR``, and ``ended STATUS`` once the server and all its
processes are gone. The server's output goes to a log of bounded size; a full disk loses lines of it and never stops the
server.

Arguments: the log, its most bytes, the seconds between SIGTERM and SIGKILL, and the server's command line.
"""

from __future__ import annotations

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
_CHECK_S = 0.2
"""Seconds between two looks at the server, the parent and the deadline."""
_CHUNK = 2**16


class BoundedLog:
    """A log file that is rotated to ``NAME.1`` at its size limit; one older file is kept."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._descriptor = self._open()
        self._size = os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> None:
        """Append; lines that cannot be written are dropped."""
        with suppress(OSError):
            # By size alone, not by time: what fills a disk is a server that prints without end.
            if self._size + len(data) > self._limit and self._size:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                os.close(self._descriptor)
                self._descriptor = self._open()
                self._size = 0
            self._size += os.write(self._descriptor, data)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


class Watchdog:
    """Starts the server, watches the lifeline, and stops everything that the server started.

    Args:
        command: The server's command line.
        log: Receives its output.
        grace_s: Seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, command: list[str], log: BoundedLog, grace_s: float) -> None:
        self._log = log
        self._grace_s = grace_s
        self._parent = os.getppid()
        self._deadline: float | None = None
        # Processes of the server may leave its group. As a subreaper we inherit those that outlive it, and can kill
        # them; otherwise they would go to init and keep the accelerator.
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        # Nobody writes to this pipe and only this process holds its writing end, so it closes when this process dies.
        end_of_watchdog, self._held = os.pipe()
        pid = os.getpid()

        def die_with_watchdog() -> None:
            die_with_parent(pid)
            _kill_group_at_the_end_of(end_of_watchdog)

        self._server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            pass_fds=(end_of_watchdog,),
            preexec_fn=die_with_watchdog,
        )
        self.pid = self._server.pid
        """The server's process id, which is also its process group."""
        os.close(end_of_watchdog)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._terminate())

    def run(self) -> int:
        """Wait until the server exits and clean up after it. Returns its status, negative for a signal."""
        assert self._server.stdout is not None
        output = self._server.stdout.fileno()
        lifeline = sys.stdin.fileno()
        poll = select.poll()
        for descriptor in (output, lifeline):
            poll.register(descriptor, select.POLLIN)
        while self._server.poll() is None:
            for descriptor, _ in poll.poll(_CHECK_S * 1000):
                if descriptor == output:
                    data = os.read(output, _CHUNK)
                    self._log.write(data)
                    if not data:  # the server closed its output but still runs
                        poll.unregister(output)
                else:
                    poll.unregister(lifeline)
                    self._terminate()
            # The lifeline may still be open in a child that the owner forked: its death shows in our parent, too.
            if os.getppid() != self._parent:
                self._terminate()
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._signal(signal.SIGKILL)
        self._reap()
        # After the last writer is gone: a traceback of a killed engine may be what explains the failure.
        self._drain(output)
        return self._server.returncode

    def _terminate(self) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._grace_s
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _reap(self) -> None:
        """Kill what the server left behind: its process group, and orphans that this process inherited."""
        self._signal(signal.SIGKILL)
        # Again and again, as each process that dies may leave us children of its own.
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


def _kill_group_at_the_end_of(pipe: int) -> None:
    """Have the kernel kill this process group when the last writer of a pipe is gone (Linux).

    The parent-death signal of prctl reaches one child only, not its own children such as vLLM's engine processes.
    """
    if hasattr(fcntl, "F_SETSIG"):
        with suppress(OSError):  # some sandboxes do not implement it
            fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)


def _children() -> list[int]:
    """Process ids of this process's children; empty on systems without ``/proc``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The name of a program may hold spaces and brackets: the fields begin behind its last one.
            if int(entry.read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(entry.parent.name))
    return found


def _report(text: str) -> None:
    with suppress(OSError):  # the owner is gone
        os.write(sys.stdout.fileno(), f"{text}\n".encode(errors="replace"))


def main() -> int:
    """Watch one server until it has finished."""
    log, log_bytes, grace_s, *command = sys.argv[1:]
    try:
        watchdog = Watchdog(command, BoundedLog(Path(log), int(log_bytes)), float(grace_s))
    except OSError as error:
        _report(f"failed {error.strerror or error}: {error.filename or ''}")
        return 1
    _report(f"started {watchdog.pid}")
    _report(f"ended {watchdog.run()}")
    return 0
