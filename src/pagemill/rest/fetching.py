"""Fetches URLs that clients name: public addresses only, each checked and then used, within bounds."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, urljoin, urlsplit

from pagemill.errors import InputError, TooLargeError
from pagemill.rest.errors import FetchError, ForbiddenError
from pagemill.store.files import output_errors, sync_directory
from pagemill.whole_files import whole_file

FETCH_S = 300.0
"""Time limit of one file, redirects included."""
_SOCKET_S = 20.0
_REDIRECTS = 5
_REDIRECT_STATUS = frozenset({301, 302, 303, 307, 308})
_CHUNK = 1 << 16
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST_V6 = ipaddress.ip_network("2000::/3")
"""Addresses assigned by IANA: without site-local addresses, SRv6 segments and discard prefixes."""
_SPECIAL = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "3fff::/20"))
)
"""Those in IANA's registries of special-purpose addresses that not every Python's ``is_global`` knows."""
MAX_URL = 2048
_KEPT = "%/:?#[]@!$&'()*+,;="
"""Characters with a meaning in a URL; all others but letters and digits are percent-encoded."""


def check_url(url: str) -> None:
    """Reject anything but an http or https URL of a host, before any name is looked up.

    Raises:
        InputError: The URL is something else.
    """
    remedy = "Give a public http:// or https:// URL, without a name and password."
    try:
        parts = urlsplit(url)
        # Both raise for what they cannot read: urlsplit itself accepts ports and names that no connection can have.
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:
        raise InputError("a URL is malformed", remedy=remedy) from None
    is_good = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    if not is_good or len(url) > MAX_URL or not url.isprintable() or " " in url:
        raise InputError("a URL cannot be fetched", remedy=remedy)


def is_public(address: str) -> bool:
    """Whether an IP address is public: not private, loopback, link-local, multicast or reserved."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        # Addresses that lead to an IPv4 one: that one decides.
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        # A list of what is allowed, not of what is not: IANA may give out special prefixes that this Python does not
        # know.
        if ip not in _UNICAST_V6:
            return False
    return (
        not any(ip in network for network in _SPECIAL)
        and ip.is_global
        and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)
    )


def require_urls(allowed: bool) -> None:
    """Raise a ForbiddenError if fetching URLs is disabled."""
    if not allowed:
        raise ForbiddenError("this server fetches no URLs", remedy="Send the file, or start it with --allow-urls.")


class Fetch:
    """A handle with which another thread can abort a fetch. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: _Pinned | None = None
        self._is_aborted = False

    def abort(self) -> None:
        """End the fetch that runs, and those that follow, with a FetchError. Idempotent."""
        with self._lock:
            self._is_aborted = True
            if self._connection is not None:
                self._connection.abort()

    def proceed(self, connection: _Pinned | None = None) -> None:
        """Set the connection that :meth:`abort` ends.

        Raises:
            FetchError: It was aborted.
        """
        with self._lock:
            if self._is_aborted:
                raise FetchError("the fetch was aborted", remedy="Try again.")
            self._connection = connection

    def leave(self) -> None:
        """The connection is about to be closed."""
        with self._lock:
            self._connection = None


def fetch(url: str, path: Path, max_bytes: int, *, limit_s: float = FETCH_S, by: Fetch | None = None) -> None:
    """Fetch a URL into a file, atomically and durably.

    Each name is looked up once; the addresses that were checked are those that are connected to, so that a name
    that changes its address in between (DNS rebinding) gains nothing. Redirects are checked alike. Proxies of the
    environment are not used.

    Raises:
        ForbiddenError: The host, or that of a redirect, is not in the public network.
        FetchError: It cannot be reached, answers with an error, or takes too long.
        TooLargeError: The answer is over ``max_bytes``.
        OutputError: The file cannot be written.
    """
    deadline, by = time.monotonic() + limit_s, by or Fetch()
    with output_errors(path), whole_file(path, durable=True) as file:
        # By hand: a client that follows redirects by itself would connect before the next address is checked.
        for _ in range(_REDIRECTS + 1):
            check_url(url)
            target = _fetch_once(url, path, file, max_bytes, deadline, by)
            if target is None:
                break
            try:
                url = urljoin(url, target)
            except ValueError as error:
                raise _unreached(error) from error
        else:
            raise FetchError("a URL redirects too many times", remedy="Check the URL.")
    sync_directory(path.parent)


def _fetch_once(url: str, path: Path, file: BinaryIO, max_bytes: int, deadline: float, by: Fetch) -> str | None:
    """Where the URL redirects to; None when its content is in the file."""
    parts = urlsplit(url)
    host, secure = (parts.hostname or "").encode("idna").decode(), parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    try:
        connection = _Pinned(host, port, _connect(host, port, deadline, by), secure=secure)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _unreached(error) from error
    # One that sends a byte now and then keeps below the time limit of a single read: this ends it.
    watchdog = threading.Timer(max(0.1, deadline - time.monotonic()), connection.abort)
    watchdog.daemon = True
    watchdog.start()
    try:
        by.proceed(connection)
        target = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe=_KEPT)
        connection.request("GET", target, headers={"User-Agent": "pagemill", "Accept-Encoding": "identity"})
        response = connection.getresponse()
        if response.status in _REDIRECT_STATUS and (location := response.headers.get("location")):
            return quote(location.encode("latin-1"), safe=_KEPT)
        # Also for 206 and 204: only a whole answer is a file.
        if response.status != 200:
            raise FetchError(f"a URL answered with status {response.status}", remedy="Check the URL.")
        _save(response, path, file, max_bytes)
        if connection.aborted:  # an answer without a length ends with the connection
            raise FetchError("a URL took too long to be fetched", remedy="Send the file itself.")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _unreached(error) from error
    finally:
        by.leave()
        watchdog.cancel()
        connection.close()
    return None


def _save(response: http.client.HTTPResponse, path: Path, file: BinaryIO, max_bytes: int) -> None:
    size = 0
    while chunk := response.read(_CHUNK):
        size += len(chunk)
        if size > max_bytes:
            raise TooLargeError(f"a file to be fetched is over {max_bytes:,} bytes")
        with output_errors(path):
            file.write(chunk)
    if response.length:  # it announced more than it sent
        raise FetchError("the connection broke before a file was complete", remedy="Try again.")


def _connect(host: str, port: int, deadline: float, by: Fetch) -> socket.socket:
    """Connect to one of the host's addresses, all of which are public.

    Raises:
        ForbiddenError: One is not.
        OSError: None answers.
    """
    found = [(family, address) for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    # All, not the one that is used: which of them is tried depends on the network, and an attacker may count on that.
    if not found or not all(is_public(str(address[0])) for _, address in found):
        raise ForbiddenError("a URL resolves to an address that is not public", remedy="Send the file itself.")
    problem: OSError = OSError("no address")
    for family, address in found:
        by.proceed()
        if time.monotonic() > deadline:
            raise TimeoutError
        connected = socket.socket(family, socket.SOCK_STREAM)
        # Never below a tenth of a second: a timeout of 0 would make the socket non-blocking.
        connected.settimeout(max(0.1, min(_SOCKET_S, deadline - time.monotonic())))
        try:
            connected.connect(address)
        except OSError as error:
            connected.close()
            problem = error
        else:
            return connected
    raise problem


class _Pinned(http.client.HTTPConnection):
    """A connection over a socket that is connected already; with TLS the certificate is that of the URL's host."""

    def __init__(self, host: str, port: int, connected: socket.socket, *, secure: bool) -> None:
        super().__init__(host, port)
        self.aborted = False
        self.default_port = 443 if secure else 80
        try:
            self.sock = (
                ssl.create_default_context().wrap_socket(connected, server_hostname=host) if secure else connected
            )
        except BaseException:
            connected.close()
            raise
        self._connected = self.sock  # which http.client forgets when it hands the socket over to the response

    def connect(self) -> None:
        """Refuse to reconnect: the address would not be checked."""
        raise http.client.NotConnected

    def abort(self) -> None:
        """Unblock reads and writes of the connection."""
        self.aborted = True
        with suppress(OSError):
            self._connected.shutdown(socket.SHUT_RDWR)


def _unreached(error: Exception) -> FetchError:
    return FetchError(f"a URL could not be fetched: {type(error).__name__}", remedy="Check the URL, and try again.")
