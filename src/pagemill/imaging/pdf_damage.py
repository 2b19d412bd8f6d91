"""What PDFium does not say: pages and files that it leaves out, content that it draws only in part, units, portfolios.

Runs in a decoding process only, as the rest of what touches a PDF.
"""

from __future__ import annotations

import re
import zlib
from decimal import Decimal
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import pikepdf
import simplejpeg

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
_FAX = ("/CCITTFaxDecode", "/CCF")
_COMPONENTS = {"/DeviceRGB": 3, "/CalRGB": 3, "/Lab": 3, "/DeviceCMYK": 4}
"""Samples of a pixel by colour space; others have at least one."""
_ZLIB_HEADER = 2
_CHUNK = 2**20
_MAX_BYTES = 2**27
"""Of a stream that are inflated at most; what is larger counts as sound."""
_MAX_OBJECTS = 64
"""Images and forms of a page that are looked at; some files list those of all pages with each of them."""
_END_OF_JPEG = b"\xff\xd9"
_END_OF_FAX = ("0" * 11 + "1") * 2
"""Bits behind the last row of an image in CCITT group 4 (EOFB); it can begin at any bit."""
_END_BYTES = 64
_DAMAGE = re.compile(r"file is damaged|\(object \d+ \d+, offset \d+\)")
"""In warnings of qpdf about the file and its objects; others are about entries of a page that may be left out."""
_HEADER = b"%PDF-"
_NEXT_FILE = re.compile(rb"%%EOF(?:(?!obj)[\s\S]){0,1024}?%PDF-\d")
"""The end of a PDF and the start of another one behind it. An update in place and an embedded PDF are in objects."""
_NEXT_FILE_BYTES = 2048
"""Longer than what that expression matches."""
_MAX_PARENTS = 32
"""Nodes of the page tree above a page."""
_MAX_UNIT = 75_000.0
"""The largest unit that Acrobat knows; larger ones are taken for damage."""


class PdfDamage:
    """Looks for damage in a PDF with qpdf. Not thread-safe.

    What qpdf does not open, or sees otherwise than PDFium, is not looked at: there is nothing to compare.
    """

    def __init__(self, path: Path, password: str | None) -> None:
        self.pages = 0
        """Pages that qpdf finds; 0 where it cannot tell."""
        self._path = path
        self._pdf: Any = None
        self._sound: dict[tuple[int, int], bool] = {}
        self._frames: dict[int, tuple[float, float, float, float, int]] = {}
        self._is_damaged = False
        """qpdf has found fault with the file, as far as it has read it."""
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

    def of_page(self, index: int, *, is_empty: bool) -> str | None:
        """What of a page cannot be read to its end; None where nothing is wrong.

        Args:
            index: Of the page, from 0.
            is_empty: PDFium finds nothing that the page draws. Where an object is not at its place in the file, qpdf
                looks for it elsewhere, and PDFium takes it for one that does not exist.
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
        self._is_damaged = self._is_damaged or any(map(_DAMAGE.search, self._pdf.get_warnings()))
        if is_empty and self._is_damaged:
            return "the page is empty, and objects of the file are damaged or misplaced: its content may be missing"
        return None

    def user_unit(self, index: int) -> float:
        """Points of a unit of a page (``/UserUnit``), of which PDFium knows nothing; 1 where it cannot be told."""
        unit = self._pdf.pages[index].obj.get("/UserUnit") if index < self.pages else None
        # A unit may not be smaller than a point, says the format.
        return float(unit) if isinstance(unit, int | float | Decimal) and 1 < unit < _MAX_UNIT else 1.0

    def thousandths_from_top(self, index: int, x: float | None, y: float | None) -> int | None:
        """How far down a page, as displayed, a place of its page space is, in thousandths of its height.

        Args:
            index: Of the page, from 0.
            x: Of the place, where known.
            y: Likewise.
        """
        if index >= self.pages:
            return None
        if index not in self._frames:
            self._frames[index] = _frame(self._pdf.pages[index])
        left, bottom, right, top, turn = self._frames[index]
        off, extent = {
            0: (y and top - y, top - bottom),
            90: (x and x - left, right - left),
            180: (y and y - bottom, top - bottom),
            270: (x and right - x, right - left),
        }[turn]
        if off is None or not extent > 0:
            return None
        return round(1000 * min(max(off / extent, 0.0), 1.0))

    @property
    def has_labels(self) -> bool:
        """Whether pages have labels of their own."""
        return self.pages > 0 and "/PageLabels" in self._pdf.Root

    @property
    def is_portfolio(self) -> bool:
        """Whether the document is a cover of the files attached to it."""
        return self.pages > 0 and "/Collection" in self._pdf.Root

    @cached_property
    def is_joined(self) -> bool:
        """Whether the file is several PDFs, one behind the other, of which readers see one."""
        before = b""
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                before += chunk
                if _HEADER in before and _NEXT_FILE.search(before):
                    return True
                before = before[-_NEXT_FILE_BYTES:]
        return False

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


def _frame(page: Any) -> tuple[float, float, float, float, int]:
    """What is shown of a page (left, bottom, right, top), and the degrees by which it is turned clockwise."""
    try:
        x1, y1, x2, y2 = (float(value) for value in page.cropbox)
        node, turn = page.obj, 0
        for _ in range(_MAX_PARENTS):
            if "/Rotate" in node:
                turn = int(node["/Rotate"])
                break
            if "/Parent" not in node:
                break
            node = node["/Parent"]
    except Exception:  # whatever is wrong with the boxes of a page that somebody links to: the place is not known
        return 0.0, 0.0, 0.0, 0.0, 0
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2), turn % 360 // 90 * 90


def _is_sound(stream: Any) -> bool:
    given = stream.get("/Filter")
    filters = [str(name) for name in given] if isinstance(given, pikepdf.Array) else [str(given)] if given else []
    if not _FILTERS.issuperset(filters):
        return False
    if not filters:
        return len(stream.read_raw_bytes()) >= _least_bytes(stream)
    if filters[0] in _FLATE:
        return _inflates(stream.read_raw_bytes(), _least_bytes(stream) if len(filters) == 1 else 0)
    if filters[0] in _JPEG:
        return _is_whole_jpeg(stream.read_raw_bytes())
    if filters[0] in _FAX:
        return _is_whole_fax(stream)
    return True


def _least_bytes(stream: Any) -> int:
    """Bytes that the samples of an image take but for its last row, which some writers cut off; 0 for no image."""
    if stream.get("/Subtype") != "/Image":
        return 0
    space = stream.get("/ColorSpace")
    name = str(space[0] if isinstance(space, pikepdf.Array) and len(space) else space)
    components = space[1].get("/N", 1) if name == "/ICCBased" else _COMPONENTS.get(name, 1)
    bits = 1 if stream.get("/ImageMask") else stream.get("/BitsPerComponent", 1)
    width, height = stream.get("/Width", 0), stream.get("/Height", 0)
    return (int(width) * int(components) * int(bits) + 7) // 8 * max(int(height) - 1, 0)


def _inflates(data: bytes, least: int) -> bool:
    """Whether data compressed with zlib have their end, and at least so many bytes.

    The checksum behind the end is left aside, as some writers leave it out.
    """
    if not data:
        return not least
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
    return inflated >= _MAX_BYTES or (inflating.eof and inflated >= least)


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


def _is_whole_fax(stream: Any) -> bool:
    """Whether an image in CCITT group 4 has its end marker, or announces that it has none; others count as whole."""
    given = stream.get("/DecodeParms", stream.get("/DP"))
    parameters = given[0] if isinstance(given, pikepdf.Array) and len(given) else given
    if not isinstance(parameters, pikepdf.Dictionary):
        return True
    if parameters.get("/K", 0) >= 0 or parameters.get("/EndOfBlock", True) is False:
        return True
    tail = stream.read_raw_bytes()[-_END_BYTES:]
    return _END_OF_FAX in "".join(f"{byte:08b}" for byte in tail)
