"""Sources: lazy streams of references to pages, none of them decoded yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pagemill.document.identity import PageKey
from pagemill.document.page import DocumentInfo, PageError
from pagemill.imaging.limits import DecodeLimits

if TYPE_CHECKING:
    from pagemill.imaging.page import PdfInfo, PdfRepair
    from pagemill.readers.reading import DocumentRead
    from pagemill.sources.stamp import FileStamp


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRef:
    """One input document."""

    doc_id: str
    """Unique in the run and safe as a file name; made from the stem, disambiguated when two inputs share it."""
    uri: str
    """The input as the user named it (path, URL, ``shard.parquet#row``)."""
    page_count: int | None = None
    """Its pages in this run, including those finished earlier; None if unknown."""
    finished: int = 0
    """How many of these were finished before this stream started."""
    info: DocumentInfo = field(default_factory=DocumentInfo)
    """Its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfPage:
    """A page of a PDF on disk, rendered and read by a decoding process."""

    path: Path
    page_index: int
    """From 0."""
    password: str | None = field(default=None, repr=False)
    keep: object = field(default=None, repr=False, compare=False)
    """Owner of a temporary file at ``path``, which is deleted with the last reference to it."""
    notes: tuple[str, ...] = ()
    """Remarks on the rendered file for the user, stored in the record's metadata."""
    text_only_side: int | None = None
    """Pixels of the longer side at which to render a page that shows only the text of its layer, if a small image will
    do; 0 to render none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedImage:
    """Encoded bytes of an image, untouched (PNG, JPEG, WebP, BMP, TIFF); decoded on a thread."""

    source: bytes | Path = field(repr=False)
    """A file is read when the page is decoded."""
    frame: int = 0
    """Frame of a multi-page TIFF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """A page that a document reader has read: a part of the file to which it wrote them."""

    path: Path
    offset: int
    length: int
    reader: str
    """Suffix of the files that it reads, without the dot."""
    keep: object = field(default=None, repr=False, compare=False)
    """Owner of the temporary file at ``path``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRef:
    """A page to parse."""

    document: DocumentRef
    key: PageKey
    """Identity of the page across runs."""
    position: int
    """Position in the run's input, from 0, including skipped pages."""
    page_number: int | None = None
    """Number in the document, from 1; None for a source that does not open, or for the pages that it announces and does
    not yield (then ``error`` is set)."""
    page_id: str
    payload: PdfPage | EncodedImage | ReadPart | None = None
    stamp: FileStamp | None = None
    """Stamp of a local file that is read when the page is decoded."""
    error: PageError | None = None
    """Set if there is no page to decode: a broken row, a document that does not open."""
    estimated_bytes: int = 0
    """Bytes the decoded page will take, for flight control; 0 when unknown."""
    metadata: dict[str, Any] = field(default_factory=dict)
    attempts: int = 0
    """Failed attempts of earlier processes; if there are any, the page is retried in isolation."""
    death: str | None = None
    """How a process died that had only this page in flight; None if none did."""
    warning: PageError | None = None
    """A warning for the record of a page that can be read, for example that its file is damaged."""
    missing: int = 0
    """Number of pages or rows that the source announces and does not yield, which this reference represents; at least 1
    if the number is unknown."""
    unseen: bool = False
    """Planned without opening its source: a remote image, which has only this page."""
    skip: str | None = None
    """Reason for skipping the page; ``payload`` and ``error`` are then None."""


class PdfProbe(Protocol):
    """Opens PDFs and reads documents for a source: the decoding service."""

    limits: DecodeLimits

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        """Open a PDF and return its page count, sizes and metadata; raise a PagemillError if that fails."""

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        """Write a repaired copy of a PDF to an existing file; raise a PagemillError if that fails."""

    async def read_document(self, path: Path, target: Path, name: str, password: str | None = None) -> DocumentRead:
        """Read a document to an existing file ``target``, part by part; raise a PagemillError if that fails."""
