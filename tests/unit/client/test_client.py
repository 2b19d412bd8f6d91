"""The client against the server, and against servers that fail."""

import asyncio
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import h11
import httpx
import pytest
from local_web import Handler, serving
from rest_world import FastEngines, World, image, rest_world

import pagemill
from pagemill.client import (
    AsyncClient,
    IncompleteResultsWarning,
    Job,
    JobState,
    PageEvent,
    RequestError,
    asynchronous,
)
from pagemill.client.requests import EventParser
from pagemill.errors import InputError, NetworkError, OutputError, PagemillError, UsageError
from pagemill.runtime import engines

URL = "http://127.0.0.1"
JOB = {"id": "a", "state": "finished", "name": "a.pdf", "created": "2026-01-31T12:00:00Z", "later": "unknown"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "load", FastEngines().load)
    monkeypatch.setattr(asynchronous, "delay", lambda *_: 0)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with rest_world(tmp_path / "data") as world:
        yield world


def connected(world: World) -> AsyncClient:
    client = AsyncClient(URL)
    client._http = world.client
    return client


def answering(*answers: httpx.Response | Exception) -> tuple[AsyncClient, list[httpx.Request]]:
    """A client whose requests get these answers, the last one again and again."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        seen.append(request)
        told = answers[min(len(seen), len(answers)) - 1]
        if isinstance(told, Exception):
            raise told
        return told

    client = AsyncClient(URL, key="a key")
    client._http = httpx.AsyncClient(base_url=URL, headers=client._http.headers, transport=httpx.MockTransport(answer))
    return client, seen


async def test_a_job_from_files_to_results(world: World, tmp_path: Path) -> None:
    client = connected(world)
    (tmp_path / "page.png").write_bytes(image(7))
    job = await client.submit(tmp_path / "page.png", ("second.png", image(8)), collection="c", options={"crops": False})
    assert not job.has_ended and [each.name for each in job.documents] == ["page.png", "second.png"]
    records = [page async for page in client.stream(job.id)]
    assert {page.markdown for page in records} == {"shade 7", "shade 8"}
    job = await client.wait(job.id)
    assert (job.state, job.pages.total, job.pages.finished) == (JobState.FINISHED, 2, 2)
    pages = [page async for page in client.pages(job.id)]
    assert [page.name for page in pages] == ["page.png", "second.png"]
    assert (await client.page(job.id, pages[1].n)).markdown == "shade 8"
    assert (await client.image(job.id, pages[0].n, width=50)).startswith(b"RIFF")
    assert await client.document(job.id, job.documents[0].id) == "shade 7\n"
    assert "DoclingDocument" in await client.document(job.id, job.documents[0].id, "docling.json")
    archive = await client.download(job.id, tmp_path / "all.zip")
    assert "documents/second.md" in zipfile.ZipFile(archive).namelist()
    while world.server._tasks:
        await asyncio.gather(*world.server._tasks)
    (hit,) = await client.search("8", collection="c")
    assert (hit.job, hit.n) == (job.id, pages[1].n)
    assert [each.name for each in await client.collections()] == ["c"]
    assert [each.id async for each in client.jobs(collection="c")] == [job.id]
    assert (await client.cancel(job.id)).state is JobState.FINISHED
    with pytest.raises(RequestError, match="no page of the job failed") as error:
        await client.retry(job.id)
    assert error.value.status == 409
    await client.remove(job.id)
    with pytest.raises(RequestError, match="no such job") as error:
        await client.job(job.id)
    assert (error.value.status, error.value.remedy) == (404, "Check the id; the job may have been removed.")


async def test_all_jobs_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connected(world)
    sent = [(await client.submit((f"{number}.png", image(number)))).id for number in range(3)]
    get = client._get
    monkeypatch.setattr(client, "_get", lambda path, kind, **more: get(path, kind, **(more | {"limit": 1})))
    assert [job.id async for job in client.jobs()] == sent[::-1]


async def test_errors_of_the_server_are_raised(world: World) -> None:
    client = connected(world)
    with pytest.raises(UsageError, match="no option 'colour'"):
        await client.submit(("a.png", image()), options={"colour": 1})
    with pytest.raises(RequestError, match="fetches no URLs"):
        await client.submit("https://example.org/a.pdf")


async def test_a_file_that_changes_while_it_is_sent_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous, "delay", lambda *_: 0.0)
    client, seen = answering(
        h11.LocalProtocolError("Too little data for declared Content-Length"), httpx.Response(202, json=JOB)
    )
    await client.submit(("a.png", b"a"))
    assert len(seen) == 2


async def test_names_in_other_encodings_are_sent() -> None:
    client, seen = answering(httpx.Response(202, json=JOB))
    await client.submit(("bad\udcff.png", b"a"))
    assert b'filename="bad?.png"' in seen[0].content


async def test_a_folder_is_no_file(tmp_path: Path) -> None:
    client, _ = answering(httpx.Response(202, json=JOB))
    with pytest.raises(InputError, match="is a folder") as error:
        await client.submit(tmp_path)
    assert error.value.remedy == "Name the files in it."


@pytest.mark.parametrize(
    ("sources", "error"), [((), UsageError), (("https://a/b.pdf", "c.pdf"), UsageError), (("missing.pdf",), InputError)]
)
async def test_sources_that_cannot_be_sent(sources: Any, error: type[PagemillError]) -> None:
    client, seen = answering(httpx.Response(202, json=JOB))
    with pytest.raises(error):
        await client.submit(*sources)
    assert not seen


async def test_a_job_is_sent_again_with_the_same_idempotency_key(tmp_path: Path) -> None:
    busy = httpx.Response(429, headers={"Retry-After": "1"}, json={})
    client, seen = answering(httpx.ConnectError("refused"), busy, httpx.Response(202, json=JOB))
    (tmp_path / "a.pdf").write_bytes(b"%PDF- content")
    assert (await client.submit(tmp_path / "a.pdf")).id == "a"
    assert len({request.headers["idempotency-key"] for request in seen}) == 1
    assert all(b"%PDF- content" in request.content for request in seen) and len(seen) == 3
    assert seen[0].headers["authorization"] == "Bearer a key"


async def test_a_server_that_never_answers() -> None:
    client, seen = answering(httpx.ConnectError("refused"))
    with pytest.raises(NetworkError, match="does not answer"):
        await client.job("a")
    assert len(seen) == 5


async def test_what_may_not_be_repeated_is_not() -> None:
    client, seen = answering(httpx.ConnectError("refused"))
    with pytest.raises(NetworkError):
        await client.retry("a")
    assert len(seen) == 1
    client, seen = answering(httpx.Response(202, json=JOB))
    assert (await client.retry("a")).id == "a" and seen[0].url.path == "/v1/jobs/a/retry"


async def test_events_resume_after_a_broken_connection() -> None:
    def page(n: int) -> str:
        return f'event: page\nid: {n}\ndata: {{"n": {n}, "document": "0001", "status": "done"}}\n\n'

    last = f"event: job\ndata: {httpx.Response(200, json=JOB).text}\n\n"
    client, seen = answering(
        httpx.Response(200, text=page(1)), httpx.ReadError("gone"), httpx.Response(200, text=page(2) + last)
    )
    events = [event async for event in client.events("a")]
    assert [event.n for event in events if isinstance(event, PageEvent)] == [1, 2]
    assert isinstance(events[-1], Job)
    assert [request.headers["last-event-id"] for request in seen] == ["0", "1", "1"]


async def test_streams_and_downloads_are_repeated_while_the_server_is_busy(tmp_path: Path) -> None:
    class Broken(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"hal"
            raise httpx.ReadError("gone")

    busy = httpx.Response(
        503, headers={"Retry-After": "10"}, json={"error": {"category": "request", "message": "full"}}
    )
    last = f"event: job\ndata: {httpx.Response(200, json=JOB).text}\n\n"
    client, _ = answering(busy, httpx.Response(200, text=last))
    assert [isinstance(event, Job) async for event in client.events("a")] == [True]
    broken = httpx.Response(200, stream=Broken())
    client, seen = answering(busy, broken, httpx.Response(200, content=b"whole"))
    assert (await client.download("a", tmp_path / "a.zip")).read_bytes() == b"whole"
    assert len(seen) == 3


async def test_a_long_poll_is_given_its_time_to_answer() -> None:
    client, seen = answering(httpx.Response(200, json=JOB))
    client._timeout_s = 2.0
    await client.wait("a")
    assert seen[0].extensions["timeout"]["read"] == float(seen[0].url.params["wait"]) + 2.0


async def test_events_of_a_server_that_stays_away_are_an_error() -> None:
    client, _ = answering(httpx.Response(200, text=""))
    with pytest.raises(NetworkError):
        [event async for event in client.events("a")]


async def test_a_document_may_have_any_name() -> None:
    client, seen = answering(httpx.Response(200, text="text"))
    await client.document("a", "50 % #1")
    assert seen[0].url.raw_path == b"/v1/jobs/a/documents/50%20%25%20%231.md"


async def test_what_lacks_pages_comes_with_a_warning(tmp_path: Path) -> None:
    client, _ = answering(httpx.Response(200, text="text", headers={"Pagemill-Incomplete": "1 of 2 pages failed"}))
    with pytest.warns(IncompleteResultsWarning, match=r"/v1/jobs/a/documents/0001\.md: 1 of 2 pages failed"):
        assert await client.document("a", "0001") == "text"
    with pytest.warns(IncompleteResultsWarning, match=r"download\.zip: 1 of 2 pages failed"):
        await client.download("a", tmp_path / "a.zip")


async def test_a_download_is_whole_or_not_there(tmp_path: Path) -> None:
    client, _ = answering(httpx.Response(500, text="broken"))
    with pytest.raises(RequestError, match="500"):
        await client.download("a", tmp_path / "a.zip")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OutputError):
        await client.download("a", tmp_path / "missing" / "a.zip")


async def test_two_downloads_to_one_path_are_whole(tmp_path: Path) -> None:
    client, _ = answering(httpx.Response(200, content=b"zip"))
    path = tmp_path / f"{'x' * 251}.zip"
    await asyncio.gather(*(client.download("a", path) for _ in range(2)))
    assert [(each, each.read_bytes()) for each in tmp_path.iterdir()] == [(path, b"zip")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event: page\nid: 3\ndata: 1\n\n", [("page", "1", "3")]),
        ("data: a\ndata: b\n\n", [("message", "a\nb", None)]),
        (": comment\n\nevent: job\n\n", []),
        ("data: a\r\ndata: b\r\n\r\ndata: c\r\rdata: d\n", [("message", "a\nb", None), ("message", "c", None)]),
        ("data: a\u2028b\x85c\x0bd\x1ce\n\n", [("message", "a\u2028b\x85c\x0bd\x1ce", None)]),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_server_sent_events(text: str, expected: list[Any], size: int) -> None:
    parser = EventParser()
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    assert [tuple(event) for part in parts for event in parser.feed(part)] == expected


async def test_an_event_may_hold_a_line_separator() -> None:
    job = httpx.Response(200, json=JOB | {"name": "a\u2028b"})
    client, _ = answering(httpx.Response(200, text=f"event: job\ndata: {job.text}\n\n"))
    (event,) = [event async for event in client.events("a")]
    assert isinstance(event, Job)


RUNNING = httpx.Response(200, json=JOB | {"state": "running"}).content


class OneJob(Handler):
    """A server with one job."""

    def do_GET(self) -> None:
        found = {"/v1/jobs/a": JOB, "/v1/jobs": {"jobs": [JOB, JOB]}}.get(self.path.partition("?")[0])
        content = httpx.Response(200, json=found or {}).content
        if self.path == "/v1/jobs/b/events":
            found, content = JOB, b"event: job\ndata: " + RUNNING + b"\n\n"
        self.answer(200 if found else 404, content)


@pytest.mark.parametrize("inside", [False, True])
def test_the_synchronous_client(inside: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Also where an event loop runs already, as in notebooks."""

    def use(url: str) -> None:
        with pagemill.Client(url) as client:
            assert client.wait("a").state is JobState.FINISHED
            jobs = client.jobs()
            assert next(jobs).id == "a"
            jobs.close()  # type: ignore[attr-defined]
            with pytest.raises(RequestError):
                client.page("a", 1)
            events = client.events("b")
            assert isinstance(next(events), Job)
        client.close()
        assert not [record for record in caplog.records if record.levelname == "ERROR"]
        with pytest.raises(UsageError, match="closed"):
            client.job("a")
        assert not client._thread._thread.is_alive()

    async def in_a_loop(url: str) -> None:
        use(url)

    with serving(OneJob) as server:
        asyncio.run(in_a_loop(server.url)) if inside else use(server.url)


def test_a_client_that_nobody_closes() -> None:
    """Its thread ends with it, and does not keep the interpreter at the exit."""
    client = pagemill.Client(URL)
    thread = client._thread._thread
    del client
    thread.join(30)
    assert not thread.is_alive()
    script = "import pagemill; client = pagemill.Client('http://127.0.0.1:1'); jobs = client.jobs()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_an_address_that_is_none() -> None:
    with pytest.raises(UsageError, match="not the URL"):
        pagemill.Client("127.0.0.1:8080")
