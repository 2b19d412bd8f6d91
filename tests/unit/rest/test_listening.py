"""The address of the server."""

import socket
from contextlib import closing

import pytest

from pagemill.errors import UsageError
from pagemill.rest import listening
from pagemill.rest.listening import listen


def test_the_address_of_a_process_that_is_being_killed_is_waited_for(monkeypatch):
    dying = listen("127.0.0.1", 0)
    monkeypatch.setattr(listening.time, "sleep", lambda seconds: dying.close())
    with closing(listen("127.0.0.1", dying.getsockname()[1])) as next_one:
        assert next_one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def test_an_address_in_use_is_refused_in_words(monkeypatch):
    monkeypatch.setattr(listening, "_DYING_S", 0.0)
    with closing(listen("127.0.0.1", 0)) as other, pytest.raises(UsageError, match="in use"):
        listen("127.0.0.1", other.getsockname()[1])


def test_an_address_of_another_machine_is_no_matter_of_the_port():
    with pytest.raises(UsageError, match=r"cannot listen at 192\.0\.2\.1 port 0") as caught:
        listen("192.0.2.1", 0)
    assert "--host" in caught.value.remedy
