"""References to the pages of an opened file, with their ids."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from pagemill.document.identity import PageKey, WaitingPage
from pagemill.document.names import safe_name
from pagemill.document.page import DocumentInfo, PageError
from pagemill.document.shown import count
from pagemill.errors import CorruptInputError, InputError, PagemillError
from pagemill.imaging.decode import frames_warning, stored_pixels
from pagemill.imaging.formats import FileFormat, sniff
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo
from pagemill.imaging.tiff import TiffPages, count_pages
from pagemill.late import re
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef, PdfPage, ReadPart
from pagemill.sources.digest import Source
from pagemill.sources.intake import Intake, input_error
from pagemill.sources.items import Item, RemoteFile, located
from pagemill.sources.remote import read_all

if TYPE_CHECKING:
    from pagemill.readers.reading import DocumentRead
    from pagemill.sources.shards import Columns
    from pagemill.sources.tables import DatasetRow

log = logging.getLogger(__name__)

_HORIZON = 10_000
"""Pages assumed behind those that can be counted, to find out whether any of them is selected."""
_PAGE_OF_FILE = re.compile(r"(.+)_(\d{1,9})")
_CHANNELS = 3
_MAX_PLACES = 5
"""Gaps or columns of a shard that a message lists."""
_PDF_METADATA = ("title", "author", "subject")
_PDF_INFO = ("title", "author", "created", "modified")


class PageReferences:
    """Creates page references. All methods block; their iterators are used on a thread, one at a time.

    An error of a file becomes one reference with that error; an error of the catalogue is raised.
    """

    reads_images: ClassVar = True
    """Whether the images of dataset rows are read, or only their ids."""

    def __init__(self, intake: Intake, limits: DecodeLimits) -> None:
        self._intake = intake
        self._options = intake.options
        self._catalogue = intake.catalogue
        self._limits = limits
        self._inputs_of_many_columns: set[int] = set()

    def of_broken(
        self, source: Source, error: PagemillError, *, missing: int = 0, pages: int | None = 1, finished: int = 0
    ) -> Iterator[PageRef]:
        """The reference for a file that does not open, or for everything that an open file does not yield.

        It has the key of page 0: every run tries it again, and no page of the file replaces it.

        Args:
            source: The file.
            error: Its error.
            missing: Pages or rows that it announces and that are not yielded.
            pages: Number of references to the document; None if unknown.
            finished: How many of these were finished before this stream started.
        """
        document = self._document(source, pages, finished)
        data = _as_data(error, source.item.uri)
        yield self._page(source, document, 0, document.doc_id, error=data, missing=missing)

    def of_pdf(
        self,
        source: Source,
        path: Path,
        keep: object,
        info: PdfInfo,
        *,
        notes: tuple[str, ...] = (),
        warning: PageError | None = None,
    ) -> Iterator[PageRef]:
        """Pages of a PDF at ``path``, whose owner is ``keep``; ``notes`` and ``warning`` go into their records."""
        metadata = {key: info.metadata[key] for key in _PDF_METADATA if key in info.metadata}
        about = DocumentInfo(
            **{key: info.metadata[key] for key in _PDF_INFO if key in info.metadata},
            language=info.language,
            outline=info.outline,
            page_labels=info.page_labels,
        )

        def content(number: int) -> dict[str, Any]:
            payload = PdfPage(path=path, page_index=number - 1, password=self._options.password, keep=keep, notes=notes)
            return {
                "payload": payload,
                "estimated_bytes": self._rendered_bytes(info, number),
                "metadata": dict(metadata),
                "warning": warning,
            }

        absent = None
        if info.announced > info.page_count:
            announces = f"{source.item.name} announces {info.announced:,} pages"
            absent = f"{announces}, but only {info.page_count:,} of them can be loaded"
        yield from self._of_numbers(source, FileFormat.PDF, info.page_count, content, absent, info.announced, about)

    def of_document(self, source: Source, path: Path, keep: object, read: DocumentRead) -> Iterator[PageRef]:
        """Pages of a document that a reader wrote to the file at ``path``, whose owner is ``keep``."""
        starts = list(accumulate(read.lengths, initial=0))

        def content(number: int) -> dict[str, Any]:
            offset, length = starts[number - 1], read.lengths[number - 1]
            payload = ReadPart(path=path, offset=offset, length=length, reader=read.reader, keep=keep)
            return {"payload": payload, "estimated_bytes": max(length, 1)}

        yield from self._of_numbers(source, FileFormat.DOCUMENT, len(read.lengths), content, about=read.info)

    def of_image(self, source: Source, file_format: FileFormat) -> Iterator[PageRef]:
        """The page of an image, or the frames of a TIFF."""
        item, content = source.item, source.item.content
        # Frames differ in size, and reading each header takes long: only a single page has an estimate.
        found, stored = TiffPages(1, None), 0
        try:
            if isinstance(content, RemoteFile):
                content = read_all(content, self._limits.max_stored_bytes)
            assert content is not None
            if file_format is FileFormat.TIFF:
                found = count_pages(content, item.name)
            if found.pages == 1:
                stored = stored_pixels(content, limits=self._limits, name=item.name)
        except Exception as error:
            yield from self.of_broken(source, input_error(item, error))
            return

        def page(number: int) -> dict[str, Any]:
            payload = EncodedImage(source=content, frame=number - 1)
            return {"payload": payload, "estimated_bytes": self._decoded_bytes(stored)}

        absent = None
        if found.problem is not None:
            absent = f"{item.name} is read up to page {found.pages:,} only: {found.problem}"
        yield from self._of_numbers(source, file_format, found.pages, page, absent)

    def of_rows(self, source: Source, file_format: FileFormat) -> Iterator[PageRef]:
        """The rows of a dataset shard, and finally one reference for all rows that are lost and have no number.

        Nothing for a table without images beside others: :meth:`Intake.failed_tables` has those that are failures.
        """
        # Importing pyarrow takes a while.
        from pagemill.sources.shards import EndedRows, LostRows, TableWithoutImagesError
        from pagemill.sources.tables import read_rows

        known, item, intake = source.known, source.item, self._intake
        assert item.content is not None
        documents: dict[str | None, DocumentRef] = {}
        rows = read_rows(
            item.content,
            file_format,
            self._options,
            known.ended,
            lambda columns: self._note_columns(item, columns),
            images=self.reads_images,
        )
        errors: dict[str, PagemillError] = {}
        count = missing = 0
        while (left := intake.left) != 0:
            try:
                row = next(rows, None)
                if source.stamp is not None and not errors:
                    source.stamp.check()
            except TableWithoutImagesError as found:
                if item.root is None:
                    yield from self.of_broken(source, found.error)
                else:
                    intake.skip_table(source, found)
                return
            except Exception as error:
                if not count and not errors:
                    yield from self.of_broken(source, input_error(item, error), missing=1)
                    return
                rows.close()
                row = LostRows(None, error)
            if row is None:
                # A shard with errors is not stored as counted, so that the next run reads it again.
                if not errors and count != known.pages:
                    self._catalogue.counted(source.digest, known.copy, count)
                break
            if isinstance(row, EndedRows):
                intake.skip_pages(min(row.count, left))
                count += row.count
            elif isinstance(row, LostRows):
                lost = min(row.count or 0, left)
                unknown = f"an unknown number of rows from row {count + 1:,} on"
                place = f"rows {count + 1:,} to {count + lost:,}" if lost else unknown
                errors.setdefault(place, input_error(item, row.error))
                missing += lost
                # Lost rows keep their positions in the input, so that later rows have the same ones if they come back.
                intake.position += lost
                count += row.count or 0
            else:
                yield self._row_page(source, file_format, row, documents)
                count = row.number
        if errors:
            intake.position -= 1 if missing else 0  # the reference takes the place of one of them
            yield from self.of_broken(source, _rows_error(errors), missing=max(missing, 1), pages=None)

    def _note_columns(self, item: Item, columns: Columns) -> None:
        """Record the image column, and report other ones once per input: all shards have the same columns."""
        self._intake.note_images(item, columns.image)
        if columns.other_images and item.origin not in self._inputs_of_many_columns:
            self._inputs_of_many_columns.add(item.origin)
            others = _listed([repr(name) for name in columns.other_images])
            message = "%r: images are read from the column %r, and not from %s; --image-column names another"
            log.warning(message, item.uri, columns.image, others)

    def _row_page(
        self, source: Source, file_format: FileFormat, row: DatasetRow, documents: dict[str | None, DocumentRef]
    ) -> PageRef:
        item = source.item
        # `report_12` is page 12 of the document `report`.
        match = _PAGE_OF_FILE.fullmatch(row.row_id) if row.row_id else None
        file_id, number = (match[1], int(match[2])) if match else (None, row.number)
        if file_id in documents:
            document = documents[file_id]
        elif file_id is None:
            document = self._document(source, None)
        else:
            key = f"{self._intake.dataset(source, file_format)}/{file_id}"
            document = DocumentRef(doc_id=self._catalogue.document_id(key, safe_name(file_id)), uri=item.uri)
        documents[file_id] = document
        fields = {
            "page_number": number,
            "metadata": {**row.metadata, "row": row.number, "shard": item.name},
            **self._content_of_row(row, f"{item.uri}#{row.number}"),
        }
        wanted_id = safe_name(row.row_id) if row.row_id else f"{document.doc_id}_{number}"
        return self._page(source, document, row.number, wanted_id, **fields)

    def _content_of_row(self, row: DatasetRow, where: str) -> dict[str, Any]:
        """Payload or error of a row."""
        try:
            if row.data is None:
                raise CorruptInputError(f"the row {row.problem}", remedy="Repair or drop the row in the dataset.")
            stored = stored_pixels(row.data, limits=self._limits, name="the row's image")
            found = (
                count_pages(row.data, "the row's image") if sniff(row.data) is FileFormat.TIFF else TiffPages(1, None)
            )
        except PagemillError as error:
            return {"error": _as_data(error, where), "missing": int(row.lost)}
        left_out = found.pages - 1 + (found.problem is not None)
        return {
            "payload": EncodedImage(source=row.data),
            "estimated_bytes": self._decoded_bytes(stored),
            "warning": frames_warning(left_out) if left_out else None,
        }

    def _of_numbers(
        self,
        source: Source,
        file_format: FileFormat,
        pages: int,
        content: Callable[[int], dict[str, Any]],
        absent: str | None = None,
        announced: int = 0,
        about: DocumentInfo | None = None,
    ) -> Iterator[PageRef]:
        """References to the selected pages of a file, each with the fields that ``content`` returns.

        Args:
            source: The file.
            file_format: Its format.
            pages: Number of its pages.
            content: Returns payload and other fields for a page number.
            absent: Why pages are missing; one reference represents them.
            announced: Number of pages that it should have; 0 if unknown.
            about: Metadata of the document.
        """
        known = source.known
        # With pages missing the count is not stored, so that the next run opens the file again.
        if pages != known.pages and absent is None:
            self._catalogue.counted(source.digest, known.copy, pages)
        numbers = self._intake.wanted(pages, file_format)
        missing = 0
        if absent is not None:
            wanted = self._options.wanted
            missing = len(wanted(announced or pages + _HORIZON, file_format)) - len(wanted(pages, file_format))
            missing = missing if announced else min(missing, 1)
        if not numbers and not missing:
            has = f"{source.item.name!r} has {count(pages, 'page')}"
            unwanted = InputError(f"{has}, none of them in {self._options.pages}", remedy="Check --pages.")
            yield from self.of_broken(source, unwanted)
            return
        finished = sum(number in known.ended for number in numbers)
        references = len(numbers) + bool(missing)
        document = self._document(source, references, finished)
        if about is not None:
            document = replace(document, info=about)
            self._catalogue.describe(document.doc_id, about)
        for number in numbers:
            if number in known.ended:
                self._intake.skip_pages(1)
            else:
                wanted_id = f"{document.doc_id}_{number}"
                yield self._page(source, document, number, wanted_id, page_number=number, **content(number))
        if absent is not None and missing and self._intake.left != 0:
            error = CorruptInputError(absent, remedy="Get the file again.")
            yield from self.of_broken(source, error, missing=missing, pages=references, finished=finished)

    def _document(self, source: Source, page_count: int | None, finished: int = 0) -> DocumentRef:
        item = source.item
        stem = PurePosixPath(item.name).stem if item.name not in (".", "..") else item.name
        doc_id = self._catalogue.document_id(source.document_key, safe_name(stem))
        return DocumentRef(doc_id=doc_id, uri=item.uri, page_count=page_count, finished=finished)

    def _page(self, source: Source, document: DocumentRef, page: int, wanted_id: str, **fields: Any) -> PageRef:
        """The reference to a page, with its known id and attempts. Advances the position."""
        known = source.known
        waiting = known.waiting.get(page)
        if waiting is None:
            waiting = WaitingPage(page_id=self._catalogue.page_id(wanted_id))
        # On a cluster the driver has named the documents: workers see only parts of the input.
        if waiting.doc_id is not None:
            document = replace(document, doc_id=waiting.doc_id)
        # Without its content: what is skipped must not keep a temporary file alive.
        if source.skip is not None and page:
            kept: dict[str, Any] = {name: fields[name] for name in ("page_number", "metadata") if name in fields}
            fields = {**kept, "skip": source.skip}
        position = self._intake.position
        self._intake.position += 1
        return PageRef(
            document=document,
            key=PageKey(source.digest, page, known.copy),
            position=position if waiting.position is None else waiting.position,
            page_id=waiting.page_id,
            attempts=waiting.attempts,
            death=waiting.death,
            stamp=source.stamp,
            **fields,
        )

    def _rendered_bytes(self, info: PdfInfo, number: int) -> int:
        """Bytes of a rendered page; pages beyond the known sizes are assumed to be like the last known one."""
        width, height = info.sizes[min(number, len(info.sizes)) - 1] if info.sizes else (0.0, 0.0)
        if width <= 0 or height <= 0:
            return 0
        columns, rows, _ = self._limits.render_size(width, height)
        return columns * rows * _CHANNELS

    def _decoded_bytes(self, stored: int) -> int:
        return min(stored, self._limits.max_pixels) * _CHANNELS


def _rows_error(errors: dict[str, PagemillError]) -> PagemillError:
    """The error for lost rows of a shard, by position, with the class of the first one."""
    first = next(iter(errors.values()))
    return type(first)(f"{_listed(list(errors))} cannot be read: {first.message}", remedy=first.remedy)


def _listed(names: list[str]) -> str:
    more = len(names) - _MAX_PLACES
    return ", ".join(names[:_MAX_PLACES]) + (f" and {more:,} more" if more > 0 else "")


def _as_data(error: PagemillError, where: str) -> PageError:
    return PageError(
        component="source", category=error.category, message=located(error.message, where), remedy=error.remedy
    )
