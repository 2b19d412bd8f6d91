"""What a source is: a lazy stream of references to pages, none of them decoded yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pagemill.document.page import PageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pagemill.imaging.limits import DecodeLimits
    from pagemill.imaging.page import PdfInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRef:
    """One input document."""

    doc_id: str
    """Unique in the run and safe as a file name; made from the stem, disambiguated when two inputs share it."""
    uri: str
    """The input as the user named it (path, URL, ``shard.parquet#row``)."""
    page_count: int | None = None
    """Pages that this run will parse of it; None while a stream does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfPage:
    """A page of a PDF on disk, rendered and read by a decoding process."""

    path: Path
    page_index: int
    """From 0."""
    password: str | None = field(default=None, repr=False)
    keep: object = field(default=None, repr=False, compare=False)
    """Owner of a temporary file at ``path``, which goes away with the last reference to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedImage:
    """Encoded bytes of an image, untouched (PNG, JPEG, WebP, BMP, TIFF); decoded on a thread."""

    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None
    """Read when the page is decoded; exactly one of ``data`` and ``path`` is set."""
    frame: int = 0
    """Frame of a multi-page TIFF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRef:
    """A page to parse."""

    document: DocumentRef
    page_number: int | None
    """In the document, from 1; None stands for a document that could not be opened (then ``error`` is set)."""
    page_id: str
    payload: PdfPage | EncodedImage | None
    error: PageError | None = None
    """Set when the page cannot even be referred to: a broken row, a document that does not open."""
    exit_code: int | None = None
    """The :class:`~pagemill.errors.ExitCode` of ``error``."""
    estimated_bytes: int = 0
    """Bytes the decoded page will take, for flight control; 0 when unknown."""
    metadata: dict[str, Any] = field(default_factory=dict)


class PageSource(Protocol):
    """A lazy stream of pages."""

    total: int | None
    """Pages in the stream where that is known, for the ETA; may be set while iterating."""

    def pages(self) -> AsyncGenerator[PageRef]:
        """Yield page references in input order, reading no further ahead than it is asked."""
        ...


class PdfProbe(Protocol):
    """Opens PDFs for a source: the decoding service."""

    limits: DecodeLimits

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        """Open a PDF and tell its page count, sizes and metadata; raises a PagemillError when it cannot."""
        ...
