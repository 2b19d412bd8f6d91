"""What a source is: a lazy stream of references to pages, none of them decoded yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pagemill.document.identity import PageKey
from pagemill.document.page import DocumentInfo
from pagemill.imaging.limits import DecodeLimits

if TYPE_CHECKING:
    from pagemill.document.page import PageError
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
    """Pages of it that belong to this run, those that ended earlier included; None while a stream does not know."""
    finished: int = 0
    """How many of these had ended before this stream began."""
    info: DocumentInfo = field(default_factory=DocumentInfo)
    """What it says of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfPage:
    """A page of a PDF on disk, rendered and read by a decoding process."""

    path: Path
    page_index: int
    """From 0."""
    password: str | None = field(default=None, repr=False)
    keep: object = field(default=None, repr=False, compare=False)
    """Owner of a temporary file at ``path``, which goes away with the last reference to it."""
    notes: tuple[str, ...] = ()
    """What a user should know of the file that is rendered; goes into the record's metadata."""
    text_only_side: int | None = None
    """Least pixels of the longer side of a page that shows only the text of its layer, where that will do; 0: none are
    needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedImage:
    """Encoded bytes of an image, untouched (PNG, JPEG, WebP, BMP, TIFF); decoded on a thread."""

    source: bytes | Path = field(repr=False)
    """A file is read when the page is decoded."""
    frame: int = 0
    """Frame of a multi-page TIFF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """A page that a document reader has read: a piece of the file in which it left them."""

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
    """In the run's input, from 0, pages that were skipped included."""
    page_number: int | None = None
    """In the document, from 1; None stands for a source that does not open, or for what it cannot give beside its other
    pages (then ``error`` is set)."""
    page_id: str
    payload: PdfPage | EncodedImage | ReadPart | None = None
    stamp: FileStamp | None = None
    """Of a local file that is read when the page is decoded."""
    error: PageError | None = None
    """Set when the page cannot even be referred to: a broken row, a document that does not open."""
    estimated_bytes: int = 0
    """Bytes the decoded page will take, for flight control; 0 when unknown."""
    metadata: dict[str, Any] = field(default_factory=dict)
    attempts: int = 0
    """Attempts that ended badly in an earlier process; more than none, and the page is tried alone."""
    death: str | None = None
    """How the process ended that had this page, and no other, in flight; None for one that did not."""
    warning: PageError | None = None
    """What is to stand in the record of the page although it can be read: its file is damaged, say."""
    missing: int = 0
    """Pages or rows that the source announces and cannot give, for which this reference stands; at least 1 where nobody
    can tell how many."""
    unseen: bool = False
    """Planned, without a look whether its source opens: that of a remote image, which has this page only."""
    skip: str | None = None
    """Why the page is only to be noted as skipped, in words; ``payload`` and ``error`` are None then."""


class PdfProbe(Protocol):
    """Opens PDFs and reads documents for a source: the decoding service."""

    limits: DecodeLimits

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        """Open a PDF and tell its page count, sizes and metadata; raises a PagemillError when it cannot."""

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        """Write a repaired copy of a PDF into an existing file; raises a PagemillError when it cannot."""

    async def read_document(self, path: Path, target: Path, name: str, password: str | None = None) -> DocumentRead:
        """Read a document into an existing file ``target``, part by part; raises a PagemillError when it cannot."""
