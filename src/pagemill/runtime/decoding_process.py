"""The parent's end of one decoding process."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pagemill.errors import WorkerCrashError
from pagemill.processes import out_of_memory_kills
from pagemill.runtime.decoding_protocol import HEADER, MAX_MESSAGE, Ready, Rendered, Reply, Request, decode_reply, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.imaging.types import Pixels

_ENVIRONMENT = {
    # Numerical libraries would reserve address space for a thread on every core.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VIPS_CONCURRENCY": "1",
    # glibc raises this threshold with the first large block that is freed, and keeps blocks below it from then on.
    "MALLOC_MMAP_THRESHOLD_": str(2**20),
}
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 2.0
_STDERR_LINES = 20
_CHANNELS = 3


class KilledError(WorkerCrashError):
    """Another process has killed a decoding process, and not because memory ran out."""


class DecodingProcess:
    """One worker process, started on :meth:`start`, which answers one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process, memory: int | None) -> None:
        self._process = process
        self._memory = memory
        self._kills = out_of_memory_kills()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._drain = asyncio.create_task(self._read_stderr())
        self.documents: deque[bytes] = deque(maxlen=4)
        """Paths it has open, as far as one can tell from outside."""

    @classmethod
    async def start(cls, command: Sequence[str], *, memory: int | None, scratch: Path | None) -> DecodingProcess:
        """Start a process and wait until it is ready.

        Raises:
            WorkerCrashError: It ended, or was not ready within a minute.
        """
        arguments = [*command, "--parent", str(os.getpid())]
        arguments += ["--memory", str(memory)] if memory is not None else []
        arguments += ["--scratch", str(scratch)] if scratch is not None else []
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
        )
        worker = cls(process, memory)
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                reply = await worker._receive()
            if not isinstance(reply, Ready):
                raise WorkerCrashError("a decoding process did not start as it should")
        except BaseException as error:
            await worker.kill()
            if isinstance(error, (WorkerCrashError, TimeoutError)):
                raise WorkerCrashError(
                    f"a decoding process did not start: {worker.last_words() or error}",
                    remedy="Check the installation: python -m pagemill.runtime.decoder_worker --help",
                ) from error
            raise
        return worker

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def ask(self, request: Request) -> Reply:
        """Send a request and wait for its answer. A caller that gives up must :meth:`kill` the process.

        Raises:
            WorkerCrashError: The process died, or answered nonsense.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(frame(request))
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise await self._crash() from error
        if request.path not in self.documents:
            self.documents.append(request.path)
        return await self._receive()

    async def _receive(self) -> Reply:
        assert self._process.stdout is not None
        try:
            (length,) = HEADER.unpack(await self._process.stdout.readexactly(HEADER.size))
            if length > MAX_MESSAGE:
                raise WorkerCrashError(f"a decoding process sent a message of {length:,} bytes")
            body = await self._process.stdout.readexactly(length)
            return await asyncio.to_thread(decode_reply, body)
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            raise await self._crash() from error
        except msgspec.MsgspecError as error:
            raise WorkerCrashError(f"a decoding process answered nonsense: {error}") from error

    async def _crash(self) -> WorkerCrashError:
        """What to say about a process that closed its output: it is about to end by itself, if it did not already."""
        await self._wait(_END_TIMEOUT_S)
        await self.kill()
        code = self._process.returncode or 0
        if code == -signal.SIGKILL and self._kills is not None:
            if out_of_memory_kills() == self._kills:
                return KilledError("another process killed the decoding process (SIGKILL)")
            return WorkerCrashError("the decoding process died (SIGKILL): memory ran out")
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        words = self.last_words()
        if self._memory is not None and code == -signal.SIGABRT and not words:
            # PDFium aborts, and says nothing, when an allocation fails; the C library's own aborts give their reason.
            return WorkerCrashError(
                f"the decoding process died ({how}), most likely of its memory limit of {self._memory / 2**30:.3g} GiB",
                remedy="If the file can be trusted, raise the limit with --decoder-memory.",
            )
        return WorkerCrashError(f"the decoding process died ({how})" + (f": {words}" if words else ""))

    def last_words(self) -> str:
        """The last line it wrote to standard error."""
        return self._stderr[-1] if self._stderr else ""

    def retained_bytes(self) -> int:
        """Memory that the process keeps, files in memory aside; 0 where the system has no ``/proc``."""
        try:
            _, resident, shared, *_ = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()
        except OSError:
            return 0
        return (int(resident) - int(shared)) * mmap.PAGESIZE

    async def close(self) -> None:
        """Let the process end by closing its input; kill it if it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await self._wait(_END_TIMEOUT_S)
        finally:
            await self.kill()

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()

    async def kill(self) -> None:
        """Kill the process and wait for its end; harmless when it has ended already."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        await asyncio.gather(self._drain, return_exceptions=True)

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(8192):
            lines = chunk.decode("utf-8", "replace").splitlines()
            self._stderr.extend(line.strip()[:500] for line in lines if line.strip())


def take_pixels(pid: int, reply: Rendered) -> Pixels:
    """Map the pixels of a rendered page (Linux) or read and remove their temporary file.

    Args:
        pid: Of the worker that rendered it, which must not have been asked anything since.
        reply: Its answer.

    Returns:
        Pixels of shape (height, width, 3); their memory is freed with the array.

    Raises:
        WorkerCrashError: The worker gave less than it promised, or is gone.
    """
    shape = (reply.height, reply.width, _CHANNELS)
    size = reply.height * reply.width * _CHANNELS
    try:
        if reply.descriptor is None:
            path = Path(str(reply.path))
            try:
                return np.fromfile(path, dtype=np.uint8, count=size).reshape(shape)
            finally:
                path.unlink(missing_ok=True)
        with Path(f"/proc/{pid}/fd/{reply.descriptor}").open("r+b", buffering=0) as file:
            if sys.platform == "linux":
                import fcntl

                if not fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
                    raise ValueError("not sealed")
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype=np.uint8).reshape(shape)
    except (OSError, ValueError) as error:
        raise WorkerCrashError(f"the pixels of a page were lost between processes: {error}") from error
