"""The stream of page references over all inputs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

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
"""Opening more only to count their pages would keep the decoding processes from their work."""
_PLANNED_TOGETHER = 64
"""References that are planned in one go on a thread: a change of threads takes longer than a reference."""


class InputStream:
    """All pages of the inputs, lazily and in input order. File access is on threads.

    Nothing that is wrong with an input raises: it becomes a page reference with an error. Pages that the catalogue
    knows as ended are skipped: files that have ended whole in one go on one thread.

    Args:
        inputs: Paths of files and folders, globs, URLs (``hf://``, ``s3://``, ``https://``), or bytes.
        options: What to take of them.
        decoder: Opens PDFs; the decoding service.
        catalogue: What is known from earlier runs; None for a run on its own.
        planning: Yield which pages there are, without what is read to parse them: no image of a dataset or of a remote
            file is read. Somebody else opens the sources again.
    """

    total: int | None
    """Pages in the input where that is known, for the ETA; may be set while iterating."""
    complete: bool
    """Whether the input was read to its end; False when a limit or the consumer stopped it earlier."""

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
        self._counts = not catalogue.is_part
        self._together = _PLANNED_TOGETHER if planning else 1

    @property
    def skipped_earlier(self) -> int:
        """Pages so far that ended in an earlier run and are not given again."""
        return self._intake.skipped_earlier

    @property
    def skipped_files(self) -> dict[str, int]:
        """Files of folders so far that are of no kind that pagemill reads, by suffix."""
        return dict(self._intake.skipped_files.by_suffix)

    @property
    def skipped_links(self) -> list[str]:
        """Linked folders so far, which are not followed."""
        return self._intake.skipped_files.linked_folders

    @property
    def skipped_tables(self) -> list[str]:
        """Names of the tables without images so far that lie beside the pages of a dataset."""
        return self._intake.skipped_tables

    async def pages(self) -> AsyncGenerator[PageRef]:
        """Yield page references in input order, reading no further ahead than it is asked."""
        intake = self._intake
        counting: asyncio.Task[None] | None = None
        try:
            async with aclosing(on_thread(intake.sources())) as sources:
                async for source in sources:
                    if counting is None and self._counts:  # what was skipped until now needs no counting
                        counting = asyncio.create_task(self._count(intake.files, intake.position))
                    pages = on_thread(await self._pages_of(source), together=self._together)
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
            more = 1  # a file that cannot be read gives one, with its error
            with suppress(PagemillError, OSError):
                count, file_format = await asyncio.to_thread(self._cheap_count, item)
                if count is None and file_format is FileFormat.DOCUMENT:
                    return  # only a reader can tell, and takes as long as reading it
                if count is None and file_format is FileFormat.PDF and pdfs < MAX_PDFS:
                    assert isinstance(item.content, Path)
                    pdfs += 1
                    info = await self._decoder.probe_pdf(item.content, options.password)
                    # One record for those that are missing.
                    count = info.page_count + (info.announced > info.page_count)
                if count is None:
                    return
                more = len(options.wanted(count, file_format)) or min(count, 1)
            pages += more
            if options.limit is not None and pages >= options.limit:
                break
        self.total = min(pages, options.limit or pages)

    def _cheap_count(self, item: Item) -> tuple[int | None, FileFormat | None]:
        """Page references that a file gives, without reading much of it; its format.

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
                if await asyncio.to_thread(self._intake.pass_over_ended, source):
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
        except PagemillError as error:  # with the name that the user knows in place of that of a temporary file
            error.message = error.message.replace(path.name, name)
            raise

    async def _read_pdf(self, source: Source, path: Path, keep: object) -> Iterator[PageRef]:
        """The pages of a PDF at ``path``, or of a repaired copy where that has more."""
        info: PdfInfo | None = None
        refusal: PagemillError | None = None
        try:
            info = await self._decoder.probe_pdf(path, self._options.password)
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
        if info is not None and not repair.loops and found.page_count <= info.page_count - info.broken:
            return self._references.of_pdf(source, path, keep, info)
        # What the original announces and the copy does not have is missing.
        announced = max(repair.announced, found.announced, info.announced if info else 0)
        whole = msgspec.structs.replace(found, announced=announced)
        note = f"read from a copy that {repair.program} made"
        if isinstance(refusal, EncryptedError):
            return self._references.of_pdf(source, copy.path, copy, whole, notes=(note,))
        warning = PageError(
            component="source",
            category="repaired",
            message=f"the file is damaged; the page was {note}, and may lack something",
            remedy="Compare the page with another copy of the document.",
        )
        return self._references.of_pdf(source, copy.path, copy, whole, warning=warning)

    async def _read_document(self, source: Source, path: Path, keep: object) -> Iterator[PageRef]:
        """The pages of a document that a reader reads, all at once."""
        copy = TemporaryCopy(self._intake.catalogue.temporary)
        read = await self._decoder.read_document(path, copy.path, source.item.name, self._options.password)
        if source.stamp is not None:  # what was read is of the file that the digest names
            await asyncio.to_thread(source.stamp.check)
        return self._references.of_document(source, copy.path, copy, read)


async def on_thread(iterator: Iterator[T], *, together: int = 1) -> AsyncGenerator[T]:
    """Iterate on threads, so many steps at a time, and close a generator that is left early."""
    try:
        while values := await asyncio.to_thread(lambda: list(islice(iterator, together))):
            for value in values:
                yield value
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            with suppress(ValueError):  # a thread still runs its last step after a cancellation; it ends with that
                close()
