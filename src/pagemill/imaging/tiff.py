"""How many pages a TIFF has, and whether one is damaged.

Image readers take a chain of pages that breaks off for one that ends, and a fax that breaks off for a white page.
"""

from __future__ import annotations

import io
import itertools
import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pagemill.errors import CorruptInputError, unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PAGES = 1_000_000
"""More are taken for a defect of the chain."""
_BIG = 43
_REQUIRED = {256, 257}
"""Tags of width and height; what lacks them is no page, but bytes that the chain led to by mistake."""
_MAX_COPIED = 2
"""Strips that have more bytes in all than so many times the file overlap: they are not checked, as a copy of them may
not fit into memory."""
_REMEDY = "Get the file again, or open it in an image editor and save it anew to keep what is left."

_COMPRESSION = 259
_LENIENT = frozenset({2, 3, 4, 7})
"""CCITT run lengths, group 3, group 4 and JPEG: libtiff warns of damaged data, and goes on."""
_STRIPS, _TILES = (273, 279), (324, 325)
"""Tags of the places and the lengths of the compressed data."""
_CODING = (256, 257, 258, 259, 262, 266, 277, 278, 284, 292, 293, 322, 323, 530)
"""Tags that say how the data are to be decoded, all of them numbers."""
_JPEG_TABLES = 347
_SHORT, _LONG, _UNDEFINED = 3, 4, 7
"""Types of tags."""


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


def is_damaged(file: IO[bytes], tags: Mapping[int, Any]) -> bool:
    """Whether libtiff finds fault with the data of a page that it decodes all the same.

    It is asked about a copy that holds nothing but those data: it also warns of tags out of order, and the like.

    Args:
        file: The TIFF.
        tags: Of the page.
    """
    if tags.get(_COMPRESSION) not in _LENIENT:
        return False
    places, lengths = _TILES if _TILES[0] in tags else _STRIPS
    if sum(tags[lengths]) > _MAX_COPIED * file.seek(0, io.SEEK_END):
        return False
    import pyvips  # importing it takes 0.2 s, and few pages need it

    pyvips.cache_set_max(0)  # nothing is read twice
    copy = _bare_copy(file, tags, places, lengths)
    try:
        pyvips.Image.tiffload_buffer(copy, access="sequential", fail_on="warning").avg()
    except pyvips.Error:
        return True
    return False


def _bare_copy(file: IO[bytes], tags: Mapping[int, Any], places: int, lengths: int) -> bytes:
    """A TIFF of one page with the compressed data of another and the tags that decoding them takes."""
    pieces = []
    for place, length in zip(tags[places], tags[lengths], strict=True):
        file.seek(place)
        pieces.append(file.read(length))
    starts = list(itertools.accumulate(map(len, pieces[:-1]), initial=8))
    entries: dict[int, tuple[int, int, bytes]] = {
        places: (_LONG, len(pieces), struct.pack(f"<{len(pieces)}I", *starts)),
        lengths: (_LONG, len(pieces), struct.pack(f"<{len(pieces)}I", *map(len, pieces))),
    }
    for tag in _CODING:
        if tag in tags:
            value = tags[tag] if isinstance(tags[tag], tuple) else (tags[tag],)
            kind, code = (_SHORT, "H") if max(value) <= 0xFFFF else (_LONG, "I")
            entries[tag] = (kind, len(value), struct.pack(f"<{len(value)}{code}", *value))
    if _JPEG_TABLES in tags:
        entries[_JPEG_TABLES] = (_UNDEFINED, len(tags[_JPEG_TABLES]), tags[_JPEG_TABLES])
    data = b"".join(pieces)
    data += b"\0" * (len(data) % 2)
    directory = struct.pack("<H", len(entries))
    end = 8 + len(data) + 2 + 12 * len(entries) + 4
    values = b""
    for tag, (kind, count, value) in sorted(entries.items()):
        where = value.ljust(4, b"\0") if len(value) <= 4 else struct.pack("<I", end + len(values))
        directory += struct.pack("<HHI", tag, kind, count) + where
        if len(value) > 4:
            values += value + b"\0" * (len(value) % 2)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory + bytes(4) + values
