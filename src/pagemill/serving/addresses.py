"""Ports of this machine, and the URLs at which clients find a server."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import ip_address


def free_port(host: str) -> int:
    """A free port, chosen by the system."""
    with socket.socket(_family(host)) as listener:
        listener.bind((host, 0))
        return int(listener.getsockname()[1])


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there."""
    with suppress(OSError), socket.socket(_family(host)) as listener:
        # Connections that a stopped server left in TIME_WAIT do not keep its port from the next one.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        return True
    return False


def base_url(host: str, port: int) -> str:
    """Where clients on this machine find a server."""
    # An unspecified address is one to listen on, not one to connect to.
    if host in ("0.0.0.0", ""):
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, judging by its name or address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
