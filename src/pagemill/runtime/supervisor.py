"""Keep a run alive: a forked worker does the work; its light parent watches it and starts it again when it dies."""

from __future__ import annotations

import atexit
import ctypes
import math
import mmap
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn, Self

from pagemill.computing.cpu_time import Limit, process_clock
from pagemill.errors import ExitCode, WorkerCrashError
from pagemill.processes import die_with_parent, exit_reason, out_of_memory_kills

RECYCLE = 75
"""Exit status of a worker that asks for a fresh process in its place (EX_TEMPFAIL of sysexits.h)."""
IDLE_DEATHS = 3
"""Consecutive deaths without a page in flight or finished after which the run is given up."""
BUSY_DEATHS = 10
"""The same with pages in flight: each death costs them an attempt, so that the next worker continues with others."""
FOREIGN_KILLS = 3
"""Kills from outside (SIGKILL, with memory left) that do not count as attempts of the pages in flight: a person kills a
worker once or twice, a memory guard in user space again and again."""
SAME_REQUEST_S = 0.25
"""A signal that arrives twice within this time was sent once: ``timeout`` signals its child and then the whole
group."""
BEAT_S = 0.5
"""Interval of the heartbeats of a supervised run."""
CHECK_S = 1.0
"""How often the parent looks for a sign of life."""
_SECOND_SIGNAL_CHECKS = 2  # grace period of a worker that was asked to end

_FOREIGN = "SIGKILL, sent by another process"
_ERASE_LINE_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"


class Vitals(ctypes.Structure):
    """Counters, which :func:`supervise` has a worker share with its parent and with the workers after it."""

    done: int
    """Pages that were parsed, across worker restarts."""
    failed: int
    """Pages that failed permanently, across worker restarts."""
    postponed: int
    """Attempts that failed and are followed by another, across worker restarts."""
    opened: int
    """Whether some worker has opened the output directory: it holds this run then, and none before it."""
    hung: int
    """Whether a computation has hung in any worker."""
    in_flight: int
    """Pages that are being parsed."""
    beats: int
    """Signs of life of this worker. From the first one on, silence means that it hangs."""
    orderly: int
    """Whether the worker exited on purpose. An exit status without this is a death: a library may call exit()."""
    _fields_ = [(name, ctypes.c_uint64) for name in __annotations__]

    @property
    def attempts(self) -> int:
        """Completed attempts across worker restarts."""
        return self.done + self.failed + self.postponed


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a worker knows about itself."""

    vitals: Vitals = field(default_factory=Vitals)
    number: int = 0
    """Workers before this one."""
    death: str | None = None
    """How the one before died (a signal's name, an exit status); None when none died, or one was killed from outside,
    which its pages have no part in."""
    supervised: bool = False
    """A parent restarts the worker when it exits with ``RECYCLE``."""

    async def beat(self) -> NoReturn:
        """Send heartbeats until the task is cancelled; harmless without a supervisor."""
        import asyncio  # the light parent does without

        while True:
            self.vitals.beats += 1
            await asyncio.sleep(BEAT_S)


def supervise(
    work: Callable[[Life], int],
    *,
    busy_deaths: int = BUSY_DEATHS,
    silence_s: float = math.inf,
    healthy_s: float = math.inf,
) -> int:
    """Do the work in a child process, and again in another one when that dies of a signal or exits with ``RECYCLE``.

    The child gets a process group of its own, so that a terminal's signals reach the parent alone, which passes them on
    once. The child is killed when the parent ends, its own children are killed when it dies. Call it from
    the main thread of a process without other threads or children.

    Args:
        work: Returns the exit status; prints its own errors. It is called once in every child.
        busy_deaths: Deaths in a row with pages in flight, and none ended in between, before giving up.
        silence_s: Seconds without a sign of life after which a worker that gave some is killed.
        healthy_s: Lifetime in seconds after which earlier deaths are forgotten: the worker did start.

    Returns:
        The exit status of the last worker. When that died of SIGINT or SIGTERM, this process dies of it, too.

    Raises:
        WorkerCrashError: Workers died again and again before an attempt at a page was completed.
    """
    vitals = Vitals.from_buffer(mmap.mmap(-1, ctypes.sizeof(Vitals)))
    death, idle, busy, number, foreign = None, 0, 0, 0, 0
    with _Parent(vitals, silence_s) as parent:
        while not parent.requests:
            attempts, kills = vitals.attempts, out_of_memory_kills()
            vitals.in_flight = vitals.beats = vitals.orderly = 0
            started = time.monotonic()
            code = parent.live(work, Life(vitals=vitals, number=number, death=death, supervised=True))
            if vitals.orderly and code != RECYCLE:
                return code
            if parent.requests > 1 or code in (-signal.SIGINT, -signal.SIGTERM):
                return _die_of(-code if code != -signal.SIGKILL else parent.last_request)
            death = None if vitals.orderly else parent.silence or _describe(code, kills)
            if parent.requests:
                if death:
                    _print_notice(f"The worker process died ({death}) while the run was stopping.")
                break
            if vitals.attempts != attempts or time.monotonic() - started >= healthy_s:
                idle = busy = 0
            idle, busy = (idle, busy + 1) if vitals.in_flight else (idle + 1, busy)
            if idle >= IDLE_DEATHS or busy >= busy_deaths:
                raise _given_up(death, idle + busy)
            foreign += death == _FOREIGN
            is_forgiven = death == _FOREIGN and foreign <= FOREIGN_KILLS
            _print_notice(_notice(death, 0 if is_forgiven else vitals.in_flight))
            death = None if is_forgiven else death
            number += 1
    return ExitCode.INTERRUPTED


def _print_notice(message: str) -> None:
    """Print a line to standard error, over what a dead worker may have left of its progress bar."""
    with suppress(OSError, ValueError):  # nobody reads it
        sys.stderr.write((_ERASE_LINE_SHOW_CURSOR if sys.stderr.isatty() else "") + message + "\n")
        sys.stderr.flush()


class _Parent:
    """Forks workers, waits for them, and forwards signals while it is entered."""

    def __init__(self, vitals: Vitals, silence_s: float) -> None:
        self.requests = 0
        """How often a signal asked for the end."""
        self.last_request = 0
        """Which signal it was."""
        self.silence: str | None = None
        """Why the last worker was killed, when it was for its silence."""
        self._vitals = vitals
        self._silence_s = silence_s
        self._worker: int | None = None
        self._requested_at = -math.inf
        self._beats = self._silent_checks = self._late_checks = 0
        self._limit: Limit | None = None
        """Limit of the CPU time of a worker that gives no sign of life: on a busy machine it may be long in coming."""
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int] = {}

    def __enter__(self) -> Self:
        for number, handler in (
            (signal.SIGINT, self._forward),
            (signal.SIGTERM, self._forward),
            (signal.SIGTSTP, self._pause),
            (signal.SIGALRM, self._check),
        ):
            self._before[number] = signal.getsignal(number) or signal.SIG_DFL
            if self._before[number] is not signal.SIG_IGN or number == signal.SIGALRM:  # nohup, background jobs
                signal.signal(number, handler)
        signal.setitimer(signal.ITIMER_REAL, CHECK_S, CHECK_S)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._restore_handlers()

    def live(self, work: Callable[[Life], int], life: Life) -> int:
        """One life of a worker; returns its exit status, negative for the signal that it died of."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()  # else the worker would print it once more
        self.silence = None
        self._beats = self._silent_checks = 0
        self._limit = None
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
        worker = os.fork()
        if not worker:
            self._become_worker(parent)
            _work(work, life)
        with suppress(OSError):  # whoever is first; the worker may be gone already
            os.setpgid(worker, worker)
        self._worker = worker
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._before)
        pid = 0
        while pid != worker:  # as the first process of a container it inherits, and has to bury, what one left behind
            pid, status = os.waitpid(-1, 0)
        self._worker = None
        with suppress(ProcessLookupError, PermissionError):  # its decoding processes
            os.killpg(worker, signal.SIGKILL)
        return os.waitstatus_to_exitcode(status)

    def _become_worker(self, parent: int) -> None:
        with suppress(OSError):
            os.setpgid(0, 0)
        self._restore_handlers()
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it may write to the terminal from its group of its own
        die_with_parent(parent, group=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._before)

    def _restore_handlers(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on to the worker, once."""
        now = time.monotonic()
        if number == self.last_request and now - self._requested_at < SAME_REQUEST_S:
            return
        self.requests += 1
        self.last_request, self._requested_at = number, now
        if self._worker:
            with suppress(ProcessLookupError):
                os.kill(self._worker, number)

    def _check(self, number: int, frame: FrameType | None) -> None:
        """Kill a worker without heartbeats, or one that ignores a second signal.

        Checks are counted, not seconds: the machine may sleep, and the whole job may be stopped for a while.
        """
        beats = self._vitals.beats
        is_silent = bool(beats) and beats == self._beats
        self._beats = beats
        self._silent_checks = self._silent_checks + 1 if is_silent else 0
        if not is_silent or self._limit is None:
            self._limit = Limit(self._silence_s, process_clock(self._worker or 0))
        self._late_checks += self.requests > 1
        silent_s = self._silent_checks * CHECK_S
        if silent_s > self._silence_s and not self._vitals.orderly:
            if self._limit.left(silent_s):
                self._silent_checks = 1  # look again after as long
                return
            self.silence = f"no sign of life for {silent_s:g} s"
            self._signal_group(signal.SIGKILL)
        elif self._late_checks > _SECOND_SIGNAL_CHECKS:
            self._signal_group(signal.SIGKILL)

    def _pause(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: stop the worker, then this process; both continue together."""
        self._signal_group(signal.SIGSTOP)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        signal.signal(number, self._pause)
        self._signal_group(signal.SIGCONT)

    def _signal_group(self, number: int) -> None:
        if self._worker:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._worker, number)


def _work(work: Callable[[Life], int], life: Life) -> NoReturn:
    """Work, clean up, and exit without waiting for threads, which may hang forever."""
    status: int = ExitCode.INTERNAL
    try:
        status = work(life)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()  # temporary files
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        life.vitals.orderly = True
        os._exit(status)


def _describe(code: int, kills: int | None) -> str:
    """How a worker died, as far as that is known.

    Args:
        code: Its exit status, negative for a signal.
        kills: From :func:`out_of_memory_kills`, before it started.
    """
    if code != -signal.SIGKILL:
        return exit_reason(code)
    if kills is None:
        return "SIGKILL, as when memory runs out"
    return _FOREIGN if out_of_memory_kills() == kills else "SIGKILL: memory ran out"


def _notice(death: str | None, pages: int) -> str:
    if death is None:
        return "A page hangs in a computation that cannot be stopped; going on in a fresh process."
    if not pages:
        return f"The worker process died ({death}); going on in a fresh one."
    in_flight = "1 page" if pages == 1 else f"{pages:,} pages"
    return f"The worker process died ({death}) with {in_flight} in flight; going on, that was one attempt at each."


def _given_up(death: str | None, times: int) -> WorkerCrashError:
    how = f"died {times} times in a row ({death})" if death else f"had to be replaced {times} times in a row"
    return WorkerCrashError(
        f"the worker process {how} and no page was completed",
        remedy="What was parsed is kept. If memory is short, --threads 1 --pages-in-flight 1 needs the least.",
    )


def _die_of(number: int) -> int:
    """End by the signal that ended the worker, so that whoever started this process sees the same."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    return 128 + number  # the first process of a container does not die of it
