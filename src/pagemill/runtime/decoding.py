"""The decoding service: PDF pages and huge images in worker processes, other images on threads."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pagemill.config.settings import RuntimeSettings
from pagemill.errors import PageTimeoutError, WorkerCrashError
from pagemill.imaging.decode import decode_image, stored_pixels
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import DecodedPage
from pagemill.processes import module_command
from pagemill.runtime.decoding_process import DecodingProcess, KilledError, take_pixels
from pagemill.runtime.decoding_protocol import (
    DecodeImage,
    Describe,
    Described,
    Failed,
    Render,
    Rendered,
    Repair,
    Repaired,
)
from pagemill.runtime.threads import ComputeThreads
from pagemill.sources.base import PdfPage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from types import TracebackType

    from pagemill.imaging.page import PdfInfo, PdfRepair
    from pagemill.imaging.types import Pixels
    from pagemill.runtime.decoding_protocol import Reply, Request
    from pagemill.sources.base import EncodedImage

DECODE_TIMEOUT_S = 60.0
"""Most time for decoding or rendering a page, or opening a file, waiting for its turn not included; far above what
honest ones need. A page's own limit may be shorter."""
_LARGE = 2
"""Images this many times over the working size are decoded in a worker process, one at a time: its memory is bounded,
and goes back to the system."""
_RETAINED = 256 * 2**20
"""Bytes; a worker process that keeps more than this after a page is replaced. An idle one has 40 MB."""


class DecodingService:
    """Decodes pages for all documents of a run. An async context manager; made for one event loop.

    A PDF page that crashes its process or is over the time limit fails alone, and the process is replaced.

    Args:
        workers: Most worker processes; each is started when the ones there are busy.
        threads: Where images are decoded; two threads of its own by default.
        limits: Page sizes and rendering resolution.
        timeout_s: Time limit for one page or one opening, in seconds, waiting for its turn not included.
        memory: Address space of a worker in bytes (Linux), None for no limit.
        command: Starts a worker; pagemill's own by default.
        shared_memory: Hand pixels over in memory files; False uses temporary files, as outside of Linux.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        threads: ComputeThreads | None = None,
        limits: DecodeLimits | None = None,
        timeout_s: float = DECODE_TIMEOUT_S,
        memory: int | None = RuntimeSettings().decoder_memory,
        command: Sequence[str] | None = None,
        shared_memory: bool = sys.platform == "linux",
    ) -> None:
        self.limits = limits or DecodeLimits()
        self._timeout_s = timeout_s
        self._memory = memory
        self._command = tuple(command or module_command("pagemill.runtime.decoder_worker"))
        self._shared_memory = shared_memory
        self._free = asyncio.Semaphore(max(1, workers))
        self._idle: list[DecodingProcess] = []
        self._threads = threads or ComputeThreads(2, name="pagemill.decode")
        self._one_large = asyncio.Lock()
        self._scratch: Path | None = None
        self._cleanup = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if not self._shared_memory:
            directory = tempfile.TemporaryDirectory(prefix="pagemill-", ignore_cleanup_errors=True)
            self._scratch = Path(self._cleanup.enter_context(directory))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(process.close() for process in idle))
        await self._threads.close()
        await self._cleanup.aclose()

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        """Open a PDF and tell its page count, sizes and metadata.

        Raises:
            PagemillError: It cannot be opened; the class says why (missing, unsupported, corrupt, encrypted, no pages).
            PageTimeoutError: Opening took too long.
            WorkerCrashError: Opening crashed the decoder, twice: whole documents depend on it, and nobody else tries
                again, as is done with pages.
        """
        request, what = Describe(os.fsencode(path.absolute()), password), f"opening {path.name}"
        try:
            reply, _ = await self._ask(request, what)
        except WorkerCrashError:
            reply, _ = await self._ask(request, what)
        if not isinstance(reply, Described):
            raise WorkerCrashError("a decoding process gave an answer to another question")
        return reply.info

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        """Write a copy of a PDF into an existing file ``target``, repaired and without encryption.

        Raises:
            PagemillError: It cannot be repaired; the class says why (corrupt, encrypted, too large).
            PageTimeoutError: It took too long.
            WorkerCrashError: It crashed the decoder.
        """
        request = Repair(os.fsencode(path.absolute()), password, os.fsencode(target.absolute()))
        reply, _ = await self._ask(request, f"repairing {path.name}")
        if not isinstance(reply, Repaired):
            raise WorkerCrashError("a decoding process gave an answer to another question")
        return reply.repair

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Decode a page to pixels within the working size.

        Raises:
            PagemillError: The page cannot be decoded; the class says why.
            PageTimeoutError: It took too long.
            WorkerCrashError: A PDF page crashed the decoder.
        """
        if not isinstance(payload, PdfPage):
            return await self._decode_image(payload)
        request = Render(os.fsencode(payload.path.absolute()), payload.password, payload.page_index, self.limits)
        page = await self._decode_apart(request, f"rendering page {payload.page_index + 1}")
        return replace(page, notes=(*payload.notes, *page.notes))

    async def _decode_apart(self, request: Render | DecodeImage, what: str) -> DecodedPage:
        """Decode in a worker process."""
        reply, pixels = await self._ask(request, what)
        if not isinstance(reply, Rendered) or pixels is None:
            raise WorkerCrashError("a decoding process gave an answer to another question")
        return DecodedPage(
            pixels=pixels,
            dpi=reply.dpi,
            scale=reply.scale,
            text_layer=reply.text_layer,
            image_boxes=reply.image_boxes,
            notes=reply.notes,
            warnings=reply.warnings,
        )

    async def _decode_image(self, payload: EncodedImage) -> DecodedPage:
        source = payload.path if payload.data is None else payload.data
        if source is None:
            raise ValueError("an image without bytes and path")
        name = payload.path.name if payload.path else "the image"
        what, run = f"decoding {name}", self._threads.run
        async with self._time_limit(what):
            stored = await run(stored_pixels, source, frame=payload.frame, limits=self.limits, name=name)
        if stored <= _LARGE * self.limits.max_pixels:
            async with self._time_limit(what):
                return await run(decode_image, source, frame=payload.frame, limits=self.limits, name=name)
        async with self._one_large:
            with nullcontext(source) if isinstance(source, Path) else _spooled(source) as path:
                plain_name = name.encode("utf-8", "backslashreplace").decode()
                request = DecodeImage(os.fsencode(path.absolute()), payload.frame, plain_name, self.limits)
                return await self._decode_apart(request, what)

    @asynccontextmanager
    async def _time_limit(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError:
            remedy = "Convert it to an image of moderate size with another program."
            if self._timeout_s < DECODE_TIMEOUT_S:  # else more time for the page is none for this
                remedy = (
                    f"Give it more time with --page-timeout (up to {DECODE_TIMEOUT_S:g} s count here). Or: {remedy}"
                )
            raise PageTimeoutError(f"{what} took longer than {self._timeout_s:g} s", remedy=remedy) from None

    async def _ask(self, request: Request, what: str) -> tuple[Reply, Pixels | None]:
        """Ask a process, and another one where that was killed from outside, which is no fault of the page.

        Returns:
            The answer with the pixels that belong to it.
        """
        try:
            try:
                reply, pixels = await self._ask_once(request, what)
            except KilledError:
                reply, pixels = await self._ask_once(request, what)
        except WorkerCrashError as error:
            raise WorkerCrashError(
                f"{what} failed: {error.message}",
                remedy=error.remedy or "Save the file anew with another program, or convert the page to an image.",
            ) from error
        if isinstance(reply, Failed):
            raise reply.exception()
        return reply, pixels

    async def _ask_once(self, request: Request, what: str) -> tuple[Reply, Pixels | None]:
        async with self._process(request.path) as process, self._time_limit(what):
            reply = await process.ask(request)
            if not isinstance(reply, Rendered):
                return reply, None
            return reply, await asyncio.to_thread(take_pixels, process.pid, reply)

    @asynccontextmanager
    async def _process(self, path: bytes) -> AsyncIterator[DecodingProcess]:
        """Lend a process; whatever goes wrong meanwhile (crash, time out, cancellation) ends it."""
        async with self._free:
            process = self._choose(path)
            if process is None:
                process = await DecodingProcess.start(self._command, memory=self._memory, scratch=self._scratch)
            try:
                yield process
            except BaseException:
                await asyncio.shield(process.kill())
                raise
            if process.retained_bytes() > _RETAINED:
                await asyncio.shield(process.close())
            else:
                self._idle.append(process)

    def _choose(self, path: bytes) -> DecodingProcess | None:
        """An idle process, one that has the document open by preference."""
        for index, process in enumerate(self._idle):
            if path in process.documents:
                return self._idle.pop(index)
        return self._idle.pop() if self._idle else None


@contextmanager
def _spooled(data: bytes) -> Iterator[Path]:
    """A temporary file with these bytes."""
    with tempfile.TemporaryDirectory(prefix="pagemill-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "image")
        path.write_bytes(data)
        yield path
