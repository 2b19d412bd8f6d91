"""The client for synchronous code: the asynchronous one, on an event loop in a thread of its own."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from pagemill.blocking import LoopThread
from pagemill.client.asynchronous import AsyncClient

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    """A method that waits for the one of the asynchronous client."""

    @functools.wraps(method)
    def waiting(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.call(method(self._client, *args, **kwargs))

    return waiting


def _iterating(
    method: Callable[Concatenate[AsyncClient, P], AsyncGenerator[T]],
) -> Callable[Concatenate[Client, P], Iterator[T]]:
    """A method that gives the items of the one of the asynchronous client."""

    @functools.wraps(method)
    def iterating(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._thread.each(method(self._client, *args, **kwargs))

    return iterating


class Client:
    """A client of ``pagemill serve``. A context manager; works in notebooks, too.

    Its methods are those of :class:`AsyncClient`, which describes them; they wait for their results.

    >>> with pagemill.Client("http://127.0.0.1:8080") as client:
    ...     job = client.submit("report.pdf")
    ...     for page in client.stream(job.id):
    ...         print(page.markdown)

    Args:
        url: URL of the server, such as ``http://127.0.0.1:8080``.
        key: API key; None for a server without keys.
        timeout_s: Time limit of connecting, and of each wait for data.
        retries: Number of retries of a request.

    Raises:
        MissingDependencyError: httpx is not installed.
    """

    def __init__(self, url: str, *, key: str | None = None, timeout_s: float = 120.0, retries: int = 4) -> None:
        self._client = AsyncClient(url, key=key, timeout_s=timeout_s, retries=retries)
        self._thread = LoopThread("pagemill-client", self._client.close)

    def __enter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._thread.close()

    submit = _blocking(AsyncClient.submit)
    job = _blocking(AsyncClient.job)
    jobs = _iterating(AsyncClient.jobs)
    wait = _blocking(AsyncClient.wait)
    events = _iterating(AsyncClient.events)
    stream = _iterating(AsyncClient.stream)
    pages = _iterating(AsyncClient.pages)
    page = _blocking(AsyncClient.page)
    image = _blocking(AsyncClient.image)
    document = _blocking(AsyncClient.document)
    download = _blocking(AsyncClient.download)
    search = _blocking(AsyncClient.search)
    collections = _blocking(AsyncClient.collections)
    cancel = _blocking(AsyncClient.cancel)
    remove = _blocking(AsyncClient.remove)
    retry = _blocking(AsyncClient.retry)
