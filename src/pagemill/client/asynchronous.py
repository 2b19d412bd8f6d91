"""The client for asynchronous code."""

from __future__ import annotations

import asyncio
import time
import uuid
import warnings
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

import msgspec

from pagemill._version import __version__
from pagemill.client.requests import (
    RETRIED,
    EventParser,
    IncompleteResultsWarning,
    Source,
    body_of,
    delay,
    error_of,
    unreached,
)
from pagemill.document.jobs import (
    Collection,
    Collections,
    Hits,
    Job,
    Jobs,
    JobState,
    PageEvent,
    Pages,
    PageSummary,
    SearchResult,
)
from pagemill.document.page import PageResult
from pagemill.errors import UsageError, lacks_extra, unwritable
from pagemill.whole_files import whole_file

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_LONG_POLL_S = 30.0


class AsyncClient:
    """A client of ``pagemill serve``. An async context manager.

    Requests that may be repeated are, with exponential backoff. Sending a job is one of them: it has an idempotency
    key, so that it is made once.

    Args:
        url: URL of the server, such as ``http://127.0.0.1:8080``.
        key: API key; None for a server without keys.
        timeout_s: Time limit of connecting, and of each wait for data.
        retries: Number of retries of a request.
        transport: Carries the requests, such as to a server in this process; None for the network.

    Raises:
        MissingDependencyError: httpx is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout_s: float = 120.0,
        retries: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            import h11
            import httpx
        except ModuleNotFoundError as error:
            raise lacks_extra("the package httpx is not installed", "client") from error
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is not the URL of a server", remedy="Pass one such as http://127.0.0.1:8080.")
        headers = {"User-Agent": f"pagemill/{__version__}"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self.url = url.rstrip("/")
        # h11's own one: a file has become shorter or longer while it was sent.
        self._errors = (httpx.TransportError, h11.LocalProtocolError)
        self._retries = retries
        self._timeout_s = timeout_s
        # Redirects are not followed: one to another host would get the key.
        self._http = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=timeout_s, transport=transport)

    async def __aenter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._http.aclose()

    async def submit(
        self,
        *sources: Source,
        collection: str | None = None,
        options: Mapping[str, Any] | None = None,
        idempotency: str | None = None,
    ) -> Job:
        """Send a job; it is stored durably when this returns.

        Args:
            sources: Paths, or pairs of a name and the content; or URLs, if the server fetches some.
            collection: Collection of the job, for the search.
            options: Options of ``pagemill.parse``, such as ``{"languages": ["ko", "en"], "pages": "1-3"}``.
            idempotency: A key of the caller: as long as the server keeps the job that was sent with it, that job is
                returned. None for a new job.

        Raises:
            PagemillError: A file cannot be read, the server refuses the job, or it does not answer.
        """
        # With a key a request can be repeated when its answer was lost: the server makes one job of both.
        headers = {"Idempotency-Key": idempotency or uuid.uuid4().hex}
        for attempt in range(self._retries + 1):
            with ExitStack() as stack:  # files are read again from their beginning
                body = body_of(sources, options or {}, collection, stack)
                last = attempt == self._retries
                if answer := await self._attempt("POST", "/v1/jobs", attempt, last=last, headers=headers, **body):
                    return msgspec.json.decode(answer.content, type=Job)
        raise AssertionError

    async def job(self, id: str) -> Job:
        """A job as it is now."""
        return await self._job("GET", f"/v1/jobs/{id}")

    async def jobs(self, *, state: JobState | str | None = None, collection: str | None = None) -> AsyncGenerator[Job]:
        """All jobs of the key, the newest first."""
        after: str | None = None
        while True:
            found = await self._get(
                "/v1/jobs", Jobs, state=state and str(state), collection=collection, limit=100, after=after
            )
            for job in found.jobs:
                yield job
            if (after := found.next) is None:
                return

    async def wait(self, id: str, timeout_s: float | None = None) -> Job:
        """Wait until a job is finished, has failed or is cancelled.

        Args:
            id: Id of the job.
            timeout_s: Seconds after which the job is returned as it is; None to wait without a limit.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = _LONG_POLL_S if deadline is None else max(0.0, min(_LONG_POLL_S, deadline - time.monotonic()))
            patience = (self._timeout_s, self._timeout_s + left, self._timeout_s, self._timeout_s)  # longer for reading
            job = await self._job("GET", f"/v1/jobs/{id}", params={"wait": left}, timeout=patience)
            if job.has_ended or (deadline is not None and time.monotonic() >= deadline):
                return job

    async def events(self, id: str) -> AsyncGenerator[PageEvent | Job]:
        """Events of a job until it is over: each finished page, including earlier ones, and the job when it changes.

        A broken connection is opened again; no event is lost or appears twice. Only where the server was restarted with
        another version or other models, so that the job has started over, all of its pages come again.
        """
        after, attempt = "0", 0
        while True:
            try:
                async with aclosing(self._events(id, after)) as found:
                    async for number, event in found:
                        # An event came, so the server is there: attempts start again from here.
                        attempt, after = 0, number or after
                        yield event
                        if isinstance(event, Job) and event.has_ended:
                            return
            except self._errors as error:
                if attempt >= self._retries:
                    raise unreached(self.url, error) from error
            # The stream is incomplete: the server restarts, and resumes the job.
            attempt += 1
            if attempt > self._retries:
                raise unreached(self.url, ConnectionError("the stream of events is incomplete"))
            await asyncio.sleep(delay(attempt, None))

    async def stream(self, id: str) -> AsyncGenerator[PageResult]:
        """The records of a job's pages as they finish, failed ones too, until the job is over."""
        async with aclosing(self.events(id)) as events:
            async for event in events:
                if isinstance(event, PageEvent):
                    yield await self.page(id, event.n)

    async def pages(self, id: str, *, status: str | None = None) -> AsyncGenerator[PageSummary]:
        """The pages of a job in reading order, without their contents."""
        after: str | None = None
        while True:
            found = await self._get(f"/v1/jobs/{id}/pages", Pages, status=status, limit=500, after=after)
            for page in found.pages:
                yield page
            if (after := found.next) is None:
                return

    async def page(self, id: str, n: int) -> PageResult:
        """The record of a page."""
        return await self._get(f"/v1/jobs/{id}/pages/{n}", PageResult)

    async def image(self, id: str, n: int, *, width: int | None = None) -> bytes:
        """The image of a page as WebP, its longer side at most 2,000 pixels."""
        return (await self._request("GET", f"/v1/jobs/{id}/pages/{n}/image", params={"width": width})).content

    async def document(self, id: str, document: str, format: str = "md") -> str:
        """A document of the pages so far. Where some are missing, there is an :class:`IncompleteResultsWarning`.

        Args:
            id: Id of the job.
            document: Its id, as in ``job.documents``.
            format: ``md``, ``json`` (DocJSON), ``html``, ``docling.json``, or another one that the server offers.
        """
        name = quote(f"{document}.{format}", safe="")  # as a member of an archive may be called
        return (await self._request("GET", f"/v1/jobs/{id}/documents/{name}")).text

    async def download(self, id: str, path: str | Path) -> Path:
        """Write all documents, pictures and records of a job into a zip file, atomically.

        Where pages are missing, there is an :class:`IncompleteResultsWarning`.

        Raises:
            OutputError: It cannot be written.
        """
        path = Path(path)
        try:
            for attempt in range(self._retries + 1):
                try:
                    with whole_file(path, shared=True) as file:
                        async with self._streaming(f"/v1/jobs/{id}/download.zip") as answer:
                            async for chunk in answer.aiter_bytes():
                                await asyncio.to_thread(file.write, chunk)
                    break
                except self._errors as error:
                    if attempt == self._retries:
                        raise unreached(self.url, error) from error
                await asyncio.sleep(delay(attempt, None))
        except OSError as error:
            raise unwritable(path, error, remedy="Check the folder.", no_space_remedy="Free some space.") from error
        return path

    async def search(
        self,
        query: str,
        *,
        collection: str | None = None,
        job: str | None = None,
        languages: Sequence[str] = (),
        limit: int = 20,
    ) -> list[SearchResult]:
        """Find pages of finished jobs, of a collection, or of one job, best first."""
        codes = ",".join(languages) or None
        found = await self._get(
            "/v1/search", Hits, q=query, collection=collection, job=job, languages=codes, limit=limit
        )
        return found.hits

    async def collections(self) -> list[Collection]:
        """The collections of the key."""
        return (await self._get("/v1/collections", Collections)).collections

    async def cancel(self, id: str) -> Job:
        """Cancel a job; its pages in flight are finished. No effect on a job that is over."""
        return await self._job("POST", f"/v1/jobs/{id}/cancel")

    async def remove(self, id: str) -> None:
        """Delete a job with its files; one that runs is cancelled first."""
        # 202: the job is being cancelled, and is deleted once it has stopped.
        while (answer := await self._request("DELETE", f"/v1/jobs/{id}")).status_code == 202:
            await self.wait(msgspec.json.decode(answer.content, type=Job).id)

    async def retry(self, id: str, *, password: str | None = None) -> Job:
        """Parse the failed pages of a job again, with a password for files that are encrypted."""
        return await self._job("POST", f"/v1/jobs/{id}/retry", json={"password": password})

    async def _job(self, method: str, path: str, **arguments: Any) -> Job:
        return msgspec.json.decode((await self._request(method, path, **arguments)).content, type=Job)

    async def _get(self, path: str, kind: type[T], **parameters: Any) -> T:
        answer = await self._request("GET", path, params=parameters)
        return msgspec.json.decode(answer.content, type=kind)

    async def _request(
        self, method: str, path: str, *, params: dict[str, Any] | None = None, **arguments: Any
    ) -> httpx.Response:
        arguments["params"] = {name: value for name, value in (params or {}).items() if value is not None}
        # Others are not repeated: the server may have done them before its answer was lost.
        retries = self._retries if method in ("GET", "DELETE") else 0
        for attempt in range(retries + 1):
            if answer := await self._attempt(method, path, attempt, last=attempt == retries, **arguments):
                if shortfall := answer.headers.get("Pagemill-Incomplete"):
                    warnings.warn(f"{path}: {shortfall}", IncompleteResultsWarning, stacklevel=2)
                return answer
        raise AssertionError

    async def _attempt(
        self, method: str, path: str, attempt: int, *, last: bool, stream: bool = False, **arguments: Any
    ) -> httpx.Response | None:
        """The answer, to be closed if it is a stream; None, after a pause, if the request should be repeated.

        Raises:
            PagemillError: The server refuses the request; on the last attempt also if it does not answer.
        """
        answer = None
        try:
            answer = await self._http.send(self._http.build_request(method, path, **arguments), stream=stream)
            if not answer.is_success:
                await answer.aread()
        except self._errors as error:
            answer = None  # which may be incomplete
            if last:
                raise unreached(self.url, error) from error
        if answer is not None:
            if answer.is_success:
                return answer
            if last or answer.status_code not in RETRIED:
                raise error_of(answer, answer.content)
        await asyncio.sleep(delay(attempt, answer))
        return None

    @asynccontextmanager
    async def _streaming(self, path: str, **arguments: Any) -> AsyncGenerator[httpx.Response]:
        answer = await self._request("GET", path, stream=True, **arguments)
        async with aclosing(answer):
            yield answer

    async def _events(self, id: str, after: str) -> AsyncGenerator[tuple[str | None, PageEvent | Job]]:
        parser = EventParser()
        headers = {"Last-Event-ID": after, "Accept": "text/event-stream"}
        async with self._streaming(f"/v1/jobs/{id}/events", headers=headers) as answer:
            async for text in answer.aiter_text():
                for event in parser.feed(text):
                    if event.kind == "page":
                        yield event.id, msgspec.json.decode(event.data, type=PageEvent)
                    elif event.kind == "job":
                        yield event.id, msgspec.json.decode(event.data, type=Job)
