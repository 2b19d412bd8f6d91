"""Reads a document with the reader of its kind, in a child process, into a file from which its pages are taken."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import msgspec

from pagemill import plugins
from pagemill.document.labels import Label
from pagemill.document.page import DocumentInfo
from pagemill.document.shown import count
from pagemill.errors import (
    CorruptInputError,
    MissingDependencyError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
    lacks_extra,
)
from pagemill.imaging.decode import decode_image, frames_warning
from pagemill.imaging.encode import encode_jpeg
from pagemill.imaging.formats import OLE, OWN_DOCUMENTS, READERS, ZIP, FileFormat, sniff
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.tiff import count_pages
from pagemill.readers.base import MOST_PARTS, Document, Part, Picture
from pagemill.readers.packages import kind_of_package

Read = Callable[[Path, str | None], Document]

MOST_BYTES = 2**30
"""Size of all parts of a document with their pictures."""
MOST_PICTURES = 5_000
_HEAD = 4096
_OLD = {".xls": ".csv", ".doc": ".txt"}
"""Suffixes that programs give to text, too; and what text is then."""
_FOREIGN = {
    b"schemas-microsoft-com:office:spreadsheet": "XML of Excel 2003",
    b"schemas.microsoft.com/office/word/2003": "XML of Word 2003",
    b"schemas.microsoft.com/office/2006/xmlpackage": "flat XML of Word",
}
_WEB_ARCHIVE = re.compile(rb"\A[a-z-]+:(?:.*\n)*?mime-version:")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_FAMILIES = {
    ".docx": (".docm", ".dotx", ".dotm"),
    ".pptx": (".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
    ".xlsx": (".xlsm", ".xltx", ".xltm"),
}
_SMALL = 8
"""Pixels of a side up to which a picture is an ornament: a bullet, a rule, a counter of visits."""


class DocumentRead(msgspec.Struct, tag=True, frozen=True):
    """A document that has been read."""

    lengths: tuple[int, ...]
    """Bytes of each part in the file."""
    info: DocumentInfo
    reader: str
    """Suffix of the kind as which it was read, without the dot."""


def read_document(path: Path, target: Path, name: str, password: str | None = None) -> DocumentRead:
    """Read a document and write its parts into a file, one after the other, as MessagePack.

    Raises:
        PagemillError: It cannot be read; the class says why.
    """
    suffix = kind_of(path, Path(name).suffix.lower())
    try:
        document = _reader(suffix, name)(path, password)
    except (PagemillError, MemoryError):
        raise
    except RecursionError:
        raise CorruptInputError("its elements are nested too deeply", remedy="Save it again.") from None
    except ImportError as error:
        raise _lacks(suffix, name, error) from error
    except Exception as error:  # libraries raise all sorts for damaged files
        reason = f"the document cannot be read ({type(error).__name__}: {str(error)[:300]})"
        raise CorruptInputError(reason, remedy="Save it again with the program that made it.") from error
    if len(document.parts) > MOST_PARTS:
        raise TooLargeError(f"it has {len(document.parts):,} pages; the limit is {MOST_PARTS:,}", remedy="Split it.")
    lengths: list[int] = []
    left = MOST_PICTURES
    encode = msgspec.msgpack.Encoder().encode
    with target.open("wb") as file:
        for part in _with_one_title(document.parts):
            left = _finish_pictures(part, left)
            data = encode(part)
            if sum(lengths) + len(data) > MOST_BYTES:
                raise TooLargeError(f"its text and pictures exceed {MOST_BYTES // 2**30} GiB", remedy="Split it.")
            lengths.append(len(data))
            file.write(data)
    return DocumentRead(tuple(lengths), document.info, suffix.removeprefix("."))


def kind_of(path: Path, suffix: str) -> str:
    """The suffix that a document should have: by its content, if that identifies it.

    Raises:
        CorruptInputError: It is damaged.
        UnsupportedInputError: No reader reads it.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(ZIP):
        found = kind_of_package(path)
        if found is not None and suffix != found and suffix not in _FAMILIES.get(found, ()):
            return found
    elif head.startswith(OLE):
        if suffix not in OWN_DOCUMENTS:
            return ".doc"  # its reader distinguishes the kinds
    elif suffix in _OLD:
        return _disguised(head, suffix)
    if not suffix or suffix == ".bin":
        return ".html" if not head.startswith((ZIP, OLE)) else ".zip"
    return suffix


def _disguised(head: bytes, suffix: str) -> str:
    """The kind of a file that only has the suffix of an old Office format: exports of web sites are often HTML.

    Raises:
        UnsupportedInputError: No reader reads it.
    """
    text = head.decode("utf-16", "ignore").encode() if head.startswith(_UTF_16) else head
    text = text.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    is_markup = text.startswith(b"<")
    if _WEB_ARCHIVE.search(text):
        return ".mht"
    if not (is_markup and b"<html" in text):  # which may name the vocabularies of Office
        for sign, what in _FOREIGN.items():
            if sign in text:
                reason = f"its name ends with {suffix}, but it is {what}"
                raise UnsupportedInputError(reason, remedy="Save it in the current format of Office.")
    if is_markup:
        return ".html"
    if text.startswith(b"{\\rtf"):
        return ".rtf"
    if b"\0" in text:
        raise CorruptInputError(f"its name ends with {suffix}, but it is not an Office file", remedy="Get it again.")
    return _OLD[suffix]


def load(name: str) -> Read:
    """A reader of pagemill's own, such as ``docx:read``."""
    module, _, function = name.partition(":")
    found: Read = getattr(import_module(f"pagemill.readers.{module}"), function)
    return found


def _reader(suffix: str, name: str) -> Read:
    if plugin := plugins.installed(READERS).get(suffix.removeprefix(".")):
        found: Read = plugin.load(f"the document reader {suffix.removeprefix('.')!r}")
        return found
    if suffix not in OWN_DOCUMENTS:
        raise UnsupportedInputError(f"unsupported file type {suffix or '(none)'}: {name}", remedy="Convert it to PDF.")
    return load(OWN_DOCUMENTS[suffix][0])


def _lacks(suffix: str, name: str, error: ImportError) -> PagemillError:
    extra = OWN_DOCUMENTS[suffix][1] if suffix in OWN_DOCUMENTS else ""
    if not extra:
        return MissingDependencyError(f"{name}: {error}", remedy="Reinstall pagemill.")
    return lacks_extra(f"{name!r} needs a package that is not installed ({error.name})", extra)


def _with_one_title(parts: list[Part]) -> Iterator[Part]:
    """The parts; of headings of the highest level only the first one is the title of the document."""
    found = False
    for part in parts:
        for position, block in enumerate(part.blocks):
            if block.label is Label.DOC_TITLE and found:
                part.blocks[position] = msgspec.structs.replace(block, label=Label.PARAGRAPH_TITLE)
            found |= block.label is Label.DOC_TITLE
        yield part


def _finish_pictures(part: Part, left: int) -> int:
    """Make JPEGs of the pictures, within limits; returns how many more may come."""
    lost: dict[str, int] = {}
    kept = []
    for block in part.blocks:
        picture = block.picture
        if picture is not None:
            data, reason = _jpeg(picture, part.notes) if left > 0 else (b"", "too many")
            left -= 1
            if reason:
                lost[reason] = lost.get(reason, 0) + 1
            if not data and not picture.alternative:
                continue
            block.picture = msgspec.structs.replace(picture, data=data)
        kept.append(block)
    part.blocks = kept
    part.notes += (f"{count(n, 'picture')} left out: {reason}" for reason, n in lost.items() if reason != "small")
    return left


def _jpeg(picture: Picture, notes: list[str]) -> tuple[bytes, str]:
    """A picture as a JPEG; or why there is none. What it does not show of its file is noted."""
    data = picture.data
    if not data:
        return b"", "not in the file"
    try:
        decoded = decode_image(data, limits=DecodeLimits(), name="the picture")
        frames = count_pages(data, "the picture").pages - 1 if sniff(data) is FileFormat.TIFF else 0
    except PagemillError as error:
        if error.category in ("unsupported", "input"):
            return b"", "unsupported format (EMF, WMF, SVG, GIF)"
        return b"", "damaged or too large"
    if max(decoded.pixels.shape[:2]) <= _SMALL:
        return b"", "small"
    lacks = [*decoded.warnings, *([frames_warning(frames)] if frames else [])]
    notes += (f"picture {picture.name or 'without a name'}: {error.message}" for error in lacks)
    return encode_jpeg(decoded.pixels), ""
