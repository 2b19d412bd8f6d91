"""Damage of which PDFium says nothing: pages that it leaves out, content that it draws only in part.

Runs in a decoding process only, as the rest of what touches a PDF.
"""

from __future__ import annotations

import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any

import pikepdf
import simplejpeg

if TYPE_CHECKING:
    from pathlib import Path

_FILTERS = frozenset(
    {
        *("/FlateDecode", "/Fl", "/LZWDecode", "/LZW", "/ASCII85Decode", "/A85", "/ASCIIHexDecode", "/AHx"),
        *("/RunLengthDecode", "/RL", "/CCITTFaxDecode", "/CCF", "/DCTDecode", "/DCT", "/JBIG2Decode", "/JPXDecode"),
        "/Crypt",
    }
)
"""All that the format knows."""
_FLATE = ("/FlateDecode", "/Fl")
_JPEG = ("/DCTDecode", "/DCT")
_ZLIB_HEADER = 2
_CHUNK = 2**20
_MAX_BYTES = 2**27
"""Of a stream that are inflated at most; what is larger counts as sound."""
_MAX_OBJECTS = 64
"""Images and forms of a page that are looked at; some files list those of all pages with each of them."""
_END_OF_JPEG = b"\xff\xd9"
_END_BYTES = 64


class PdfDamage:
    """Looks for damage in a PDF with qpdf. Not thread-safe.

    What qpdf does not open, or sees otherwise than PDFium, is not looked at: there is nothing to compare.
    """

    def __init__(self, path: Path, password: str | None) -> None:
        self.pages = 0
        """Pages that qpdf finds; 0 where it cannot tell."""
        self._pdf: Any = None
        self._sound: dict[tuple[int, int], bool] = {}
        try:
            self._pdf = pikepdf.open(
                path,
                password=password or "",
                inherit_page_attributes=False,
                access_mode=pikepdf.AccessMode.stream,
                suppress_warnings=True,
            )
            self.pages = len(self._pdf.pages)  # walks the page tree
        except Exception:  # pikepdf passes on whatever C++ throws; PDFium reads the file all the same
            return

    def of_page(self, index: int) -> str | None:
        """What of a page cannot be read to its end; None where nothing is wrong.

        Args:
            index: Of the page, from 0.
        """
        if index >= self.pages:
            return None
        page = self._pdf.pages[index].obj
        contents = page.get("/Contents")  # one that is named and does not exist is none, says the format
        if not isinstance(contents, pikepdf.Array):
            contents = () if contents is None else (contents,)
        if not all(map(self._is_whole, contents)):
            return "the page's content is damaged or missing: text may be missing"
        resources = page.get("/Resources")
        objects = resources.get("/XObject") if isinstance(resources, pikepdf.Dictionary) else None
        drawn = objects.as_dict().values() if isinstance(objects, pikepdf.Dictionary) else ()
        if not all(map(self._is_whole, islice(drawn, _MAX_OBJECTS))):
            return "an image or a form on the page is damaged: a part of it may be missing"
        return None

    def close(self) -> None:
        """Close the file."""
        if self._pdf is not None:
            self._pdf.close()

    def _is_whole(self, stream: Any) -> bool:
        """Whether a stream is there and can be decoded to its end, as far as that can be told."""
        if not isinstance(stream, pikepdf.Stream):
            return False
        key = stream.objgen
        if key not in self._sound:
            try:
                self._sound[key] = _is_sound(stream)
            except pikepdf.PdfError:
                self._sound[key] = False
        return self._sound[key]


def _is_sound(stream: Any) -> bool:
    given = stream.get("/Filter")
    filters = [str(name) for name in given] if isinstance(given, pikepdf.Array) else [str(given)] if given else []
    if not _FILTERS.issuperset(filters):
        return False
    if filters and filters[0] in _FLATE:
        return _inflates(stream.read_raw_bytes())
    if filters and filters[0] in _JPEG:
        return _is_whole_jpeg(stream.read_raw_bytes())
    return True


def _inflates(data: bytes) -> bool:
    """Whether data compressed with zlib have their end; the checksum behind it, which some writers leave out, aside."""
    if not data:
        return True
    if (data[0] & 0x0F) != 8 or int.from_bytes(data[:_ZLIB_HEADER], "big") % 31:
        return False
    inflating = zlib.decompressobj(-zlib.MAX_WBITS)
    rest = data[_ZLIB_HEADER:]
    inflated = 0
    try:
        while rest and not inflating.eof and inflated < _MAX_BYTES:
            inflated += len(inflating.decompress(rest, _CHUNK))
            rest = inflating.unconsumed_tail
    except zlib.error:
        return False
    return inflating.eof or inflated >= _MAX_BYTES


def _is_whole_jpeg(data: bytes) -> bool:
    """Whether a JPEG has its end marker, or lacks nothing else."""
    if _END_OF_JPEG in data[-_END_BYTES:]:
        return True
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
        if colours == "CMYK":
            return True
        simplejpeg.decode_jpeg(data + _END_OF_JPEG, min_height=height // 8, min_width=width // 8)
    except ValueError:
        return False
    return True
