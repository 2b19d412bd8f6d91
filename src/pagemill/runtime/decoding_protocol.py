"""Messages between the decoding service and its worker processes: length-prefixed MessagePack, then pixels."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from pagemill.errors import PagemillError, error_class
from pagemill.imaging.page import DecodedPage, PdfInfo, PdfRepair
from pagemill.readers.reading import DocumentRead

HEADER = struct.Struct(">I")
MAX_MESSAGE = 256 * 2**20
"""Bytes; a longer message, or more pixels, mean that the other side is broken."""


class Describe(msgspec.Struct, tag=True, frozen=True):
    """Open a PDF and describe it."""

    path: Path
    password: str | None


class Render(msgspec.Struct, tag=True, frozen=True):
    """Render a page of a PDF."""

    path: Path
    password: str | None
    page_index: int
    text_only_side: int | None = None
    """See :class:`pagemill.sources.base.PdfPage`."""


class Repair(msgspec.Struct, tag=True, frozen=True):
    """Write a repaired copy of a PDF."""

    path: Path
    password: str | None
    target: Path
    """An existing file."""


class DecodeImage(msgspec.Struct, tag=True, frozen=True):
    """Decode an image file."""

    path: Path
    frame: int
    name: Path
    """How messages call it; a file name need not be UTF-8."""


class ReadDocument(msgspec.Struct, tag=True, frozen=True):
    """Read a document into a file."""

    path: Path
    password: str | None
    target: Path
    """An existing file."""
    name: Path
    """Name given by the user; its suffix gives the format where the content does not."""


class Ready(msgspec.Struct, tag=True, frozen=True):
    """The worker has started."""


class Decoded(msgspec.Struct, tag=True, frozen=True):
    """Answer to :class:`Render` and :class:`DecodeImage`. Of the pixels it holds the shape; they follow it."""

    page: DecodedPage


class Failed(msgspec.Struct, tag=True, frozen=True):
    """A request that failed; the worker continues."""

    category: str
    message: str
    remedy: str | None

    @classmethod
    def of(cls, error: PagemillError) -> Failed:
        """What to answer for an error, whose message may hold a file name that is no UTF-8."""
        return cls(error.category, error.message.encode("utf-8", "backslashreplace").decode(), error.remedy)

    def exception(self) -> PagemillError:
        """The error as the exception class of its category."""
        return error_class(self.category)(self.message, remedy=self.remedy)


Request = Describe | Render | Repair | DecodeImage | ReadDocument
Reply = Ready | PdfInfo | Decoded | PdfRepair | DocumentRead | Failed
"""``PdfInfo`` answers :class:`Describe`, ``PdfRepair`` answers :class:`Repair`,
``DocumentRead`` answers :class:`ReadDocument`."""


def _plain(value: Any) -> Any:
    return os.fsencode(value) if isinstance(value, Path) else value.shape


def _restored(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(os.fsdecode(value))
    height, width, channels = msgspec.convert(value, tuple[int, int, int])
    if height * width * channels > MAX_MESSAGE:
        raise ValueError(f"a page of {width:,} x {height:,} pixels")
    return np.empty((height, width, channels), dtype=np.uint8)


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request, dec_hook=_restored)
_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply, dec_hook=_restored)


def send(stream: IO[bytes], message: Request | Reply) -> None:
    """Write a message with its length in front."""
    body = _encode(message)
    stream.write(HEADER.pack(len(body)) + body)
    if isinstance(message, Decoded):
        stream.write(np.ascontiguousarray(message.page.pixels).data)
    stream.flush()


def receive_request(stream: IO[bytes]) -> Request:
    """The next request; raises EOFError when there is none."""
    return _requests.decode(_body(stream))


def receive_reply(stream: IO[bytes]) -> Reply:
    """The next reply; raises EOFError when there is none."""
    reply = _replies.decode(_body(stream))
    if isinstance(reply, Decoded):
        pixels = reply.page.pixels
        if stream.readinto(pixels.reshape(-1)) != pixels.nbytes:  # type: ignore[attr-defined] # buffered streams have it
            raise EOFError
    return reply


def _body(stream: IO[bytes]) -> bytes:
    (length,) = HEADER.unpack(_exactly(stream, HEADER.size))
    if length > MAX_MESSAGE:
        raise msgspec.DecodeError(f"a message of {length:,} bytes")
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError
    return data
