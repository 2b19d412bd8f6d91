"""The decoding service: PDF pages and huge images in worker processes, other images on threads."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import NoReturn, Self, TypeVar

import msgspec

from pagemill.computing.cpu_time import Work, process_clock
from pagemill.computing.timeout import Timeout
from pagemill.config.machine import RuntimeSettings
from pagemill.errors import PageTimeoutError, WorkerCrashError
from pagemill.imaging.decode import SoundJpeg, decode_image, sound_jpeg, stored_pixels
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import DecodedPage, PdfInfo, PdfRepair
from pagemill.processes import exit_reason, module_command
from pagemill.readers.reading import DocumentRead
from pagemill.runtime.decoding_protocol import (
    Decoded,
    DecodeImage,
    Describe,
    Failed,
    ReadDocument,
    Render,
    Repair,
    Reply,
    Request,
    receive_reply,
    send,
)
from pagemill.runtime.threads import ComputeThreads
from pagemill.sources.base import EncodedImage, PdfPage

Answer = TypeVar("Answer", PdfInfo, Decoded, PdfRepair, DocumentRead)

DECODE_TIMEOUT_S = 60.0
"""Most CPU time for decoding or rendering a page, or opening a file; far above what honest ones need. The limit of a
page may be shorter."""
_LARGE = 2
"""Images this many times over the working size are decoded in a worker process, one at a time: its memory is bounded,
and goes back to the system."""
_WORTH_ANOTHER_S = 1.0
"""CPU time of a process after which a second one may start: it takes .3 s, which short documents would not win back."""
_RETAINED = 256 * 2**20
"""Bytes; a worker process that keeps more than this after a page is replaced. An idle one has 40 MB."""
_ENVIRONMENT = {
    # Numerical libraries would reserve address space for a thread on every core.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VIPS_CONCURRENCY": "1",
    # glibc raises this threshold with the first large block that is freed, and keeps blocks below it from then on.
    "MALLOC_MMAP_THRESHOLD_": str(2**20),
}
_M_MMAP_THRESHOLD = -3  # of malloc.h
_END_TIMEOUT_S = 2.0
_STDERR_LINES = 20
_STDERR_LINE = 8192
"""Bytes; a longer line counts as several."""


class KilledError(WorkerCrashError):
    """A decoding process was killed from outside (SIGKILL)."""


class DecodingProcess:
    """A worker process that answers one request at a time; its methods block.

    Create it on the thread of the event loop, or before there is one.

    Args:
        command: Command line of the process; None to fork this one, which must have a single thread.
        memory: Its address space in bytes (Linux).
    """

    def __init__(self, command: Sequence[str] | None, memory: int) -> None:
        self._memory = memory
        forks = command is None
        self._process = subprocess.Popen(
            [*(command or ()), str(os.getpid()), str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
            # A fork starts no interpreter, which would ignore SIGPIPE again.
            restore_signals=not forks,
            # Never returns, so nothing is executed.
            preexec_fn=partial(_work, os.getpid(), memory) if forks else None,
        )
        self.pid = self._process.pid
        self.work = Work(process_clock(self.pid))
        """Its CPU time."""
        self._words: deque[bytes] = deque(maxlen=_STDERR_LINES)
        assert self._process.stderr is not None
        lines = iter(partial(self._process.stderr.readline, _STDERR_LINE), b"")
        self._listener = Thread(target=self._words.extend, args=(lines,), daemon=True)
        self._listener.start()

    def ask(self, request: Request) -> Reply:
        """Send a request and wait for its answer. A caller that gives up must :meth:`kill` the process.

        Raises:
            WorkerCrashError: The process died, or returned an invalid response.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the reply will not come
            send(self._process.stdin, request)
        return self.receive()

    def receive(self) -> Reply:
        """Wait for an answer; the first one shows that the process has started. Raises as :meth:`ask`."""
        assert self._process.stdout is not None
        try:
            return receive_reply(self._process.stdout)
        except EOFError:
            raise self._crash() from None
        except msgspec.MsgspecError as error:
            raise WorkerCrashError(f"a decoding process returned an invalid response: {error}") from error

    def _crash(self) -> WorkerCrashError:
        """The error for a process that closed its output: it exits on its own."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIMEOUT_S)
        self.kill()
        code = self._process.returncode
        lines = [line for line in (words.decode("utf-8", "replace").strip() for words in self._words) if line]
        detail = f": {lines[-1][:500]}" if lines else ""
        if code == -signal.SIGKILL:
            return KilledError(f"the decoding process was killed (SIGKILL, as when memory runs out){detail}")
        if code == -signal.SIGABRT and not detail:
            # PDFium aborts without a message when an allocation fails; the C library's own aborts give their reason.
            return WorkerCrashError(
                f"the decoding process died (SIGABRT), likely of its memory limit of {self._memory / 2**30:.3g} GiB",
                remedy="If the file can be trusted, raise the limit with --decoder-memory.",
            )
        return WorkerCrashError(f"the decoding process died ({exit_reason(code)}){detail}")

    def retained_bytes(self) -> int:
        """Memory that the process keeps, shared libraries aside; 0 where the system has no ``/proc``."""
        try:
            _, resident, shared, *_ = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()
        except OSError:
            return 0
        return (int(resident) - int(shared)) * mmap.PAGESIZE

    def kill(self) -> None:
        """Kill the process and wait for its end; harmless when it has finished already."""
        self._process.kill()
        self._listener.join()
        with suppress(OSError), self._process:  # closes the streams, the first of which may hold an unsent request
            pass


_ahead: dict[int, DecodingProcess] = {}
"""Processes forked ahead of use, by their memory limit."""


def fork_ahead(memory: int) -> None:
    """Fork a decoding process, for the first service of this process that needs one.

    It shares what is imported, and so is ready in a fraction of the time of a new interpreter. Called from the main
    thread while there is no other; does nothing on other systems than Linux, whose libraries may not survive a fork.

    Args:
        memory: Memory limit of the service, in bytes.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a service starts one later
            _ahead[memory] = DecodingProcess(None, memory)


def _work(parent: int, memory: int) -> NoReturn:
    """Run a decoding process in the forked child; called as ``preexec_fn``."""
    status = 1
    try:
        # One of them informs the parent that the process has started. Not by a range: containers allow a billion.
        for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
            with suppress(OSError):  # that of the list itself is closed already
                if descriptor > 2:
                    os.close(descriptor)
        os.environ.update(_ENVIRONMENT)  # for libraries that are loaded later
        with suppress(AttributeError):  # C libraries other than glibc
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, int(_ENVIRONMENT["MALLOC_MMAP_THRESHOLD_"]))
        from pagemill.runtime.decoder_worker import work

        gc.freeze()
        gc.enable()
        work(parent, memory)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # the child must never return into the parent's code


class DecodingService:
    """Decodes pages for all documents of a run. An async context manager; made for one event loop.

    A PDF page that crashes its process or is over the time limit fails alone, and the process is replaced.

    Args:
        workers: Most worker processes; each is started when the ones there are busy, and have been for a while.
        threads: Threads for decoding images; two of its own by default.
        timeout_s: Limit of CPU time for one page or one opening, in seconds.
        memory: Address space of a worker in bytes (Linux).
        command: Starts a worker; pagemill's own by default.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        threads: ComputeThreads | None = None,
        timeout_s: float = DECODE_TIMEOUT_S,
        memory: int = RuntimeSettings().decoder_memory,
        command: Sequence[str] | None = None,
    ) -> None:
        self.limits = DecodeLimits()
        self._timeout_s = timeout_s
        self._memory = memory
        self._command = command
        self._free = asyncio.Semaphore(1)
        self._unused = workers - 1
        """Processes that may start beside those that :attr:`_free` counts."""
        self._idle: list[DecodingProcess] = []
        # One thread asks a process, another one may have to kill it. Of the event loop's own threads, hanging
        # processes would leave none for that.
        self._waiting = ComputeThreads(2 * workers, name="pagemill.decoder")
        self._threads = threads or ComputeThreads(2, name="pagemill.decode")
        self._one_large = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(self._waiting.run(process.kill) for process in idle))
        await self._waiting.close()
        await self._threads.close()

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        """Open a PDF and return its page count, sizes and metadata.

        Raises:
            PagemillError: It cannot be opened; its class gives the cause (missing, corrupt, encrypted, no pages).
            PageTimeoutError: Opening took too long.
            WorkerCrashError: Opening crashed the decoder, twice: whole documents depend on it, and nobody else tries
                again, as is done with pages.
        """
        return await self._ask(Describe(path.absolute(), password), f"opening {path.name}", PdfInfo)

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        """Write a copy of a PDF into an existing file ``target``, repaired and without encryption.

        Raises:
            PagemillError: It cannot be repaired; its class gives the cause (corrupt, encrypted, too large).
            PageTimeoutError: It took too long.
            WorkerCrashError: It crashed the decoder.
        """
        request = Repair(path.absolute(), password, target.absolute())
        return await self._ask(request, f"repairing {path.name}", PdfRepair)

    async def read_document(self, path: Path, target: Path, name: str, password: str | None = None) -> DocumentRead:
        """Read a document into an existing file ``target``, the parts one after the other.

        Raises:
            PagemillError: It cannot be read; its class gives the cause.
            PageTimeoutError: It took too long.
            WorkerCrashError: It crashed the process, twice.
        """
        request = ReadDocument(path.absolute(), password, target.absolute(), Path(name))
        return await self._ask(request, f"reading {name}", DocumentRead)

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Decode a page to pixels within the working size.

        Raises:
            PagemillError: The page cannot be decoded; its class gives the cause.
            PageTimeoutError: It took too long.
            WorkerCrashError: A PDF page crashed the decoder.
        """
        if not isinstance(payload, PdfPage):
            return await self._decode_image(payload)
        request = Render(payload.path.absolute(), payload.password, payload.page_index, payload.text_only_side)
        page = (await self._ask(request, f"rendering page {payload.page_index + 1}", Decoded)).page
        return replace(page, notes=(*payload.notes, *page.notes))

    async def sound_jpeg(self, image: EncodedImage) -> SoundJpeg | None:
        """Read and judge an image that another decoder is to decode; see :func:`pagemill.imaging.decode.sound_jpeg`.

        Raises:
            PageTimeoutError: It took too long.
        """
        async with self._time_limit("decoding the image"):
            return await self._threads.run(sound_jpeg, image.source, limits=self.limits)

    async def _decode_image(self, payload: EncodedImage) -> DecodedPage:
        source = payload.source
        name = source.name if isinstance(source, Path) else "the image"
        what, run = f"decoding {name}", self._threads.run
        async with self._time_limit(what):
            stored = await run(stored_pixels, source, frame=payload.frame, limits=self.limits, name=name)
        if stored <= _LARGE * self.limits.max_pixels:
            async with self._time_limit(what):
                return await run(decode_image, source, frame=payload.frame, limits=self.limits, name=name)
        async with self._one_large:
            with nullcontext(source) if isinstance(source, Path) else _spooled(source) as path:
                request = DecodeImage(path.absolute(), payload.frame, Path(name))
                return (await self._ask(request, what, Decoded)).page

    @asynccontextmanager
    async def _time_limit(
        self, what: str, seconds: float | None = None, process: DecodingProcess | None = None
    ) -> AsyncIterator[None]:
        """Limit the CPU time of the calls in the block, or of a process that they ask."""
        seconds = seconds or self._timeout_s
        try:
            async with Timeout() as limit:
                if process is not None:
                    limit.meter.add(process.work)
                limit.start(seconds)
                yield
        except TimeoutError:
            raise PageTimeoutError(
                f"{what} took longer than {seconds:g} s",
                remedy=f"Allow more time with --page-timeout (up to {DECODE_TIMEOUT_S:g} s count here), or convert "
                "it to an image of moderate size with another program.",
            ) from None

    async def _ask(self, request: Request, what: str, expected: type[Answer]) -> Answer:
        """Ask a process, and another one where that was killed from outside, which is not the fault of the page."""
        try:
            try:
                reply = await self._ask_once(request, what)
            except WorkerCrashError as error:
                if not isinstance(error, KilledError) and not isinstance(request, (Describe, ReadDocument)):
                    raise
                reply = await self._ask_once(request, what)
        except WorkerCrashError as error:
            raise WorkerCrashError(
                f"{what} failed: {error.message}",
                remedy=error.remedy or "Save the file again with another program, or convert the page to an image.",
            ) from error
        if isinstance(reply, Failed):
            raise reply.exception()
        assert isinstance(reply, expected)  # a process that was not heard to the end is killed
        return reply

    async def _ask_once(self, request: Request, what: str) -> Reply:
        async with self._process() as process, self._time_limit(what, process=process):
            return await self._waiting.run(process.ask, request)

    def _start(self) -> DecodingProcess:
        if self._command is None and (ahead := _ahead.pop(self._memory, None)):
            return ahead
        return DecodingProcess(self._command or module_command("pagemill.runtime.decoder_worker"), self._memory)

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[DecodingProcess]:
        """Lend a process; whatever goes wrong meanwhile (crash, time out, cancellation) ends it."""
        async with self._free:
            is_new, is_good = not self._idle, False
            process = self._start() if is_new else self._idle.pop()
            try:
                if is_new:
                    async with self._time_limit("starting a decoding process", DECODE_TIMEOUT_S, process):
                        await self._waiting.run(process.receive)
                yield process
                is_good = process.retained_bytes() <= _RETAINED
            finally:
                if self._unused and (not is_good or process.work.cpu_s >= _WORTH_ANOTHER_S):
                    self._unused -= 1
                    self._free.release()
                if is_good:
                    self._idle.append(process)
                else:
                    await asyncio.shield(self._waiting.run(process.kill))


@contextmanager
def _spooled(data: bytes) -> Iterator[Path]:
    """A temporary file with these bytes."""
    with tempfile.NamedTemporaryFile(prefix="pagemill-") as file:
        file.write(data)
        file.flush()
        yield Path(file.name)
