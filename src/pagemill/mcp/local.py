"""Documents on this machine, below one folder: each is parsed once, in a process of its own, and kept in a cache."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pagemill.app.options import DirectoryOptions, ImageSources, ParseOptions, Resume
from pagemill.app.page_images import PageImages, WantedPage
from pagemill.app.parse_process import GOES_ON_AFTER, parse_command
from pagemill.config.options import build
from pagemill.errors import ExitCode, InputError, OutputError, PagemillError, UsageError
from pagemill.imaging.encode import encode_jpeg
from pagemill.imaging.transforms import fit, side_of_width
from pagemill.mcp.documents import (
    MAX_ERRORS,
    MAX_FILES,
    MAX_LISTED,
    Found,
    Listing,
    ParsedDocument,
    ParseState,
    still_parsing,
)
from pagemill.mcp.folder import entries_of, file_below, folder_of
from pagemill.processes import die_with_parent
from pagemill.retrieval.library import Library
from pagemill.store.files import output_errors
from pagemill.store.reading import FailedPage, RunReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from pagemill.document.page import PageResult
    from pagemill.imaging.types import Pixels
    from pagemill.sources.options import PageRanges

MAX_PAGES = 2000
"""Pages of a document that are parsed."""
MAX_DOCUMENTS = 500
"""Documents in the cache; the oldest are deleted."""
_POLL_S = 0.5
_ID = re.compile(r"[0-9a-f]{24}")
_MOST_MESSAGE = 2000


class LocalDocuments:
    """Documents below one folder; no other file is ever read.

    Args:
        root: The folder. A link in it that points out of it is refused.
        cache: Where parsed documents and the index are kept; made when it is missing.

    Raises:
        UsageError: There is no such folder.
        OutputError: The cache cannot be written.
    """

    def __init__(self, root: Path, cache: Path) -> None:
        self._root = folder_of(root)
        self._runs = cache / "runs"
        with output_errors(cache):
            self._runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._library = Library(cache / "search")
        self._one_at_a_time = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Bring the index up to date with the cache: a process that was killed may have left them apart."""
        await asyncio.to_thread(self._index_missing)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop parsing; it is resumed when it is requested again."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def parse(
        self,
        source: str,
        *,
        pages: PageRanges | None,
        languages: Sequence[str],
        wait_s: float,
        tell: Callable[[ParsedDocument], Awaitable[object]],
    ) -> ParsedDocument:
        """Parse a file below the root, unless that was done before."""
        file = file_below(self._root, source)
        options = build(ParseOptions, {"pages": pages, "languages": list(languages) or None, "limit": MAX_PAGES})
        document = await asyncio.to_thread(self._id, file, f"{pages or ''} {','.join(languages)}")
        out = self._runs / document
        state = await asyncio.to_thread(self._state, document, pages)
        if state is None or state.state is ParseState.PARSING or not state.pages_finished:
            task = self._tasks.get(document)
            if task is None:
                task = self._tasks[document] = asyncio.create_task(self._parse(file, out, options))
                task.add_done_callback(lambda _: self._tasks.pop(document, None))
            before = None
            deadline = asyncio.get_running_loop().time() + wait_s
            while not task.done() and (left := deadline - asyncio.get_running_loop().time()) > 0:
                await asyncio.wait({task}, timeout=min(_POLL_S, left))
                state = await asyncio.to_thread(self._state, document, pages)
                if state is not None and state.pages_finished != before:
                    before = state.pages_finished
                    await tell(state)
            if task.done():
                await task  # raises what went wrong
                state = await asyncio.to_thread(self._state, document, pages)
        return state or ParsedDocument(document=document, name=file.name, state=ParseState.PARSING, pages_finished=0)

    async def listed(self, folder: str) -> Listing:
        """The documents in the cache, and the files of a folder below the root."""
        return await asyncio.to_thread(self._listed, folder)

    async def pages(self, document: str, pages: PageRanges | None) -> AsyncGenerator[PageResult]:
        """The finished pages of a document in order."""
        with self._opened(document) as reader:
            rows = await asyncio.to_thread(lambda: list(reader.rows("p.record IS NOT NULL")))
            wanted = (
                None if pages is None else set(pages.select(max((row.page_number or 0 for row in rows), default=0)))
            )
            for row in sorted(rows, key=lambda row: row.page_number or 0):
                if wanted is None or row.page_number in wanted:
                    yield await asyncio.to_thread(reader.page, row.page_id)

    async def finished(self, document: str) -> list[int]:
        """Numbers of the finished pages of a document."""
        with self._opened(document) as reader:
            return await asyncio.to_thread(
                lambda: sorted({row.page_number or 0 for row in reader.rows("p.record IS NOT NULL")})
            )

    async def is_unfinished(self, document: str) -> bool:
        """Whether more pages may come."""
        state = await asyncio.to_thread(self._state, document, None)
        return state is None or state.state is ParseState.PARSING

    async def image(self, document: str, page: PageResult, width: int) -> bytes:
        """The image of a page, read again from its file."""
        with self._opened(document) as reader:
            async with (
                PageImages.opened(reader, ImageSources()) as images,
                contextlib.aclosing(images.find([WantedPage.of(page)])) as found,
            ):
                async for each in found:
                    try:
                        return await asyncio.to_thread(_jpeg, await images.pixels(each), width)
                    finally:
                        each.leave()
        raise InputError(f"page {page.page_number} has no image")

    async def search(self, query: str, *, document: str | None, languages: Sequence[str], limit: int) -> list[Found]:
        """Find pages of all parsed documents below the root, or of one."""
        if document is not None:
            if document in self._tasks:
                raise still_parsing(document)  # it is in the index when it is finished
            self._opened(document).close()
        hits = await asyncio.to_thread(
            lambda: self._library.search(query, owner=str(self._root), run=document, languages=languages, top=limit)
        )
        return [
            Found(
                document=hit.run,
                name=Path(hit.found.source).name,
                page=hit.found.page_number,
                score=round(hit.found.score, 5),
                snippet=hit.found.snippet,
                label=hit.found.label,
                box=hit.found.bbox_2d,
            )
            for hit in hits
        ]

    def _listed(self, folder: str) -> Listing:
        files = entries_of(self._root, folder)
        documents: list[ParsedDocument] = []
        for run in sorted(self._runs.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True):
            with contextlib.suppress(PagemillError):  # of another folder, or not begun
                self._opened(run.name).close()
                if (state := self._state(run.name, None)) is not None:
                    documents.append(state)
            if len(documents) == MAX_LISTED:
                break
        return Listing(documents=documents, files=files[:MAX_FILES], files_left_out=max(0, len(files) - MAX_FILES))

    def _without_places(self, text: str) -> str:
        """A message that names files as the assistant does: from the root on."""
        for folder in (self._root, self._runs.parent.resolve(), self._runs.parent):
            text = text.replace(f"{folder}/", "")
        return text

    def _id(self, file: Path, options: str) -> str:
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        return hashlib.sha256(content + f"\0{file}\0{options}".encode("utf-8", "surrogateescape")).hexdigest()[:24]

    def _opened(self, document: str) -> RunReader:
        """The run of a document.

        Raises:
            UsageError: There is none of a file below the root.
        """
        unknown = UsageError(
            f"there is no document {document!r}", remedy="Parse it first: parse_document gives its id."
        )
        if not _ID.fullmatch(document):
            raise unknown
        try:
            reader = RunReader.open(self._runs / document)
        except OutputError as error:
            raise (still_parsing(document) if document in self._tasks else unknown) from error
        if not all(Path(each).is_relative_to(self._root) for each in reader.source_addresses().values()):
            reader.close()
            raise unknown  # from another folder, which this process may not read
        return reader

    def _state(self, document: str, pages: PageRanges | None) -> ParsedDocument | None:
        """How far the requested pages of a document are; None if it has not begun."""
        try:
            reader = RunReader.open(self._runs / document)
        except OutputError:
            return None
        with reader:
            summary = reader.summary
            finished = summary.finished is not None and not summary.interrupted and document not in self._tasks
            addresses = list(reader.source_addresses().values())
            failures = [page for kind in reader.failures(MAX_ERRORS) for page in kind.examples]
            errors = [self._without_places(_told(reader, page)) for page in failures[:MAX_ERRORS]]
            count = reader.one("SELECT max(pages) FROM sources") or 0
            if (requested := len(pages.select(count)) if pages else count) > MAX_PAGES:
                errors.insert(
                    0, f"parsed only the first {MAX_PAGES:,} of {requested:,} pages; pass pages to parse others"
                )
            return ParsedDocument(
                document=document,
                name=Path(addresses[0]).name if addresses else document,
                state=ParseState.FINISHED if finished else ParseState.PARSING,
                pages_finished=summary.pages - summary.failed,
                pages_failed=summary.failed,
                pages_total=reader.total,
                errors=errors[:MAX_ERRORS],
            )

    async def _parse(self, file: Path, out: Path, options: ParseOptions) -> None:
        """Parse a file with ``pagemill parse``, and put it into the index.

        Raises:
            PagemillError: It could not be parsed; the message is that of the command.
        """
        async with self._one_at_a_time:
            directory = DirectoryOptions(report=False, resume=Resume.IF_ANY)
            command, environment = parse_command([file], out, options, directory, quiet=True)
            parent = os.getpid()
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,  # ours is the protocol's
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                preexec_fn=lambda: die_with_parent(parent),
            )
            try:
                _, messages = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if process.returncode not in GOES_ON_AFTER:
                said = self._without_places(messages.decode("utf-8", "replace").strip().removeprefix("Error: "))
                message, _, remedy = said[-_MOST_MESSAGE:].partition("\n")
                error = PagemillError(message or f"parsing {file.name} failed", remedy=" ".join(remedy.split()) or None)
                if process.returncode in set(ExitCode):
                    error.exit_code = ExitCode(process.returncode)
                raise error
            await asyncio.to_thread(self._index, out.name)
            await asyncio.to_thread(self._forget_oldest)

    def _index(self, document: str) -> None:
        with RunReader.open(self._runs / document) as reader:
            addresses = [Path(each) for each in reader.source_addresses().values()]
            if all(each.is_relative_to(self._root) for each in addresses):
                self._library.put(document, reader, owner=str(self._root), collection="", stamp=str(reader.stamp()))

    def _index_missing(self) -> None:
        known = self._library.runs()
        there = {path.name for path in self._runs.iterdir() if _ID.fullmatch(path.name)}
        for document in known.keys() - there:
            self._library.remove(document)
        for document in there:
            with contextlib.suppress(OutputError), RunReader.open(self._runs / document) as reader:
                if known.get(document) == str(reader.stamp()):
                    continue
                self._index(document)

    def _forget_oldest(self) -> None:
        """Delete the documents that were parsed longest ago, if there are too many."""
        with contextlib.suppress(FileNotFoundError):  # another process deletes them, too: the next call does the rest
            runs = sorted(self._runs.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for run in runs[MAX_DOCUMENTS:]:
                if run.name not in self._tasks:
                    self._library.remove(run.name)
                    shutil.rmtree(run, ignore_errors=True)


def _told(reader: RunReader, page: FailedPage) -> str:
    """Why a page failed, with the remedy of its record."""
    with contextlib.suppress(PagemillError):
        for error in reader.page(page.page_id).errors:
            if error.message == page.message and error.remedy:
                return f"{page.page_id}: {page.message} ({error.remedy})"
    return f"{page.page_id}: {page.message}"


def _jpeg(pixels: Pixels, width: int) -> bytes:
    return encode_jpeg(fit(pixels, side_of_width(pixels, width)), 80, "420")
