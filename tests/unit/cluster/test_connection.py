"""What the user is told of a cluster that does not start, and of servers that wait for their places."""

from __future__ import annotations

import asyncio
import os
import sys
from types import SimpleNamespace

import pytest

from pagemill.cluster import servers as servers_module
from pagemill.cluster.connection import connect
from pagemill.cluster.servers import ClusterServers
from pagemill.config.serving import ServingOptions
from pagemill.errors import NetworkError
from pagemill.serving.spec import What


@pytest.mark.parametrize(
    ("address", "told"), [("local", "on this machine"), ("head:6379", "'head:6379' does not answer")]
)
def test_ray_that_does_not_start_is_no_defect(monkeypatch, address, told):
    def init(**_):
        raise Exception("The current node timed out during startup.\nAn opaque reason.")  # as Ray does

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    monkeypatch.setitem(sys.modules, "ray.data", SimpleNamespace())
    with pytest.raises(NetworkError, match=f"{told}: The current node timed out during startup. An opaque"):
        connect(address)


def test_ray_prints_nothing_when_it_starts(monkeypatch, capfd):
    def init(**_):
        os.write(2, b"I logging.cc: Set ray log level\n")  # as its library does

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    monkeypatch.setitem(sys.modules, "ray.data", SimpleNamespace())
    connect("head:6379")
    os.write(2, b"ours\n")
    assert capfd.readouterr().err == "ours\n"


async def test_servers_say_that_they_wait_for_accelerators(monkeypatch):
    monkeypatch.setattr(servers_module, "_TELL_S", 0.001)
    events, ready = [], asyncio.Future()

    def tell(event):
        events.append(event)
        if len(events) == 2:
            ready.set_result(None)

    async with asyncio.timeout(60):
        await ClusterServers(ServingOptions(), "head:6379", tell=tell)._reserved(ready, 3)
    assert [event.what for event in events] == [What.PROGRESS] * 2 and "3 accelerators" in events[0].text
