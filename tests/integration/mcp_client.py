"""The SDK's own client, connected to our tools in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp import Client

    from pagemill.mcp.documents import Documents


def connected(documents: Documents) -> Client:
    """A client, to be entered. The SDK takes a second to import: not every process that collects tests needs it."""
    from mcp import Client

    from pagemill.mcp.server import create_server

    return Client(create_server(documents))
