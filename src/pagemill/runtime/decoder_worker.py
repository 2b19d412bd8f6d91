"""A decoding process: renders pages of PDFs, reads documents and decodes huge images on request, one at a time.

Started by :mod:`pagemill.runtime.decoding`. It may crash, hang or be killed at any time: no other process is affected.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

from pagemill.errors import CorruptInputError, PagemillError, TooLargeError
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import describe, open_pdf, render_page
from pagemill.imaging.pdf_repair import repair_pdf
from pagemill.processes import die_with_parent
from pagemill.readers.reading import read_document
from pagemill.runtime.decoding_protocol import (
    Decoded,
    DecodeImage,
    Describe,
    Failed,
    ReadDocument,
    Ready,
    Repair,
    Reply,
    Request,
    receive_request,
    send,
)

OPEN_DOCUMENTS = 4


class Worker:
    """Answers requests; keeps the last few documents open."""

    def __init__(self) -> None:
        self._documents: OrderedDict[tuple[Path, str | None], Any] = OrderedDict()

    def answer(self, request: Request) -> Reply:
        """Do what is asked; errors become a :class:`Failed`."""
        try:
            return self._answer(request)
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

    def _answer(self, request: Request) -> Reply:
        if isinstance(request, DecodeImage):
            from pagemill.imaging.decode import decode_image  # most processes see PDFs alone

            return Decoded(decode_image(request.path, frame=request.frame, name=str(request.name)))
        if isinstance(request, ReadDocument):
            return read_document(request.path, request.target, str(request.name), request.password)
        if isinstance(request, Repair):
            return repair_pdf(request.path, request.target, request.password)
        document = self._open(request.path, request.password)
        if isinstance(request, Describe):
            return describe(document)
        return Decoded(render_page(document, request.page_index, DecodeLimits(), request.text_only_side))

    def _open(self, path: Path, password: str | None) -> Any:
        key = (path, password)
        document = self._documents.pop(key, None) or open_pdf(path, password)
        self._documents[key] = document
        if len(self._documents) > OPEN_DOCUMENTS:
            self._documents.popitem(last=False)[1].close()
        return document


def main() -> None:
    """Entry point of the process. Arguments: process id of the parent, bytes of address space (Linux)."""
    work(*map(int, sys.argv[1:]))


def work(parent: int, memory: int) -> None:
    """Answer requests from standard input until it is closed.

    Args:
        parent: Process id of the parent.
        memory: Bytes of address space (Linux).
    """
    # Ctrl-C, and what stops a whole service, are the parent's: it lets pages in flight finish.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent(parent)
    if sys.platform == "linux":  # other systems do not enforce it
        # Whoever set a limit below ours (ulimit -v) cannot have it raised, and does not want to.
        own = [limit for limit in resource.getrlimit(resource.RLIMIT_AS) if limit != resource.RLIM_INFINITY]
        limit = min([memory, *own])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # What libraries print must not end up among the replies.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    worker = Worker()
    with suppress(EOFError):  # nobody asks any more
        send(replies, Ready())
        while True:
            send(replies, worker.answer(receive_request(requests)))
