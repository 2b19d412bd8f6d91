"""Counting pages ahead of the stream, for the time that is left."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.errors import PagemillError
from pagemill.imaging.formats import FileFormat
from pagemill.imaging.tiff import count_pages
from pagemill.sources.detect import format_of
from pagemill.sources.locate import expand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

    def after(self, inputs: Sequence[str | Path | bytes], files: int) -> Iterator[Item]:
        """The files of the inputs without so many at their start."""
        return islice(expand(inputs, recursive=self._options.recursive), files, None)

    async def count(self, item: Item) -> int | None:
        """Page references that a file will give; None where counting would cost too much.

        A file that cannot be read gives one, with its error.
        """
        if item.error is not None:
            return 1
        if not isinstance(item.content, Path):
            return None
        try:
            known, file_format = await asyncio.to_thread(self._look_up, item)
            if known is not None:
                return known
            if file_format is FileFormat.PDF:
                self._pdfs += 1
                if self._pdfs > MAX_PDFS:
                    return None
                info = await self._decoder.probe_pdf(item.content, self._options.password)
                pages = info.page_count + (info.announced > info.page_count)  # one record for those that are missing
            elif file_format is not None and file_format.is_table:
                return await asyncio.to_thread(_count_rows, item.content, file_format)
            elif file_format is FileFormat.TIFF:
                found = await asyncio.to_thread(count_pages, item.content)
                pages = found.pages + (found.problem is not None)
            else:
                return 1
        except (PagemillError, OSError):
            return 1
        return len(self._options.wanted(pages, file_format)) or 1

    def _look_up(self, item: Item) -> tuple[int | None, FileFormat | None]:
        """What :meth:`count` is to say where the catalogue knows it, without opening the file; its format elsewhere."""
        identified = self._identifier.remembered(item)
        pages = None if identified is None else self._catalogue.page_count(identified.digest)
        if identified is None or pages is None:
            return None, format_of(item)
        return len(self._options.wanted(pages, identified.file_format)) or min(pages, 1), identified.file_format


def _count_rows(path: Path, file_format: FileFormat) -> int | None:
    from pagemill.sources.tables import count_rows  # on a thread: importing pyarrow takes a while

    return count_rows(path, file_format)
