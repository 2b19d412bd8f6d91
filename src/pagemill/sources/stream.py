"""The stream of page references over all inputs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from pagemill.document.catalogue import Catalogue
from pagemill.document.page import PageError
from pagemill.errors import CorruptInputError, EmptyPageError, EncryptedError, PagemillError
from pagemill.imaging.formats import FileFormat
from pagemill.imaging.page import PdfInfo
from pagemill.imaging.tiff import count_pages
from pagemill.sources.base import PageRef, PdfProbe
from pagemill.sources.digest import Identifier, Source, format_of
from pagemill.sources.intake import Intake, input_error
from pagemill.sources.items import Item
from pagemill.sources.locate import expand
from pagemill.sources.options import SourceOptions
from pagemill.sources.pages import PageReferences
from pagemill.sources.planning import PlannedReferences
from pagemill.sources.remote import TemporaryCopy, copy_to_disk

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_PDFS = 200
"""PDFs opened only to count their pages: more would occupy the decoding processes."""
_PLANNED_TOGETHER = 64
"""References planned per call on a thread: switching threads takes longer than a reference."""


class InputStream:
    """All pages of the inputs, lazily and in input order. Files are accessed on threads.

    An error of an input is not raised, but becomes a page reference with that error. Pages that are finished by the
    catalogue are skipped: files that are finished as a whole in one call on one thread.

    Args:
        inputs: Paths of files and folders, globs, URLs (``hf://``, ``s3://``, ``https://``), or bytes.
        options: Input options.
        decoder: Opens PDFs; the decoding service.
        catalogue: Knowledge of earlier invocations; None for a run without a directory.
        planning: Only list the pages: no image of a dataset or of a remote file is read. Another process opens the
            sources again.
    """

    total: int | None
    """Pages in the input, for the ETA; None until known. May be set while iterating."""
    complete: bool
    """Whether the input was read to its end; False if a limit or the consumer stopped it earlier."""

    def __init__(
        self,
        inputs: Sequence[str | Path | bytes],
        options: SourceOptions,
        decoder: PdfProbe,
        catalogue: Catalogue | None = None,
        *,
        planning: bool = False,
    ) -> None:
        self.total = None
        self.complete = False
        self._inputs = inputs
        self._options = options
        self._decoder = decoder
        catalogue = catalogue or Catalogue()
        self._identifier = Identifier(catalogue, decoder.limits.max_stored_bytes)
        self._intake = Intake(inputs, options, catalogue, self._identifier)
        references = PlannedReferences if planning else PageReferences
        self._references = references(self._intake, decoder.limits)
        self._opened: dict[Path, PdfInfo] = {}
        """What is known of the last PDF."""
        self._counts = not catalogue.is_part
        self._together = _PLANNED_TOGETHER if planning else 1

    @property
    def skipped_earlier(self) -> int:
        """Pages so far that were finished by an earlier run and are not yielded."""
        return self._intake.skipped_earlier

    @property
    def skipped_files(self) -> dict[str, int]:
        """Files of other kinds in the folders so far, by suffix."""
        return dict(self._intake.skipped_files.by_suffix)

    @property
    def skipped_links(self) -> list[str]:
        """Linked folders so far, which are not followed."""
        return self._intake.skipped_files.linked_folders

    @property
    def skipped_tables(self) -> list[str]:
        """Names of the tables without images so far, beside the pages of a dataset."""
        return self._intake.skipped_tables

    async def pages(self) -> AsyncGenerator[PageRef]:
        """Yield page references in input order, without reading ahead."""
        intake = self._intake
        counting: asyncio.Task[None] | None = None
        try:
            async with aclosing(on_thread(intake.sources())) as sources:
                async for source in sources:
                    before = intake.files, intake.position
                    pages = on_thread(await self._pages_of(source), together=self._together)
                    # Not before the first unfinished file is open: those that were skipped are counted already, and
                    # counting this one would start a process of its own.
                    if counting is None and self._counts:
                        counting = asyncio.create_task(self._count(*before))
                    async with aclosing(pages) as refs:
                        async for ref in refs:
                            yield ref
            for source, error, missing in await asyncio.to_thread(intake.failed_tables) if self.skipped_tables else ():
                for ref in self._references.of_broken(source, error, missing=missing):
                    yield ref
            self.complete = intake.exhausted and intake.left != 0
            self.total = intake.position
        finally:
            self._identifier.stopped = True
            if counting is not None:
                counting.cancel()
                (outcome,) = await asyncio.gather(counting, return_exceptions=True)
                if isinstance(outcome, Exception):
                    log.error("the pages of the input could not be counted", exc_info=outcome)

    async def _count(self, files: int, pages: int) -> None:
        """Set ``total`` to ``pages``, those in the first ``files``, and those in all others, beside the stream."""
        pdfs = 0
        options = self._options
        items = islice(expand(self._inputs, recursive=options.recursive, download=options.download), files, None)
        async for item in on_thread(items):
            more = 1  # a file that cannot be read yields one page, with its error
            with suppress(PagemillError, OSError):
                count, file_format = await asyncio.to_thread(self._cheap_count, item)
                if count is None and file_format is FileFormat.DOCUMENT:
                    return  # counting its pages takes as long as reading it
                if count is None and file_format is FileFormat.PDF and pdfs < MAX_PDFS:
                    assert isinstance(item.content, Path)
                    pdfs += 1
                    known = self._opened.get(item.content)
                    info = known or await self._decoder.probe_pdf(item.content, options.password)
                    # One more for the record of the missing pages.
                    count = info.page_count + (info.announced > info.page_count)
                if count is None:
                    return
                more = len(options.wanted(count, file_format)) or min(count, 1)
            pages += more
            if options.limit is not None and pages >= options.limit:
                break
        self.total = min(pages, options.limit or pages)

    def _cheap_count(self, item: Item) -> tuple[int | None, FileFormat | None]:
        """Number of page references of a file, without reading much of it, and its format.

        None for a remote file, a damaged shard, and a PDF, which has to be opened.
        """
        if item.error is not None:
            raise item.error
        if not isinstance(path := item.content, Path):
            return None, None
        file_format = format_of(item)
        if file_format.is_table:
            from pagemill.sources.tables import count_rows  # importing pyarrow takes a while

            return count_rows(path, file_format, self._options), file_format
        if file_format is FileFormat.TIFF:
            found = count_pages(path)
            return found.pages + (found.problem is not None), file_format
        return None if file_format in (FileFormat.PDF, FileFormat.DOCUMENT) else 1, file_format

    async def _pages_of(self, source: Source) -> Iterator[PageRef]:
        """Open a file. The pages are iterated on a thread."""
        item = source.item
        try:
            if source.error is not None:
                raise source.error
            file_format = await asyncio.to_thread(format_of, item)
            if source.file_format is None:
                source = replace(source, file_format=file_format)
                if await asyncio.to_thread(self._intake.skip_finished, source):
                    return iter(())
            if file_format is FileFormat.PDF:
                return await self._of_local_file(source, self._read_pdf)
            if file_format is FileFormat.DOCUMENT:
                return await self._of_local_file(source, self._read_document)
        except Exception as error:
            return self._references.of_broken(source, input_error(item, error))
        if file_format.is_table:
            return self._references.of_rows(source, file_format)
        return self._references.of_image(source, file_format)

    async def _of_local_file(
        self, source: Source, read: Callable[[Source, Path, object], Awaitable[Iterator[PageRef]]]
    ) -> Iterator[PageRef]:
        content, name, keep = source.item.content, source.item.name, source.keep
        if isinstance(content, Path):
            path = content
        else:
            assert content is not None
            keep = copy = await asyncio.to_thread(copy_to_disk, content, self._intake.catalogue.temporary)
            path = copy.path
        try:
            return await read(source, path, keep)
        except PagemillError as error:  # the user does not know the name of the temporary file
            error.message = error.message.replace(path.name, name)
            raise

    async def _read_pdf(self, source: Source, path: Path, keep: object) -> Iterator[PageRef]:
        """The pages of a PDF at ``path``, or of a repaired copy if that has more."""
        info: PdfInfo | None = None
        refusal: PagemillError | None = None
        try:
            # What PDFium refuses may still be repaired below.
            info = await self._decoder.probe_pdf(path, self._options.password)
            self._opened = {path: info}
        except (CorruptInputError, EmptyPageError, EncryptedError) as error:
            refusal = error
        if info is not None and info.page_count >= info.announced:
            return self._references.of_pdf(source, path, keep, info)
        try:
            copy = TemporaryCopy(self._intake.catalogue.temporary)
            repair = await self._decoder.repair_pdf(path, copy.path, self._options.password)
            found = await self._decoder.probe_pdf(copy.path)
        except PagemillError as error:
            if info is not None:
                return self._references.of_pdf(source, path, keep, info)
            assert refusal is not None
            if isinstance(refusal, CorruptInputError) or not isinstance(error, EncryptedError):
                refusal.message += f"; {error.message}"
                refusal.remedy = "Get the file again."
            raise refusal from error
        # The copy is not better: the original is what its author made.
        if info is not None and not repair.loops and found.page_count <= info.page_count - info.broken:
            return self._references.of_pdf(source, path, keep, info)
        # Pages that the original announces and the copy lacks are missing, and get a record.
        announced = max(repair.announced, found.announced, info.announced if info else 0)
        whole = msgspec.structs.replace(found, announced=announced)
        note = f"read from a copy that {repair.program} made"
        if isinstance(refusal, EncryptedError):
            return self._references.of_pdf(source, copy.path, copy, whole, notes=(note,))
        warning = PageError(
            component="source",
            category="repaired",
            message=f"the file is damaged; the page was {note}, and may be incomplete",
            remedy="Compare the page with another copy of the document.",
        )
        return self._references.of_pdf(source, copy.path, copy, whole, warning=warning)

    async def _read_document(self, source: Source, path: Path, keep: object) -> Iterator[PageRef]:
        """The pages of a document, which a reader reads as a whole."""
        copy = TemporaryCopy(self._intake.catalogue.temporary)
        read = await self._decoder.read_document(path, copy.path, source.item.name, self._options.password)
        if source.stamp is not None:  # the file may have been replaced since its digest was computed
            await asyncio.to_thread(source.stamp.check)
        return self._references.of_document(source, copy.path, copy, read)


async def on_thread(iterator: Iterator[T], *, together: int = 1) -> AsyncGenerator[T]:
    """Iterate on threads, ``together`` steps at a time, and close a generator that is left early."""
    try:
        while values := await asyncio.to_thread(lambda: list(islice(iterator, together))):
            for value in values:
                yield value
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            with suppress(ValueError):  # after a cancellation a thread may still run its last step, and then ends
                close()
