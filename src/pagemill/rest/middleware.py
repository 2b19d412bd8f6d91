"""Middleware for every request: id, host, origin, size, response headers, log."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagemill.errors import PagemillError
from pagemill.rest.errors import ContentTooLargeError, ForbiddenError, HttpError, SlowRequestError, reported, status_of
from pagemill.rest.models import ErrorAnswer, answer
from pagemill.rest.server import Server

log = logging.getLogger("pagemill.rest.requests")

API_POLICY = "default-src 'none'; frame-ancestors 'none'"
"""Content security policy of answers that set none."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LARGEST_OVERHEAD = 1 << 20
_BASE64 = 4 / 3


def error_answer(error: PagemillError) -> Response:
    """The answer for an error."""
    headers = {}
    if isinstance(error, HttpError) and error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if status_of(error) == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return answer(ErrorAnswer(reported(error)), status_of(error), **headers)


class Guard:
    """The outermost layer of the application.

    - The Host header must name this server where it listens to this machine alone: a page of another site whose name
      is made to lead here (DNS rebinding) sends its own name.
    - A request that changes something must not come from another site's page: with an API that takes forms, its
      browser would send it without asking.
    - A body is bounded in size and time, whatever route reads it.
    """

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server
        settings = server.settings
        self._allowed = {name.lower() for name in settings.allowed_hosts}
        self._names = self._allowed | _LOOPBACK_NAMES | {settings.host.lower()}
        self._limits = settings.limits
        self._max_bytes = int(_BASE64 * settings.limits.max_job_bytes) + _LARGEST_OVERHEAD

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        # Start and end of the application are not requests, and have no headers.
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        id, start, status = secrets.token_hex(8), time.monotonic(), 0
        scope.setdefault("state", {})["request_id"] = id

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", API_POLICY)
                # Results belong to one key: no proxy may keep them for another.
                headers.setdefault("Cache-Control", "no-store")
                headers["X-Request-Id"] = id
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, self._bounded(receive) if scope["type"] == "http" else receive, send_with_headers)
        except HttpError as error:  # also of a body that is too large or too slow, before an answer has started
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})  # before it is accepted: answered with 403
            elif status:
                raise
            else:
                await error_answer(error)(scope, receive, send_with_headers)
        except Exception:
            if scope["type"] == "websocket" or status:
                raise
            log.exception("request %s failed by a defect", id)
            defect = PagemillError(f"the request {id} failed by a defect of pagemill", remedy="Report it with the log.")
            await error_answer(defect)(scope, receive, send_with_headers)
        finally:
            if scope["type"] == "http":
                self._server.counts[f"requests_{status // 100}xx"] += 1
                route = getattr(scope.get("route"), "path", "-")  # not the path: it may hold names
                log.info("%s %s %s %d %.0f ms", id, scope["method"], route, status, 1000 * (time.monotonic() - start))

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._server.settings.is_loopback and _name(host) not in self._names:
            raise ForbiddenError(
                "the Host header does not name this server", remedy="Pass it with --allowed-host, if it is one."
            )
        origin = headers.get("origin")
        # Browsers send no Origin with a plain link or image; those are requests that change nothing.
        is_foreign = origin is not None and not self._is_own(origin, host)
        is_websocket = scope["type"] == "websocket"
        if is_foreign and (is_websocket or scope["method"] not in _SAFE_METHODS):
            raise ForbiddenError("the request comes from a page of another site")

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
            # Behind a proxy the Host header may be that of this server; the browser knows the proxy's name.
            return parts.netloc.lower() == host.lower() or parts.hostname in self._allowed
        except ValueError:
            return False

    def _bounded(self, receive: Receive) -> Receive:
        size = 0
        limits = self._limits
        deadline = time.monotonic() + limits.upload_timeout_s
        is_whole = False

        async def bounded() -> Message:
            nonlocal size, is_whole
            if is_whole:  # what follows is the end of the connection, which may take long
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, min(limits.idle_timeout_s, deadline - time.monotonic()))):
                    message = await receive()
            except TimeoutError:
                raise SlowRequestError("the request took too long to arrive", remedy="Send it again.") from None
            size += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if size > self._max_bytes:
                raise ContentTooLargeError(f"the request is over {self._max_bytes:,} bytes")
            return message

        return bounded


def _name(host: str) -> str:
    """The name in a Host header, without the port and the brackets of an IPv6 address."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
