"""One process at a time works on a run directory."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from pagemill.errors import ExitCode, LockedError, OutputError
from pagemill.store.lock import Owner, RunLock, owner_of

HOLD = """
import sys, time
from pathlib import Path
from pagemill.store.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_learns_who_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "out" / ".pagemill" / "lock"
    path.parent.mkdir(parents=True)
    lock = RunLock(path)
    with pytest.raises(LockedError) as caught:
        RunLock(path)
    assert f"{tmp_path / 'out'} is in use by process {os.getpid()} on " in caught.value.message
    assert caught.value.exit_code is ExitCode.OUTPUT
    lock.release()
    lock.release()
    assert owner_of(path) is None
    RunLock(path).release()


def test_the_second_opening_of_a_directory_is_refused(store) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        with pytest.raises(LockedError, match="in use"):
            store.open()
        run.write_page(store.page(2))
        store.check(run)


def test_a_dead_owner_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        owner = owner_of(path)
        assert owner is not None
        assert owner.pid == holder.pid
        with pytest.raises(LockedError, match=f"process {holder.pid} "):
            RunLock(path)
        holder.kill()
        holder.wait()
        assert owner_of(path) is None
        RunLock(path).release()


def test_a_dying_owner_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = RunLock(path)
    timer = threading.Timer(0.2, lock.release)
    timer.start()
    RunLock(path, wait_s=30).release()
    timer.join()
    lock = RunLock(path)
    path.write_bytes(b"")
    start = time.monotonic()
    with pytest.raises(LockedError, match="another process"):
        RunLock(path, wait_s=0.1)
    assert time.monotonic() - start >= 0.1
    lock.release()


def test_who_asks_keeps_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    killed = Owner(pid=os.getpid(), host="here", started="then")
    path.write_bytes(msgspec.json.encode(killed))
    assert owner_of(path) is None
    RunLock(path, wait_s=0).release()


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(fd: int, operation: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(OutputError, match="cannot lock") as caught:
        RunLock(tmp_path / "lock")
    assert "local disk" in (caught.value.remedy or "")
