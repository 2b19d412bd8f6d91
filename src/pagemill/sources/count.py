"""Counting pages ahead of the stream, for the time that is left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.errors import PagemillError
from pagemill.imaging.formats import FileFormat
from pagemill.imaging.tiff import count_pages
from pagemill.sources.digest import format_of

if TYPE_CHECKING:
    from pagemill.sources.base import Catalogue, PdfProbe
    from pagemill.sources.digest import Identifier
    from pagemill.sources.items import Item
    from pagemill.sources.options import SourceOptions

MAX_PDFS = 200
"""Opening more only to count their pages would keep the decoding processes from their work."""


class PageCounter:
    """Counts the pages of files by what the catalogue knows, else without reading much of them."""

    def __init__(self, options: SourceOptions, decoder: PdfProbe, catalogue: Catalogue, identifier: Identifier) -> None:
        self._options = options
        self._decoder = decoder
        self._catalogue = catalogue
        self._identifier = identifier
        self._pdfs = 0

    async def count(self, item: Item) -> int | None:
        """Page references that a file will give; None where counting would cost too much.

        A file that cannot be read gives one, with its error.
        """
        if item.error is not None:
            return 1
        if not isinstance(path := item.content, Path):
            return None
        try:
            pages, file_format = await asyncio.to_thread(self._count, item, path)
            if pages is None and file_format is FileFormat.PDF and self._pdfs < MAX_PDFS:
                self._pdfs += 1
                info = await self._decoder.probe_pdf(path, self._options.password)
                pages = info.page_count + (info.announced > info.page_count)  # one record for those that are missing
        except (PagemillError, OSError):
            return 1
        return None if pages is None else len(self._options.wanted(pages, file_format)) or min(pages, 1)

    def _count(self, item: Item, path: Path) -> tuple[int | None, FileFormat | None]:
        """Pages and format of a file; no pages of a PDF that the catalogue does not know, and of a damaged shard."""
        identified = self._identifier.remembered(item)
        if identified is not None and (pages := self._catalogue.page_count(identified.digest)) is not None:
            return pages, identified.file_format
        file_format = format_of(item)
        if file_format.is_table:
            from pagemill.sources.tables import count_rows  # importing pyarrow takes a while

            return count_rows(path, file_format), file_format
        if file_format is FileFormat.TIFF:
            found = count_pages(path)
            return found.pages + (found.problem is not None), file_format
        return None if file_format is FileFormat.PDF else 1, file_format
