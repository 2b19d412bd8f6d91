"""Job submission for all APIs: receive, store, wait."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from pagemill.blocking import to_the_end
from pagemill.errors import UsageError
from pagemill.rest.errors import ConflictError, ContentTooLargeError, HttpError, UnavailableError
from pagemill.rest.fetching import check_url, require_urls
from pagemill.rest.jobs import JobFile, JobRow, new_id
from pagemill.rest.options import PASSWORD, job_options
from pagemill.rest.results import JobResults
from pagemill.rest.server import Server
from pagemill.rest.uploads import body_of, document, make_folder, receive
from pagemill.store.files import output_errors, sync_directory, write_whole

SYNC_WAIT_S = 600.0
"""How long a request waits for the end of its job, which continues after that."""
MAX_BODY_BYTES = 128 * 2**20
"""Maximum size of a JSON body with files in it. Larger files are sent as multipart/form-data."""
MAX_NAME = 200
"""Characters of the name of a collection, and of an idempotency key."""
_REQUEST = "request.sha256"

T = TypeVar("T")


def from_base64(text: str) -> bytes:
    """The content of a file in base64, which may be broken into lines.

    Raises:
        UsageError: It is not valid. By default Python drops characters that are not base64, and gives other bytes.
    """
    try:
        return base64.b64decode(text.encode("ascii").translate(None, b" \t\r\n"), validate=True)
    except ValueError:
        raise UsageError("a file in base64 is not valid", remedy="Use the standard alphabet, with padding.") from None


def decoded(body: bytes, kind: type[T], what: str, remedy: str | None = None) -> T:
    """The JSON of a request.

    Raises:
        UsageError: It is something else; ``what`` begins the message.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        # Bounded: the message of an unknown field quotes its name.
        raise UsageError(f"{what}: {str(error)[:200]}", remedy=remedy) from None


@dataclass(slots=True)
class Sending:
    """A job that is being received."""

    server: Server
    owner: str
    id: str
    folder: Path
    """For its files."""
    documents: list[JobFile] = field(default_factory=list)
    size: int = 0
    row: JobRow | None = None

    async def form(self, request: Request, known: frozenset[str] | None = None) -> dict[str, list[str]]:
        """Take the files of a multipart request; its other fields, which have to be known.

        Raises:
            HttpError: It is malformed or over a limit.
            UsageError: It has a field that is not known.
        """
        upload = await receive(request, self.folder, self.server.settings.limits, known)
        self.documents, self.size = upload.files, upload.size
        return upload.fields

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """A JSON body with files in it. It is received on disk, so that few are held in memory, whatever clients do.

        Raises:
            ContentTooLargeError: It is too large.
        """
        # Beside the inputs, not among them: everything there is a file of the job.
        file = self.folder.parent / "body"
        with output_errors(file):
            stream = await asyncio.to_thread(file.open, "wb")
            with stream:
                async with aclosing(body_of(request, MAX_BODY_BYTES)) as chunks:  # type: ignore[type-var]
                    async for chunk in chunks:
                        await asyncio.to_thread(stream.write, chunk)
        async with self.server.bodies:
            with output_errors(file):
                body = await asyncio.to_thread(file.read_bytes)
                file.unlink()
            yield body

    def add_url(self, url: str) -> None:
        """Add a URL, which the server fetches later.

        Raises:
            ForbiddenError: This server fetches none.
        """
        require_urls(self.server.settings.allow_urls)
        self._require_room()
        name = url.partition("?")[0].rstrip("/")
        self.documents.append(document(len(self.documents) + 1, name, url=url))

    async def add_file(self, name: str, content: bytes) -> None:
        """Write a file that came within a JSON body.

        Raises:
            ContentTooLargeError: It is over the limits.
        """
        limits = self.server.settings.limits
        self.size += len(content)
        if len(content) > limits.max_file_bytes or self.size > limits.max_job_bytes:
            raise ContentTooLargeError("the files are over the limits of this server", remedy="Send less at once.")
        self._require_room()
        made = document(len(self.documents) + 1, name)
        await asyncio.to_thread(write_whole, self.folder / made.file, [content], durable=True)
        self.documents.append(made)

    async def note(self, name: str, content: bytes) -> None:
        """Keep something beside the job, durably, to be read with :func:`read_note`."""
        await asyncio.to_thread(write_whole, self.folder.parent / name, [content], durable=True)

    async def submit(
        self, options: dict[str, Any], *, collection: str | None = None, idempotency: str | None = None
    ) -> JobRow:
        """Accept the job.

        Args:
            options: By key, plain JSON values.
            collection: Its collection, for the search.
            idempotency: The client's key: requests that repeat it make one job.

        Returns:
            The job, durably: no kill and no power cut loses it; or the one that was accepted for the same key earlier.

        Raises:
            PagemillError: It has no files, options or URLs are not valid, no installed engine reads a language, or the
                key belongs to another request.
        """
        await self._check(options, collection)
        digest = b""
        if idempotency is not None:
            digest = await asyncio.to_thread(self._digest, options, collection)
            await self.note(_REQUEST, digest)
        # Also of a request that is cancelled: only then it is known whether its files belong to a job.
        row = await to_the_end(self._accept(options, collection, idempotency))
        # The key was used before: only a repetition of the same request may have its answer.
        if row.id != self.id:
            earlier = await asyncio.to_thread(read_note, self.server, row.id, _REQUEST)
            if earlier not in (None, digest):
                raise ConflictError("this Idempotency-Key belongs to another request", remedy="Send another key.")
        self.row = row
        return row

    async def _check(self, options: dict[str, Any], collection: str | None) -> None:
        """Reject an invalid job before it is stored."""
        if not self.documents:
            raise HttpError("the request has no files", remedy="Send files as in curl -F files=@report.pdf.")
        chosen = job_options(options, self.server.settings)
        if chosen.settings.languages:
            await self.server.services.check_languages(chosen.settings.languages)
        if collection is not None and (len(collection) > MAX_NAME or not collection.isprintable()):
            raise UsageError(f"the name of a collection has at most {MAX_NAME} printable characters")
        for each in self.documents:
            if each.url is not None:
                check_url(each.url)

    async def _accept(self, options: dict[str, Any], collection: str | None, idempotency: str | None) -> JobRow:
        """Store the job durably, and have it run."""
        more = f" +{len(self.documents) - 1}" if len(self.documents) > 1 else ""

        def store() -> JobRow:
            job = self.folder.parent
            # First the folder, then the row: a row that survives a power cut without its files would be a job that
            # cannot run.
            sync_directory(job)
            sync_directory(job.parent)
            return self.server.jobs.create(
                id=self.id,
                owner=self.owner,
                name=self.documents[0].name + more,
                collection=collection,
                options={key: value for key, value in options.items() if key != PASSWORD and value is not None},
                password=options.get(PASSWORD),
                size=self.size,
                documents=self.documents,
                idempotency=idempotency,
            )

        row = await asyncio.to_thread(store)
        if row.id == self.id:
            self.server.counts["accepted"] += 1
            self.server.runner.add(row)
        return row

    def _digest(self, options: dict[str, Any], collection: str | None) -> bytes:
        """Digest of the request: names, contents or URLs of its files, options, collection."""
        sent: list[Any] = [options, collection]
        for each in self.documents:
            content = each.url
            if content is None:
                with (self.folder / each.file).open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
            sent.append([each.name, content])
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest().encode()

    def _require_room(self) -> None:
        if len(self.documents) >= self.server.settings.limits.max_files:
            raise UsageError("the request has too many files", remedy="Send several.")


@asynccontextmanager
async def sending(server: Server, owner: str, *, is_known: bool = False) -> AsyncIterator[Sending]:
    """Receive a job; it leaves nothing behind unless it is submitted in the block.

    Args:
        server: Gets the job.
        owner: The job's owner.
        is_known: It was accepted earlier: a full queue does not refuse it.
    """
    async with contextlib.nullcontext() if is_known else server.accepting(owner):
        id = new_id()
        folder = await asyncio.to_thread(make_folder, server.settings.jobs_folder / id)
        job = Sending(server, owner, id, folder)
        try:
            yield job
        finally:
            if job.row is None or job.row.id != id:
                await server.discard(id)


async def waited(server: Server, row: JobRow, remedy: str) -> JobResults:
    """The results of a job when it has finished.

    Args:
        server: Runs it.
        row: The job.
        remedy: Remedy that shows how to get them later.

    Raises:
        HttpError: It takes too long, or the server is stopping. The job continues.
    """
    if not (await server.wait(row.id, row.owner, SYNC_WAIT_S)).has_ended:
        if server.stopping.is_set():
            raise UnavailableError("the server is stopping", remedy=remedy, retry_after_s=10)
        raise HttpError(f"the job takes longer than {SYNC_WAIT_S:.0f} s", remedy=remedy, status=504)
    return await server.results(row.id, row.owner)


def read_note(server: Server, id: str, name: str) -> bytes | None:
    """What :meth:`Sending.note` kept; None if there is nothing."""
    try:
        return (server.settings.jobs_folder / id / name).read_bytes()
    except FileNotFoundError:
        return None
