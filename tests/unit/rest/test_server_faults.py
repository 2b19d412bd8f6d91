"""What a server survives: folders that are not its own, full disks, cancelled requests, its own end."""

import asyncio
import io
import re
import threading

import pikepdf
import pytest
from made_pdfs import pages
from rest_world import image, rest_world, until

from pagemill.errors import NetworkError, NoSpaceError, OutputError
from pagemill.rest import runner, server
from pagemill.rest.jobs import JobTable
from pagemill.rest.runner import with_names
from pagemill.rest.settings import LimitSettings
from pagemill.rest.uploads import document
from pagemill.runtime.pipeline import Pipeline
from pagemill.store.run_directory import RunDirectory


async def start(data) -> None:
    async with rest_world(data):
        pass


async def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path):
    for place in ("thesis", "jobs/thesis"):
        data = tmp_path / place.replace("/", "-")
        (data / place).mkdir(parents=True)
        data.chmod(0o755)
        with pytest.raises(OutputError, match="no table of jobs"):
            await start(data)
        assert (data / place).exists()
        assert data.stat().st_mode & 0o777 == 0o755


async def test_results_survive_the_loss_of_the_job_table(tmp_path):
    data = tmp_path / "data"
    await start(data)
    early = (data / "jobs.sqlite").read_bytes()
    async with rest_world(data) as world:
        job = await world.finished(image())
    for file in data.glob("jobs.sqlite*"):
        file.unlink()
    with pytest.raises(OutputError, match="no table of jobs"):
        await start(data)
    (data / "jobs.sqlite").write_bytes(early)  # a backup from before the job
    await start(data)
    assert (data / "jobs" / job["id"] / "run" / "ocr_results.jsonl").exists()


async def test_the_folder_of_a_job_that_was_being_removed_goes_with_the_next_start(tmp_path, monkeypatch):
    data = tmp_path / "data"
    async with rest_world(data) as world:
        job = await world.finished(image())

        async def killed(id):
            raise asyncio.CancelledError

        monkeypatch.setattr(world.server, "discard", killed)
        with pytest.raises(asyncio.CancelledError):
            await world.server.remove(job["id"])
    assert (data / "jobs" / job["id"] / "run").exists()
    await start(data)
    assert not (data / "jobs" / job["id"]).exists()


async def test_jobs_continue_when_the_table_can_be_written_again(world, monkeypatch):
    """A disk that is full at the end of a job, for its end as for anything else about it."""
    monkeypatch.setattr(runner, "RETRY_S", 0.0)
    end, get, refused = JobTable.end, JobTable.get, []

    def full(*_, **__):
        raise NoSpaceError("no space left")

    def end_later(self, *values, **named):
        if "end" not in refused:
            refused.append("end")
            full()
        end(self, *values, **named)

    def get_later(self, *values):
        if refused == ["end"] and len(values) == 1:  # only the runner reads a job without an owner
            refused.append("get")
            full()
        return get(self, *values)

    monkeypatch.setattr(JobTable, "end", end_later)
    monkeypatch.setattr(JobTable, "get", get_later)
    monkeypatch.setattr(JobTable, "requeue", full)
    job = await world.finished(image())
    assert (job["state"], job["pages"]["failed"], refused) == ("finished", 0, ["end", "get"])
    assert (await world.client.get("/readyz")).status_code == 200


async def test_a_job_that_is_retried_at_the_moment_of_its_end_runs_again(world):
    ended, runs = world.server.runner._ended, []

    def retry(id):
        runs.append(id)
        if len(runs) == 1:
            world.server.jobs.retry(id)
            world.server.runner.add(world.server.jobs.get(id))
        else:
            ended(id)

    world.server.runner._ended = retry
    job = await world.finished(image())
    assert (job["state"], runs) == ("finished", [job["id"]] * 2)


async def test_a_disk_that_was_full_for_a_while_blocks_no_pages(world, monkeypatch):
    """More pages than are in flight at once were in the way when the disk was full."""
    monkeypatch.setattr(runner, "RETRY_S", 0.0)
    write_page, refused = RunDirectory.write_page, []

    def write_later(self, *page):
        if len(refused) < 2:
            refused.append(page)
            raise NoSpaceError("no space left")
        write_page(self, *page)

    monkeypatch.setattr(RunDirectory, "write_page", write_later)
    job = await asyncio.wait_for(world.finished(*map(image, range(10))), 60)
    assert (job["state"], job["pages"]["finished"], len(refused)) == ("finished", 10, 2)


async def test_a_server_that_runs_no_jobs_is_not_ready(tmp_path, monkeypatch):
    def fail(self):
        raise OutputError("cannot be read")

    monkeypatch.setattr(runner.Runner, "_next", fail)
    async with rest_world(tmp_path / "data") as world:
        await asyncio.wait_for(world.server.broken.wait(), 60)
        assert (await world.client.get("/readyz")).status_code == 503
        assert (await world.send(image())).status_code == 503


@pytest.mark.parametrize(("how", "state"), [("shutdown", "queued"), ("cancel", "cancelled")])
async def test_a_job_without_its_model_server_ends_as_requested(tmp_path, monkeypatch, how, state):
    asked, let = asyncio.Event(), asyncio.Event()

    async def prepare(self):
        asked.set()
        await let.wait()
        raise NetworkError("no server answers")

    monkeypatch.setattr(Pipeline, "prepare", prepare)
    async with rest_world(tmp_path / "data") as world:
        id = (await world.send(image())).json()["id"]
        await asked.wait()
        if how == "cancel":
            await world.client.post(f"/v1/jobs/{id}/cancel")
        else:
            world.server.runner.stop()
        let.set()
        async with asyncio.timeout(60):
            await until(lambda: world.server.active(id) is None)
        assert world.server.jobs.get(id).state == state


def test_files_are_called_as_the_client_calls_them_whatever_that_is(tmp_path, monkeypatch):
    monkeypatch.setattr(re, "sub", None)  # a pattern for each job would fill the cache of all patterns
    documents = [document(number, f"{number + 1:04}.png") for number in range(1, 4)]
    text = f"{tmp_path}/inputs/0001.png beside 0002.png and {tmp_path}/inputs, not 10001.png"
    shown = with_names(text, tmp_path / "inputs", documents)
    assert shown == "0002.png beside 0003.png and , not 10001.png"


async def test_a_defect_is_an_answer_like_others(world, monkeypatch, caplog):
    monkeypatch.setattr(world.server.jobs, "find", None)
    answer = await world.client.get("/v1/jobs")
    assert (answer.status_code, answer.json()["error"]["category"]) == (500, "internal")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Request-Id"] in answer.json()["error"]["message"]
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [True]
    assert 'pagemill_requests_total{status="5xx"} 1' in (await world.client.get("/metrics")).text


async def test_the_error_of_a_job_names_its_file(world):
    job = await world.finished(("empty.pdf", b"%PDF-1.4"))
    assert job["error"]["message"].startswith("empty.pdf"), job["error"]


async def test_a_server_without_space_for_jobs_is_not_ready(world, monkeypatch):
    monkeypatch.setattr(server, "_LEAST_FREE_BYTES", 2**63)
    for path in ("/readyz", "/ready"):
        answer = await world.client.get(path)
        assert (answer.status_code, answer.json()["error"]["category"]) == (507, "no_space")
    assert (await world.send(image())).status_code == 507
    monkeypatch.setattr(server, "_LEAST_FREE_BYTES", 0)
    assert (await world.client.get("/readyz")).status_code == 200


async def test_a_job_that_was_just_retried_is_not_removed(world):
    id = (await world.finished(image(), b"no picture"))["id"]
    world.server.runner.add = lambda row: None
    assert (await world.client.post(f"/v1/jobs/{id}/retry")).status_code == 202
    ended = [(id, 0.0, 1)]  # as the sweep saw it a moment before
    world.server.jobs.ended = lambda: ended
    await world.server.sweep()
    assert (await world.client.get(f"/v1/jobs/{id}")).json()["state"] == "queued"
    assert [path.name for path in (world.server.settings.jobs_folder / id).iterdir()].count("removing") == 0


async def test_a_request_that_is_cancelled_while_its_job_is_stored_leaves_a_whole_job(world, monkeypatch):
    create, storing, let = JobTable.create, threading.Event(), threading.Event()

    def slow(self, **named):
        row = create(self, **named)
        storing.set()
        let.wait(60)
        return row

    monkeypatch.setattr(JobTable, "create", slow)
    request = asyncio.create_task(world.send(image()))
    await asyncio.to_thread(storing.wait)
    request.cancel()
    await asyncio.sleep(0)
    let.set()
    await asyncio.gather(request, return_exceptions=True)
    (id,) = world.server.jobs.ids()
    assert (await world.ended(id))["state"] == "finished"


async def test_numbers_that_no_table_holds_are_refused(world):
    job = await world.finished(image())
    at, huge = f"/v1/jobs/{job['id']}", 10**30
    assert (await world.client.get(f"{at}/pages/{huge}")).status_code == 404
    assert (await world.client.get(f"{at}/pages?after=1.1.1.{huge}")).status_code == 404
    assert (await world.client.get(f"/v1/jobs?after={huge}")).status_code == 422


async def test_an_archive_of_nothing_is_not_found(world):
    world.server.runner.add = lambda row: None
    id = (await world.send(image())).json()["id"]
    assert (await world.client.get(f"/v1/jobs/{id}/download.zip")).status_code == 404


async def test_a_conversion_that_the_end_of_the_server_cuts_off_is_unavailable(world):
    world.server.runner.add = lambda row: None
    asked = asyncio.create_task(world.client.post("/v1/convert/file", files=[("files", ("a.png", image()))]))
    async with asyncio.timeout(60):
        await until(lambda: world.server.changes._waiting)
    world.server.stop()
    answer = await asked
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)


async def test_what_was_cut_short_is_no_success(tmp_path):
    async with rest_world(tmp_path / "data", limits=LimitSettings(max_job_pages=3)) as world:
        sent = [("files", ("long.pdf", pages(5)))]
        result = (await world.client.post("/v1/convert/file", files=sent)).json()
        assert result["status"] == "partial_success"
        assert "more than 3 pages" in result["errors"][0]["error_message"]
        assert (await world.client.post("/glmocr/parse", files=sent)).status_code == 422


async def test_an_image_that_was_not_read_is_an_error_of_the_glmocr_api(world):
    sent = [("files", ("good.png", image(1))), ("files", ("bad.png", b"no picture"))]
    answer = await world.client.post("/glmocr/parse", files=sent)
    assert answer.status_code == 422
    assert "bad.png" in answer.json()["error"]


async def test_slow_bodies_hold_up_nobody(world):
    let = asyncio.Event()

    async def slow():
        yield b'{"sources": ['
        await let.wait()
        yield b"]}"

    def post(content):
        return world.client.post("/v1/convert/source/async", content=content)

    waiting = [asyncio.create_task(post(slow())) for _ in range(3)]
    async with asyncio.timeout(60):
        await until(lambda: len(list(world.server.settings.jobs_folder.iterdir())) == 3)
    answer = await asyncio.wait_for(post(b'{"sources": []}'), 60)
    assert answer.status_code == 400  # no files
    let.set()
    assert {(await each).status_code for each in waiting} == {400}
    assert not list(world.server.settings.jobs_folder.iterdir())


async def test_images_of_a_table_are_those_of_the_column_that_was_parsed(world):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(arrow.table({"scan": [image(1)], "other": [image(3)], "name": ["x"]}), file)
    options = {"options": '{"image_column": "scan", "id_column": "name"}'}
    at = f"/v1/jobs/{(await world.finished(('t.parquet', file.getvalue()), data=options))['id']}"
    (page,) = (await world.client.get(f"{at}/pages")).json()["pages"]
    assert (await world.client.get(f"{at}/pages/{page['n']}/image")).status_code == 200


async def test_the_image_of_a_page_that_lacks_its_password_is_an_error_of_the_request(world):
    file = io.BytesIO()
    with pikepdf.new() as document:
        document.add_blank_page()
        document.save(file, encryption=pikepdf.Encryption(owner="o", user="u"))
    at = f"/v1/jobs/{(await world.finished(('locked.pdf', file.getvalue())))['id']}"
    (page,) = (await world.client.get(f"{at}/pages")).json()["pages"]
    answer = await world.client.get(f"{at}/pages/{page['n']}/image")
    assert (answer.status_code, answer.json()["error"]["category"]) == (422, "encrypted")


async def test_files_in_an_archive_have_names_of_their_own(world):
    names = ("a.png", "a-0003.png", "a.png")
    answer = await world.send(*((name, image()) for name in names))
    results = await world.server.results(answer.json()["id"], "")
    assert len(set(results.file_names().values())) == 3


async def test_a_name_that_ends_as_a_format_is_no_other_documents(world):
    job = await world.finished(("a.png", image()), ("a.docling.png", image()))
    members = (await world.archive(job["id"])).namelist()
    assert len(set(members)) == len(members) > 8


async def test_pictures_of_a_sandboxed_document_may_be_shown_by_it(world, monkeypatch):
    monkeypatch.setattr("pagemill.rest.results.JobResults.crop", lambda self, name: b"\x89PNG")
    job = await world.finished(image())
    answer = await world.client.get(f"/v1/jobs/{job['id']}/crops/a.png")
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"


async def test_origins_of_an_allowed_proxy_are_accepted_and_malformed_ones_refused(tmp_path):
    async with rest_world(tmp_path / "data", allowed_hosts=("pages.example",)) as world:
        for origin, status in [
            ("https://pages.example", 202),
            ("https://pages.example:8443", 202),
            ("https://evil.example", 403),
            ("http://[", 403),
            ("null", 403),
        ]:
            assert (await world.send(image(), headers={"Origin": origin})).status_code == status, origin
