"""The parent's end of one decoding process."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

from pagemill.errors import WorkerCrashError
from pagemill.processes import exit_reason
from pagemill.runtime.decoding_protocol import receive_reply, send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.runtime.decoding_protocol import Reply, Request

_ENVIRONMENT = {
    # Numerical libraries would reserve address space for a thread on every core.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VIPS_CONCURRENCY": "1",
    # glibc raises this threshold with the first large block that is freed, and keeps blocks below it from then on.
    "MALLOC_MMAP_THRESHOLD_": str(2**20),
}
_END_TIMEOUT_S = 2.0
_STDERR_LINES = 20
_STDERR_LINE = 8192
"""Bytes; a longer line counts as several."""


class KilledError(WorkerCrashError):
    """A decoding process was killed from outside (SIGKILL)."""


class DecodingProcess:
    """A worker process, which answers one request at a time. Create it on the event loop; its methods block."""

    def __init__(self, command: Sequence[str], memory: int) -> None:
        self._memory = memory
        self._process = subprocess.Popen(
            [*command, str(os.getpid()), str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
        )
        self.pid = self._process.pid
        self._words: deque[bytes] = deque(maxlen=_STDERR_LINES)
        assert self._process.stderr is not None
        lines = iter(partial(self._process.stderr.readline, _STDERR_LINE), b"")
        self._listener = Thread(target=self._words.extend, args=(lines,), daemon=True)
        self._listener.start()

    def ask(self, request: Request) -> Reply:
        """Send a request and wait for its answer. A caller that gives up must :meth:`kill` the process.

        Raises:
            WorkerCrashError: The process died, or answered nonsense.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the reply will not come
            send(self._process.stdin, request)
        return self.receive()

    def receive(self) -> Reply:
        """Wait for an answer; the first one says that the process has started. Raises as :meth:`ask`."""
        assert self._process.stdout is not None
        try:
            return receive_reply(self._process.stdout)
        except EOFError:
            raise self._crash() from None
        except msgspec.MsgspecError as error:
            raise WorkerCrashError(f"a decoding process answered nonsense: {error}") from error

    def _crash(self) -> WorkerCrashError:
        """What to say about a process that closed its output: it is about to end by itself, if it did not already."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIMEOUT_S)
        self.kill()
        code = self._process.returncode
        lines = [line for line in (words.decode("utf-8", "replace").strip() for words in self._words) if line]
        said = f": {lines[-1][:500]}" if lines else ""
        if code == -signal.SIGKILL:
            return KilledError(f"the decoding process was killed (SIGKILL, as when memory runs out){said}")
        if code == -signal.SIGABRT and not said:
            # PDFium aborts, and says nothing, when an allocation fails; the C library's own aborts give their reason.
            return WorkerCrashError(
                f"the decoding process died (SIGABRT), likely of its memory limit of {self._memory / 2**30:.3g} GiB",
                remedy="If the file can be trusted, raise the limit with --decoder-memory.",
            )
        return WorkerCrashError(f"the decoding process died ({exit_reason(code)}){said}")

    def retained_bytes(self) -> int:
        """Memory that the process keeps, shared libraries aside; 0 where the system has no ``/proc``."""
        try:
            _, resident, shared, *_ = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()
        except OSError:
            return 0
        return (int(resident) - int(shared)) * mmap.PAGESIZE

    def kill(self) -> None:
        """Kill the process and wait for its end; harmless when it has ended already."""
        self._process.kill()
        self._listener.join()
        with suppress(OSError), self._process:  # closes the streams, the first of which may hold an unsent request
            pass
