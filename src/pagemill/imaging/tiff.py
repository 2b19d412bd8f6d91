"""How many pages a TIFF has, and whether one is damaged.

Image readers take a chain of pages that breaks off for one that ends, and a fax that breaks off for a white page. Of
60 A4 pages with 16 random bytes in their data Pillow decodes all without a word in CCITT group 3 and 4 and 31 in
Deflate, which are all noticed here, in 50 to 130 ms a page; of JPEG it decodes all 60, of which 19 are noticed.
"""

from __future__ import annotations

import io
import itertools
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from pagemill.errors import CorruptInputError, unreadable

MAX_PAGES = 1_000_000
"""More are taken for a defect of the chain."""
_BIG = 43
_REQUIRED = {256, 257}
"""Tags of width and height, without which nothing can be decoded."""
_OF_PAGES = frozenset({256, 257, 258, 259, 262, 273, 277, 278, 279, 322, 323, 324, 325})
_ENOUGH = 4
"""Tags of a page of which a damaged directory has so many at least. Not measured."""
_TYPES = frozenset(range(1, 19))
_HEADERS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_EXIF, _OVERLAP, _CHUNK = b"Exif\0\0", 16, 2**20
_MAX_HEADERS = 1_000
"""That are looked at; by chance there is one in 1 GB."""
_JOINED = "another TIFF follows its end"
_MAX_COPIED = 2
"""Strips that have more bytes in all than so many times the file overlap: they are not checked, as that may take
for ever, and a copy of them may not fit into memory."""
_REMEDY = "Get the file again, or open it in an image editor and save it again to keep what is left."

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _FILL_ORDER, _SAMPLES, _PLANES = 256, 257, 258, 259, 266, 277, 284
_STRIPS = (273, 279, 256, 278)
"""Tags of the places and lengths of the data, and of the width and height, of strips."""
_TILES = (324, 325, 322, 323)
"""The same of tiles."""
_UNCOMPRESSED = 1
_COLOURS, _YCBCR = 262, 6
"""Tag of the colours, and those whose samples may be fewer than the pixels."""
_LENIENT = frozenset({2, 3, 4, 7})
"""CCITT run lengths, group 3, group 4 and JPEG: libtiff warns of damaged data, and goes on."""
_DEFLATE = frozenset({8, 32946})
"""libtiff decodes no further than the pixels go, and so never gets to the checksum."""
_BUFFER = 2**16
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""Bytes by their bits in the opposite order: the second fill order is that of the compressed data, too."""
_CODING = (258, 259, 262, 266, 277, 284, 292, 293, 347, 530)
"""Tags that say how the data are to be decoded."""


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


def _walk(file: IO[bytes], start: int = 0) -> TiffPages:
    """Walk the chain of the TIFF that begins at ``start``; of one behind another, to its first page only."""
    file.seek(start)
    order = "<" if file.read(2) == b"II" else ">"
    is_big = file.read(2) == struct.pack(f"{order}H", _BIG)
    # TIFF 6.0: 16-bit number of 12-byte entries, 32-bit offset of the next directory; BigTIFF: 64, 20 and 64.
    number, entry, offset = (f"{order}Q", 20, f"{order}Q") if is_big else (f"{order}H", 12, f"{order}I")
    file.seek(start + (8 if is_big else 4))
    met: set[int] = set()
    while True:
        try:
            (place,) = struct.unpack(offset, file.read(struct.calcsize(offset)))
            if place == 0:
                return TiffPages(
                    len(met), None if start or not _is_followed(file, max(met, default=0) + 1) else _JOINED
                )
            if place in met:
                return TiffPages(len(met), f"the page after page {len(met)} is an earlier one")
            if len(met) == MAX_PAGES:
                return TiffPages(len(met), f"it has more than {MAX_PAGES:,} pages")
            file.seek(start + place)
            (entries,) = struct.unpack(number, file.read(struct.calcsize(number)))
            tags = file.read(entries * entry) if entries <= 0xFFFF else b""
            found = list(struct.iter_unpack(f"{order}HH{entry - 4}x", tags))
        except (struct.error, OverflowError, ValueError):  # the file ends before, or there is no such place
            found = []
        if not _is_directory(found):
            return TiffPages(len(met), f"the directory of page {len(met) + 1} is damaged or missing")
        met.add(place)
        if start:
            return TiffPages(1, None)


def _is_directory(entries: list[tuple[int, int]]) -> bool:
    """Whether entries (tag and type) are those of a page, which may lack one that it needs.

    Bytes that the chain has led to by mistake have no such tags, in order and of known types.
    """
    tags = [tag for tag, _ in entries]
    is_sound = tags == sorted(tags) and all(kind in _TYPES for _, kind in entries)
    return _REQUIRED.issubset(tags) or (is_sound and len(_OF_PAGES.intersection(tags)) >= _ENOUGH)


def _is_followed(file: IO[bytes], place: int) -> bool:
    """Whether another TIFF begins behind a place in the file; one in the metadata of a JPEG has no pages."""
    before, looked_at = b"", 0
    file.seek(place)
    while chunk := file.read(_CHUNK):
        before += chunk
        end = file.tell()
        for header in _HEADERS:
            found = -1
            while (found := before.find(header, found + 1)) >= 0 and (looked_at := looked_at + 1) <= _MAX_HEADERS:
                if not before[:found].endswith(_EXIF) and _walk(file, end - len(before) + found).pages:
                    return True
        file.seek(end)
        before = before[-_OVERLAP:]
    return False


def announces_too_little(tags: Mapping[int, Any]) -> bool:
    """Whether strips or tiles without compression have fewer bytes, by the tags, than their rows take.

    Readers take what their rows need, wherever it comes from.
    """
    kind = _TILES if _TILES[0] in tags else _STRIPS
    if tags.get(_COMPRESSION, _UNCOMPRESSED) != _UNCOMPRESSED or kind[1] not in tags or tags.get(_COLOURS) == _YCBCR:
        return False
    across, down = tags.get(kind[2]) or tags[_WIDTH], min(tags.get(kind[3]) or tags[_HEIGHT], tags[_HEIGHT])
    bits = tags.get(_BITS, (1,))
    row = (across * (max(bits) if tags.get(_PLANES) == 2 else sum(bits)) + 7) // 8
    rows = down if kind is _TILES else (tags[_HEIGHT] - 1) % down + 1
    *others, last = map(int, tags[kind[1]])
    return bool(last < rows * row or min(others, default=down * row) < down * row)


def is_damaged(file: IO[bytes], tags: Mapping[int, Any]) -> bool:
    """Whether data are missing from, or damaged in, a page that is decoded all the same.

    Deflate data have checksums. libtiff is asked about a copy of others, whose directory says nothing but where they
    are and how they are decoded: it also warns of tags out of order, and the like. libvips passes on what it says of
    strips only, so that tiles are read as the strips of a page as wide as they are.

    Args:
        file: The TIFF.
        tags: Tags of the page.
    """
    size = file.seek(0, io.SEEK_END)
    compression = tags.get(_COMPRESSION, _UNCOMPRESSED)
    kind = _TILES if _TILES[0] in tags else _STRIPS
    if compression not in {_UNCOMPRESSED, *_LENIENT, *_DEFLATE} or kind[0] not in tags:
        return False
    across, down = tags.get(kind[2]) or tags[_WIDTH], tags.get(kind[3]) or tags[_HEIGHT]
    pieces = math.ceil(tags[_WIDTH] / across) * math.ceil(tags[_HEIGHT] / down)
    height = tags[_HEIGHT] if kind is _STRIPS else down * pieces
    places, lengths = tags[kind[0]], tags.get(kind[1], ())
    planes, samples = (tags.get(_SAMPLES, 1), 1) if tags.get(_PLANES) == 2 else (1, tags.get(_SAMPLES, 1))
    if len(places) < pieces * planes:
        return True
    if sum(lengths) > _MAX_COPIED * size:
        return False
    if compression in _DEFLATE:
        row = math.ceil(across * samples * max(tags.get(_BITS, (1,))) / 8)
        most = min(down, height)
        for index, (place, length) in enumerate(zip(places[: pieces * planes], lengths, strict=False)):
            rows = min(down, height - index % pieces * down)
            file.seek(place)
            if _is_damaged_stream(file, length, rows * row, 2 * most * row, tags.get(_FILL_ORDER) == 2):
                return True
        return False
    if compression == _UNCOMPRESSED:
        return False
    import pyvips  # importing it takes 0.2 s, and few pages need it
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    pyvips.cache_set_max(0)  # nothing is read twice
    starts = tuple(itertools.accumulate(lengths[:-1], initial=0))  # Pillow adds where the directory ends
    kept = {tag: tags.get(tag) for tag in _CODING} | {_HEIGHT: height}
    kept |= dict(zip(_STRIPS, (starts, lengths, across, down), strict=True))
    directory = ImageFileDirectory_v2()
    for tag, value in kept.items():
        if value is not None:
            directory[tag] = value
    copy = io.BytesIO()
    directory.save(copy)
    for place, length in zip(places, lengths, strict=False):
        file.seek(place)
        copy.write(file.read(length))
    try:
        image = pyvips.Image.tiffload_buffer(copy.getvalue(), access="sequential", fail_on="warning")
        image.crop(image.width - 1, image.height - 1, 1, 1).avg()  # of the last sample, behind all others
    except pyvips.Error:
        return True
    return False


def _is_damaged_stream(file: IO[bytes], length: int, announced: int, most: int, is_reversed: bool) -> bool:
    """Whether a zlib stream of ``length`` bytes is damaged; its data are not kept.

    One that breaks off is not when it has no more data than ``announced``: libtiff tells whether these are enough.
    """
    stream, given = zlib.decompressobj(), 0
    while not stream.eof and given <= most:
        coded = stream.unconsumed_tail
        if not coded:
            coded = file.read(min(length, _BUFFER))
            length -= len(coded)
            coded = coded.translate(_REVERSED) if is_reversed else coded
        try:
            data = stream.decompress(coded, _BUFFER)
        except zlib.error:
            return True
        if not coded and not data:
            break
        given += len(data)
    return given > announced and not stream.eof
