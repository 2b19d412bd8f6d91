"""The stream of page references over all inputs."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from pagemill.document.names import UniqueNames, safe_name
from pagemill.document.page import PageError
from pagemill.errors import CorruptInputError, InputError, MissingInputError, PagemillError
from pagemill.imaging.decode import count_frames, stored_pixels
from pagemill.imaging.formats import FileFormat
from pagemill.imaging.limits import DecodeLimits
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef, PdfPage
from pagemill.sources.count import PageCounter
from pagemill.sources.detect import format_of
from pagemill.sources.items import Item, RemoteFile
from pagemill.sources.locate import expand
from pagemill.sources.remote import TemporaryCopy, copy_to_disk, read_all, unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

    from pagemill.imaging.page import PdfInfo
    from pagemill.sources.base import PdfProbe
    from pagemill.sources.options import SourceOptions
    from pagemill.sources.tables import Row

T = TypeVar("T")

log = logging.getLogger(__name__)

_PAGE_OF_FILE = re.compile(r"(.+)_(\d{1,9})")
_CHANNELS = 3
_PDF_METADATA = ("title", "author", "subject")


class InputStream:
    """All pages of the inputs, lazily; a :class:`~pagemill.sources.base.PageSource`. File access is on threads."""

    def __init__(self, inputs: Sequence[str | Path | bytes], options: SourceOptions, decoder: PdfProbe) -> None:
        self.total: int | None = None
        self._inputs = inputs
        self._options = options
        self._decoder = decoder
        self._limits: DecodeLimits = decoder.limits
        self._documents = UniqueNames()
        self._page_ids = UniqueNames()
        self._row_documents: dict[tuple[int, FileFormat, str], DocumentRef] = {}

    async def pages(self) -> AsyncGenerator[PageRef]:
        """Yield page references in input order, reading no further ahead than it is asked."""
        count = 0
        limit = self._options.limit
        measuring = asyncio.create_task(self._measure())
        try:
            async for item in _on_thread(expand(self._inputs, recursive=self._options.recursive)):
                async for ref in self._pages_of(item):
                    count += 1
                    yield ref
                    if count == limit:
                        return
        finally:
            measuring.cancel()
            await asyncio.gather(measuring, return_exceptions=True)
            self.total = count

    async def _measure(self) -> None:
        """Set ``total``, beside the stream, where all inputs can be counted without much reading."""
        counting = PageCounter(self._options, self._decoder)
        total = 0
        async for item in _on_thread(expand(self._inputs, recursive=self._options.recursive)):
            pages = await counting.count(item)
            if pages is None:
                return
            total += pages
            if self._options.limit is not None and total >= self._options.limit:
                break
        self.total = min(total, self._options.limit or total)

    async def _pages_of(self, item: Item) -> AsyncIterator[PageRef]:
        """Pages of one file; whatever is wrong with it is one reference with the error."""
        try:
            if item.error is not None:
                raise item.error
            file_format = await asyncio.to_thread(format_of, item)
            if file_format is FileFormat.PDF:
                pages = self._pdf_pages(item)
            elif file_format.is_table:
                pages = self._row_pages(item, file_format)
            else:
                pages = self._image_pages(item)
            async for ref in pages:
                yield ref
        except PagemillError as error:
            yield self._broken(item, error)
        except Exception as error:
            yield self._broken(item, _input_error(item, error))

    def _document(self, item: Item, page_count: int | None) -> DocumentRef:
        stem = PurePosixPath(item.name).stem if item.name not in (".", "..") else item.name
        return DocumentRef(doc_id=self._documents.claim(safe_name(stem)), uri=item.uri, page_count=page_count)

    def _broken(self, item: Item, error: PagemillError) -> PageRef:
        document = self._document(item, 1)
        return PageRef(
            document=document,
            page_number=None,
            page_id=self._page_ids.claim(document.doc_id),
            payload=None,
            error=_as_data(error, item.uri),
            exit_code=int(error.exit_code),
        )

    async def _pdf_pages(self, item: Item) -> AsyncIterator[PageRef]:
        path, keep = await asyncio.to_thread(_local_path, item)
        try:
            info = await self._decoder.probe_pdf(path, self._options.password)
        except PagemillError as error:
            if keep is not None:  # a temporary name means nothing to the user
                error.message = error.message.replace(path.name, item.name)
            raise
        numbers = self._numbers(info.page_count, item)
        document = self._document(item, len(numbers))
        metadata = {key: info.metadata[key] for key in _PDF_METADATA if key in info.metadata}
        for number in numbers:
            yield PageRef(
                document=document,
                page_number=number,
                page_id=self._page_ids.claim(f"{document.doc_id}_{number}"),
                payload=PdfPage(path=path, page_index=number - 1, password=self._options.password, keep=keep),
                estimated_bytes=self._rendered_bytes(info, number),
                metadata=dict(metadata),
            )

    async def _image_pages(self, item: Item) -> AsyncIterator[PageRef]:
        content = item.content
        if isinstance(content, RemoteFile):
            content = await asyncio.to_thread(_fetch, content, item, self._limits.max_stored_bytes)
        assert content is not None
        frames = await asyncio.to_thread(count_frames, content, limits=self._limits, name=item.name)
        stored = 0  # a page's own size shows when it is decoded
        if frames == 1:
            stored = await asyncio.to_thread(stored_pixels, content, limits=self._limits, name=item.name)
        numbers = self._numbers(frames, item) if frames > 1 else [1]
        document = self._document(item, len(numbers))
        payload = partial(EncodedImage, **({"path": content} if isinstance(content, Path) else {"data": content}))
        for number in numbers:
            yield PageRef(
                document=document,
                page_number=number,
                page_id=self._page_ids.claim(f"{document.doc_id}_{number}"),
                payload=payload(frame=number - 1),
                estimated_bytes=self._decoded_bytes(stored),
            )

    async def _row_pages(self, item: Item, file_format: FileFormat) -> AsyncIterator[PageRef]:
        assert item.content is not None
        shard: DocumentRef | None = None
        async for row in _on_thread(_rows(item.content, file_format, self._options)):
            match = _PAGE_OF_FILE.fullmatch(row.row_id) if row.row_id else None
            if match:
                document, number = self._row_document(item, file_format, match[1]), int(match[2])
            else:
                shard = shard or self._document(item, None)
                document, number = shard, row.number
            name = safe_name(row.row_id) if row.row_id else f"{document.doc_id}_{number}"
            page_id = self._page_ids.claim(name)
            yield await asyncio.to_thread(self._row_page, row, document, number, page_id, item)

    def _row_document(self, item: Item, file_format: FileFormat, file_id: str) -> DocumentRef:
        """The document of a row; its rows may lie anywhere in the shards of one dataset, which are of one format."""
        key = (item.origin, file_format, file_id)
        if key not in self._row_documents:
            doc_id = self._documents.claim(safe_name(file_id))
            self._row_documents[key] = DocumentRef(doc_id=doc_id, uri=item.uri)
        return self._row_documents[key]

    def _row_page(self, row: Row, document: DocumentRef, number: int, page_id: str, item: Item) -> PageRef:
        where = f"{item.uri}#{row.number}"
        fields: dict[str, Any] = {
            "document": document,
            "page_number": number,
            "page_id": page_id,
            "metadata": {**row.metadata, "row": row.number, "shard": item.name},
        }
        try:
            if row.data is None:
                raise CorruptInputError(f"the row {row.problem}", remedy="Mend or drop the row in the dataset.")
            stored = stored_pixels(row.data, limits=self._limits, name="the row's image")
        except PagemillError as error:
            return PageRef(**fields, payload=None, error=_as_data(error, where), exit_code=int(error.exit_code))
        return PageRef(**fields, payload=EncodedImage(data=row.data), estimated_bytes=self._decoded_bytes(stored))

    def _numbers(self, count: int, item: Item) -> Sequence[int]:
        if self._options.pages is None:
            return range(1, count + 1)
        numbers = self._options.pages.select(count)
        if not numbers:
            raise InputError(
                f"{item.name!r} has {count} {'page' if count == 1 else 'pages'}, none of them in {self._options.pages}",
                remedy="Check --pages.",
            )
        return numbers

    def _rendered_bytes(self, info: PdfInfo, number: int) -> int:
        """Of a page's rendering; pages beyond the known sizes are taken to be like the last known one."""
        if not info.sizes:
            return 0
        width, height = info.sizes[min(number, len(info.sizes)) - 1]
        if width <= 0 or height <= 0:
            return 0
        columns, rows, _ = self._limits.render_size(width, height)
        return columns * rows * _CHANNELS

    def _decoded_bytes(self, stored: int) -> int:
        return min(stored, self._limits.max_pixels) * _CHANNELS


def _rows(content: Path | bytes | RemoteFile, file_format: FileFormat, options: SourceOptions) -> Iterator[Row]:
    from pagemill.sources.tables import read_rows  # on a thread: importing pyarrow takes a while

    yield from read_rows(content, file_format, options)


async def _on_thread(iterator: Iterator[T]) -> AsyncIterator[T]:
    """Iterate on threads, one step at a time, and close a generator that is left early."""
    end = object()
    try:
        while (value := await asyncio.to_thread(next, iterator, end)) is not end:
            yield value  # type: ignore[misc]
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            with suppress(ValueError):  # a thread still runs its last step after a cancellation; it ends with that
                close()


def _input_error(item: Item, error: Exception) -> PagemillError:
    """What an exception that is not our own means for an input; the next input is read all the same."""
    if isinstance(item.content, RemoteFile):  # filesystems of others raise all sorts
        return unreachable(item.uri, error)
    if isinstance(error, OSError):
        return MissingInputError(f"{item.name!r} cannot be read: {error.strerror or error}")
    log.error("input %r failed", item.uri, exc_info=error)
    reason = f"{item.name!r} cannot be read ({type(error).__name__}: {error})"
    return PagemillError(reason, remedy="This is a defect of pagemill; please report.")


def _as_data(error: PagemillError, where: str) -> PageError:
    message = error.message if where in error.message else f"{where}: {error.message}"
    return PageError(component="source", category=error.category, message=message, remedy=error.remedy)


def _local_path(item: Item) -> tuple[Path, TemporaryCopy | None]:
    """A path to a PDF, and the owner of the temporary copy where it needs one."""
    if isinstance(item.content, Path):
        return item.content, None
    assert item.content is not None
    try:
        copy = copy_to_disk(item.content, ".pdf")
    except Exception as error:
        raise unreachable(item.uri, error) from error
    return copy.path, copy


def _fetch(file: RemoteFile, item: Item, max_bytes: int) -> bytes:
    try:
        return read_all(file, max_bytes)
    except Exception as error:
        raise unreachable(item.uri, error) from error
