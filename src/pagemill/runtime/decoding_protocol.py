"""What the decoding service and its worker processes say to each other: length-prefixed MessagePack."""

from __future__ import annotations

import struct

import msgspec

from pagemill.document.geometry import Box
from pagemill.document.page import PageError
from pagemill.errors import PagemillError, error_class
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo, PdfRepair, TextLayer

HEADER = struct.Struct(">I")
MAX_MESSAGE = 256 * 2**20
"""Bytes; a longer message means that the other side is broken."""


class Describe(msgspec.Struct, tag=True, frozen=True):
    """Open a PDF and tell about it."""

    path: bytes
    """As the file system has it: a name need not be UTF-8."""
    password: str | None


class Render(msgspec.Struct, tag=True, frozen=True):
    """Render a page of a PDF."""

    path: bytes
    password: str | None
    page_index: int
    limits: DecodeLimits


class Repair(msgspec.Struct, tag=True, frozen=True):
    """Write a repaired copy of a PDF."""

    path: bytes
    password: str | None
    target: bytes
    """An existing file."""


class DecodeImage(msgspec.Struct, tag=True, frozen=True):
    """Decode an image file."""

    path: bytes
    frame: int
    name: str
    """How messages call it."""
    limits: DecodeLimits


class Ready(msgspec.Struct, tag=True, frozen=True):
    """The worker has started."""


class Described(msgspec.Struct, tag=True, frozen=True):
    """Answer to :class:`Describe`."""

    info: PdfInfo


class Repaired(msgspec.Struct, tag=True, frozen=True):
    """Answer to :class:`Repair`."""

    repair: PdfRepair


class Rendered(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """Answer to :class:`Render` and :class:`DecodeImage`.

    The pixels (height x width x 3, RGB) are in a file, which is valid until the next request.
    """

    descriptor: int | None = None
    """The worker's number of a sealed memory file; None when ``path`` names a temporary file."""
    path: str | None = None
    """Removed by who reads it."""
    width: int
    height: int
    dpi: float | None
    scale: float = 1.0
    text_layer: TextLayer | None = None
    image_boxes: tuple[Box, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[PageError, ...] = ()


class Failed(msgspec.Struct, tag=True, frozen=True):
    """A request that could not be met; the worker goes on."""

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


Request = Describe | Render | Repair | DecodeImage
Reply = Ready | Described | Rendered | Repaired | Failed

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def frame(message: Request | Reply) -> bytes:
    """A message with its length in front."""
    body = encode(message)
    return HEADER.pack(len(body)) + body
