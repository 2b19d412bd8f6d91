"""How many pages a TIFF has: image readers take a chain of pages that breaks off for one that ends."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import IO, NamedTuple

from pagemill.errors import CorruptInputError, unreadable

MAX_PAGES = 1_000_000
"""More are taken for a defect of the chain."""
_BIG = 43
_REQUIRED = {256, 257}
"""Tags of width and height; what lacks them is no page, but bytes that the chain led to by mistake."""
_REMEDY = "Get the file again, or open it in an image editor and save it anew to keep what is left."


class TiffPages(NamedTuple):
    """The pages of a TIFF."""

    pages: int
    """Up to the end of the chain or to where it breaks off."""
    problem: str | None
    """Why the chain of pages breaks off, so that nobody can tell how many are missing; None for a whole one."""


def count_pages(source: bytes | Path, name: str = "image") -> TiffPages:
    """Walk the chain of image file directories of a TIFF or BigTIFF.

    Args:
        source: Encoded bytes, or the path of a file.
        name: How messages call it.

    Raises:
        CorruptInputError: The first page is not there.
        MissingInputError: The file does not exist; UnreadableInputError when it cannot be read.
    """
    try:
        with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
            pages = _walk(file)
    except OSError as error:
        raise unreadable(name, error) from error
    if not pages.pages:
        raise CorruptInputError(f"{name} cannot be decoded: {pages.problem or 'it has no page'}", remedy=_REMEDY)
    return pages


def _walk(file: IO[bytes]) -> TiffPages:
    order = "<" if file.read(2) == b"II" else ">"
    is_big = file.read(2) == struct.pack(f"{order}H", _BIG)
    # TIFF 6.0: 16-bit number of 12-byte entries, 32-bit offset of the next directory; BigTIFF: 64, 20 and 64.
    number, entry, offset = (f"{order}Q", 20, f"{order}Q") if is_big else (f"{order}H", 12, f"{order}I")
    file.seek(8 if is_big else 4)
    met: set[int] = set()
    while True:
        try:
            (place,) = struct.unpack(offset, file.read(struct.calcsize(offset)))
            if place == 0:
                return TiffPages(len(met), None)
            if place in met:
                return TiffPages(len(met), f"the page after page {len(met)} is an earlier one")
            if len(met) == MAX_PAGES:
                return TiffPages(len(met), f"it has more than {MAX_PAGES:,} pages")
            file.seek(place)
            (entries,) = struct.unpack(number, file.read(struct.calcsize(number)))
            tags = file.read(entries * entry) if entries <= 0xFFFF else b""
            found = {tag for (tag,) in struct.iter_unpack(f"{order}H{entry - 2}x", tags)}
        except (struct.error, OverflowError, ValueError):  # the file ends before, or there is no such place
            found = set()
        if not found >= _REQUIRED:
            return TiffPages(len(met), f"the directory of page {len(met) + 1} is damaged or missing")
        met.add(place)
