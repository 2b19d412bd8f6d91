"""HTTP exchanges with a server: bounded in time and size, failures classified by their handling."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from pagemill._version import __version__
from pagemill.errors import ExitCode, PagemillError, UsageError, lacks_extra
from pagemill.inference.servers import retry_after

try:
    import aiohttp
except ImportError as error:
    raise lacks_extra("talking to model servers needs aiohttp", "vlm") from error

MAX_ANSWER = 16 * 2**20
"""Maximum bytes of an answer: a hundred times what 16,000 tokens need."""
_LONGEST_LINE = 2**20
_CONNECT_S = 10.0
_KEEP_ALIVE_S = 4.0
"""Idle connections are closed after this: uvicorn, and so vLLM, closes them after 5 s, and a request sent at that
moment is lost."""
_STREAMED_BYTES = 2**18
"""A larger body is written in pieces, so that no other request waits for it."""
_OTHER_FILES = 1024
"""Files that a run may have open beside its connections."""
_SHOWN = 300
"""Characters of a server's message that are shown."""


class Cause(StrEnum):
    """Why an attempt failed."""

    UNREACHABLE = "unreachable"  # no connection: nothing was sent
    CONNECTION = "connection lost"
    TIMEOUT = "timeout"
    BUSY = "busy"  # 429, 503
    SERVER_ERROR = "server error"  # 408, other 5xx
    BAD_ANSWER = "bad answer"


class AttemptFailedError(Exception):
    """An attempt failed; another one may succeed."""

    def __init__(self, cause: Cause, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.retry_after_s = retry_after_s
        """Retry-After in seconds, at most :data:`pagemill.inference.servers.MAX_RETRY_AFTER_S`."""


class RequestRefusedError(PagemillError):
    """A server refused this request with 4xx: retrying it unchanged, here or elsewhere, cannot succeed.

    Args:
        message: The server's message, truncated.
        status: HTTP status; vLLM answers 400 to an image over its encoder cache or a prompt over the model's length.
    """

    exit_code = ExitCode.PAGES_FAILED
    category = "refused"
    retryable = False

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class RequestFailedError(PagemillError):
    """All attempts at this request failed while servers are up: only its region or page fails."""

    exit_code = ExitCode.NETWORK
    category = "server_error"


class RequestTimeoutError(RequestFailedError):
    """The last attempt at this request timed out."""

    exit_code = ExitCode.TIMEOUT
    category = "timeout"


class Exchange:
    """A pool of kept-alive connections. Made and used on one event loop.

    Args:
        api_key: Sent with every request; never shown.
        connections: The most that will be open at once; the limit of open files is raised for them where possible.
    """

    def __init__(self, api_key: str | None = None, connections: int = 0) -> None:
        _allow_files(connections)
        self._proxy_for = functools.cache(proxy_for)  # some systems look it up remotely
        # Uncompressed: a small compressed answer could expand far beyond the limit of its size.
        headers = {"User-Agent": f"pagemill/{__version__}", "Accept-Encoding": "identity"}
        if api_key:
            if not api_key.isprintable():
                raise UsageError(
                    "the API key contains a line break or another control character", remedy="Check PAGEMILL_API_KEY."
                )
            headers["Authorization"] = f"Bearer {api_key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def request(self, url: str, timeout_s: float, body: bytes | None = None) -> bytes:
        """Read a resource, or send JSON and get JSON.

        Raises:
            AttemptFailedError: Another attempt may succeed.
            RequestRefusedError: Retrying this request cannot succeed.
            UsageError: No request can succeed: unknown model or path, or a wrong API key.
        """
        async with self._answer(url, timeout_s, body) as response:
            return await _content(response)

    async def lines(self, url: str, timeout_s: float, body: bytes) -> AsyncGenerator[bytes]:
        """Send JSON and yield the lines of the answer as they come; raises as :meth:`request`."""
        async with self._answer(url, timeout_s, body) as response:
            size, rest = 0, b""
            async for chunk in response.content.iter_any():
                size += len(chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line
                if size > MAX_ANSWER or len(rest) > _LONGEST_LINE:
                    raise AttemptFailedError(Cause.BAD_ANSWER, f"{url} did not finish its answer")
            if rest:
                yield rest

    @asynccontextmanager
    async def _answer(self, url: str, timeout_s: float, body: bytes | None) -> AsyncGenerator[aiohttp.ClientResponse]:
        """An answer with status 200, whose content is to be read in the block."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S)
        proxy = self._proxy_for(url)
        # No redirects: most turn a POST into a GET; --server should name the right address.
        options: dict[str, Any] = {"timeout": timeout, "allow_redirects": False, "proxy": proxy}
        if body is not None:
            options["data"] = body if len(body) < _STREAMED_BYTES else BytesIO(body)
            options["headers"] = {"Content-Type": "application/json"}
        try:
            async with self._session.request("GET" if body is None else "POST", url, **options) as response:
                if response.status != 200:
                    raise _error(response.status, _message(await _content(response)), url, response.headers)
                yield response
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            # Too many open files are our own limit: fewer at once will work.
            cause = Cause.BUSY if error.errno in (errno.EMFILE, errno.ENFILE) else Cause.UNREACHABLE
            way = " through the proxy of the environment" if proxy else ""
            hint = " here (see: ulimit -n)" if cause is Cause.BUSY else ""
            raise AttemptFailedError(cause, f"{url} cannot be reached{way}: {_reason(error)}{hint}") from error
        except TimeoutError as error:
            raise AttemptFailedError(Cause.TIMEOUT, f"{url} did not answer within {timeout_s:g} s") from error
        except (aiohttp.InvalidURL, UnicodeError) as error:  # the latter for names that no domain can have
            raise UsageError(f"the server {url} is not a URL", remedy="Check --server.") from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            raise AttemptFailedError(Cause.CONNECTION, f"{url} closed the connection: {_reason(error)}") from error
        except aiohttp.ClientHttpProxyError as error:
            message = f"{url} cannot be reached: the proxy answers with HTTP {error.status}"
            raise AttemptFailedError(Cause.UNREACHABLE, message) from error
        except aiohttp.ClientError as error:  # invalid headers, endless lines
            raise AttemptFailedError(Cause.BAD_ANSWER, f"{url} does not speak HTTP: {_reason(error)}") from error


def proxy_for(url: str) -> str | None:
    """The proxy set by ``http_proxy``, ``https_proxy``, ``all_proxy`` and ``no_proxy``, as curl reads them.

    None for a server on this machine, which a proxy could not reach.

    Raises:
        UsageError: The kind of proxy is not supported.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies()
    with suppress(ValueError):
        address = ip_address(host)
        if address.is_loopback or address.is_unspecified or _is_within(address, proxies.get("no", "")):
            return None
    # By name, without a lookup: only some systems resolve names below localhost.
    if host == "localhost" or host.endswith(".localhost") or proxy_bypass(parts.netloc):
        return None
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if proxy and not proxy.lower().startswith(("http://", "https://")):
        raise UsageError(
            f"the proxy for {host} is of the kind {proxy.partition(':')[0]}, which is not supported",
            remedy=f"Name an HTTP proxy, or add {host} to the environment variable no_proxy.",
        )
    return proxy or None


def _is_within(address: IPv4Address | IPv6Address, networks: str) -> bool:
    """Whether an address is in one of the networks of ``no_proxy``, such as ``10.0.0.0/8``; names there are skipped."""
    for entry in networks.split(","):
        with suppress(ValueError):
            if address in ip_network(entry.strip().strip("[]"), strict=False):
                return True
    return False


def _allow_files(connections: int) -> None:
    """Raise the soft limit of open files for the connections; the usual 1,024 are quickly used up."""
    with suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = connections + _OTHER_FILES
        if 0 <= soft < wanted:  # on Linux, infinity is -1
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))


async def _content(response: aiohttp.ClientResponse) -> bytes:
    try:
        await response.content.readexactly(MAX_ANSWER + 1)
    except asyncio.IncompleteReadError as end:
        return end.partial
    raise AttemptFailedError(Cause.BAD_ANSWER, f"{response.url} answers with more than {MAX_ANSWER} bytes")


def _error(status: int, message: str, url: str, headers: Mapping[str, str]) -> Exception:
    """The error for an HTTP status other than 200."""
    text = f"{url} answers with HTTP {status}" + (f": {message}" if message else "")
    if status in (408, 429) or status >= 500:
        cause = Cause.BUSY if status in (429, 503) else Cause.SERVER_ERROR
        return AttemptFailedError(cause, text, retry_after(headers.get("Retry-After")))
    if status in (401, 403):
        remedy = "Set the environment variable PAGEMILL_API_KEY to a key of this server."
    elif status == 404:
        remedy = "Check --server (a base URL) and --served-model (a name that it serves)."
    elif status >= 400:
        return RequestRefusedError(text, status=status)
    else:
        remedy = "Check --server: it should be the base URL of an OpenAI-compatible server."
    return UsageError(text, remedy=remedy)


def _message(body: bytes) -> str:
    """The message in the body of an error, on one line and truncated."""
    try:
        parsed = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ""  # usually a web page of a proxy
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    text = error.get("message", error.get("detail")) if isinstance(error, dict) else error
    return "".join(filter(str.isprintable, " ".join(text.split())))[:_SHOWN] if isinstance(text, str) else ""


def _reason(error: BaseException) -> str:
    """The message of a network library on one line."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno and cause.errno > 0:
        return os.strerror(cause.errno)  # that of an SSLError is not the system's
    return " ".join(str(cause).split())[:_SHOWN] or type(error).__name__
