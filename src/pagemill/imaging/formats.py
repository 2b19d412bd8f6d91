"""Telling file formats apart by their first bytes, and documents that are read without pixels by their names."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import PurePath

from pagemill.plugins import installed

ZIP = b"PK\x03\x04"
"""First bytes of the packages of Office, Hangul and EPUB files."""
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""First bytes of older Office and Hangul files, and of encrypted packages."""
HEAD_BYTES = 1024
"""How much of a file :func:`sniff` wants to see. Readers accept ``%PDF-`` anywhere in the first kilobyte."""


class FileFormat(StrEnum):
    """What an input is."""

    PDF = "pdf"
    PNG = "png"
    JPEG = "jpeg"
    WEBP = "webp"
    BMP = "bmp"
    TIFF = "tiff"
    ARROW_FILE = "arrow-file"
    ARROW_STREAM = "arrow-stream"
    PARQUET = "parquet"
    DOCUMENT = "document"
    """Office, Hangul, web and text files: a document reader makes pages of them, without pixels."""

    @property
    def is_image(self) -> bool:
        """A raster image."""
        return self in {self.PNG, self.JPEG, self.WEBP, self.BMP, self.TIFF}

    @property
    def is_table(self) -> bool:
        """A dataset shard."""
        return self in {self.ARROW_FILE, self.ARROW_STREAM, self.PARQUET}


_PREFIXES: tuple[tuple[bytes, FileFormat], ...] = (
    (b"\x89PNG\r\n\x1a\n", FileFormat.PNG),
    (b"\xff\xd8\xff", FileFormat.JPEG),
    (b"II*\0", FileFormat.TIFF),
    (b"MM\0*", FileFormat.TIFF),
    (b"II+\0", FileFormat.TIFF),  # BigTIFF
    (b"MM\0+", FileFormat.TIFF),
    (b"ARROW1\0\0", FileFormat.ARROW_FILE),
    (b"PAR1", FileFormat.PARQUET),
    (b"\xff\xff\xff\xff", FileFormat.ARROW_STREAM),  # continuation marker of the first message
)

SUFFIXES: dict[str, FileFormat] = {
    ".pdf": FileFormat.PDF,
    ".png": FileFormat.PNG,
    **dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), FileFormat.JPEG),
    ".webp": FileFormat.WEBP,
    ".bmp": FileFormat.BMP,
    **dict.fromkeys((".tif", ".tiff"), FileFormat.TIFF),
    **dict.fromkeys((".arrow", ".feather"), FileFormat.ARROW_FILE),
    ".parquet": FileFormat.PARQUET,
}
"""What a file name promises; chooses the files of a folder, while the bytes decide how to read them."""

READERS = "pagemill.document_readers"
"""Entry points of document readers: a function for a suffix, which is the name of the entry point without the dot."""
_OFFICE, _HANGUL, _WEB = "office", "hwp", "web"
OWN_DOCUMENTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), ("docx:read", _OFFICE)),
    **dict.fromkeys((".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"), ("pptx:read", _OFFICE)),
    **dict.fromkeys((".xlsx", ".xlsm", ".xltx", ".xltm", ".xls", ".doc", ".ppt"), ("hangul:read", _OFFICE)),
    **dict.fromkeys((".hwp", ".hwpx"), ("hangul:read", _HANGUL)),
    **dict.fromkeys((".html", ".htm", ".xhtml"), ("html:read_html", _WEB)),
    **dict.fromkeys((".md", ".markdown"), ("html:read_markdown", _WEB)),
    **dict.fromkeys((".mht", ".mhtml"), ("mail:read_web_archive", _WEB)),
    ".epub": ("epub:read", _WEB),
    **dict.fromkeys((".odt", ".ods", ".odp"), ("opendocument:read", _WEB)),
    ".rtf": ("rich_text:read", ""),
    **dict.fromkeys((".eml", ".msg"), ("mail:read", "")),
    **dict.fromkeys((".csv", ".tsv"), ("text:read_separated", "")),
    **dict.fromkeys((".txt", ".text"), ("text:read_text", "")),
}
"""By suffix, what reads a document: function and extra of a module of :mod:`pagemill.readers`."""
TEXT_DOCUMENTS = frozenset((".txt", ".text", ".md", ".markdown", ".csv", ".tsv"))
"""Suffixes of plain text, which also says what page images beside it show, or what a dataset is."""
ARCHIVE = ".zip"
"""Suffix of archives of documents."""
CONTAINERS = frozenset((ARCHIVE, ".eml", ".msg"))
"""Suffixes of files in which documents are."""


@cache
def document_suffixes() -> frozenset[str]:
    """Suffixes of all documents that installed readers read."""
    return frozenset((*OWN_DOCUMENTS, ARCHIVE)) | {f".{name.lower()}" for name in installed(READERS)}


def promised(name: str | PurePath) -> FileFormat | None:
    """The format that a file name promises; None for a file of another kind."""
    suffix = PurePath(name).suffix.lower()
    found = SUFFIXES.get(suffix)
    if found is None and (suffix == ARCHIVE or suffix in OWN_DOCUMENTS or (suffix and suffix in document_suffixes())):
        return FileFormat.DOCUMENT
    return found


def sniff(head: bytes) -> FileFormat | None:
    """Tell a format by the first ``HEAD_BYTES`` of a file; None for anything that pagemill does not read."""
    for prefix, file_format in _PREFIXES:
        if head.startswith(prefix):
            return file_format
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return FileFormat.WEBP
    if head[:2] == b"BM" and len(head) >= 18 and head[14:18] in _BMP_HEADER_SIZES:
        return FileFormat.BMP
    if b"%PDF-" in head[:HEAD_BYTES]:
        return FileFormat.PDF
    return None


DOCUMENTS = frozenset({".pages", ".pps", ".key", ".numbers", ".xps", ".djvu", ".ps", ".eps", ".tex", ".hml"})
"""Suffixes of documents that other programs turn into PDF."""
IMAGES = frozenset({".gif", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".svg", ".psd"})
"""Suffixes of images that other programs turn into PNG."""

_FOREIGN = {ZIP: ".zip", b"%!PS": ".ps", b"AT&TFORM": ".djvu", b"GIF8": ".gif", b"\0\0\0\x0cjP  ": ".jp2"}
"""First bytes of files, and what these are."""
_MARKUP = (b"<!doctype html", b"<html")
_NAMED_WITHIN = (b"word/", b"ppt/", b"xl/", b"[Content_Types].xml", b"hwp+zip", b"epub+zip", b"vnd.oasis.opendocument")


def is_document(head: bytes, name: str) -> bool:
    """Whether a file is a document for a reader, by its name, its first bytes, or both.

    Args:
        head: Its first ``HEAD_BYTES``.
        name: Its name, with the suffix.
    """
    if head.startswith(ZIP):
        return promised(name) is FileFormat.DOCUMENT or any(inner in head for inner in _NAMED_WITHIN)
    if head.startswith((OLE, b"{\\rtf")):
        return True  # which one its directory tells
    if promised(name) is FileFormat.DOCUMENT:
        return True  # also a damaged one: its reader says so
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:20].lower().startswith(_MARKUP)


def foreign_format(head: bytes, suffix: str) -> str | None:
    """What a file is that pagemill does not read, such as ``.docx``, by its suffix or its content; None if unknown.

    Args:
        head: Its first ``HEAD_BYTES``.
        suffix: Suffix of its name, in lower case.
    """
    if suffix in DOCUMENTS | IMAGES:
        return suffix
    return next((what for start, what in _FOREIGN.items() if head.startswith(start)), None)


_BMP_HEADER_SIZES = {size.to_bytes(4, "little") for size in (12, 40, 52, 56, 64, 108, 124)}
