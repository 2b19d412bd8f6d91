"""Reads page images again from their sources: a run directory does not store them."""

from __future__ import annotations

import asyncio
import glob
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pagemill.app.options import ImageSources
from pagemill.config.machine import RuntimeSettings
from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import AllBut, KnownSource, PageKey, WaitingPage
from pagemill.document.page import PageResult
from pagemill.errors import MissingInputError, PagemillError, UnsupportedInputError
from pagemill.imaging.transforms import rotate_quarter
from pagemill.imaging.types import Pixels
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.flight import FlightControl, Ticket
from pagemill.sources.base import EncodedImage, PdfPage, ReadPart
from pagemill.sources.items import is_url
from pagemill.sources.stream import InputStream
from pagemill.store.reading import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPage:
    """A page of a run whose image is needed."""

    page_id: str
    key: PageKey
    rotation: int
    """Clockwise rotation of the decoded image in degrees, as when the page was parsed."""

    @classmethod
    def of(cls, page: PageResult) -> WantedPage:
        """The page of a record."""
        return cls(page_id=page.page_id, key=PageKey.parse(page.page_key), rotation=page.rotation)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """A page in its source, not decoded yet; or the error if it cannot be read.

    A context manager: it is left when the pixels of the page are released.
    """

    wanted: WantedPage
    payload: PdfPage | EncodedImage | None = None
    error: PagemillError | None = None
    ticket: Ticket | None = None
    """Its slot in flight."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.ticket is not None:
            self.ticket.leave()


@dataclass(frozen=True, slots=True)
class PageImages:
    """Decodes pages of a run from their sources, which are recognized by their content, wherever they are now."""

    reader: RunReader
    decoding: DecodingService
    sources: ImageSources
    flight: FlightControl

    @classmethod
    @asynccontextmanager
    async def opened(cls, reader: RunReader, sources: ImageSources) -> AsyncIterator[PageImages]:
        """Start decoding processes, which stop with the block.

        Args:
            reader: The run; used from threads, one at a time, during :meth:`find`.
            sources: Current location of the parsed files.

        Raises:
            MissingInputError: One of its inputs does not exist.
        """
        # Before decoding processes start, and because a missing path would only look like changed files later.
        for each in sources.inputs:
            if not is_url(each) and not glob.has_magic(each) and not Path(each).expanduser().exists():
                raise MissingInputError(
                    f"the input {each!r} does not exist", remedy="Pass the current path of the parsed files."
                )
        runtime = RuntimeSettings().resolved()
        flight = FlightControl(max_pages=runtime.pages_in_flight, max_bytes=runtime.bytes_in_flight)
        async with DecodingService(workers=runtime.decoders, memory=runtime.decoder_memory) as decoding:
            yield cls(reader, decoding, sources, flight)

    async def find(self, pages: Iterable[WantedPage]) -> AsyncGenerator[FoundPage]:
        """Yield each page as soon as it is found and memory allows it, or the error if it cannot be read.

        Args:
            pages: Each one once. Takes about 300 bytes of memory per page.
        """
        wanted: dict[tuple[str, int], list[WantedPage]] = {}
        for page in pages:
            # By content, as files may have moved.
            wanted.setdefault((page.key.digest, page.key.page), []).append(page)
        if not wanted:
            return
        digests = {digest for digest, _ in wanted}
        addresses = await asyncio.to_thread(self.reader.source_addresses)
        inputs = self.sources.inputs or [addresses[digest] for digest in addresses if digest in digests]
        options = replace(self.sources.options, recursive=True)
        known = await asyncio.to_thread(self.reader.remembered_digests)
        source = InputStream(inputs, options=options, decoder=self.decoding, catalogue=_OnlyThese(wanted, known))
        problems: dict[str, PagemillError] = {}
        async with aclosing(source.pages()) as refs:
            async for ref in refs:
                error = None if ref.error is None else ref.error.exception()
                if error is not None:
                    problems[ref.document.uri] = error
                payload = None if isinstance(ref.payload, ReadPart) else ref.payload
                if payload is None and error is None:
                    error = UnsupportedInputError(
                        f"{ref.document.uri} is a document without images of its pages", remedy="Convert it to PDF."
                    )
                for page in wanted.pop((ref.key.digest, ref.key.page), ()):
                    # Entered here and left by who uses the page: sources are read no faster than pages are used.
                    ticket = await self.flight.enter(ref.estimated_bytes)
                    yield FoundPage(wanted=page, payload=payload, error=error, ticket=ticket)
        for left in wanted.values():
            for page in left:
                where = addresses.get(page.key.digest, "its source")
                yield FoundPage(wanted=page, error=self._gone(where, problems.get(where)))

    async def pixels(self, page: FoundPage) -> Pixels:
        """Decode a page and rotate it as when it was parsed.

        Raises:
            PagemillError: It cannot be read or decoded; its class gives the cause.
        """
        if page.payload is None:
            raise page.error or PagemillError(f"{page.wanted.page_id} has no image")
        decoded = await self.decoding.decode(page.payload)
        if not page.wanted.rotation:
            return decoded.pixels
        return await asyncio.to_thread(rotate_quarter, decoded.pixels, page.wanted.rotation)

    def _gone(self, where: str, problem: PagemillError | None) -> PagemillError:
        """The error for a source that is not found: it was moved or changed."""
        message = f"{where} is gone, or has changed since the page was parsed"
        if self.sources.inputs:
            message = f"{where}, unchanged since it was parsed, is not in {', '.join(self.sources.inputs)}"
        elif isinstance(problem, MissingInputError):
            message = problem.message
        # What is wrong with the file explains more than that it is not found.
        elif problem is not None:
            return problem
        remedy = "Pass the file's current path with --input. If it has changed, parse it first."
        return MissingInputError(message, remedy=remedy)


class _OnlyThese(Catalogue):
    """A catalogue in which all but some pages are finished, and which knows the digests of unchanged files."""

    def __init__(self, wanted: Mapping[tuple[str, int], object], digests: Mapping[tuple[bytes, int, int], str]) -> None:
        super().__init__()
        self._digests = digests
        self._wanted: dict[str, set[int]] = {}
        for digest, page in wanted:
            self._wanted.setdefault(digest, set()).add(page)

    def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
        """The digest stored by the run, so that unchanged files are not read again for their digest."""
        return self._digests.get((os.fsencode(path), size, modified_ns))

    def register(self, digest: str, uri: str, skip: str | None = None) -> KnownSource:
        """The wanted pages; further files with the same content are skipped."""
        known = super().register(digest, uri)
        pages = self._wanted.get(digest, set()) if known.copy == 1 else set()
        waiting = {page: WaitingPage(page_id=f"{digest}/{page}") for page in pages}
        # A source is skipped unopened if it is known to have no pages.
        return KnownSource(copy=known.copy, pages=None if pages else 0, ended=AllBut(pages), waiting=waiting)
