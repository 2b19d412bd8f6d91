"""Requests and answers: sources, errors, retries, server-sent events."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pagemill.errors import ExitCode, InputError, NetworkError, PagemillError, UsageError, error_class, unreadable
from pagemill.inference.servers import MAX_RETRY_AFTER_S, retry_after

if TYPE_CHECKING:
    import httpx

Source = str | Path | tuple[str, bytes]
"""A path, a URL, or a name with the content of a file."""
RETRIED = frozenset({429, 502, 503, 504})
_URLS = ("http://", "https://")


class IncompleteResultsWarning(UserWarning):
    """A document or an archive lacks something: pages failed or are incomplete, or the job has not finished."""


class RequestError(PagemillError):
    """The server refused a request."""

    exit_code = ExitCode.SERVER
    category = "request"
    retryable = False
    status = 0
    """HTTP status."""


def body_of(
    sources: Sequence[Source], options: Mapping[str, Any], collection: str | None, stack: ExitStack
) -> dict[str, Any]:
    """Arguments of httpx for a request that sends a job.

    Args:
        sources: All URLs, or none.
        options: Options of the job.
        collection: Its collection.
        stack: Closes the files.

    Raises:
        UsageError: There is no source, or there are URLs and files.
        InputError: A file cannot be read.
    """
    urls = [source for source in sources if isinstance(source, str) and source.startswith(_URLS)]
    if not sources:
        raise UsageError("a job needs files", remedy="Pass at least one.")
    # The server takes files as a form and URLs as JSON, and one request is either.
    if urls and len(urls) < len(sources):
        raise UsageError("a job has either files or URLs", remedy="Send two jobs.")
    if urls:
        return {"json": {"sources": [{"url": url} for url in urls], "options": options, "collection": collection}}
    files: list[tuple[str, tuple[str, Any]]] = []
    for source in sources:
        if isinstance(source, tuple):
            files.append(("files", (_plain(source[0]), source[1])))
            continue
        path = Path(source)
        try:
            files.append(("files", (_plain(path.name), stack.enter_context(path.open("rb")))))
        except IsADirectoryError as error:
            raise InputError(f"{path} is a folder", remedy="Name the files in it.") from error
        except OSError as error:
            raise unreadable(str(path), error) from error
    data = {"options": msgspec.json.encode(options).decode()} | ({"collection": collection} if collection else {})
    return {"files": files, "data": data}


def _plain(name: str) -> str:
    """A name that UTF-8 can hold: those of files may be in other encodings."""
    return name.encode("utf-8", "replace").decode()


def error_of(answer: httpx.Response, content: bytes) -> PagemillError:
    """The error that an answer reports."""
    try:
        reported = msgspec.json.decode(content)["error"]
        category, message, remedy = reported["category"], str(reported["message"]), reported.get("remedy")
    except (msgspec.DecodeError, TypeError, KeyError):
        category, message, remedy = "", f"the server answered with status {answer.status_code}", None
    kind = error_class(category)
    # Other categories are the server's, if it runs in this process, or unknown.
    known = kind is not PagemillError and kind.__module__ == PagemillError.__module__
    error = kind(message, remedy=remedy) if known else RequestError(message, remedy=remedy)
    if isinstance(error, RequestError):
        error.status = answer.status_code
        error.category = category or error.category
    return error


def unreached(url: str, error: Exception) -> NetworkError:
    """The error of a server that does not answer."""
    return NetworkError(f"{url} does not answer: {error or type(error).__name__}", remedy="Check that it is running.")


def delay(attempt: int, answer: httpx.Response | None) -> float:
    """Seconds until the next attempt: what the server asks for, else exponential backoff with jitter."""
    asked = None if answer is None else retry_after(answer.headers.get("retry-after"))
    # Jitter, so that clients that were refused together do not come back together.
    return min(0.5 * 2**attempt if asked is None else asked, MAX_RETRY_AFTER_S) * random.uniform(1.0, 1.25)


class ServerSentEvent(NamedTuple):
    """One event."""

    kind: str
    data: str
    id: str | None


_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")
"""A return at the end of a part may have its line feed in the next one."""


class EventParser:
    """Server-sent events out of a text: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

    def __init__(self) -> None:
        self._rest = ""
        self._fields: dict[str, list[str]] = {}

    def feed(self, text: str) -> Iterator[ServerSentEvent]:
        """Take the next part of the text, and yield the events that it completes."""
        # Not str.splitlines, nor httpx's lines: U+2028 and others are within a line here.
        *lines, self._rest = _LINE_END.split(self._rest + text)
        for line in lines:
            yield from self._line(line)

    def _line(self, line: str) -> Iterator[ServerSentEvent]:
        if line:
            name, _, value = line.partition(":")
            self._fields.setdefault(name, []).append(value.removeprefix(" "))
            return
        fields, self._fields = self._fields, {}
        if "data" in fields:
            yield ServerSentEvent(
                fields.get("event", ["message"])[-1], "\n".join(fields["data"]), fields.get("id", [None])[-1]
            )
