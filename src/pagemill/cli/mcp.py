"""``pagemill mcp``."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import click

from pagemill.cli.options import FOLDER
from pagemill.client import AsyncClient
from pagemill.config.model_files import own_cache
from pagemill.errors import UsageError, lacks_extra
from pagemill.mcp.documents import Documents
from pagemill.serving.addresses import is_loopback

KEY_VARIABLE = "PAGEMILL_MCP_KEY"
SERVER_KEY_VARIABLE = "PAGEMILL_API_KEY"


@click.command(name="mcp")
@click.option("--root", type=FOLDER, help="Folder whose files may be read; no other file is.")
@click.option("--server", metavar="URL", help="Parse and search on this server (pagemill serve).")
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of parsed documents.  [default: ~/.cache/pagemill/mcp]",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP at /mcp instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of --http.")
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="Port of --http.")
def command(root: Path | None, server: str | None, cache: Path | None, http: bool, host: str, port: int) -> None:
    """Offer parsing and search to assistants: the Model Context Protocol.

    The tools are parse_document, get_pages, search, get_table and get_page_image. With
    --server, files below --root are sent to a pagemill server, whose key is in PAGEMILL_API_KEY. With --http at an
    address that others reach, clients must send the key that is in PAGEMILL_MCP_KEY.

    \b
    pagemill mcp --root ~/Documents
    pagemill mcp --root ~/Documents --server http://127.0.0.1:8080
    pagemill mcp --root /srv/documents --http --port 8090
    """  # noqa: D301 - click wants the control character
    key = os.environ.get(KEY_VARIABLE, "")
    # Only this machine can ask at a loopback address; elsewhere a key decides who may read.
    if http and not key and not is_loopback(host):
        raise UsageError(
            f"anyone who can reach {host} could read the files",
            remedy=f"Set a key in {KEY_VARIABLE}, or use 127.0.0.1.",
        )
    try:
        from pagemill.mcp.server import create_server, serve_over_http
    except ModuleNotFoundError as error:
        # Another module is missing: a broken installation, for which our extra is not a remedy.
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise lacks_extra("the package mcp is not installed", "mcp") from error
    made = create_server(_documents(root, server, cache or own_cache().parent / "mcp"))
    if not http:
        made.run("stdio")
        return
    serve_over_http(made, host=host, port=port, key=key, report=click.echo)


def _documents(root: Path | None, server: str | None, cache: Path) -> Documents:
    if server is not None:
        return Documents(AsyncClient(server, key=os.environ.get(SERVER_KEY_VARIABLE)), root)
    if root is None:
        raise UsageError("--root is missing", remedy="Pass the folder that assistants may read.")
    # With --server these run elsewhere; here the server of `pagemill serve` runs inside this process.
    for package in ("httpx", "fastapi", "python_multipart"):
        if find_spec(package) is None:
            raise lacks_extra(f"the package {package} is not installed", "mcp")
    from pagemill.mcp.in_process import client_in_process

    return Documents(client_in_process(root, cache), root)
