"""What one client may take: sizes, counts, time, connections; and that a refusal leaves nothing behind."""

import asyncio
import io
import zipfile

from rest_world import frames, image, rest_world, until

from pagemill.rest import uploads
from pagemill.rest.settings import LimitSettings

BOUNDARY = "b"
MIB = 2**20


async def post(world, body, content_type=f"multipart/form-data; boundary={BOUNDARY}"):
    return await world.client.post("/v1/jobs", content=body, headers={"Content-Type": content_type})


def part(content: bytes, disposition: str = 'form-data; name="files"; filename="a.png"', more: bytes = b"") -> bytes:
    head = f"--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n".encode() + more
    return head + b"\r\n" + content + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


def nothing_left(world) -> bool:
    return not list(world.server.settings.jobs_folder.iterdir())


MALFORMED = [
    (b"", 400),
    (b"garbage", 400),
    (END, 400),
    (part(b"x"), 400),  # no end
    (part(b"x")[:-20], 400),
    (part(b"x", more=b"X-A: " + b"a" * 9000 + b"\r\n") + END, 400),
    (part(b"x", more=b"X: y\r\n" * 20) + END, 400),
    (b"".join(part(b"x", f'form-data; name="f{n}"') for n in range(200)) + END, 422),
    (part(b"x" * 70_000, 'form-data; name="options"') + END, 413),
    (b"".join(part(b"x") for _ in range(6)) + END, 413),
    (part(b"x" * (MIB + 1)) + END, 413),
    (part(b"x" * (MIB - 1)) * 3 + END, 413),
    (part(b"{}", 'form-data; name="options"') + END, 400),  # no file
    (part(b"[" * 60_000, 'form-data; name="options"') + part(b"x") + END, 422),
]


async def test_malformed_and_oversized_requests_are_refused(tmp_path):
    limits = LimitSettings(max_file_mib=1, max_job_mib=2, max_files=5)
    async with rest_world(tmp_path / "data", limits=limits) as world:
        for body, status in MALFORMED:
            answer = await post(world, body)
            assert answer.status_code == status, (body[:80], answer.text)
            assert answer.json()["error"]["message"]
            assert nothing_left(world)


async def test_a_boundary_that_is_none_is_refused(world):
    for content_type in ("multipart/form-data", "multipart/form-data; boundary=" + "b" * 5000, "text/plain"):
        assert (await post(world, END, content_type)).status_code == 400


async def test_no_name_of_a_client_becomes_a_path(world):
    names = ["../../etc/passwd", "/etc/passwd", "..\\..\\evil.exe", "a\x00b.pdf", "." * 300, "", "con.pdf", "-rf"]
    body = b"".join(part(image(), f'form-data; name="files"; filename="{name}"') for name in names) + END
    answer = await post(world, body)
    assert answer.status_code == 202, answer.text
    id = answer.json()["id"]
    files = (world.server.settings.jobs_folder / id / "inputs").iterdir()
    assert sorted(file.stem for file in files) == [f"{number:04}" for number in range(1, 9)]
    await world.ended(id)
    archive = await world.archive(id)
    assert len(archive.namelist()) == len(set(archive.namelist())) == 4 * len(names) + 1
    for member in archive.namelist():
        assert not member.startswith("/")
        assert ".." not in member.split("/")
        assert "\\" not in member


async def test_no_path_of_a_client_reaches_the_disk(world):
    job = await world.finished(image())
    for path in ("/crops/..%2f..%2frun.json", "/crops/.pagemill", "/documents/..%2frun.json", "/pages/-1"):
        assert (await world.client.get(f"/v1/jobs/{job['id']}{path}")).status_code == 404, path
    assert (await world.client.get(f"/v1/jobs/..%2f..%2f{job['id']}")).status_code == 404


async def test_a_bomb_is_a_failed_page(world):
    """A zip of zeros, which is no document, and an image that is far larger than its file."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10 * MIB))
    bomb = bytearray(image())
    bomb[16:24] = (200_000).to_bytes(4, "big") * 2  # width and height of a PNG
    job = await world.finished(zipped.getvalue(), bytes(bomb), image())
    assert (job["state"], job["pages"]["failed"]) == ("finished", 2)


async def test_a_job_with_too_many_pages_fails_and_says_so(tmp_path):
    async with rest_world(tmp_path / "data", limits=LimitSettings(max_job_pages=3)) as world:
        job = await world.finished(frames(3))
        assert job["state"] == "finished"
        job = await world.finished(frames(4))
        assert (job["state"], job["error"]["category"]) == ("failed", "too_large")


async def test_a_full_queue_asks_to_come_back_later(tmp_path):
    async with rest_world(tmp_path / "data", limits=LimitSettings(max_queued=2)) as world:
        world.server.runner.stop()  # nothing is taken from the queue
        for _ in range(2):
            assert (await world.send(image())).status_code == 202
        answer = await world.send(image())
        assert (answer.status_code, answer.json()["error"]["category"]) == (429, "too_many")
        assert int(answer.headers["retry-after"]) > 0


async def test_one_key_cannot_take_the_whole_queue(tmp_path):
    keys = ("a" * 16, "b" * 16)
    async with rest_world(tmp_path / "data", api_keys=keys, limits=LimitSettings(max_jobs_per_key=1)) as world:
        world.server.runner.stop()
        first, second = ({"X-Api-Key": key} for key in keys)
        assert (await world.send(image(), headers=first)).status_code == 202
        assert (await world.send(image(), headers=first)).status_code == 429
        assert (await world.send(image(), headers=second)).status_code == 202


async def test_event_streams_over_the_limit_are_refused_politely(tmp_path):
    async with rest_world(tmp_path / "data", limits=LimitSettings(max_streams=2)) as world:
        world.server.runner.stop()  # the job never ends
        id = (await world.send(image())).json()["id"]
        watching = [asyncio.create_task(world.client.get(f"/v1/jobs/{id}/events")) for _ in range(2)]
        async with asyncio.timeout(60):
            await until(lambda: world.server.counts["streams_open"] == 2)
        answers = await asyncio.gather(*(world.client.get(f"/v1/jobs/{id}/events") for _ in range(50)))
        assert {answer.status_code for answer in answers} == {503}
        assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def test_a_request_that_dries_up_is_ended(tmp_path):
    async def slow():
        yield part(b"x")
        await asyncio.Event().wait()

    async with rest_world(tmp_path / "data", limits=LimitSettings(idle_timeout_s=0.05)) as world:
        answer = await post(world, slow())
        assert (answer.status_code, answer.json()["error"]["category"]) == (408, "slow_request")
        assert nothing_left(world)


async def test_a_request_that_trickles_is_ended(tmp_path):
    async def trickle():
        yield part(b"")[:-2]
        while True:
            yield b"x"
            await asyncio.sleep(0.001)

    limits = LimitSettings(upload_timeout_s=0.1)
    async with rest_world(tmp_path / "data", limits=limits) as world:
        assert (await post(world, trickle())).status_code == 408
        assert nothing_left(world)


async def test_other_bodies_are_bounded_too(tmp_path):
    async with rest_world(tmp_path / "data", limits=LimitSettings(max_job_mib=1)) as world:
        body = b'{"sources": [{"url": "' + b"x" * (3 * MIB)
        assert (await post(world, body, "application/json")).status_code == 413


async def test_an_upload_that_breaks_off_leaves_nothing(world, caplog):
    messages = iter(
        [{"type": "http.request", "body": part(b"x" * 100_000), "more_body": True}, {"type": "http.disconnect"}]
    )
    sent = []

    async def receive():
        return next(messages)

    async def send(message):
        sent.append(message)

    content_type = f"multipart/form-data; boundary={BOUNDARY}".encode()
    scope = {"type": "http", "method": "POST", "path": "/v1/jobs", "raw_path": b"/v1/jobs", "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost"), (b"content-type", content_type)], "http_version": "1.1"}
    scope |= {"scheme": "http", "root_path": "", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1)}
    await world.client._transport.app(scope, receive, send)
    assert nothing_left(world)
    assert "defect" not in caplog.text


async def test_files_are_on_the_disk_before_the_answer(world, monkeypatch):
    synced = []
    monkeypatch.setattr(uploads, "sync_files", lambda paths: synced.extend(path.name for path in paths))
    assert (await world.send(image(), image())).status_code == 202
    assert synced == ["0001.png", "0002.png"]


async def test_old_jobs_and_too_many_bytes_are_removed_failed_ones_too(world, monkeypatch):
    old, failed, kept = [(await world.finished(content))["id"] for content in (image(1), b"none", image(2))]
    table = world.server.jobs
    with table.transaction() as connection:
        connection.execute("UPDATE jobs SET finished = finished - 31 * 86400 WHERE id = ?", (old,))
        connection.execute("UPDATE jobs SET bytes = ? WHERE id = ?", (200 * 2**30, failed))
    await world.server.sweep()
    assert table.ids() == {kept}
    assert [path.name for path in world.server.settings.jobs_folder.iterdir()] == [kept]
