"""A decoding process: renders pages of PDFs and decodes huge images on request, one at a time, until its input ends.

Started by :mod:`pagemill.runtime.decoding_process`. It may crash, hang or be killed at any time: nobody else is hurt.
"""

from __future__ import annotations

import argparse
import mmap
import os
import signal
import sys
import tempfile
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np

from pagemill.errors import CorruptInputError, PagemillError, TooLargeError
from pagemill.imaging.decode import decode_image
from pagemill.imaging.pdf import describe, open_pdf, render_page
from pagemill.imaging.pdf_repair import repair_pdf
from pagemill.processes import die_with_parent
from pagemill.runtime.decoding_protocol import (
    HEADER,
    DecodeImage,
    Describe,
    Described,
    Failed,
    Ready,
    Render,
    Rendered,
    Repair,
    Repaired,
    Reply,
    Request,
    decode_request,
    frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

if sys.platform == "linux":
    import fcntl

OPEN_DOCUMENTS = 4


class Worker:
    """Answers requests; keeps the last few documents open and the pixels of the last page.

    Args:
        scratch: Directory for pixels where there are no memory files; None uses memory files.
    """

    def __init__(self, scratch: Path | None) -> None:
        self._scratch = scratch
        self._documents: OrderedDict[tuple[bytes, str | None], Any] = OrderedDict()
        self._pixels = -1

    def answer(self, request: Request) -> Reply:
        """Do what is asked; errors become a :class:`Failed`."""
        self._release()
        try:
            if isinstance(request, DecodeImage):
                return self._with_pixels(partial(_decode, request))
            if isinstance(request, Repair):
                source, target = Path(os.fsdecode(request.path)), Path(os.fsdecode(request.target))
                return Repaired(repair_pdf(source, target, request.password))
            document = self._open(request.path, request.password)
            if isinstance(request, Describe):
                return Described(describe(document))
            return self._with_pixels(partial(_render, document, request))
        except PagemillError as error:
            return Failed.of(error)
        except MemoryError:
            oversize = TooLargeError(
                "the page does not fit into the decoder's memory limit",
                remedy="Raise the limit with --decoder-memory, or scale the page down.",
            )
            return Failed.of(oversize)
        except Exception as error:
            return Failed.of(CorruptInputError(f"the page cannot be decoded ({type(error).__name__}: {error})"))

    def _open(self, path: bytes, password: str | None) -> Any:
        key = (path, password)
        document = self._documents.pop(key, None) or open_pdf(Path(os.fsdecode(path)), password)
        self._documents[key] = document
        if len(self._documents) > OPEN_DOCUMENTS:
            self._documents.popitem(last=False)[1].close()
        return document

    def _with_pixels(self, draw: Callable[[Callable[[int], Any]], Rendered]) -> Rendered:
        """What ``draw`` gives, with the place of the pixels that it has written into the buffer it asked for."""
        if self._scratch is None:
            return msgspec.structs.replace(draw(self._memory_file), descriptor=self._pixels)
        buffers: list[bytearray] = []

        def allocate(size: int) -> bytearray:
            buffers.append(bytearray(size))
            return buffers[0]

        rendered = draw(allocate)
        descriptor, path = tempfile.mkstemp(suffix=".rgb", dir=self._scratch)
        with os.fdopen(descriptor, "wb") as file:
            file.write(buffers[0])
        return msgspec.structs.replace(rendered, path=path)

    def _memory_file(self, size: int) -> mmap.mmap:
        """An anonymous file in memory: reserved at once, so that a lack of memory is an error here and now."""
        if sys.platform != "linux":
            raise OSError("memory files exist on Linux only")
        self._pixels = os.memfd_create("pagemill-page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(self._pixels, 0, size)
            pixels = mmap.mmap(self._pixels, size)
        except OSError as error:
            raise MemoryError(str(error)) from error
        # The reader can rely on the size: it maps the file and would die of SIGBUS if that shrank.
        fcntl.fcntl(self._pixels, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return pixels

    def _release(self) -> None:
        if self._pixels >= 0:
            os.close(self._pixels)
            self._pixels = -1


def _render(document: Any, request: Render, allocate: Callable[[int], Any]) -> Rendered:
    page = render_page(document, request.page_index, request.limits, allocate)
    return Rendered(
        width=page.width,
        height=page.height,
        dpi=page.dpi,
        text_layer=page.text_layer,
        image_boxes=page.image_boxes,
        notes=page.notes,
        warnings=page.warnings,
    )


def _decode(request: DecodeImage, allocate: Callable[[int], Any]) -> Rendered:
    path = Path(os.fsdecode(request.path))
    page = decode_image(path, frame=request.frame, limits=request.limits, name=request.name)
    np.frombuffer(allocate(page.pixels.nbytes), dtype=np.uint8)[:] = page.pixels.reshape(-1)
    height, width = page.pixels.shape[:2]
    return Rendered(
        width=width, height=height, dpi=page.dpi, scale=page.scale, notes=page.notes, warnings=page.warnings
    )


def serve(worker: Worker, requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests until their stream ends."""

    def send(reply: Reply) -> None:
        replies.write(frame(reply))
        replies.flush()

    send(Ready())
    while len(header := requests.read(HEADER.size)) == HEADER.size:
        (length,) = HEADER.unpack(header)
        send(worker.answer(decode_request(requests.read(length))))


def limit_memory(memory: int) -> None:
    """Bound the address space to this many bytes, or to fewer where the user has set a lower limit (``ulimit -v``).

    On Linux only, as other systems do not enforce it.
    """
    if sys.platform == "linux":
        import resource

        # Whoever set a limit below this one cannot have it raised, and does not want to.
        limits = [
            memory,
            *(limit for limit in resource.getrlimit(resource.RLIMIT_AS) if limit != resource.RLIM_INFINITY),
        ]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), min(limits)))


def main() -> None:
    """Entry point of the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--memory", type=int)
    parser.add_argument("--scratch", type=Path)
    options = parser.parse_args()
    # Ctrl-C, and what stops a whole service, are the parent's: it lets pages in flight finish.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent(options.parent)
    if options.memory is not None:
        limit_memory(options.memory)
    # What libraries print must not end up among the replies.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(Worker(options.scratch), requests, replies)
    except BrokenPipeError:  # nobody listens any more
        os._exit(0)


if __name__ == "__main__":
    main()
