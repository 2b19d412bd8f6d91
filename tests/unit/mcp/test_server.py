"""The server's tools, called by the SDK's own client."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from mcp_client import connected
from synthetic_run import TABLE, page, region

from pagemill.document.jobs import SearchResult, Snippet
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, PageResult
from pagemill.errors import UsageError
from pagemill.mcp.documents import Documents, Listing, ParsedDocument, ParseState
from pagemill.sources.options import PageRanges

JPEG = b"\xff\xd8 a page"


class FakeDocuments(Documents):
    """A document of two pages."""

    cut_short = False

    def __init__(self) -> None:  # without a client
        table = region(1, Label.TABLE, TABLE, content_format=ContentFormat.HTML)
        self.records = [
            page("mill", 1, [region(0, Label.TEXT, "Water.")], markdown="Water turns the wheel."),
            page("mill", 2, [region(0, Label.TEXT, "Vats."), table], markdown="Vats."),
        ]
        self.entered = 0

    async def __aenter__(self) -> FakeDocuments:
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.entered -= 1

    async def parse(self, source: str, *, pages: Any, languages: Any, wait_s: float, report: Any) -> ParsedDocument:
        if source == "secret":
            raise UsageError("it is outside", remedy="Name another")
        state = ParsedDocument(document="d", name=source, state=ParseState.FINISHED, pages_finished=2, pages_total=2)
        await report(state)
        return state

    async def pages(self, document: str, pages: PageRanges | None) -> AsyncGenerator[PageResult]:
        if document != "d":
            raise UsageError(f"there is no document {document!r}")
        for each in self.records:
            if pages is None or each.page_number in pages.select(2):
                yield each

    async def finished(self, document: str) -> list[int]:
        return [1, 2]

    async def inner(self, document: str) -> list[str]:
        return []

    async def is_unfinished(self, document: str) -> bool:
        return self.cut_short

    async def listed(self, folder: str) -> Listing:
        if folder == "x":
            raise UsageError("no folder", remedy="Name another.")
        done = ParsedDocument(document="d", name="mill.pdf", state=ParseState.FINISHED, pages_finished=2)
        return Listing(documents=[done], files=["mill.pdf", "sub/"])

    async def image(self, document: str, page: PageResult, width: int) -> bytes:
        return JPEG

    async def search(self, query: str, **_: Any) -> list[SearchResult]:
        snippet = Snippet(text=query)
        return [SearchResult(job="d", document="1", name="mill.pdf", n=0, page_number=1, score=0.5, snippet=snippet)]


async def call(tool: str, **arguments: Any) -> Any:
    documents = FakeDocuments()
    async with connected(documents) as client:
        assert documents.entered == 1
        result = await client.call_tool(tool, arguments)
    assert documents.entered == 0
    return result


def text_of(result: Any) -> str:
    assert not result.is_error, result.content
    return str(result.content[0].text)


async def test_every_tool_is_listed_with_its_parameters() -> None:
    async with connected(FakeDocuments()) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == {"list_documents", "parse_document", "get_pages", "search", "get_table", "get_page_image"}
    assert all(tool.description and tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
    assert "context" not in tools["parse_document"].input_schema["properties"]


async def test_a_document_is_parsed_with_progress() -> None:
    told = []

    async def progress(done: float, total: float | None, _: str | None) -> None:
        told.append((done, total))

    async with connected(FakeDocuments()) as client:
        result = await client.call_tool("parse_document", {"source": "mill.pdf"}, progress_callback=progress)
    assert result.structured_content is not None and result.structured_content["document"] == "d"
    assert result.structured_content["pages_finished"] == 2
    assert told == [(2, 2)]


async def test_pages_as_markdown_and_as_records() -> None:
    assert "turns the wheel" in text_of(await call("get_pages", document="d"))
    assert "wheel" not in text_of(await call("get_pages", document="d", pages="2"))
    record = text_of(await call("get_pages", document="d", pages="1", format="json"))
    assert '"bbox_2d"' in record


async def test_pages_that_cannot_be_read_are_named() -> None:
    text = text_of(await call("get_pages", document="d", pages="2-4,9"))
    assert "Vats." in text and "Not finished: pages 3-4,9:" in text and "Finished pages: 1-2]" in text
    assert "Not finished" not in text_of(await call("get_pages", document="d", pages="2-"))
    assert text_of(await call("get_pages", document="d", pages="7")).startswith("[Not finished: pages 7:")


@pytest.mark.parametrize("room", [60_000, 30])
async def test_pages_of_a_document_that_is_not_finished_say_so(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr("pagemill.mcp.server.MAX_CHARACTERS", room)
    assert "not finished" not in text_of(await call("get_pages", document="d"))
    monkeypatch.setattr(FakeDocuments, "cut_short", True)
    assert "[The document is not finished; finished pages: 1-2." in text_of(await call("get_pages", document="d"))


async def test_a_long_text_is_cut_and_can_be_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.mcp.server.MAX_CHARACTERS", 30)
    whole, offset = "", 0
    for _ in range(10):
        text = text_of(await call("get_pages", document="d", offset=offset))
        part, _, note = text.partition("\n\n[Cut")
        whole += part
        offset += len(part)
        assert len(part) <= 30
        if not note:
            break
        assert f"offset={offset}" in note
    assert "wheel.\n\n<!-- page 2 -->\nVats." in whole


@pytest.mark.parametrize(
    ("format", "expected"),
    [("html", 'rowspan="2"'), ("csv", "'=1+1"), ("json", '"row_span":2'), ("markdown", "<table")],
)
async def test_a_table(format: str, expected: str) -> None:
    assert expected in text_of(await call("get_table", document="d", page=2, format=format))


async def test_the_image_of_a_page() -> None:
    result = await call("get_page_image", document="d", page=1)
    assert (result.content[0].mime_type, base64.b64decode(result.content[0].data)) == ("image/jpeg", JPEG)


async def test_a_search() -> None:
    result = await call("search", query="한지")
    assert result.structured_content["hits"] == [
        {"document": "d/1", "name": "mill.pdf", "page": 1, "score": 0.5, "snippet": "한지"}
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("parse_document", {"source": "secret"}, "it is outside. Name another"),
        ("parse_document", {"source": "a", "pages": "3-1"}, "page range"),
        ("get_pages", {"document": "x"}, "no document"),
        ("list_documents", {"folder": "x"}, "no folder. Name another."),
        ("get_table", {"document": "d", "page": 1}, "has 0 tables"),
        ("get_page_image", {"document": "d", "page": 7}, "no finished page 7"),
        ("get_page_image", {"document": "d", "page": 1, "width": 100_000}, "2000"),
        ("search", {"query": "a" * 5000}, "1000"),
    ],
)
async def test_errors_reach_the_caller(tool: str, arguments: dict[str, Any], message: str) -> None:
    result = await call(tool, **arguments)
    assert result.is_error
    assert message in result.content[0].text


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ([], False),
        ([(b"authorization", b"Bearer wrong")], False),
        ([(b"authorization", b"Basic right")], False),
        ([(b"authorization", b"right")], False),
        ([(b"authorization", b"Bearer right")], True),
        ([(b"authorization", b"bearer right")], True),
    ],
)
async def test_requests_without_the_key_are_refused(headers: list[tuple[bytes, bytes]], passes: bool) -> None:
    from pagemill.mcp.server import RequireKey  # on use, as the SDK takes a second

    reached, sent = [], []

    async def app(*_: Any) -> None:
        reached.append(True)

    async def send(message: Any) -> None:
        sent.append(message)

    await RequireKey(app, "right")({"type": "http", "headers": headers}, None, send)
    assert bool(reached) == passes
    assert [each.get("status") for each in sent] == ([] if passes else [401, None])


async def test_documents_and_files_are_listed() -> None:
    listed = (await call("list_documents")).structured_content
    assert listed["files"] == ["mill.pdf", "sub/"]
    assert listed["documents"][0]["document"] == "d"
