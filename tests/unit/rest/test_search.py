"""Search over jobs."""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_world import World, image, rest_world

from pagemill.retrieval.library import Library


async def indexed(world: World) -> None:
    """Wait until the index has everything that has happened so far."""
    while world.server._tasks:
        await asyncio.gather(*world.server._tasks)


async def found(world: World, query: str, **more: Any) -> list[tuple[str, int]]:
    answer = await world.client.get("/v1/search", params={"q": query, **more})
    assert answer.status_code == 200, answer.text
    return [(hit["job"], hit["n"]) for hit in answer.json()["hits"]]


async def test_pages_of_jobs_are_found_and_shown(tmp_path: Path) -> None:
    async with rest_world(tmp_path) as world:
        job = await world.finished(image(7), image(8))
        await indexed(world)
        (hit,) = (await world.client.get("/v1/search?q=8")).json()["hits"]
        assert (hit["job"], hit["document"], hit["name"]) == (job["id"], "0002", "page 2.png")
        text, marks = hit["snippet"]["text"], hit["snippet"]["marks"]
        assert [text[start:end] for start, end in marks] == ["8"]
        page = (await world.client.get(f"/v1/jobs/{job['id']}/pages/{hit['n']}")).json()
        assert page["regions"][hit["region_id"]]["bbox"] == hit["box"]


async def test_collections_are_kept_apart(tmp_path: Path) -> None:
    async with rest_world(tmp_path) as world:
        first = await world.finished(image(7), data={"collection": "one"})
        second = await world.finished(image(7), data={"collection": "two"})
        await indexed(world)
        assert {job for job, _ in await found(world, "7")} == {first["id"], second["id"]}
        assert [job for job, _ in await found(world, "7", collection="two")] == [second["id"]]
        collections = (await world.client.get("/v1/collections")).json()["collections"]
        assert collections == [{"name": "one", "jobs": 1, "pages": 1}, {"name": "two", "jobs": 1, "pages": 1}]


async def test_all_pages_of_one_job_are_found_among_better_ones_of_others(tmp_path: Path) -> None:
    async with rest_world(tmp_path) as world:
        weak = await world.finished(image(7))
        await world.finished(*[image(77)] * 3, data={"collection": "one"})
        await indexed(world)
        assert weak["id"] not in [job for job, _ in await found(world, "shade 77", limit=3)]
        assert [job for job, _ in await found(world, "shade 77", limit=3, job=weak["id"])] == [weak["id"]]
        assert not await found(world, "shade 77", job=weak["id"], collection="one")
        assert (await world.client.get("/v1/search?q=7&job=0123")).status_code == 404


async def test_a_job_that_has_just_ended_is_searched_once_it_is_in_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rest_world(tmp_path) as world:
        monkeypatch.setattr(world.server.runner, "_ended", lambda id: None)  # as long as other jobs are indexed
        job = await world.finished(image(7))
        assert await found(world, "7", job=job["id"])


async def test_a_job_that_is_not_in_the_index_yet_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rest_world(tmp_path) as world:
        monkeypatch.setattr(Library, "put", lambda *_, **__: [])
        job = await world.finished(image(7))
        answer = await world.client.get(f"/v1/search?q=7&job={job['id']}")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")


async def test_nothing_is_found_in_a_job_that_ended_before_it_had_pages(tmp_path: Path) -> None:
    async with rest_world(tmp_path, allow_urls=True) as world:
        request = {"sources": [{"url": "http://127.0.0.1/private.pdf"}]}
        job = (await world.client.post("/v1/jobs", json=request)).json()["id"]
        assert (await world.ended(job))["state"] == "failed"
        assert await found(world, "7", job=job) == []


async def test_a_removed_job_is_not_found(tmp_path: Path) -> None:
    async with rest_world(tmp_path) as world:
        job = await world.finished(image(7))
        await indexed(world)
        assert await found(world, "7")
        await world.client.delete(f"/v1/jobs/{job['id']}")
        assert not await found(world, "7")


async def test_a_removed_job_takes_no_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Library, "remove", lambda *_: None)  # it waits while a large job is indexed
    async with rest_world(tmp_path) as world:
        sent = {(await world.finished(image(7)))["id"] for _ in range(2)}
        await indexed(world)
        ((first, _),) = await found(world, "7", limit=1)
        await world.client.delete(f"/v1/jobs/{first}")
        ((other, _),) = await found(world, "7", limit=1)
    assert {first, other} == sent


async def test_owners_do_not_find_each_others_pages(tmp_path: Path) -> None:
    keys = ("first-key-of-the-test", "second-key-of-the-test")
    async with rest_world(tmp_path, api_keys=keys, headers={"X-Api-Key": keys[0]}) as world:
        await world.finished(image(7))
        await indexed(world)
        assert await found(world, "7")
        world.client.headers["X-Api-Key"] = keys[1]
        assert not await found(world, "7")
        assert (await world.client.get("/v1/collections")).json() == {"collections": []}
        world.client.headers["X-Api-Key"] = "a wrong key of the test"
        assert (await world.client.get("/v1/search?q=7")).status_code == 401


async def test_a_server_stops_while_jobs_are_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indexing = threading.Event()

    def put(*_: Any, stopped: Callable[[], bool], **__: Any) -> list[str]:
        indexing.set()
        while not stopped():
            time.sleep(0.001)
        return []

    monkeypatch.setattr(Library, "put", put)
    async with asyncio.timeout(60):
        async with rest_world(tmp_path) as world:
            await world.finished(image(7))
            await asyncio.to_thread(indexing.wait)


async def test_a_lost_index_is_made_again(tmp_path: Path) -> None:
    async with rest_world(tmp_path) as world:
        job = await world.finished(image(7))
    shutil.rmtree(tmp_path / "search", ignore_errors=True)
    async with rest_world(tmp_path) as world:
        async with asyncio.timeout(30):
            while not (hits := await found(world, "7")):  # noqa: ASYNC110 - it is indexed on a thread
                await asyncio.sleep(0.01)
    assert [id for id, _ in hits] == [job["id"]]


@pytest.mark.parametrize("query", ["q=", "q=7&limit=0", "q=7&limit=1000", f"q={'7' * 2000}", "q=7&languages=english"])
async def test_searches_that_make_no_sense(tmp_path: Path, query: str) -> None:
    async with rest_world(tmp_path) as world:
        answer = await world.client.get(f"/v1/search?{query}")
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]
