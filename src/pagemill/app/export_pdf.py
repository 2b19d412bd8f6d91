"""Exports searchable PDFs: what was read of each page, and the page itself from its source."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from pagemill.app.export_content import ExportContent
from pagemill.app.page_images import FoundPage, PageImages, WantedPage
from pagemill.document.names import file_stem
from pagemill.document.page import PageResult, Status
from pagemill.errors import MissingInputError, PagemillError
from pagemill.export.formats import ExportFormat
from pagemill.export.pdf_images import PdfImage, as_stored, is_lossy, of_pixels
from pagemill.export.searchable_pdf import CopiedPdf, ImagePdf
from pagemill.sources.base import PdfPage

_PENDING = 64 * 2**20
"""Bytes of images that wait in memory; the rows of a dataset may belong to many documents in turn."""
_WITHOUT_FAILED = "--status done leaves out the failed pages."


@dataclass(slots=True)
class _Document:
    """A document on its way out."""

    doc_id: str
    path: Path
    places: dict[str, int] = field(default_factory=dict)
    """Places of its pages, by page id."""
    failed: set[str] = field(default_factory=set)
    """Ids of the pages that failed when they were parsed."""
    added: int = 0
    left: int = 0
    """Pages that are to come."""
    pdf: CopiedPdf | ImagePdf | None = None
    source: object = None
    """May be a temporary file, which is needed to the end."""
    error: PagemillError | None = None

    def add(self, payload: PdfPage | PdfImage, record: PageResult) -> None:
        """Add a page."""
        if isinstance(payload, PdfPage):
            if not isinstance(self.pdf, CopiedPdf):
                self.pdf, self.source = CopiedPdf(payload.path, payload.password), payload
            self.pdf.add(payload.page_index, record)
        else:
            if not isinstance(self.pdf, ImagePdf):
                self.pdf = ImagePdf(self.path, self.doc_id)
            self.pdf.add(self.places[record.page_id], payload, record)
        self.added += 1

    def warnings(self) -> list[str]:
        """Messages about reduced quality."""
        places = self.pdf.with_own_text if isinstance(self.pdf, CopiedPdf) else []
        return [
            f"{self.doc_id}, page {place + 1}: its content is too large, so its own text stays beside what was read"
            for place in sorted(places)
        ]


def write_pdfs(content: ExportContent, folder: Path) -> None:
    """Write a PDF per document. Documents with an unavailable page are left out, and named in the outcome.

    Raises:
        InputError: There is no page to export.
        PagemillError: No document can be written; its class gives the cause of the first.
    """
    documents: dict[str, _Document] = {}
    wanted: list[WantedPage] = []
    for doc_id, pages in content.selected():
        document = _Document(doc_id, folder / f"{file_stem(doc_id)}.pdf")
        for page in pages:
            document.places[page.page_id] = document.left
            document.left += 1
            if page.status is Status.FAILED:
                document.failed.add(page.page_id)
            documents[page.page_id] = document
            wanted.append(WantedPage.of(page))
    content.refuse_nothing(len(wanted))
    asyncio.run(_Writing(content, documents).run(wanted))


@dataclass(slots=True)
class _Writing:
    content: ExportContent
    documents: dict[str, _Document]
    """By page id."""
    images: list[ImagePdf] = field(default_factory=list)
    """Those that are open."""
    first_error: PagemillError | None = None

    async def run(self, wanted: list[WantedPage]) -> None:
        """Write all documents."""
        reader, sources = self.content.reader, self.content.options.sources
        async with PageImages.opened(reader, sources) as images, aclosing(images.find(wanted)) as pages:
            async for found in pages:
                document = self.documents[found.wanted.page_id]
                try:
                    with found:
                        if document.error is None:
                            await self._add(document, images, found)
                except PagemillError as error:
                    # A page that could not be read when it was parsed will not be read now: say how to export the
                    # others.
                    if found.wanted.page_id in document.failed:
                        error.remedy = " ".join(filter(None, [error.remedy, _WITHOUT_FAILED]))
                    document.error = error
                document.left -= 1
                if not document.left:
                    await asyncio.to_thread(self._end, document)
        # Nothing was written: an error, where otherwise it is a line of the outcome.
        if self.first_error is not None and not self.content.outcome.documents:
            raise self.first_error

    async def _add(self, document: _Document, images: PageImages, found: FoundPage) -> None:
        payload, page_id = found.payload, found.wanted.page_id
        if payload is None:
            raise found.error or MissingInputError(f"{page_id} has no image")
        record = await asyncio.to_thread(self.content.reader.page, page_id)
        if isinstance(payload, PdfPage):
            await asyncio.to_thread(document.add, payload, record)
        else:
            # The file's own data where a PDF can hold it: encoding a JPEG again loses quality, and takes a second.
            image = await asyncio.to_thread(as_stored, payload.source, payload.frame)
            if image is None:
                pixels = (await images.decoding.decode(payload)).pixels
                # A picture that was stored without loss stays so, which keeps the edges of scanned text.
                lossy = await asyncio.to_thread(is_lossy, payload.source, payload.frame)
                image = await asyncio.to_thread(of_pixels, pixels, lossy=lossy)
            await asyncio.to_thread(document.add, image, record)
            await asyncio.to_thread(self._flush, document)
        if self.content.report is not None:
            self.content.report(record)

    def _flush(self, document: _Document) -> None:
        if isinstance(document.pdf, ImagePdf) and document.pdf not in self.images:
            self.images.append(document.pdf)
        # All of them: each alone may wait with little, and together they fill the memory.
        if sum(pdf.pending for pdf in self.images) > _PENDING:
            for pdf in self.images:
                pdf.flush()

    def _end(self, document: _Document) -> None:
        """Write a document whose pages are complete."""
        if document.pdf in self.images:
            self.images.remove(document.pdf)
        try:
            if document.error is None and document.pdf is not None:
                document.pdf.save(document.path)
                self.content.outcome.warnings += document.warnings()
        except PagemillError as error:
            document.error = error
        finally:
            if document.pdf is not None:
                document.pdf.close()
            # Frees the temporary copy of a source that was fetched.
            document.pdf = document.source = None
        outcome = self.content.outcome
        if document.error is None:
            outcome.documents += 1
            outcome.pages += document.added
            outcome.failed += len(document.failed)
        else:
            outcome.left_out.append((document.doc_id, document.error.message, document.error.remedy))
            self.first_error = self.first_error or document.error


FORMAT = ExportFormat(ending="-pdf", to_folder=write_pdfs)
