"""Results of a job for clients: pages, records, images and documents, also while it runs."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from pagemill.app.options import ImageSources
from pagemill.app.page_images import PageImages, WantedPage
from pagemill.config.options import build
from pagemill.document.jobs import JobState, PageEvent, Pages, PageSummary
from pagemill.document.names import safe_name
from pagemill.document.page import DOUBTS, DocumentInfo, PageError, PageResult
from pagemill.errors import OutputError, PagemillError
from pagemill.export.formats import About, ExportFormat, served_formats
from pagemill.export.report import page_title
from pagemill.imaging.encode import encode_webp
from pagemill.imaging.transforms import fit, side_of_width
from pagemill.rest.archives import zipped
from pagemill.rest.errors import NotFoundError
from pagemill.rest.jobs import MAX_NUMBER, JobFile, JobRow
from pagemill.rest.options import PASSWORD, for_clients
from pagemill.rest.runner import with_names
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.flight import FlightControl
from pagemill.sources.options import SourceOptions
from pagemill.store.files import encoded
from pagemill.store.holding import Holding, examine
from pagemill.store.reading import RunReader
from pagemill.store.records import encode_line
from pagemill.store.rows import PageState

PAGES_OF_A_SOURCE = 1_000_000
"""A page's number is that of its source times this, and its number in the source: the same after a retry."""
MOST_PAGES = 500
"""Pages of one answer."""
LONGEST_SIDE = 2000
"""Pixels of a page image, at most."""
_EVENT = re.compile(r"(?P<record>[0-9]{1,18})@(?P<run>.+)")
_PAGE_ROWS = """
SELECT p.source, p.page, p.state, d.doc_id, p.page_number, p.page_idx, p.record, p.document, p.message, p.category
FROM pages p JOIN documents d USING (document)
"""
_STATES = {state: state.name.lower() for state in PageState}


@dataclass(frozen=True, slots=True)
class JobResults:
    """The results of a job. Its methods read files: they are called on threads, but for :meth:`image`."""

    row: JobRow
    documents: list[JobFile]
    folder: Path
    """Folder of the job."""

    @property
    def out(self) -> Path:
        """The run directory."""
        return self.folder / "run"

    def shortfall(self) -> str | None:
        """What the documents lack, in words; None where they are whole."""
        if self.row.state is not JobState.FINISHED:
            return f"the job is {self.row.state}: pages may be missing"
        failed = f"{self.row.failed:,} of {self.row.ended:,} pages failed" if self.row.failed else None
        if (reader := self.reader()) is None:
            return failed
        with reader:
            kinds = reader.summary.warnings_by_kind.keys() - DOUBTS  # as the exit status of pagemill parse
        incomplete = f"pages are incomplete ({', '.join(sorted(kinds))})" if kinds else None
        return "; ".join(filter(None, (failed, incomplete))) or None

    def reader(self) -> RunReader | None:
        """The run, to be closed; None while there is none."""
        try:
            if examine(self.out) is not Holding.RUN:
                return None
            return RunReader.open(self.out)
        except OutputError:
            # Until a job has finished its run may be one that is just being created; the runner reports a damaged one.
            if not self.row.has_ended or not self.out.exists():
                return None
            raise

    def pages(self, *, after: str | None, limit: int, status: str | None) -> Pages:
        """Pages in reading order: by document, then by page.

        Args:
            after: The ``next`` of the answer before.
            limit: Maximum number of pages.
            status: Only pages with this status: ``done``, ``failed``, ``skipped``, ``running``, ``waiting``.
        """
        if (reader := self.reader()) is None:
            return Pages([])
        condition, values = "TRUE", []
        if after is not None:
            place = _cursor(after)
            condition = "(p.document, ifnull(p.page_number, -1), p.source, p.page) > (?, ?, ?, ?)"
            values += place
        if status is not None:
            condition += " AND p.state = ?"
            values.append(int(PageState[status.upper()]))
        with reader:
            rows = reader.query(
                f"{_PAGE_ROWS} WHERE {condition}"
                " ORDER BY p.document, ifnull(p.page_number, -1), p.source, p.page LIMIT ?",
                (*values, limit),
            )
            pages = [self._page(reader, row) for row in rows]
        following = None
        if len(rows) == limit:
            source, page, _, _, number, _, _, document, *_ = rows[-1]
            # A place in the order, not an offset: pages that finish in between would shift an offset.
            following = f"{document}.{-1 if number is None else number}.{source}.{page}"
        return Pages(pages, following)

    def events(self, after: str = "", limit: int = MOST_PAGES) -> list[tuple[str, PageEvent]]:
        """Pages that finished after an event, in that order, each with its event id.

        An id names the record and the run: a job that starts over counts its records from 1 again.

        Args:
            after: The id of an event; all pages if it is not one of the run.
            limit: Maximum number of pages.
        """
        if (reader := self.reader()) is None:
            return []
        with reader:
            run = reader.one("SELECT started FROM run")
            known = _EVENT.fullmatch(after)
            last = int(known["record"]) if known is not None and known["run"] == run else 0
            rows = reader.query(
                "SELECT p.record, p.source, p.page, p.state, d.doc_id, p.page_number FROM pages p"
                " JOIN documents d USING (document) WHERE p.record > ? ORDER BY p.record LIMIT ?",
                (last, limit),
            )
            events = []
            for record, source, page, state, doc_id, number in rows:
                found = self._decoded(reader, record)
                event = PageEvent(
                    n=source * PAGES_OF_A_SOURCE + page,
                    document=doc_id,
                    page_number=number,
                    status=_STATES[PageState(state)],
                    title=page_title(found) if state == PageState.DONE else None,
                    errors=found.errors if state == PageState.FAILED else [],
                )
                events.append((f"{record}@{run}", event))
            return events

    def record_json(self, n: int) -> bytes:
        """The record of a page, as in ``ocr_results.jsonl``.

        Raises:
            NotFoundError: There is none.
        """
        if (reader := self.reader()) is None:
            raise _no_page()
        with reader:
            return encode_line(self._record(reader, n))

    def document(self, document: str, suffix: str) -> tuple[str, Iterator[bytes]]:
        """A document in a format: the media type and the content, piece by piece.

        Raises:
            NotFoundError: There is no such document yet, or no such format.
        """
        formats = served_formats()
        if (kind := formats.get(suffix)) is None:
            raise NotFoundError(f"there is no format {suffix!r}", remedy=f"Available: {', '.join(formats)}.")
        file = next((each for each in self.documents if each.id == document), None)

        def pages() -> Iterator[PageResult]:
            if (reader := self.reader()) is not None:
                with reader:
                    yield from reader.document(document) if file is None else self.pages_of(reader, file)

        # Before the answer begins: once its status is sent, a missing document cannot be reported any more.
        if (first := next(pages(), None)) is None:
            raise NotFoundError("there is no such document, or no page of it yet")
        return kind.media_type, self._written(kind, first.doc_id, pages(), file)

    def _written(
        self, kind: ExportFormat, doc_id: str, pages: Iterator[PageResult], file: JobFile | None = None
    ) -> Iterator[bytes]:
        """A document in a format that is served, or all of a file, piece by piece. Pictures are one level up."""
        assert kind.text is not None
        about = About(is_provisional=True, crops_root="../")
        if (reader := self.reader()) is not None:
            with reader:
                inner = _documents_of(reader, file) if file is not None else [doc_id]
                is_provisional = not self.row.has_ended or any(map(reader.is_provisional, inner))
                about = About(reader.info(doc_id), is_provisional, about.crops_root)
        return encoded(kind.text(map(self.named, pages), about))

    def pages_of(self, reader: RunReader, file: JobFile) -> Iterator[PageResult]:
        """The records of a file. The ids of rows may name documents, also as another file is called here."""
        for doc_id in _documents_of(reader, file):
            yield from reader.document(doc_id)

    def info_of(self, file: JobFile) -> DocumentInfo:
        """Metadata of a file; with several documents in it, of the first."""
        if (reader := self.reader()) is None:
            return DocumentInfo()
        with reader:
            return next(map(reader.info, _documents_of(reader, file)), DocumentInfo())

    def crop(self, name: str) -> bytes:
        """A picture that a record names.

        Raises:
            NotFoundError: No record names it.
        """
        if (reader := self.reader()) is not None:
            with reader:
                # The table decides, not the file system: no name of a client gets into a path.
                rows = reader.query("SELECT path FROM crops WHERE path = ?", (f"crops/{name}",))
                if rows:
                    try:
                        return (self.out / str(rows[0][0])).read_bytes()
                    except OSError:
                        pass
        raise NotFoundError("there is no such picture")

    def archive(self) -> Iterator[bytes]:
        """All of the job as a zip file, piece by piece: documents in every format, pictures, records."""
        reader = self.reader()
        if reader is None:
            raise NotFoundError("the job has no results yet")

        def members() -> Iterator[tuple[str, Iterator[bytes]]]:
            if (shortfall := self.shortfall()) is not None:
                # In the archive as well as in the header: a file is opened long after its answer is forgotten.
                yield "INCOMPLETE.txt", iter([f"When this archive was made: {shortfall}.\n".encode()])
            names = self._document_names(reader)
            for doc_id, _ in reader.recorded_documents():
                for suffix, kind in served_formats().items():
                    yield f"documents/{names[doc_id]}.{suffix}", self._written(kind, doc_id, reader.document(doc_id))
            yield "ocr_results.jsonl", (encode_line(self.named(page)) for page in reader.pages(stored=True))
            for (path,) in reader.query("SELECT path FROM crops ORDER BY path"):
                yield path, iter([(self.out / path).read_bytes()])

        def content() -> Iterator[bytes]:
            with reader:
                yield from zipped(members())

        return content()

    async def image(
        self, n: int, width: int | None, decoding: DecodingService, flight: FlightControl
    ) -> tuple[bytes, str]:
        """The image of a page as it was read, as WebP, and a tag that changes with it.

        Raises:
            NotFoundError: There is no such page.
            PagemillError: It cannot be decoded.
        """
        reader = await asyncio.to_thread(self.reader)
        if reader is None:
            raise _no_page()
        with reader:
            page = await asyncio.to_thread(self._record, reader, n)
            options = build(SourceOptions, self.row.options | {PASSWORD: self.row.password})
            images = PageImages(reader, decoding, ImageSources(options=options), flight)
            async with aclosing(images.find([WantedPage.of(page)])) as found_pages:
                async for found in found_pages:
                    try:
                        with found:
                            pixels = await images.pixels(found)
                            side = LONGEST_SIDE if width is None else min(LONGEST_SIDE, side_of_width(pixels, width))
                            pixels = await asyncio.to_thread(fit, pixels, side)
                            data = await asyncio.to_thread(encode_webp, pixels, quality=80)
                    except PagemillError as error:
                        error.message = self._plain(error.message)
                        raise
                    return data, hashlib.sha256(data).hexdigest()[:32]
        raise _no_page()

    def _record(self, reader: RunReader, n: int) -> PageResult:
        # SQLite raises for larger integers.
        if not 0 <= n <= MAX_NUMBER:
            raise _no_page()
        source, page = divmod(n, PAGES_OF_A_SOURCE)
        rows = reader.query(
            "SELECT page_id FROM pages WHERE source = ? AND page = ? AND record IS NOT NULL", (source, page)
        )
        if not rows:
            raise _no_page()
        return self.named(reader.page(rows[0][0], stored=not self.row.has_ended))

    def _page(self, reader: RunReader, row: tuple[Any, ...]) -> PageSummary:
        source, page, state, doc_id, number, position, record, _, message, category = row
        found = None if record is None else self._decoded(reader, record)
        errors = [] if found is None else found.errors
        if found is None and state == PageState.SKIPPED:
            errors = [PageError(category="skipped", message=self._plain(category or ""), component="source")]
        elif found is None and category is not None:
            errors = [PageError(category=category, message=self._plain(message or ""), component="worker")]
        # A size is that of an image, which the web app asks for.
        drawn = found if found is not None and found.has_image else None
        return PageSummary(
            n=source * PAGES_OF_A_SOURCE + page,
            document=doc_id,
            name=self.name_of(doc_id),
            page_number=number,
            page_idx=position,
            status=_STATES[PageState(state)],
            title=page_title(found) if found is not None and state == PageState.DONE else None,
            confidence=None if found is None else found.confidence,
            errors=errors,
            width=None if drawn is None else drawn.width,
            height=None if drawn is None else drawn.height,
        )

    def _decoded(self, reader: RunReader, record: int) -> PageResult:
        (page,) = reader.record(record)
        return self.named(page)

    def named(self, page: PageResult) -> PageResult:
        """A record in which the source is called as the client calls it."""
        page.source = self._plain(page.source)
        page.errors = [
            msgspec.structs.replace(
                error,
                message=self._plain(error.message),
                remedy=error.remedy and for_clients(self._plain(error.remedy)),
            )
            for error in page.errors
        ]
        return page

    def _plain(self, text: str) -> str:
        return with_names(text, self.folder / "inputs", self.documents)

    def name_of(self, doc_id: str) -> str:
        """The client's name of a document of the run: by the name of its file, or by the id that a row of it gives."""
        return next((document.name for document in self.documents if document.id == doc_id), doc_id)

    def file_names(self, *reserved: str) -> dict[str, str]:
        """By document, a name for its files in an archive: the client's name, if it is safe and unique."""
        taken = set(reserved)
        stems = {
            document.id: safe_name(document.name.rpartition(".")[0] or document.name) for document in self.documents
        }
        return {id: _unique(stem, f"-{id}", taken) for id, stem in stems.items()}

    def _document_names(self, reader: RunReader) -> dict[str, str]:
        """By document of the run, a name for its files: of its file, else its id, which rows of a dataset may give."""
        files = {document.file: document.id for document in self.documents}
        of_files = self.file_names()
        names: dict[str, str] = {}
        taken: set[str] = set()
        for doc_id, uri in reader.query("SELECT doc_id, uri FROM documents ORDER BY document"):
            file = files.get(PurePosixPath(uri).name)
            is_whole_file = file is not None and doc_id.partition("-")[0] == file
            name = of_files[file] if file is not None and is_whole_file else doc_id
            names[doc_id] = _unique(name, f"-{len(taken) + 1}", taken)
        return names


def _documents_of(reader: RunReader, file: JobFile) -> list[str]:
    """The document of a file and those inside of it, or those of a dataset."""
    query = "SELECT doc_id FROM documents WHERE uri LIKE ? OR uri LIKE ? ORDER BY document"
    return [doc_id for (doc_id,) in reader.query(query, (f"%/{file.file}", f"%/{file.file}#%"))]


def _unique(name: str, suffix: str, taken: set[str]) -> str:
    """A name that no files of other documents have: ``a.docling.json`` is one of the document ``a``."""
    while name.casefold() in taken or name.casefold().endswith(".docling"):
        name += suffix
    taken.add(name.casefold())
    return name


def split_name(name: str) -> tuple[str, str]:
    """The document and the format that the name of a file means: ids of documents may have dots."""
    # The longest first: `docling.json` also ends with `.json`.
    for suffix in sorted(served_formats(), key=len, reverse=True):
        if name.endswith(f".{suffix}"):
            return name.removesuffix(f".{suffix}"), suffix
    stem, _, suffix = name.partition(".")
    return stem, suffix


def _no_page() -> NotFoundError:
    return NotFoundError("there is no such page, or it has not finished yet")


def _cursor(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(".")]
    except ValueError:
        numbers = []
    if len(numbers) != 4 or any(abs(number) > MAX_NUMBER for number in numbers):
        raise NotFoundError("`after` is not the `next` of an answer")
    return numbers
