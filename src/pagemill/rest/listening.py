"""The listening socket; without heavy imports, as the parent process creates it."""

from __future__ import annotations

import errno
import socket
import time

from pagemill.errors import UsageError

_DYING_S = 2.0
"""How long to wait for an address: the kernel closes the sockets of a killed process after its memory is freed."""
_POLL_S = 0.05


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        UsageError: The address is not this machine's, or is in use.
    """
    deadline = time.monotonic() + _DYING_S
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            while True:
                try:
                    listening.bind(address)
                    break
                except OSError as error:
                    if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                        raise
                time.sleep(_POLL_S)
            listening.listen(1024)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        foreign = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        raise UsageError(
            f"cannot listen at {host} port {port}: {error.strerror or error}",
            remedy="Give an address of this machine with --host; 0.0.0.0 is all of them."
            if foreign
            else "Choose another --port, or stop the program that uses this one.",
        ) from error
    return listening


def shown_address(listening: socket.socket) -> str:
    """The URL of a socket that listens."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
