"""How many pages a TIFF has, and whether one is damaged.

Image readers take a chain of pages that breaks off for one that ends, and a fax that breaks off for a white page.
"""

from __future__ import annotations

import io
import itertools
import math
import mmap
import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pagemill.errors import CorruptInputError, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_PAGES = 1_000_000
"""More are taken for a defect of the chain."""
_BIG = 43
_REQUIRED = {256, 257}
"""Tags of width and height; what lacks them is no page, but bytes that the chain led to by mistake."""
_MAX_READ = 2
"""Strips that have more bytes in all than so many times the file overlap: they are not checked."""
_REMEDY = "Get the file again, or open it in an image editor and save it again to keep what is left."

_WIDTH, _HEIGHT, _COMPRESSION, _SAMPLES, _PLANES = 256, 257, 259, 277, 284
_STRIPS = (273, 279, 256, 278)
"""Tags of the places and lengths of the data, and of the width and height, of strips."""
_TILES = (324, 325, 322, 323)
"""The same of tiles."""
_UNCOMPRESSED = 1
_LENIENT = frozenset({2, 3, 4, 7})
"""CCITT run lengths, group 3, group 4 and JPEG: libtiff warns of damaged data, and goes on."""
_CODING = (258, 259, 262, 266, 277, 284, 292, 293, 347, 530)
"""Tags that say how the data are to be decoded."""
_LONG = 4
"""Type of an entry."""


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
    pages, problem = 0, None
    try:
        with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
            for _ in _directories(file, _layout(file)):
                pages += 1
    except OSError as error:
        raise unreadable(name, error) from error
    except _BrokenChainError as error:
        problem = str(error)
    if not pages:
        raise CorruptInputError(f"{name} cannot be decoded: {problem or 'it has no page'}", remedy=_REMEDY)
    return TiffPages(pages, problem)


class _BrokenChainError(RuntimeError):
    """The chain of directories breaks off."""


class _Layout(NamedTuple):
    """How a TIFF writes its directories: their number of entries, an entry as tag and rest, the offset of the next."""

    number: struct.Struct
    entry: struct.Struct
    offset: struct.Struct
    start: int
    """Place of the offset of the first directory."""


def _layout(file: IO[bytes]) -> _Layout:
    file.seek(0)
    order = "<" if file.read(2) == b"II" else ">"
    is_big = file.read(2) == struct.pack(f"{order}H", _BIG)
    # TIFF 6.0: 16-bit number of 12-byte entries, 32-bit offset of the next directory; BigTIFF: 64, 20 and 64.
    number, entry, offset = ("Q", "H18s", "Q") if is_big else ("H", "H10s", "I")
    return _Layout(
        struct.Struct(order + number), struct.Struct(order + entry), struct.Struct(order + offset), 8 if is_big else 4
    )


def _directories(file: IO[bytes], layout: _Layout) -> Iterator[tuple[int, dict[int, bytes]]]:
    """Place and entries by tag of the directory of each page."""
    file.seek(layout.start)
    met: set[int] = set()
    while True:
        found: dict[int, bytes] = {}
        try:
            (place,) = layout.offset.unpack(file.read(layout.offset.size))
            if place == 0:
                return
            if place in met:
                raise _BrokenChainError(f"the page after page {len(met)} is an earlier one")
            if len(met) == MAX_PAGES:
                raise _BrokenChainError(f"it has more than {MAX_PAGES:,} pages")
            file.seek(place)
            (entries,) = layout.number.unpack(file.read(layout.number.size))
            found = dict(layout.entry.iter_unpack(file.read(entries * layout.entry.size) if entries <= 0xFFFF else b""))
        except (struct.error, OverflowError, ValueError):  # the file ends before, or there is no such place
            pass
        if not found.keys() >= _REQUIRED:
            raise _BrokenChainError(f"the directory of page {len(met) + 1} is damaged or missing")
        met.add(place)
        following = file.tell()
        yield place, found
        file.seek(following)


def is_damaged(file: IO[bytes], tags: Mapping[int, Any], frame: int) -> bool:
    """Whether data are missing from, or libtiff finds fault with, a page that is decoded all the same.

    libtiff is asked about a copy whose directory says nothing but where the data are and how they are decoded: it also
    warns of tags out of order, and the like. libvips passes on what it says of strips only, so that tiles are read as
    the strips of a page as wide as they are.

    Args:
        file: The TIFF.
        tags: Of the page.
        frame: Index of the page.
    """
    size = file.seek(0, io.SEEK_END)
    compression = tags.get(_COMPRESSION, _UNCOMPRESSED)
    kind = _TILES if _TILES[0] in tags else _STRIPS
    if compression not in {_UNCOMPRESSED, *_LENIENT} or kind[0] not in tags:
        return False
    across, down = tags.get(kind[2]) or tags[_WIDTH], tags.get(kind[3]) or tags[_HEIGHT]
    pieces = math.ceil(tags[_WIDTH] / across) * math.ceil(tags[_HEIGHT] / down)
    if len(tags[kind[0]]) < pieces * (tags.get(_SAMPLES, 1) if tags.get(_PLANES) == 2 else 1):
        return True
    if compression == _UNCOMPRESSED or sum(tags.get(kind[1], ())) > _MAX_READ * size:
        return False
    import pyvips  # importing it takes 0.2 s, and few pages need it

    pyvips.cache_set_max(0)  # nothing is read twice
    layout = _layout(file)
    place, entries = next(itertools.islice(_directories(file, layout), frame, None))
    if isinstance(file, io.BytesIO):
        copy: bytearray | mmap.mmap = bytearray(file.getbuffer())
    else:
        copy = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    order, count = layout.entry.format[0], layout.offset.format[1]
    height = struct.pack(f"{order}H{count}I", _LONG, 1, tags[_HEIGHT] if kind is _STRIPS else down * pieces)
    kept = {tag: entries[tag] for tag in _CODING if tag in entries}
    kept |= {tag: entries[given] for tag, given in zip(_STRIPS, kind, strict=True) if given in entries}
    kept[_HEIGHT] = height
    directory = layout.number.pack(len(kept)) + b"".join(layout.entry.pack(*entry) for entry in sorted(kept.items()))
    directory += layout.offset.pack(0)
    copy[place : place + len(directory)] = directory
    copy[layout.start : layout.start + layout.offset.size] = layout.offset.pack(place)
    try:
        pyvips.Image.tiffload_buffer(copy, access="sequential", fail_on="warning").avg()
    except pyvips.Error:
        return True
    return False
