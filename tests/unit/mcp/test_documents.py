"""The tools over a server."""

import asyncio
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp_client import connected
from rest_world import FastEngines, World, image, rest_world

from pagemill.client import AsyncClient
from pagemill.errors import InputError, PagemillError, UsageError
from pagemill.mcp import documents as module
from pagemill.mcp.documents import Documents, ParseState
from pagemill.mcp.in_process import client_in_process
from pagemill.runtime import engines


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(engines, "load", FastEngines().load)
    async with rest_world(tmp_path / "data") as world:
        yield world


def documents(world: World, root: Path | None) -> Documents:
    return Documents(AsyncClient("http://127.0.0.1", transport=world.client._transport), root)


async def test_every_tool(world: World, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "page.png").write_bytes(image(7))

    async def call(tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result

    async with connected(documents(world, tmp_path / "root")) as client:
        parsed = (await call("parse_document", source="page.png")).structured_content
        assert (parsed["state"], parsed["pages_finished"]) == ("finished", 1)
        again = (await call("parse_document", source="page.png")).structured_content
        assert again["document"] == parsed["document"]
        document = parsed["document"]
        assert "shade 7" in (await call("get_pages", document=document)).content[0].text
        picture = (await call("get_page_image", document=document, page=1)).content[0]
        assert picture.mime_type == "image/jpeg"
        while world.server._tasks:
            await asyncio.gather(*world.server._tasks)
        for more in ({}, {"document": document}):
            hits = (await call("search", query="7", **more)).structured_content["hits"]
            assert [hit["document"].partition("/")[0] for hit in hits] == [document] and len(hits[0]["box"]) == 4
        assert (await client.call_tool("search", {"query": "7", "document": "x"})).is_error  # there is none


async def test_every_document_of_an_archive_is_reached(world: World, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\nalpha,1\n")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "k,v\nalpha,1\n")
        archive.writestr("b.csv", "k,v\nbeta,2\n")

    async def call(tool: str, **arguments: Any) -> Any:
        return await client.call_tool(tool, arguments)

    async with connected(documents(world, tmp_path)) as client:
        parsed = (await call("parse_document", source="a.zip")).structured_content
        whole, (first, second) = parsed["document"], parsed["documents"]
        assert first.startswith(f"{whole}/")
        text = (await call("get_pages", document=whole)).content[0].text
        assert f"<!-- document {second}, page 1 -->" in text and "alpha" in text
        text = (await call("get_pages", document=second, pages="1-2")).content[0].text
        assert "beta" in text and "alpha" not in text and "Not finished: pages 2:" in text
        assert "beta" in (await call("get_table", document=second, page=1)).content[0].text
        refused = await call("get_table", document=whole, page=1)
        assert refused.is_error and second in refused.content[0].text
        while world.server._tasks:
            await asyncio.gather(*world.server._tasks)
        (hit,) = (await call("search", query="beta", document=second)).structured_content["hits"]
        assert hit["document"] == second
        alone = (await call("parse_document", source="a.csv")).structured_content
        assert "documents" not in alone


async def test_a_search_in_one_document_is_not_among_the_best_pages_of_all(world: World) -> None:
    weak, strong = [(await world.finished(image(shade)))["id"] for shade in (7, 77)]
    while world.server._tasks:
        await asyncio.gather(*world.server._tasks)
    service = documents(world, None)
    for document in (weak, strong):
        (hit,) = await service.search("shade 77", document=document, languages=(), limit=1)
        assert hit.job == document


async def test_a_file_whose_job_was_removed_is_sent_again(world: World, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(image(7))
    service = documents(world, tmp_path)

    async def parse() -> str:
        return (await service.parse("page.png", pages=None, languages=(), wait_s=30, report=_nothing)).document

    first = await parse()
    await service._client.remove(first)
    second = await parse()
    assert first != second and await parse() == second


async def test_the_same_file_is_parsed_once_by_all_processes(world: World, tmp_path: Path) -> None:
    async def parse(content: bytes) -> str:
        (tmp_path / "page.png").write_bytes(content)
        return (
            await documents(world, tmp_path).parse("page.png", pages=None, languages=(), wait_s=30, report=_nothing)
        ).document

    first = await parse(image(7))
    assert await parse(image(7)) == first
    assert await parse(image(8)) != first
    for _ in range(2):  # a job that failed does not stand for the file
        with pytest.raises(PagemillError, match=r"page\.png"):
            await parse(b"no picture")
    assert [job.name async for job in documents(world, tmp_path)._client.jobs(state="failed")] == ["page.png"]


async def test_a_server_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts with the first request, resumes what an earlier one left, and two of a folder do not meet."""
    monkeypatch.setattr(engines, "load", FastEngines().load)
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    (root / "page.png").write_bytes(image(7))
    ids: set[str] = set()
    for _ in range(2):
        async with Documents(client_in_process(root, cache), root) as service:
            assert ids or not cache.exists()
            state = await service.parse("page.png", pages=None, languages=(), wait_s=30, report=_nothing)
            assert state.state is ParseState.FINISHED
            ids.add(state.document)
    assert len(ids) == 1
    async with (
        Documents(client_in_process(root, cache), root) as first,
        Documents(client_in_process(root, cache), root) as second,
    ):
        listed = [len((await each.listed("")).documents) for each in (first, second)]
    assert listed == [1, 0]


async def test_long_listings_are_cut(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").touch()
    monkeypatch.setattr(module, "MAX_FILES", 1)
    listed = await documents(world, tmp_path).listed("")  # also the folder of the server
    assert (listed.files, listed.files_left_out) == (["a.pdf"], 1)


async def test_a_document_that_is_being_parsed(world: World, tmp_path: Path) -> None:
    world.server.runner.stop()
    (tmp_path / "page.png").write_bytes(image(7))
    service = documents(world, tmp_path)
    state = await service.parse("page.png", pages=None, languages=(), wait_s=0, report=_nothing)
    assert state.state is ParseState.PARSING
    with pytest.raises(UsageError, match="still being parsed"):
        await service.search("mill", document=state.document, languages=(), limit=5)


async def test_pages_that_failed_are_named_among_the_others(world: World) -> None:
    job = await world.finished(image(7), b"no picture")
    world.server.runner.stop()
    waiting = (await world.send(image(8))).json()
    service = documents(world, None)
    assert [await service.is_unfinished(each["id"]) for each in (job, waiting)] == [False, True]
    async with connected(service) as client:
        result: Any = await client.call_tool("get_pages", {"document": job["id"]})
    text = result.content[0].text
    assert "shade 7" in text and "page 2.png" in text and "not finished" not in text


async def test_what_is_refused(world: World, tmp_path: Path) -> None:
    async def parse(source: str, root: Path | None = tmp_path) -> Any:
        return await documents(world, root).parse(source, pages=None, languages=(), wait_s=30, report=_nothing)

    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(PagemillError, match=r"bad\.png"):
        await parse("bad.png")
    with pytest.raises(InputError, match="outside"):
        await parse("../outside.png")
    with pytest.raises(UsageError, match="no files are sent"):
        await parse("bad.png", None)
    with pytest.raises(UsageError, match="there is no document"):
        [page async for page in documents(world, None).pages("../jobs", None)]


async def _nothing(_: object) -> None: ...
