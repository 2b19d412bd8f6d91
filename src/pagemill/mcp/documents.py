"""Documents on a pagemill server: files below a folder are sent there, and jobs of the same key can be read."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any, Self

import msgspec
from PIL import Image

from pagemill.client import AsyncClient, Job, JobState, RequestError, SearchResult
from pagemill.document.page import PageResult
from pagemill.errors import PagemillError, UsageError
from pagemill.imaging.formats import CONTAINERS, promised
from pagemill.mcp.folder import entries_of, file_below, folder_of
from pagemill.sources.options import PageRanges

MAX_ERRORS = 10
"""Errors of a document that are reported."""
MAX_LISTED = 100
MAX_FILES = 500
MAX_HITS = 50
_ID = re.compile(r"[0-9a-zA-Z]{1,64}")
_URLS = ("http://", "https://")
_POLL_S = 1.0
_NOT_FOUND = 404
_FAILED = (JobState.FAILED, JobState.CANCELLED)
_ENDED = ("done", "failed")
"""Pages with a record: one that failed has the reason."""


class ParseState(StrEnum):
    """How far a document is."""

    PARSING = "parsing"
    FINISHED = "finished"


class ParsedDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A document that is parsed or being parsed."""

    document: str
    """Its id, for the other tools."""
    name: str
    state: ParseState
    pages_finished: int
    """Pages that can be read."""
    pages_failed: int = 0
    pages_total: int | None = None
    """None while it is not known."""
    errors: list[str] = []
    """Errors of pages, at most ``MAX_ERRORS``."""
    documents: list[str] = []
    """Ids of the documents in it where there are several, as in an archive or mail; at most ``MAX_LISTED``."""


class Listing(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Parsed documents, and documents that can be parsed."""

    documents: list[ParsedDocument]
    """Parsed documents, the newest first, at most ``MAX_LISTED``."""
    files: list[str] = []
    """Documents of the folder, and folders in it, which end with a slash: paths for ``parse_document``."""
    files_left_out: int = 0
    """Files and folders beyond ``MAX_FILES``."""


class Documents:
    """Documents on a server; each is a job there. An async context manager.

    Args:
        client: Client of the server; closed with the documents.
        root: The folder whose files may be sent; None to send none, but URLs and jobs that are there.

    Raises:
        UsageError: There is no such folder.
    """

    def __init__(self, client: AsyncClient, root: Path | None) -> None:
        self._client = client
        self._root = None if root is None else folder_of(root)
        self._sent: dict[tuple[Any, ...], str] = {}
        self._sending = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections; jobs continue on the server."""
        await self._client.close()

    async def parse(
        self,
        source: str,
        *,
        pages: PageRanges | None,
        languages: Sequence[str],
        wait_s: float,
        report: Callable[[ParsedDocument], Awaitable[object]],
    ) -> ParsedDocument:
        """Send a file below the root, or a URL, as a job; the same file is sent once."""
        options = {"pages": str(pages) if pages else None, "languages": list(languages) or None}
        job = await self._job(source, {name: value for name, value in options.items() if value is not None})
        loop = asyncio.get_running_loop()
        deadline, before = loop.time() + wait_s, None
        # In steps, to report progress: some clients give up a call that is silent.
        while not job.has_ended and (left := deadline - loop.time()) > 0:
            job = await self._client.wait(job.id, min(_POLL_S, left))
            if job.pages.finished != before:
                before = job.pages.finished
                await report(_parsed(job, []))
        if job.state in _FAILED:
            self._sent = {key: id for key, id in self._sent.items() if id != job.id}  # the next call sends it again
            reason = job.error
            if reason is None:
                raise PagemillError("the job was cancelled", remedy="Call again to parse the document.")
            raise PagemillError(reason.message, remedy=reason.remedy)
        inner = await self.inner(job.id)
        return _parsed(job, await self._errors(job, bool(inner)) if job.pages.failed else [], inner[:MAX_LISTED])

    async def listed(self, folder: str) -> Listing:
        """The jobs of the key, and the files of a folder below the root."""
        documents: list[ParsedDocument] = []
        async with aclosing(self._client.jobs()) as jobs:
            async for job in jobs:
                documents.append(_parsed(job, []))
                if len(documents) == MAX_LISTED:
                    break
        files = [] if self._root is None else await asyncio.to_thread(entries_of, self._root, folder)
        return Listing(documents=documents, files=files[:MAX_FILES], files_left_out=max(0, len(files) - MAX_FILES))

    async def pages(self, document: str, pages: PageRanges | None) -> AsyncGenerator[PageResult]:
        """The finished pages of a document in order."""
        id, inner = _checked(document)
        async with aclosing(self._client.pages(id)) as found:
            async for page in found:
                number = page.page_number or 0
                if page.status not in _ENDED or inner not in ("", page.document):
                    continue
                if pages is None or any(first <= number <= last for first, last in pages.ranges):
                    yield await self._client.page(id, page.n)

    async def finished(self, document: str) -> list[int]:
        """Numbers of the finished pages of a document."""
        id, inner = _checked(document)
        async with aclosing(self._client.pages(id)) as found:
            pages = [page async for page in found if page.status in _ENDED and inner in ("", page.document)]
        return sorted({page.page_number or 0 for page in pages})

    async def inner(self, document: str) -> list[str]:
        """Ids of the documents that a document holds, as an archive or mail does; empty where it is one."""
        id, inner = _checked(document)
        files = [] if inner else (await self._client.job(id)).documents
        # Asking for all pages of a job costs requests, and most files are one document.
        if len(files) < 2 and not any(_may_hold_several(file.name) for file in files):
            return []
        async with aclosing(self._client.pages(id)) as found:
            ids = list(dict.fromkeys([f"{id}/{page.document}" async for page in found]))
        return ids if len(ids) > 1 else []

    async def is_unfinished(self, document: str) -> bool:
        """Whether more pages may come, or the job did not reach all of them."""
        return (await self._client.job(_checked(document)[0])).state is not JobState.FINISHED

    async def image(self, document: str, page: PageResult, width: int) -> bytes:
        """The image of a page."""
        id, _ = _checked(document)
        async with aclosing(self._client.pages(id)) as found:
            async for each in found:
                if (each.document, each.page_number) == (page.doc_id, page.page_number):
                    image = await self._client.image(id, each.n, width=width)
                    return await asyncio.to_thread(_jpeg, image)
        raise UsageError(f"document {document} has no page {page.page_number}")

    async def search(
        self, query: str, *, document: str | None, languages: Sequence[str], limit: int
    ) -> list[SearchResult]:
        """Find pages of all jobs of the key, or of one document."""
        id, inner = (None, "") if document is None else _checked(document)
        if document is not None and id is not None and not (await self._client.job(id)).has_ended:
            raise still_parsing(document)  # it is in the index when it is finished
        most = MAX_HITS if inner else limit  # the server knows jobs, not the documents in them
        hits = await self._client.search(query, job=id, languages=languages, limit=most)
        return [hit for hit in hits if inner in ("", hit.document)][:limit]

    async def _job(self, source: str, options: dict[str, Any]) -> Job:
        if source.startswith(_URLS):
            key: tuple[Any, ...] = (source, str(options))
            file: str | Path = source
        elif self._root is None:
            raise UsageError("no files are sent from this machine", remedy="Start pagemill mcp with --root DIR.")
        else:
            file = await asyncio.to_thread(file_below, self._root, source)
            status = file.stat()
            key = (str(file), status.st_size, status.st_mtime_ns, str(options))
        # One at a time: two calls for one file would both send it.
        async with self._sending:
            if key in self._sent:
                try:
                    return await self._client.job(self._sent[key])
                except RequestError as error:
                    if error.status != _NOT_FOUND:
                        raise  # else the job was removed: send the file again
            # An earlier process may have sent the same content; that of a URL is not known here.
            digest = None if isinstance(file, str) else await asyncio.to_thread(_digest, file, str(options))
            job = await self._client.submit(file, options=options, idempotency=digest)
            if job.state in _FAILED:  # of an earlier call: a new one parses the document again
                await self._client.remove(job.id)
                job = await self._client.submit(file, options=options, idempotency=digest)
            self._sent[key] = job.id
            return job

    async def _errors(self, job: Job, with_names: bool) -> list[str]:
        errors: list[str] = []
        async with aclosing(self._client.pages(job.id, status="failed")) as failed:
            async for page in failed:
                errors += [
                    f"{f'{page.name}, ' if with_names else ''}page {page.page_number}: {error.message}"
                    + (f" ({error.remedy})" if error.remedy else "")
                    for error in page.errors[:1]
                ]
                if len(errors) == MAX_ERRORS:
                    break
        return errors


def _parsed(job: Job, errors: list[str], documents: Sequence[str] = ()) -> ParsedDocument:
    return ParsedDocument(
        document=job.id,
        name=job.name,
        state=ParseState.FINISHED if job.has_ended else ParseState.PARSING,
        pages_finished=job.pages.finished - job.pages.failed,
        pages_failed=job.pages.failed,
        pages_total=job.pages.total,
        errors=errors,
        documents=list(documents),
    )


def _may_hold_several(name: str) -> bool:
    """Whether a file may hold several documents: an archive, mail, a dataset."""
    kind = promised(name)
    return PurePath(name).suffix.lower() in CONTAINERS or (kind is not None and kind.is_table)


def _checked(document: str) -> tuple[str, str]:
    """The job of a document id, which may be a part of a URL, and the document in it; empty for all of them.

    Raises:
        UsageError: It cannot be one.
    """
    id, _, inner = document.partition("/")
    if not _ID.fullmatch(id):
        raise UsageError(f"there is no document {document!r}", remedy="Parse it first: parse_document gives its id.")
    return id, inner


def _digest(file: Path, options: str) -> str:
    """The same for the same content at the same place, parsed with the same options."""
    with file.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").digest()
    return hashlib.sha256(content + f"\0{file}\0{options}".encode("utf-8", "surrogateescape")).hexdigest()


def _jpeg(image: bytes) -> bytes:
    buffer = io.BytesIO()
    # The server gives WebP, which not all assistants take.
    Image.open(io.BytesIO(image)).convert("RGB").save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def still_parsing(document: str) -> UsageError:
    """The error of a tool that needs a document as a whole, or a page of it that is not finished."""
    return UsageError(
        f"document {document} is still being parsed",
        remedy="Call parse_document again to wait; get_pages gives the pages that are finished.",
    )


def plain(value: Any) -> dict[str, Any]:
    """A result as plain JSON values."""
    made: dict[str, Any] = msgspec.to_builtins(value)
    return made
