"""The client for synchronous code: the asynchronous one, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pagemill.client.asynchronous import AsyncClient
from pagemill.client.models import Collection, Job, JobState, PageEvent, PageSummary, SearchResult
from pagemill.errors import UsageError

if TYPE_CHECKING:
    from pagemill.client.requests import Source
    from pagemill.document.page import PageResult

T = TypeVar("T")

_END: Any = object()


class Client:
    """A client of ``pagemill serve``. A context manager; works in notebooks, too.

    >>> with pagemill.Client("http://127.0.0.1:8080") as client:
    ...     job = client.submit("report.pdf")
    ...     for page in client.stream(job.id):
    ...         print(page.markdown)

    Args:
        url: Of the server, such as ``http://127.0.0.1:8080``.
        key: API key; None for a server without keys.
        timeout_s: Time limit of connecting, and of each wait for data.
        retries: How often a request is repeated.

    Raises:
        MissingDependencyError: httpx is not installed.
    """

    def __init__(self, url: str, *, key: str | None = None, timeout_s: float = 120.0, retries: int = 4) -> None:
        self._client = AsyncClient(url, key=key, timeout_s=timeout_s, retries=retries)
        self._open: set[AsyncGenerator[Any]] = set()
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        # A daemon: the interpreter does not wait at its exit for a client that nobody closed.
        self._thread = Thread(
            target=_run, args=(self._client, self._open, started), name="pagemill-client", daemon=True
        )
        self._thread.start()
        self._loop, stopping = started.result()
        self._stop = weakref.finalize(self, self._loop.call_soon_threadsafe, stopping.set)
        self._stop.atexit = False

    def __enter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._stop()
        if self._thread is not current_thread():
            self._thread.join()

    def submit(
        self,
        *sources: Source,
        collection: str | None = None,
        options: Mapping[str, Any] | None = None,
        idempotency: str | None = None,
    ) -> Job:
        """Send a job; see :meth:`AsyncClient.submit`."""
        return self._call(
            lambda: self._client.submit(*sources, collection=collection, options=options, idempotency=idempotency)
        )

    def job(self, id: str) -> Job:
        """A job as it is now."""
        return self._call(lambda: self._client.job(id))

    def jobs(self, *, state: JobState | str | None = None, collection: str | None = None) -> Iterator[Job]:
        """All jobs of the key, the newest first."""
        return self._each(self._client.jobs(state=state, collection=collection))

    def wait(self, id: str, timeout_s: float | None = None) -> Job:
        """Wait until a job is over; see :meth:`AsyncClient.wait`."""
        return self._call(lambda: self._client.wait(id, timeout_s))

    def events(self, id: str) -> Iterator[PageEvent | Job]:
        """Events of a job until it is over; see :meth:`AsyncClient.events`."""
        return self._each(self._client.events(id))

    def stream(self, id: str) -> Iterator[PageResult]:
        """The records of a job's pages as they finish, failed ones too, until the job is over."""
        return self._each(self._client.stream(id))

    def pages(self, id: str, *, status: str | None = None) -> Iterator[PageSummary]:
        """The pages of a job in reading order, without their contents."""
        return self._each(self._client.pages(id, status=status))

    def page(self, id: str, n: int) -> PageResult:
        """The record of a page."""
        return self._call(lambda: self._client.page(id, n))

    def image(self, id: str, n: int, *, width: int | None = None) -> bytes:
        """The image of a page as WebP, its longer side at most 2,000 pixels."""
        return self._call(lambda: self._client.image(id, n, width=width))

    def document(self, id: str, document: str, format: str = "md") -> str:
        """A document of the pages so far; see :meth:`AsyncClient.document`."""
        return self._call(lambda: self._client.document(id, document, format))

    def download(self, id: str, path: str | Path) -> Path:
        """Write all documents, pictures and records of a job into a zip file, which is whole or not there."""
        return self._call(lambda: self._client.download(id, path))

    def search(
        self,
        query: str,
        *,
        collection: str | None = None,
        job: str | None = None,
        languages: Sequence[str] = (),
        limit: int = 20,
    ) -> list[SearchResult]:
        """Find pages of finished jobs, of a collection, or of one job, best first."""
        return self._call(
            lambda: self._client.search(query, collection=collection, job=job, languages=languages, limit=limit)
        )

    def collections(self) -> list[Collection]:
        """The collections of the key."""
        return self._call(self._client.collections)

    def cancel(self, id: str) -> Job:
        """Cancel a job; its pages in flight are finished. No effect on a job that is over."""
        return self._call(lambda: self._client.cancel(id))

    def remove(self, id: str) -> None:
        """Delete a job with its files; one that runs is cancelled first."""
        self._call(lambda: self._client.remove(id))

    def retry(self, id: str) -> Job:
        """Parse the failed pages of a job again."""
        return self._call(lambda: self._client.retry(id))

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if not self._stop.alive:
            raise UsageError("the client is closed", remedy="Make another one.")
        future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # at Ctrl-C the request does not continue in the thread
            raise

    def _each(self, items: AsyncGenerator[T]) -> Iterator[T]:
        async def following() -> T:
            return await anext(items, _END)

        async def closing() -> None:
            await items.aclose()

        self._open.add(items)
        try:
            while (item := self._call(following)) is not _END:
                yield item
        finally:
            self._open.discard(items)
            if self._stop.alive:
                self._call(closing)


def _run(
    client: AsyncClient,
    opened: set[AsyncGenerator[Any]],
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]],
) -> None:
    """The event loop of a client, until the event is set."""

    async def serving() -> None:
        stopping = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stopping))
        await stopping.wait()
        for items in tuple(opened):
            with suppress(RuntimeError):  # another thread waits for its next item; it is cancelled with the loop
                await items.aclose()
        await client.close()

    asyncio.run(serving())
