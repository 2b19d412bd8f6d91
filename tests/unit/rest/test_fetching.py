"""URLs that clients name: public addresses only, also after redirects and when a name changes its address."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from local_web import Handler, serving
from rest_world import image, rest_world

from pagemill.errors import InputError, TooLargeError
from pagemill.rest import fetching, runner
from pagemill.rest.errors import FetchError, ForbiddenError
from pagemill.rest.fetching import Fetch, check_url, fetch, is_public
from pagemill.rest.settings import LimitSettings

PUBLIC = "93.184.216.34"


class Pages(Handler):
    """Answers by the path."""

    def do_GET(self):
        self.server.asked.append((self.headers["Host"], self.path))
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
        elif self.path == "/loop":
            self.send_response(302)
            self.send_header("Location", "/loop")
            self.end_headers()
        elif self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            try:
                while not self.server.closed.wait(0.01):
                    self.wfile.write(b"x")
            except OSError:
                pass
        elif self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"x")
        else:
            self.send_response(200 if self.path.partition("?")[0] == "/file.png" else 404)
            self.end_headers()
            self.wfile.write(image())


@contextmanager
def web():
    """A web server, and what it was asked."""
    with serving(Pages) as server:
        server.asked, server.closed = [], threading.Event()
        try:
            yield server
        finally:
            server.closed.set()


@pytest.fixture
def names(monkeypatch):
    """A resolver of our own: by name, the addresses of each further look-up, the last one for ever."""
    known: dict[str, list[str]] = {}
    looked_up: list[str] = []

    def resolve(host, port, **_):
        looked_up.append(host)
        answers = known.get(host, [host])
        address = answers.pop(0) if len(answers) > 1 else answers[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(fetching.socket, "getaddrinfo", resolve)
    known["looked up"] = looked_up
    return known


@pytest.fixture
def open_net(monkeypatch):
    """The loopback address counts as public: the test's server is there. All others are as ever."""
    real = fetching.is_public
    monkeypatch.setattr(fetching, "is_public", lambda address: address == "127.0.0.1" or real(address))


@pytest.mark.parametrize(
    ("address", "public"),
    [
        (PUBLIC, True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        *((address, False) for address in ("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254")),
        *((address, False) for address in ("0.0.0.0", "100.64.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1")),
        *((address, False) for address in ("::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1")),
        *((address, False) for address in ("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1")),
        *((address, False) for address in ("2002:7f00:1::", "fd00:ec2::254")),
        ("64:ff9b::5db8:d822", True),
        # IANA's registries of special-purpose addresses, and what was given back.
        *((address, False) for address in ("192.0.0.9", "192.0.0.170", "192.88.99.1", "240.0.0.1", "203.0.113.1")),
        *((address, False) for address in ("fec0::1", "3fff::1", "3fff:fff::1", "5f00::1", "100::1", "100:0:0:1::1")),
        *((address, False) for address in ("2001:2::1", "2001:20::1", "2001:1::1", "64:ff9b:1::a00:1", "::10.0.0.1")),
        *((address, False) for address in ("4000::1", "::ffff:0:10.0.0.1")),
        ("2001:4860:4860::8888", True),
        ("2a00:1450:4001:80b::200e", True),
    ],
)
def test_only_addresses_of_the_public_network_are_connected_to(address, public):
    assert is_public(address) is public


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "ftp://example.org/a", "gopher://example.org", "//example.org/a", "example.org", ""),
        *("http://", "http://user:password@example.org/", "http://example.org:99999/", "http://example.org/a b"),
        *("http://example.org/\r\nX: y", "http://example.org/" + "a" * 3000),
        *("http://" + "a" * 70 + ".org/", "http://a..org/", "http://[/"),
    ],
)
def test_what_is_no_url_of_a_host_is_refused(url):
    with pytest.raises(InputError):
        check_url(url)


def test_a_file_is_fetched_whole(tmp_path, open_net):
    with web() as server:
        fetch(f"http://127.0.0.1:{server.server_port}/file.png", tmp_path / "a.png", 10_000)
    assert (tmp_path / "a.png").read_bytes() == image()
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "2130706433", "0x7f.1"])
def test_a_private_address_is_never_connected_to(tmp_path, host):
    with web() as server:
        with pytest.raises((ForbiddenError, FetchError)):
            fetch(f"http://{host}:{server.server_port}/file.png", tmp_path / "a", 10_000)
        assert server.asked == []
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_leads_to_a_private_address_is_refused(tmp_path, names):
    names["inside.example.org"] = ["10.0.0.7"]
    with pytest.raises(ForbiddenError):
        fetch("http://inside.example.org/", tmp_path / "a", 10_000)


def test_a_name_that_changes_its_address_after_the_check_gains_nothing(tmp_path, names, monkeypatch):
    """DNS rebinding: the first look-up gives a public address, the next one that of this machine."""
    names["rebinding.example.org"] = [PUBLIC, "127.0.0.1"]
    connected = []

    def connect(self, address):
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    with pytest.raises(FetchError):
        fetch("http://rebinding.example.org:81/", tmp_path / "a", 10_000)
    assert connected == [(PUBLIC, 81)]  # the one that was checked
    assert names["looked up"] == ["rebinding.example.org"]


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/", "http://169.254.169.254/latest", "file:///etc/passwd", "//[::1]/"]
)
def test_a_redirect_to_a_private_address_is_refused(tmp_path, open_net, target):
    with web() as server, pytest.raises((ForbiddenError, InputError)):
        fetch(f"http://127.0.0.1:{server.server_port}/to/{target}", tmp_path / "a", 10_000)
    assert list(tmp_path.iterdir()) == []


def test_redirects_to_this_machine_are_checked_like_the_first_address(tmp_path, names):
    """The first address is public, and answers with a redirect to 127.0.0.1."""
    with web() as server:
        names["public.example.org"] = [PUBLIC]
        real = socket.socket.connect
        # The public address is served by the test's server.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket.socket, "connect", lambda self, _: real(self, ("127.0.0.1", server.server_port)))
            with pytest.raises(ForbiddenError):
                fetch(f"http://public.example.org/to/http://127.0.0.1:{server.server_port}/", tmp_path / "a", 10_000)
        assert [path for _, path in server.asked] == [f"/to/http://127.0.0.1:{server.server_port}/"]


@pytest.mark.parametrize("path", ["/missing", "/short", "/loop"])
def test_what_is_not_whole_is_not_kept(tmp_path, open_net, path):
    with web() as server, pytest.raises(FetchError):
        fetch(f"http://127.0.0.1:{server.server_port}{path}", tmp_path / "a", 10_000)
    assert list(tmp_path.iterdir()) == []


def test_size_and_time_are_bounded(tmp_path, open_net):
    with web() as server:
        with pytest.raises(TooLargeError):
            fetch(f"http://127.0.0.1:{server.server_port}/file.png", tmp_path / "a", 10)
        with pytest.raises(FetchError):
            fetch(f"http://127.0.0.1:{server.server_port}/drip", tmp_path / "a", 10**9, limit_s=0.2)
    assert list(tmp_path.iterdir()) == []


def test_characters_that_no_request_may_have_are_encoded(tmp_path, open_net):
    with web() as server:
        with pytest.raises(FetchError, match="404"):
            fetch(f"http://127.0.0.1:{server.server_port}/보고서.pdf?á=%41", tmp_path / "a", 10_000)
        assert server.asked[-1][1] == "/%EB%B3%B4%EA%B3%A0%EC%84%9C.pdf?%C3%A1=%41"


@pytest.mark.parametrize("target", ["http://[", "http://" + "a" * 70 + ".example.org/", "http://a:b/"])
def test_a_redirect_to_what_is_no_url_is_an_error_of_the_url(tmp_path, open_net, target):
    with web() as server, pytest.raises((FetchError, InputError)):
        fetch(f"http://127.0.0.1:{server.server_port}/to/{target}", tmp_path / "a", 10_000)


def test_a_fetch_can_be_ended_at_once(tmp_path, open_net):
    by = Fetch()
    with web() as server, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{server.server_port}/drip"
        fetching = pool.submit(fetch, url, tmp_path / "a", 10**9, by=by)
        while not list(tmp_path.iterdir()):  # something has come
            threading.Event().wait(0.001)
        by.abort()
        with pytest.raises(FetchError):
            fetching.result(60)
        with pytest.raises(FetchError):  # nor is another one started
            fetch(url, tmp_path / "a", 10**9, by=by)
    assert list(tmp_path.iterdir()) == []


async def test_urls_of_a_job_share_its_bounds(tmp_path, open_net, monkeypatch):
    asked = []

    def fetched(url, path, max_bytes, *, limit_s, by):
        asked.append((max_bytes, limit_s))
        path.write_bytes(bytes(600_000))

    monkeypatch.setattr(runner, "fetch", fetched)
    limits = LimitSettings(max_job_mib=1, upload_timeout_s=5)
    async with rest_world(tmp_path / "data", allow_urls=True, limits=limits) as world:
        sources = [{"url": f"http://example.org/{n}.png"} for n in range(2)]
        answer = await world.client.post("/v1/jobs", json={"sources": sources})
        await world.ended(answer.json()["id"])
    assert [most for most, _ in asked] == [2**20, 2**20 - 600_000]
    assert 5 >= asked[0][1] >= asked[1][1]


async def test_urls_are_off_by_default(world):
    answer = await world.client.post("/v1/jobs", json={"sources": [{"url": "http://example.org/a.pdf"}]})
    assert answer.status_code == 403


async def test_a_job_of_urls_fetches_parses_and_names_them(tmp_path, open_net):
    with web() as server:
        at = f"http://127.0.0.1:{server.server_port}"
        async with rest_world(tmp_path / "data", allow_urls=True) as world:
            sources = {"sources": [{"url": f"{at}/file.png?token=secret"}]}
            answer = await world.client.post("/v1/jobs", json=sources)
            assert answer.status_code == 202, answer.text
            job = await world.ended(answer.json()["id"])
            assert (job["state"], job["name"]) == ("finished", "file.png")
            answer = await world.client.post("/v1/jobs", json={"sources": [{"url": f"{at}/missing"}]})
            job = await world.ended(answer.json()["id"])
            assert (job["state"], job["error"]["category"]) == ("failed", "network")
            answer = await world.client.post("/v1/jobs", json={"sources": [{"url": "file:///etc/passwd"}]})
            assert answer.status_code == 422
