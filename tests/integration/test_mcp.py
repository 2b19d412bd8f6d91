"""`pagemill mcp` in a process of its own, used by the SDK's own client: every tool over real files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from mcp import Client

SAMPLES = Path(__file__).parents[2] / "samples"


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments, read_timeout_seconds=120)
    assert not result.is_error, result.content
    return result


async def use_every_tool(client: Client) -> None:
    tools = {tool.name for tool in (await client.list_tools()).tools}
    assert tools == {"list_documents", "parse_document", "get_pages", "search", "get_table", "get_page_image"}
    parsed = await call(client, "parse_document", source="report.pdf", wait_seconds=100)
    assert parsed.structured_content["state"] == "finished"
    document = parsed.structured_content["document"]
    text = (await call(client, "get_pages", document=document)).content[0].text
    assert "<!-- page 1 -->" in text and len(text) > 1000
    word = next(iter(re.findall(r"[a-z]{9,}", text)))
    hits = (await call(client, "search", query=word)).structured_content["hits"]
    assert hits[0]["document"].partition("/")[0] == document and hits[0]["name"] == "report.pdf"
    page = next(
        int(n) for n, body in re.findall(r"<!-- page (\d+) -->(.*?)(?=<!-- page|\Z)", text, re.S) if "|" in body
    )
    assert "<td" in (await call(client, "get_table", document=document, page=page)).content[0].text
    image = (await call(client, "get_page_image", document=document, page=1, width=400)).content[0]
    assert image.mime_type == "image/jpeg" and len(image.data) > 1000
    refused = await client.call_tool("parse_document", {"source": "../README.md"})
    assert refused.is_error and "outside" in refused.content[0].text


@pytest.mark.integration
@pytest.mark.slow
async def test_over_standard_input_and_output(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters  # here: every process that collects tests imports this module

    command = ["-m", "pagemill", "mcp", "--root", str(SAMPLES), "--cache", str(tmp_path)]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(server) as client:
        await use_every_tool(client)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Of a server with a key."""
    command = [sys.executable, "-m", "pagemill", "mcp", "--root", str(SAMPLES), "--cache", str(tmp_path)]
    environment = os.environ | {"PAGEMILL_MCP_KEY": "a key"}
    server = subprocess.Popen([*command, "--http", "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.communicate()


@pytest.mark.integration
@pytest.mark.slow
async def test_over_http_with_a_key(url: str) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx.AsyncClient() as http:
        assert (await http.post(url, json={})).status_code == 401
    headers = {"Authorization": "Bearer a key"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http2,
        Client(streamable_http_client(url, http_client=http2)) as client,
    ):
        await use_every_tool(client)
