"""What the user is told of a cluster that does not start, and of servers that wait for their places."""

import asyncio
import os
import socket
import sys
from types import SimpleNamespace

import pytest

from pagemill.cluster import servers as servers_module
from pagemill.cluster.connection import connect
from pagemill.cluster.servers import ClusterServers
from pagemill.config.serving import ServingOptions
from pagemill.errors import NetworkError
from pagemill.serving.spec import What


@pytest.fixture
def listening():
    """Address where a process listens, as the head of a cluster does."""
    with socket.create_server(("127.0.0.1", 0)) as head:
        yield f"127.0.0.1:{head.getsockname()[1]}"


@pytest.mark.parametrize(("address", "told"), [("local", "on this machine"), (None, "127.*' does not answer")])
def test_ray_that_does_not_start_is_no_defect(monkeypatch, listening, address, told):
    def init(**_):
        raise Exception("The current node timed out during startup.\nAn opaque reason.")  # as Ray does

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    monkeypatch.setitem(sys.modules, "ray.data", SimpleNamespace())
    with pytest.raises(NetworkError, match=f"{told}: The current node timed out during startup. An opaque"):
        connect(address or listening)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "127.0.0.1:99999999"])
def test_an_address_where_nothing_listens_is_refused_without_ray(monkeypatch, address):
    tried = []  # by Ray itself, which takes minutes
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=lambda **_: tried.append(address)))
    monkeypatch.setitem(sys.modules, "ray.data", SimpleNamespace())
    with pytest.raises(NetworkError, match="does not answer: ") as caught:
        connect(address)
    assert not tried
    assert "--ray local" in caught.value.remedy


def test_ray_prints_nothing_when_it_starts(monkeypatch, capfd, listening):
    def init(**_):
        os.write(2, b"I logging.cc: Set ray log level\n")  # as its library does

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    monkeypatch.setitem(sys.modules, "ray.data", SimpleNamespace())
    connect(listening)
    os.write(2, b"ours\n")
    assert capfd.readouterr().err == "ours\n"


async def test_servers_say_that_they_wait_for_accelerators(monkeypatch):
    monkeypatch.setattr(servers_module, "_REPORT_EVERY_S", 0.001)
    events, ready = [], asyncio.Future()

    def report(event):
        events.append(event)
        if len(events) == 2:
            ready.set_result(None)

    async with asyncio.timeout(60):
        await ClusterServers(ServingOptions(), "head:6379", report=report)._reserved(ready, 3)
    assert [event.what for event in events] == [What.PROGRESS] * 2 and "3 accelerators" in events[0].text
