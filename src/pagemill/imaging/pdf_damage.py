"""Damage of which PDFium says nothing: pages that it leaves out, content that it draws only in part.

Runs in a decoding process only, as the rest of what touches a PDF.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import simplejpeg

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    """Looks for damage in a PDF with qpdf, which opens the file when it is first asked. Not thread-safe.

    What qpdf does not open, or sees otherwise than PDFium, is not looked at: there is nothing to compare.
    """

    def __init__(self, path: Path, password: str | None) -> None:
        self._path = path
        self._password = password
        self._pdf: Any = None
        self._is_tried = False
        self._sound: dict[tuple[int, int], bool] = {}

    @property
    def pages(self) -> int:
        """Pages that qpdf finds; 0 where it cannot tell."""
        pdf = self._opened()
        return 0 if pdf is None else len(pdf.pages)

    def of_page(self, index: int) -> str | None:
        """What of a page cannot be read to its end; None where nothing is wrong.

        Args:
            index: Of the page, from 0.
        """
        if index >= self.pages:
            return None
        page = self._pdf.pages[index].obj
        if not all(map(self._is_whole, _contents(page))):
            return "the page's content is damaged or missing: text may be missing"
        if not all(map(self._is_whole, _objects(page))):
            return "an image or a form on the page is damaged: a part of it may be missing"
        return None

    def close(self) -> None:
        """Close the file."""
        if self._pdf is not None:
            self._pdf.close()
        self._pdf = None

    def _opened(self) -> Any:
        if not self._is_tried:
            self._is_tried = True
            import pikepdf

            try:
                pdf = pikepdf.open(
                    self._path,
                    password=self._password or "",
                    inherit_page_attributes=False,
                    access_mode=pikepdf.AccessMode.stream,
                    suppress_warnings=True,
                )
                len(pdf.pages)  # walks the page tree
            except Exception:  # pikepdf passes on whatever C++ throws; PDFium reads the file all the same
                return None
            self._pdf = pdf
        return self._pdf

    def _is_whole(self, stream: Any) -> bool:
        """Whether a stream is there and can be decoded to its end, as far as that can be told."""
        import pikepdf

        if not isinstance(stream, pikepdf.Stream):
            return False
        key = stream.objgen
        if key not in self._sound:
            try:
                self._sound[key] = _is_sound(stream)
            except pikepdf.PdfError:
                self._sound[key] = False
        return self._sound[key]


def _contents(page: Any) -> Iterator[Any]:
    """Content streams of a page. One that is named and does not exist is none, says the format."""
    import pikepdf

    contents = page.get("/Contents")
    if isinstance(contents, pikepdf.Array):
        yield from contents
    elif contents is not None:
        yield contents


def _objects(page: Any) -> Iterator[Any]:
    """Images and forms that a page may draw."""
    import pikepdf

    resources = page.get("/Resources")
    objects = resources.get("/XObject") if isinstance(resources, pikepdf.Dictionary) else None
    if isinstance(objects, pikepdf.Dictionary):
        for number, name in enumerate(objects.keys()):
            if number == _MAX_OBJECTS:
                return
            yield objects[name]


def _is_sound(stream: Any) -> bool:
    import pikepdf

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
