"""Who may do what: addresses, keys, hosts, origins; and what answers carry."""

import logging
import re

import pytest
from rest_world import image, rest_world

from pagemill.errors import UsageError
from pagemill.rest import keys as keys_module
from pagemill.rest.keys import KeyRing
from pagemill.rest.settings import ServeSettings

KEY, OTHER = "k" * 16, "o" * 16


@pytest.fixture
async def guarded(tmp_path):
    async with rest_world(tmp_path / "data", api_keys=(KEY, OTHER)) as made:
        yield made


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "mill.example.org"])
def test_an_address_that_others_reach_needs_keys_or_a_word_that_it_does_not(host):
    with pytest.raises(UsageError, match="anyone who can reach"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, api_keys=(KEY,)).api_keys == (KEY,)
    assert ServeSettings(host=host, insecure=True).insecure


def test_the_default_address_is_this_machine_alone():
    assert ServeSettings().is_loopback


@pytest.mark.parametrize("key", ["short", "with a space in it", "ключ" * 8])
def test_keys_that_can_be_guessed_or_not_be_sent_are_refused(key):
    with pytest.raises(UsageError, match="API key"):
        ServeSettings(api_keys=(key,))


async def test_requests_need_a_key_where_there_are_some(guarded):
    for headers, status in (
        ({}, 401),
        ({"X-Api-Key": "w" * 16}, 401),
        ({"Authorization": f"Basic {KEY}"}, 401),
        ({"X-Api-Key": KEY}, 200),
        ({"Authorization": f"Bearer {KEY}"}, 200),
    ):
        for path in ("/v1/jobs", "/v1/options", "/metrics"):
            answer = await guarded.client.get(path, headers=headers)
            assert answer.status_code == status, (path, headers)
    assert (await guarded.client.get("/healthz")).status_code == 200


async def test_no_route_below_v1_answers_without_a_key(guarded):
    paths = (await guarded.client.get("/openapi.json")).json()["paths"]
    asked = [(method, path) for path, methods in paths.items() for method in methods if path.startswith("/v1/")]
    assert len(asked) > 12
    for method, path in asked:
        filled = re.sub(r"{\w+}", "1", path)
        assert (await guarded.client.request(method.upper(), filled)).status_code == 401, (method, path)


async def test_a_job_is_nobody_elses(guarded):
    answer = await guarded.send(image(), headers={"X-Api-Key": KEY})
    id, mine, theirs = answer.json()["id"], {"X-Api-Key": KEY}, {"X-Api-Key": OTHER}
    await guarded.client.get(f"/v1/jobs/{id}?wait=30", headers=mine)
    for path in ("", "/pages", "/pages/1000001", "/documents/0001.md", "/download.zip", "/events"):
        assert (await guarded.client.get(f"/v1/jobs/{id}{path}", headers=mine)).status_code == 200, path
        assert (await guarded.client.get(f"/v1/jobs/{id}{path}", headers=theirs)).status_code == 404, path
    for method, path in (("DELETE", ""), ("POST", "/retry")):
        assert (await guarded.client.request(method, f"/v1/jobs/{id}{path}", headers=theirs)).status_code == 404
    assert (await guarded.client.get("/v1/jobs", headers=theirs)).json()["jobs"] == []


async def test_neither_the_disk_nor_the_process_holds_a_key(guarded):
    await guarded.send(image(), headers={"X-Api-Key": KEY})
    for path in guarded.server.settings.data.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    assert KEY not in repr(vars(guarded.server.keys))
    assert KEY not in repr(guarded.server.settings)


def test_every_key_is_compared_in_constant_time_whichever_matches(tmp_path, monkeypatch):
    ring = KeyRing((KEY, OTHER), tmp_path)
    compared = []
    monkeypatch.setattr(keys_module.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    ring.owner({"x-api-key": KEY})
    assert len(compared) == 2


def test_owners_are_known_after_a_restart_and_salted(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    given = {"x-api-key": KEY}
    owner = KeyRing((KEY,), tmp_path / "a").owner(given)
    assert KeyRing((KEY, OTHER), tmp_path / "a").owner(given) == owner
    assert KeyRing((KEY,), tmp_path / "b").owner(given) != owner


async def test_a_name_that_was_made_to_lead_here_is_refused(tmp_path):
    async with rest_world(tmp_path / "data", allowed_hosts=("proxy.example.org",)) as world:
        for host in ("127.0.0.1:8080", "localhost", "[::1]:8080", "proxy.example.org"):
            assert (await world.client.get("/healthz", headers={"Host": host})).status_code == 200, host
        for host in ("evil.example.org", "127.0.0.1.evil.example.org", "", "["):
            assert (await world.client.get("/healthz", headers={"Host": host})).status_code == 403, host


async def test_pages_of_other_sites_cannot_send_jobs(world):
    for origin in ("https://evil.example.org", "http://127.0.0.1:9999", "null"):
        assert (await world.send(image(), headers={"Origin": origin})).status_code == 403, origin
    assert (await world.send(image(), headers={"Origin": "http://127.0.0.1"})).status_code == 202


async def test_there_is_no_cors(world):
    answer = await world.client.get("/v1/jobs", headers={"Origin": "https://evil.example.org"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    asked = {"Origin": "https://evil.example.org", "Access-Control-Request-Method": "POST"}
    assert (await world.client.options("/v1/jobs", headers=asked)).status_code == 405


async def test_every_answer_is_guarded_against_being_taken_for_something_else(world):
    for path in ("/healthz", "/v1/jobs", "/nothing", "/openapi.json", "/v1/jobs?limit=x"):
        headers = (await world.client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-request-id"]


async def test_what_comes_out_of_documents_is_sandboxed(world):
    hostile = "<script>alert(1)<" + "img src=x onerror=alert(1)>.png"
    id = (await world.finished((hostile, image())))["id"]
    for suffix in ("html", "md", "json", "docling.json"):
        answer = await world.client.get(f"/v1/jobs/{id}/documents/0001.{suffix}")
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox; default-src 'none'")
        assert "allow-scripts" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    archive = await world.client.get(f"/v1/jobs/{id}/download.zip")
    assert archive.headers["content-disposition"].startswith("attachment")
    assert "\n" not in archive.headers["content-disposition"]


async def test_the_log_holds_no_names_no_queries_and_no_texts(world, caplog):
    with caplog.at_level(logging.DEBUG, logger="pagemill.rest"):
        files = [("secret plan.png", image(123)), ("worse plan.pdf", b"%PDF-1.4 broken")]
        job = await world.finished(*files, data={"collection": "hidden"})
        await world.client.get("/v1/jobs?collection=hidden")
        await world.client.get(f"/v1/jobs/{job['id']}/documents/0001.md")
    assert "/v1/jobs/{id}" in caplog.text
    for secret in ("secret", "worse", "hidden", "shade"):
        assert secret not in caplog.text
