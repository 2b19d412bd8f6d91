"""Jobs over HTTP: accepted, parsed, watched, cancelled, removed; results page by page."""

import io
import json
import re
import sqlite3
import zipfile
from contextlib import closing

import msgspec
import pikepdf
import pytest
from made_pdfs import pages
from rest_world import animation, archive, frames, image, rest_world, rows

from pagemill.document.jobs import Pages
from pagemill.errors import DamagedRunError, NetworkError
from pagemill.rest import options as options_of_jobs
from pagemill.rest import runner
from pagemill.rest.jobs import JobTable, new_id
from pagemill.rest.results import JobResults
from pagemill.rest.settings import LimitSettings
from pagemill.runtime.pipeline import Pipeline
from pagemill.store import paths
from pagemill.store.reading import RunReader


def events_of(text: str) -> list[tuple[str, str | None, dict]]:
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


async def test_a_job_from_the_upload_to_the_archive(world):
    job = await world.finished(image(10), image(20), data={"options": '{"languages": ["en"]}', "collection": "c"})
    assert job["state"] == "finished"
    assert job["pages"] == {"total": 2, "finished": 2, "failed": 0}
    assert [each["name"] for each in job["documents"]] == ["page 1.png", "page 2.png"]
    assert (job["name"], job["collection"], job["options"]) == ("page 1.png +1", "c", {"languages": ["en"]})
    at = f"/v1/jobs/{job['id']}"
    listed = (await world.client.get(f"{at}/pages")).json()["pages"]
    assert [(page["name"], page["status"]) for page in listed] == [("page 1.png", "done"), ("page 2.png", "done")]
    record = (await world.client.get(f"{at}/pages/{listed[1]['n']}")).json()
    assert record["source"] == "page 2.png"
    assert "shade 20" in record["markdown"]
    picture = await world.client.get(f"{at}/pages/{listed[0]['n']}/image?width=60")
    assert (picture.headers["content-type"], picture.content[8:12]) == ("image/webp", b"WEBP")
    assert "shade 10" in (await world.client.get(f"{at}/documents/0001.md")).text
    docling = (await world.client.get(f"{at}/documents/0001.docling.json")).json()
    assert docling["schema_name"] == "DoclingDocument"
    archive = await world.archive(job["id"])
    assert archive.testzip() is None
    assert "documents/page 2.md" in archive.namelist()
    assert str(world.server.settings.data).encode() not in b"".join(map(archive.read, archive.namelist()))


async def test_an_archive_is_provisional_while_one_of_its_documents_is(world, monkeypatch):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a.txt", "alpha")
        archive.writestr("b.txt", "beta")
    job = await world.finished(("a.zip", data.getvalue()))
    monkeypatch.setattr(RunReader, "is_provisional", lambda self, doc_id: doc_id == "b")
    found = (await world.client.get(f"/v1/jobs/{job['id']}/documents/0001.json")).json()
    assert found["provisional"] and "beta" in json.dumps(found)


async def test_the_folder_of_a_job_without_urls_is_measured_once(world, monkeypatch):
    measured = []
    monkeypatch.setattr(runner, "size_on_disk", lambda folder: measured.append(folder) or 1)
    job = await world.finished(image())
    assert measured == [world.server.settings.jobs_folder / job["id"]]


async def test_pages_come_in_parts_and_in_reading_order(world):
    job = await world.finished(frames(5))
    at, after, seen = f"/v1/jobs/{job['id']}/pages", None, []
    while True:
        answer = (await world.client.get(at, params={"limit": 2} | ({"after": after} if after else {}))).json()
        seen += [page["page_number"] for page in answer["pages"]]
        if (after := answer["next"]) is None:
            break
    assert seen == [1, 2, 3, 4, 5]


async def test_events_come_once_and_continue_after_the_last_one_that_is_known(world):
    job = await world.finished(image(1), image(2), image(3))
    at = f"/v1/jobs/{job['id']}/events"
    events = events_of((await world.client.get(at)).text)
    assert [kind for kind, *_ in events] == ["page", "page", "page", "job"]
    numbers = [number for kind, number, _ in events if kind == "page"]
    assert len(set(numbers)) == 3
    later = events_of((await world.client.get(at, headers={"Last-Event-ID": numbers[1]})).text)
    assert [number for kind, number, _ in later if kind == "page"] == numbers[2:]
    assert later[-1][2]["state"] == "finished"
    run = numbers[1].partition("@")[2]
    for unknown in ("2", "", "0", "2@", f"{10**30}@{run}", f"@{run}", f"-1@{run}"):
        assert events_of((await world.client.get(at, headers={"Last-Event-ID": unknown})).text) == events


async def test_a_bad_file_beside_good_ones_is_a_failed_page_that_can_be_retried(world):
    job = await world.finished(image(1), b"no document")
    assert (job["state"], job["pages"]["failed"]) == ("finished", 1)
    answer = (await world.client.get(f"/v1/jobs/{job['id']}/pages?status=failed")).json()
    (failed,) = answer["pages"]
    assert "page 2.png" in failed["errors"][0]["message"]
    assert str(world.server.settings.data) not in json.dumps(answer)
    (world.server.settings.jobs_folder / job["id"] / "inputs" / "0002.png").write_bytes(image(2))
    again = await world.client.post(f"/v1/jobs/{job['id']}/retry")
    assert (again.status_code, again.json()["state"]) == (202, "queued")
    ended = await world.ended(job["id"])
    assert (ended["state"], ended["pages"]["failed"]) == ("finished", 0)


async def test_a_password_can_come_later(world):
    locked = io.BytesIO()
    with pikepdf.open(io.BytesIO(pages(2))) as pdf:
        pdf.save(locked, encryption=pikepdf.Encryption(user="mill", owner="owner"))
    job = await world.finished(locked.getvalue(), image(1))
    at = f"/v1/jobs/{job['id']}"
    assert ([each["pages"] for each in job["documents"]], job["pages"]["failed"]) == ([0, 1], 1)
    for password, counts in (("wrong", [0, 1]), ("mill", [2, 1])):
        answer = await world.client.post(f"{at}/retry", json={"password": password})
        assert answer.status_code == 202
        job = await world.ended(job["id"])
        assert [each["pages"] for each in job["documents"]] == counts
    assert job["pages"] == {"total": 3, "finished": 3, "failed": 0}
    assert "mill" not in json.dumps(job)
    listed = (await world.client.get(f"{at}/pages")).json()["pages"]
    assert [page["title"] for page in listed] == ["shade 255", "shade 255", "shade 1"]


async def test_a_job_without_failed_pages_is_not_parsed_again(world):
    job = await world.finished(image())
    answer = await world.client.post(f"/v1/jobs/{job['id']}/retry")
    assert (answer.status_code, answer.json()["error"]["message"]) == (409, "no page of the job failed")
    assert (await world.client.get(f"/v1/jobs/{job['id']}")).json() == job


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((image(), image(2)), None),
        ((image(), b"no document"), "1 of 2 pages failed"),
        ((frames(3), frames(2)), "the job is failed: pages may be missing"),
    ],
)
async def test_results_that_lack_pages_say_so(tmp_path, files, said):
    async with rest_world(tmp_path / "data", limits=LimitSettings(max_job_pages=4)) as world:
        at = f"/v1/jobs/{(await world.finished(*files))['id']}"
        document = await world.client.get(f"{at}/documents/0001.md")
        results = await world.client.get(f"{at}/download.zip")
    assert document.headers.get("pagemill-incomplete") == results.headers.get("pagemill-incomplete") == said
    opened = archive(results)
    noted = opened.read("INCOMPLETE.txt").decode() if "INCOMPLETE.txt" in opened.namelist() else None
    assert noted == (said and f"When this archive was made: {said}.\n")


async def test_results_of_pages_that_are_incomplete_say_so(world):
    at = f"/v1/jobs/{(await world.finished(animation(), b'no document'))['id']}"
    document = await world.client.get(f"{at}/documents/0001.md")
    assert document.headers["pagemill-incomplete"] == "1 of 2 pages failed; pages are incomplete (frames)"


async def test_each_document_of_the_rows_of_a_dataset_is_in_the_results_once(world):
    """Ids of rows name documents: also as a file, and as a file is called here."""
    job = await world.finished(("rows.parquet", rows("0002_1", "v1.2_1")), ("v1.2.png", image(3)))
    at = f"/v1/jobs/{job['id']}"
    archive = await world.archive(job["id"])
    texts = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".md")}
    assert len(archive.namelist()) == len(set(archive.namelist()))
    assert sorted(texts.values()) == ["shade 1\n", "shade 2\n", "shade 3\n"]
    read = {
        name: (await world.client.get(f"{at}/documents/{name}.md")).text
        for name in ("0001", "0002", "v1.2")  # the files of the job, and a document of the first one
    }
    assert read == {"0001": "shade 1\n\nshade 2\n", "0002": "shade 3\n", "v1.2": "shade 2\n"}


async def test_a_job_of_which_nothing_can_be_read_has_failed_and_says_why(world):
    job = await world.finished(b"no document")
    assert job["state"] == "failed"
    assert job["error"]["category"] == "unsupported"
    assert "page 1.png" in job["error"]["message"]


async def test_a_page_that_was_skipped_says_why_as_the_client_calls_it(world):
    job = await world.finished(image(), image(), data={"options": '{"skip_duplicates": true}'})
    _, skipped = (await world.client.get(f"/v1/jobs/{job['id']}/pages")).json()["pages"]
    (why,) = skipped["errors"]
    assert (why["category"], why["message"]) == ("skipped", "duplicate of page 1.png")


async def test_remedies_name_the_options_of_jobs(world):
    options = {"data": {"options": '{"pages": "7-"}'}}
    job = await world.finished(pages(2), **options)
    assert job["error"]["remedy"] == "Check the option pages."
    job = await world.finished(pages(2), pages(7), **options)
    (failed,) = (await world.client.get(f"/v1/jobs/{job['id']}/pages?status=failed")).json()["pages"]
    assert failed["errors"][0]["remedy"] == "Check the option pages."
    assert options_of_jobs.for_clients("Raise --page-timeout.") == "Raise --page-timeout."  # of the server


async def test_a_removed_job_is_gone_with_its_files(world):
    job = await world.finished(image())
    assert (await world.client.delete(f"/v1/jobs/{job['id']}")).status_code == 204
    assert (await world.client.get(f"/v1/jobs/{job['id']}")).status_code == 404
    assert list(world.server.settings.jobs_folder.iterdir()) == []


async def test_options_are_checked_before_a_job_is_accepted(world):
    for options, status in [
        ("[]", 422),
        ('{"threads": 4}', 422),
        ('{"crops": "yes"}', 422),
        ('{"languages": "en"}', 422),
        ('{"languages": ["ko"]}', 422),
        ('{"recognition_engine": "vlm"}', 422),
        ('{"pages": "0"}', 422),
        ('{"languages": ["en"], "pages": "1-2", "text_layer": "never"}', 202),
    ]:
        answer = await world.send(image(), data={"options": options})
        assert answer.status_code == status, answer.text
        if status == 422:
            assert set(answer.json()["error"]) == {"category", "message", "remedy"}
            assert list(world.server.settings.jobs_folder.iterdir()) == []


async def test_jobs_continue_after_a_restart(tmp_path):
    async with rest_world(tmp_path / "data") as world:
        world.server.runner.stop()  # accepted jobs wait for the next start
        id = (await world.send(image(7))).json()["id"]
    (tmp_path / "data" / "jobs" / new_id()).mkdir()  # an upload that was not acknowledged
    async with rest_world(tmp_path / "data") as world:
        assert (await world.ended(id))["state"] == "finished"
        assert [path.name for path in world.server.settings.jobs_folder.iterdir()] == [id]


async def test_the_schema_names_every_route_and_has_examples(world):
    schema = (await world.client.get("/openapi.json")).json()
    assert "/v1/jobs/{id}/pages/{n}/image" in schema["paths"]
    known = schema["components"]["schemas"]
    assert known["Job"]["example"]["state"] == "running"
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(schema)))
    assert {"Job", "PageSummary", "ErrorAnswer", "NewJob"} <= named <= known.keys()


def test_a_run_that_is_being_created_has_no_pages_yet(tmp_path):
    with closing(JobTable(tmp_path / "jobs.sqlite")) as jobs:
        row = jobs.create(
            id="0",
            owner="",
            name="n",
            collection=None,
            options={},
            password=None,
            size=1,
            documents=[],
            idempotency=None,
        )
    results = JobResults(row, [], tmp_path)
    database = results.out / paths.DATABASE
    database.parent.mkdir(parents=True)
    database.touch()  # what SQLite does first
    assert results.pages(after=None, limit=5, status=None) == Pages([])
    assert results.events() == []
    ended = JobResults(msgspec.structs.replace(row, finished=1.0), [], tmp_path)
    with pytest.raises(DamagedRunError):
        ended.pages(after=None, limit=5, status=None)


async def test_a_job_whose_model_server_does_not_answer_continues_later(world, monkeypatch):
    asked = []

    async def prepare(self):
        asked.append(self)
        if len(asked) == 1:
            raise NetworkError("no server answers")

    monkeypatch.setattr(runner, "RETRY_S", 0.0)
    monkeypatch.setattr(Pipeline, "prepare", prepare)
    assert (await world.finished(image()))["state"] == "finished"
    assert len(asked) == 2


async def test_a_job_that_waits_can_be_cancelled_and_retried(world):
    world.server.runner._stopping = True  # nothing is taken from the queue
    id = (await world.send(image())).json()["id"]
    assert (await world.client.delete(f"/v1/jobs/{id}")).status_code == 202
    assert (await world.client.get(f"/v1/jobs/{id}")).json()["state"] == "cancelled"
    assert (await world.client.post(f"/v1/jobs/{id}/retry")).json()["state"] == "queued"
    assert (await world.client.post(f"/v1/jobs/{id}/retry")).status_code == 409


async def test_unfinished_jobs_are_known_before_any_is_accepted(tmp_path, monkeypatch):
    """A job that is sent or retried while they are read would be among them, and be run twice."""
    loaded = []
    usual = JobTable.unfinished
    monkeypatch.setattr(JobTable, "unfinished", lambda self: loaded.append(self) or usual(self))
    async with rest_world(tmp_path / "data"):
        assert len(loaded) == 1


async def test_a_job_of_another_version_starts_over(tmp_path):
    async with rest_world(tmp_path / "data") as world:
        id = (await world.finished(image(5), b"none"))["id"]
        before = events_of((await world.client.get(f"/v1/jobs/{id}/events")).text)
    run = tmp_path / "data" / "jobs" / id / "run"
    with closing(sqlite3.connect(run / ".pagemill" / "run.sqlite")) as database, database:
        database.execute("UPDATE run SET identity = json_set(identity, '$.crops', json('false'))")
    async with rest_world(tmp_path / "data") as world:
        # Its results are those of another version: they are neither mixed with new ones nor thrown away.
        await world.client.post(f"/v1/jobs/{id}/retry")
        job = await world.ended(id)
        assert (job["state"], job["pages"]) == ("failed", {"total": 2, "finished": 2, "failed": 1})
        assert "new job" in job["error"]["remedy"]
        assert "shade 5" in (await world.client.get(f"/v1/jobs/{id}/documents/0001.md")).text
    with closing(sqlite3.connect(tmp_path / "data" / "jobs.sqlite")) as table, table:  # as if it had never ended
        table.execute("UPDATE jobs SET state = 'running', finished = NULL, retry = 0")
    async with rest_world(tmp_path / "data") as world:
        job = await world.ended(id)
        assert (job["state"], job["pages"]) == ("finished", {"total": 2, "finished": 2, "failed": 1})
        # Who had seen the pages of before gets the new ones.
        known = {"Last-Event-ID": before[1][1]}
        events = events_of((await world.client.get(f"/v1/jobs/{id}/events", headers=known)).text)
    assert sorted(event["n"] for kind, _, event in events if kind == "page") == [1_000_001, 2_000_000]


async def test_documents_that_another_process_finished_have_their_pages(tmp_path):
    async with rest_world(tmp_path / "data") as world:
        before = await world.finished(frames(3), image(1))
    with (
        closing(sqlite3.connect(tmp_path / "data" / "jobs.sqlite")) as table,
        table,
    ):  # as if it had been killed just before the end
        table.execute("UPDATE jobs SET state = 'running', finished = NULL")
        table.execute("UPDATE documents SET pages = NULL")
    async with rest_world(tmp_path / "data") as world:
        job = await world.ended(before["id"])
    assert [each["pages"] for each in job["documents"]] == [each["pages"] for each in before["documents"]] == [3, 1]


async def test_every_counter_is_in_the_metrics(world):
    await world.finished(image())
    text = (await world.client.get("/metrics")).text
    assert 'pagemill_jobs{state="finished"} 1' in text
    assert 'pagemill_pages_total{status="done"} 1' in text
    assert "pagemill_accepted_total 1" in text


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"files": [("files", ("a.png", image())), ("files[]", ("b.png", image()))]}, "'files[]'"),
        ({"files": {"files": ("a.png", image())}, "data": {"option": "{}"}}, "'option'"),
        ({"files": {"files": ("a.png", image())}, "data": {"options": ["{}", '{"languages": ["ko"]}']}}, "twice"),
        ({"files": {"files": ("a.png", image())}, "params": {"languages": "ko"}}, "'languages'"),
        ({"json": {"sources": [{"url": "http://a/b.pdf"}], "option": {}}}, "option"),
    ],
)
async def test_nothing_of_a_request_is_dropped(world, request_, named):
    answer = await world.client.post("/v1/jobs", **request_)
    assert answer.status_code == 422, answer.text
    assert named in answer.json()["error"]["message"]
    assert not list(world.server.settings.jobs_folder.iterdir())


async def test_a_name_in_utf_8_alone_is_kept(world):
    body = b"--x\r\nContent-Disposition: form-data; name=\"files\"; filename*=UTF-8''%ED%95%9C.png\r\n\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = await world.client.post("/v1/jobs", content=body + image() + b"\r\n--x--\r\n", headers=headers)
    assert answer.json()["documents"][0]["name"] == "한.png"


async def test_an_idempotency_key_belongs_to_one_request(world):
    key = {"headers": {"Idempotency-Key": "k"}}
    first = (await world.send(image(1), **key)).json()["id"]
    assert (await world.send(image(1), **key)).json()["id"] == first
    for sent in (world.send(image(2), **key), world.send(image(1), data={"collection": "c"}, **key)):
        answer = await sent
        assert (answer.status_code, "another request" in answer.json()["error"]["message"]) == (409, True)
    assert [path.name for path in world.server.settings.jobs_folder.iterdir()] == [first]


async def test_pages_of_a_status_that_there_is_not(world):
    job = await world.finished(image())
    at = f"/v1/jobs/{job['id']}/pages"
    assert (await world.client.get(at, params={"status": "zz"})).status_code == 422
    assert len((await world.client.get(at, params={"status": "done"})).json()["pages"]) == 1


@pytest.mark.parametrize(
    ("at", "remedy"),
    [
        ("/v1/jobs?colection=mine", "Available: state, collection, limit, after."),
        ("/v1/jobs/ID?wiat=1", "Available: wait."),
        ("/v1/jobs/ID/pages?form=2", "Available: after, limit, status."),
        ("/v1/search?q=7&colection=mine", "Available: q, collection, job, limit, languages."),
        ("/v1/collections?limit=1", "This address takes none."),
    ],
)
async def test_an_unknown_parameter_is_refused_not_ignored(world, at, remedy):
    job = await world.finished(image())
    answer = await world.client.get(at.replace("ID", job["id"]))
    assert answer.status_code == 422
    assert "unknown parameter" in answer.json()["error"]["message"]
    assert answer.json()["error"]["remedy"] == remedy
