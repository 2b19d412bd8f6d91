"""Strict checks of the streams of a PDF: every filter of a chain is decoded to its end, and images need all their rows.

PDFium and qpdf are lenient: they give what they could decode, and do not tell that it is a part. Runs in a decoding
process only.
"""

from __future__ import annotations

import io
import math
import time
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pikepdf
import simplejpeg

from pagemill.imaging.jbig2_check import is_whole_jbig2
from pagemill.imaging.samples import DAMAGED, END_OF_JPEG, lacks_scans
from pagemill.imaging.tiff import is_damaged
from pagemill.late import re

FLATE = "/FlateDecode"
_SHORT = {
    "/Fl": FLATE,
    "/LZW": "/LZWDecode",
    "/A85": "/ASCII85Decode",
    "/AHx": "/ASCIIHexDecode",
    "/RL": "/RunLengthDecode",
    "/CCF": "/CCITTFaxDecode",
    "/DCT": "/DCTDecode",
}
"""Names of filters in inline images, which readers take elsewhere, too."""
_COMPONENTS = {"/DeviceRGB": 3, "/RGB": 3, "/CalRGB": 3, "/Lab": 3, "/DeviceCMYK": 4, "/CMYK": 4}
"""Samples of a pixel by colour space; others have at least one."""
_CHUNK = 2**20
_SHORT_STREAM = 2**14
_MAX_BYTES = 2**28
"""That the streams of a page may inflate to before the check is given up: a page with more takes minutes to read."""
_MAX_SECONDS = 5.0
"""CPU time for the check of a page. Not measured: sound pages take 0.2 s at most."""
_MAX_FILTERS = 8
"""More in a chain are taken for damage: each can multiply the data."""
_FAX_HEAD = 4096
"""Bytes of a fax in which an end of line has come, where lines have ends."""
_START_OF_JPEG = b"\xff\xd8\xff"
_END_OF_LINE = "0" * 11 + "1"
_LZW_CLEAR, _LZW_END, _LZW_FIRST, _LZW_FULL = 256, 257, 258, 4096
_WHITE = b" \t\r\n\f\0"
_BEFORE_OPERATOR = _WHITE + b")]>"
_INLINE = re.compile(rb"([\s/](?:(?!ID\s)[\s\S]){0,1000}?)ID\s")
"""Entries of an inline image, and the operator before its data."""
_INLINE_END = re.compile(rb"(?<![^\s>])EI(?!\S)")
_ENDS = 4
"""Places in the data of an inline image that look like its end, of which one is; by chance there is one in 100 MB."""
_LINE_ENDS = b"\r\n"
_PNG_PREDICTORS = 10
_SAMPLES_OF_JPX = 2**27
"""Samples decoded of a JPEG 2000 image; more take more memory than a decoding process has."""


class DamagedStreamError(Exception):
    """A stream cannot be decoded to its end."""


class UncheckedError(Exception):
    """A check was given up, as it takes too long."""

    def __str__(self) -> str:
        return f"it takes more than {_MAX_SECONDS:g} s of processor time or {_MAX_BYTES // 2**20} MiB"


class Budget(msgspec.Struct):
    """What the checks of a page may take."""

    bytes_left: int = _MAX_BYTES
    deadline: float = msgspec.field(default_factory=lambda: time.thread_time() + _MAX_SECONDS)
    earliest: float = msgspec.field(default_factory=lambda: time.monotonic() + _MAX_SECONDS)
    """No thread takes more processor time than passes, and this clock is the cheaper one: that of a thread takes up to
    100 µs on a busy virtual machine, and a page has hundreds of streams."""

    def take(self, size: int) -> None:
        """Count bytes that were decoded."""
        self.bytes_left -= size
        if self.bytes_left < 0 or (time.monotonic() > self.earliest and time.thread_time() > self.deadline):
            raise UncheckedError


class Coded(NamedTuple):
    """Data of a stream or an inline image, as they are stored, and how they are coded."""

    data: bytes
    filters: Sequence[str]
    parameters: Sequence[Any]
    """A dictionary for each filter that has one, else None."""
    entries: Any
    """Entries of an image; None for other streams."""

    @classmethod
    def of(cls, entries: Any, data: bytes, *, is_image: bool) -> Coded:
        """By the entries of a stream or, with short keys, of an inline image, as `as_dict()` gives them.

        To look up a key in one of pikepdf takes three times as long as all of this.
        """
        names = [_SHORT.get(name, name) for name in map(str, _listed(_either(entries, "/Filter", "/F")))]
        parameters = [
            each if isinstance(each, pikepdf.Dictionary) else None
            for each in _listed(_either(entries, "/DecodeParms", "/DP"))
        ]
        parameters += [None] * (len(names) - len(parameters))
        return cls(data, names, parameters, entries if is_image else None)


def decoded(coded: Coded, budget: Budget) -> bytes:
    """The decoded data; of an image, which may be large, only where that is no detour.

    Raises:
        DamagedStreamError: They cannot be decoded to their end.
        UncheckedError: That takes too long.
    """
    data, entries = coded.data, coded.entries
    budget.take(len(data))
    _require(len(coded.filters) <= _MAX_FILTERS)
    least = 0 if entries is None else _least_bytes(entries, coded.parameters[-1] if coded.parameters else None)
    for place, (name, parameters) in enumerate(zip(coded.filters, coded.parameters, strict=False), 1):
        is_last = place == len(coded.filters)
        if name == FLATE:
            chunks = _inflated(data, budget)
            if is_last and entries is not None:
                _require(sum(map(len, chunks)) >= least)
                return b""
            data = b"".join(chunks)
        elif name == "/LZWDecode":
            early = parameters.get("/EarlyChange", 1) if parameters is not None else 1
            data = b"".join(_lzw(data, int(early != 0), budget))
        elif name in _SIMPLE:
            data = _SIMPLE[name](data)
            budget.take(len(data))
        elif name in _PICTURES:
            _require(is_last)
            _check_picture(name, data, parameters, entries)
            budget.take(0)
            return b""
        else:
            _require(name == "/Crypt")  # the identity, or taken off already
    _require(len(data) >= least)
    return data


def row_bytes(entries: Any) -> int:
    """Bytes of a row of an image without compression."""
    space = _either(entries, "/ColorSpace", "/CS")
    parts = _listed(space)
    name = str(parts[0]) if parts else ""
    if name == "/ICCBased" and len(parts) > 1 and isinstance(parts[1], pikepdf.Stream):
        components = int(parts[1].get("/N", 1))
    elif name == "/DeviceN" and len(parts) > 1 and isinstance(parts[1], pikepdf.Array):
        components = len(parts[1])
    else:
        components = _COMPONENTS.get(name, 1)
    bits = 1 if _either(entries, "/ImageMask", "/IM") else int(_either(entries, "/BitsPerComponent", "/BPC") or 1)
    return (_side(entries, "/Width", "/W") * components * bits + 7) // 8


def _least_bytes(entries: Any, parameters: Any) -> int:
    """Bytes that the samples of an image take but for its last row, which some writers cut off."""
    predictor = parameters.get("/Predictor", 1) if parameters is not None else 1
    row = row_bytes(entries) + (predictor >= _PNG_PREDICTORS)
    return row * max(_side(entries, "/Height", "/H") - 1, 0)


def short_inflated(data: bytes, budget: Budget) -> bytes | None:
    """The data of a short and sound zlib stream, in half the time of :func:`decoded`; None for any other."""
    if len(data) > _SHORT_STREAM:
        return None
    try:
        whole = zlib.decompress(data)
    except zlib.error:
        return None
    budget.take(len(whole))
    return whole


def _inflated(data: bytes, budget: Budget) -> Iterator[bytes]:
    """The data of a zlib stream in chunks.

    Some writers leave out the checksum at the end, or cut it off: what there is of it must be right.
    """
    if not data:
        return
    if (whole := short_inflated(data, budget)) is not None:
        yield whole
        return
    _require(len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0)
    stream, checksum, rest = zlib.decompressobj(-zlib.MAX_WBITS), 1, data[2:]
    while not stream.eof:
        try:
            chunk = stream.decompress(rest, _CHUNK)
        except zlib.error as error:
            raise DamagedStreamError from error
        rest = stream.unconsumed_tail
        _require(bool(chunk or rest or stream.eof))
        checksum = zlib.adler32(chunk, checksum)
        budget.take(len(chunk))
        yield chunk
    expected, behind = checksum.to_bytes(4, "big"), stream.unused_data
    _require(behind.startswith(expected) or expected.startswith(behind.rstrip(_LINE_ENDS)))


def _lzw(data: bytes, early: int, budget: Budget) -> Iterator[bytes]:
    """Decode LZW up to its end code, which must be there; each code must be in the table."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    place = 0
    while True:
        table: list[bytes] = [bytes([value]) for value in range(_LZW_CLEAR)] + [b"", b""]
        before = b""
        ended = False
        for codes, width in _lzw_codes(bits, place, early):
            out = []
            for code in codes:
                place += width
                if code in (_LZW_CLEAR, _LZW_END):
                    ended = True
                    break
                if code < len(table):
                    entry = table[code]
                else:
                    _require(code == len(table) and bool(before))
                    entry = before + before[:1]
                if before and len(table) < _LZW_FULL:
                    table.append(before + entry[:1])
                before = entry
                out.append(entry)
            piece = b"".join(out)
            budget.take(len(piece))
            yield piece
            if ended:
                break
        _require(ended)
        if code == _LZW_END:
            return


def _lzw_codes(bits: np.ndarray, place: int, early: int) -> Iterator[tuple[list[int], int]]:
    """Codes up to the next clearing of the table, and beyond, with their width, which depends on their number alone."""
    counts = [255 - early, 512, 1024]  # the second code makes the first entry of the table
    for width in (9, 10, 11, 12):
        wanted = counts[width - 9] if width < 12 else _LZW_FULL
        while True:
            number = min(wanted, (len(bits) - place) // width)
            if number <= 0:
                return
            # All codes of one width at once: bit by bit in Python a scan would exceed the time of the check.
            powers = 1 << np.arange(width - 1, -1, -1)
            yield (bits[place : place + number * width].reshape(number, width) @ powers).tolist(), width
            place += number * width
            if width < 12:
                break


def _ascii85(data: bytes) -> bytes:
    digits, end, _ = data.translate(None, _WHITE).removeprefix(b"<~").partition(b"~")
    _require(bool(end))
    # A short form for four zero bytes.
    digits = digits.replace(b"z", b"!!!!!")
    padding = -len(digits) % 5
    # A last group has two digits at least: one encodes no byte.
    _require(padding != 4)
    values = np.frombuffer(digits + b"u" * padding, np.uint8).reshape(-1, 5) - np.uint8(ord("!"))  # others wrap around
    _require(bool((values < 85).all()))
    groups = np.zeros(len(values), np.int64)
    for digit in range(5):
        groups = groups * 85 + values[:, digit]
    _require(bool((groups < 2**32).all()))
    whole: bytes = groups.astype(">u4").tobytes()
    return whole[: len(whole) - padding]


def _ascii_hex(data: bytes) -> bytes:
    digits, end, _ = data.translate(None, _WHITE).partition(b">")
    _require(bool(end))
    try:
        # A last digit that is missing counts as 0 (ISO 32000-1, 7.4.2).
        return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))
    except ValueError as error:
        raise DamagedStreamError from error


def _run_length(data: bytes) -> bytes:
    out: list[bytes] = []
    place = 0
    while True:
        _require(place < len(data))
        length = data[place]
        # The mark at the end (ISO 32000-1, 7.4.5), without which a stream that was cut off looks whole.
        if length == 128:
            return b"".join(out)
        run = data[place + 1 : place + 2 + length] if length < 128 else data[place + 1 : place + 2] * (257 - length)
        _require(len(run) == (length + 1 if length < 128 else 257 - length))
        out.append(run)
        place += 2 + length if length < 128 else 2


_SIMPLE = {"/ASCII85Decode": _ascii85, "/ASCIIHexDecode": _ascii_hex, "/RunLengthDecode": _run_length}
"""Filters that multiply data by 64 at most."""
_PICTURES = ("/DCTDecode", "/JPXDecode", "/CCITTFaxDecode", "/JBIG2Decode")


def _check_picture(name: str, data: bytes, parameters: Any, entries: Any) -> None:
    """Check the data of a codec for pictures."""
    if name == "/DCTDecode":
        whole = _is_whole_jpeg(data)
    elif name == "/JPXDecode":
        whole = _is_whole_jpx(data)
    elif name == "/CCITTFaxDecode":
        whole = entries is None or _is_whole_fax(data, parameters, entries)
    else:
        shared = parameters.get("/JBIG2Globals") if parameters is not None else None
        known = shared.read_bytes() if isinstance(shared, pikepdf.Stream) else b""
        whole = is_whole_jbig2(known, data)
    _require(whole)


def _is_whole_jpeg(data: bytes) -> bool:
    """Whether all of a JPEG can be decoded; it may lack its end marker, and have something before its start."""
    data = data[max(data.find(_START_OF_JPEG), 0) :]
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
        # At an eighth of the size all entropy-coded data is still read, and most of the computing is left out.
        smallest: dict[str, Any] = {"min_height": math.ceil(height / 8), "min_width": math.ceil(width / 8)}
        colourspace: Any = "CMYK" if colours == "CMYK" else "GRAY"  # GRAY leaves out the transforms of the colours
        try:
            simplejpeg.decode_jpeg(data, colourspace, **smallest)
        except ValueError:
            simplejpeg.decode_jpeg(data + END_OF_JPEG, colourspace, **smallest)
    except ValueError:
        return False
    return not lacks_scans(data)


def _is_whole_jpx(data: bytes) -> bool:
    """Whether the structure of a JPEG 2000 image is whole; what its packets hold has no checks in it."""
    from PIL import Jpeg2KImagePlugin  # takes a while, and few pages have one

    # Pillow refuses a resolution whose sides it rounds otherwise than OpenJPEG; the next larger one takes milliseconds.
    tries = [(reduced, coded) for coded in (data, data + END_OF_JPEG) for reduced in range(5, 0, -1)]
    for reduced, coded in (*tries, (0, data)):
        try:
            with Jpeg2KImagePlugin.Jpeg2KImageFile(io.BytesIO(coded)) as image:
                if math.prod(image.size) * len(image.getbands()) > _SAMPLES_OF_JPX * 4**reduced:
                    raise UncheckedError
                image.reduce = reduced
                image.load()
            return True
        except DAMAGED as error:
            if "broken data stream" not in str(error):  # colours that Pillow does not know, for example
                return True
    return False


def _is_whole_fax(data: bytes, parameters: Any, entries: Any) -> bool:
    """Whether libtiff finds no fault with an image in CCITT group 3 or 4; it reads neither all of the kinds of PDF."""
    given = parameters if parameters is not None else {}
    kind, width = int(given.get("/K", 0)), int(given.get("/Columns", 1728))
    height = _side(entries, "/Height", "/H") or int(given.get("/Rows", 0))
    is_aligned = bool(given.get("/EncodedByteAlign", False))
    head = "".join(f"{byte:08b}" for byte in data[:_FAX_HEAD])
    if kind < 0:
        compression = None if is_aligned else 4
    elif _END_OF_LINE in head:
        compression = 3
    else:
        compression = 2 if kind == 0 and is_aligned else None
    # libtiff reads group 4 only without aligned rows, and one-dimensional data without line ends only with them.
    if compression is None or min(width, height) < 1:
        return True
    tags = {256: width, 257: height, 258: (1,), 259: compression, 262: 0, 277: 1, 278: height, 273: (0,)}
    if compression == 3:
        tags[292] = (kind > 0) + 4 * is_aligned
    return not is_damaged(io.BytesIO(data), {**tags, 279: (len(data),)})


def check_inline_images(content: bytes, budget: Budget) -> None:
    """Check the inline images of a content stream.

    Raises:
        DamagedStreamError: One is damaged, or has no end.
        UncheckedError: That takes too long to say.
    """
    place = 0
    while (place := content.find(b"BI", place)) >= 0:
        budget.take(0)
        # The letters also stand in strings and names, and in the data of images.
        begin, place = place, place + 2
        if begin and content[begin - 1] not in _BEFORE_OPERATOR:
            continue
        if (match := _INLINE.match(content, place)) is None:
            continue
        try:
            parsed = pikepdf.Object.parse(b"<<" + match[1] + b">>")
        except (pikepdf.PdfError, ValueError):  # text that looks like an image
            continue
        if isinstance(parsed, pikepdf.Dictionary) and _side(entries := parsed.as_dict(), "/Width", "/W"):
            place = _end_of_inline_image(content, match.end(), entries, budget)


def _end_of_inline_image(content: bytes, start: int, entries: Any, budget: Budget) -> int:
    """Where the data of an inline image end; they can hold what looks like their end."""
    is_plain = _either(entries, "/Filter", "/F") is None
    least = _least_bytes(entries, None) if is_plain else 0
    for end in islice(_INLINE_END.finditer(content, start + least), _ENDS):
        if is_plain:  # as in glyphs, of which a page can have hundreds: all its rows are there
            return end.end()
        try:
            decoded(Coded.of(entries, content[start : end.start()], is_image=True), budget)
        except DamagedStreamError:
            continue
        return end.end()
    raise DamagedStreamError


def _either(entries: Any, key: str, short: str) -> Any:
    return entries.get(key, entries.get(short))


def _side(entries: Any, key: str, short: str) -> int:
    value = _either(entries, key, short)
    return max(int(value), 0) if isinstance(value, int) else 0


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, pikepdf.Array) else [value]


def _require(condition: bool) -> None:
    if not condition:
        raise DamagedStreamError
