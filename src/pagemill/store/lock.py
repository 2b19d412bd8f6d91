"""One process at a time works on a run directory."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from pagemill.errors import LockedError, OutputError
from pagemill.store.files import output_errors

DERIVED_WAIT_S = 600.0
"""How long a run waits for an export that writes the same files, at its end and with ``--fresh``."""
_DYING_S = 5.0
_POLL_S = 0.05
_AT = 1 << 30  # byte that Windows locks: beyond the text, which others may read


class Owner(msgspec.Struct, kw_only=True):
    """The process that works on a run directory."""

    pid: int
    host: str
    started: str
    """When it opened the directory, ISO 8601."""
    ticks: int | None = None
    """When the process began, in clock ticks since the system did: another one with this number began otherwise."""

    @classmethod
    def this_process(cls) -> Owner:
        """The one that runs this."""
        pid = os.getpid()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(pid=pid, host=socket.gethostname(), started=started, ticks=_ticks(pid))

    def alive(self) -> bool | None:
        """Whether the process is still there; None where that cannot be told (another host)."""
        if self.host != socket.gethostname() or sys.platform == "win32":  # where a signal of 0 ends the process
            return None
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass
        return self.ticks is None or _ticks(self.pid) == self.ticks

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.started}"


def owner_of(path: Path) -> Owner | None:
    """Who holds a lock file; None for nobody, for a process that is gone, and for one that has only just come."""
    try:
        with path.open("rb") as stream:
            owner = msgspec.json.decode(stream.read(4096), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None
    return None if owner.alive() is False else owner


class RunLock:
    """Holds a lock file until it is released or the process dies. A context manager.

    Args:
        path: The file, made when it is not there. It stays.
        wait_s: How long to wait for the owner, in seconds; by default only for one that is dying.

    Raises:
        LockedError: Another process holds it, or another part of this one.
        OutputError: The file cannot be locked.
    """

    def __init__(self, path: Path, *, wait_s: float | None = None) -> None:
        self._path = path
        with output_errors(path):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._acquire(wait_s)
            with output_errors(path):
                os.ftruncate(self._fd, 0)
                os.write(self._fd, msgspec.json.encode(Owner.this_process()))
        except BaseException:
            os.close(self._fd)
            raise

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # then it names a process that is gone, which counts as nobody
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _acquire(self, wait_s: float | None) -> None:
        deadline = time.monotonic() + (_DYING_S if wait_s is None else wait_s)
        while not self._try():
            owner = owner_of(self._path)
            # One that is gone leaves the lock in a moment; one that has just come has not said who it is.
            if (owner and wait_s is None) or time.monotonic() >= deadline:
                raise LockedError(
                    f"{self._path.parent.parent} is in use by {owner or 'another process'}",
                    remedy="Wait until it ends, stop it, or choose another directory with -o.",
                )
            time.sleep(_POLL_S)

    def _try(self) -> bool:
        try:
            if sys.platform == "win32":
                import msvcrt

                os.lseek(self._fd, _AT, os.SEEK_SET)
                msvcrt.locking(self._fd, msvcrt.LK_NBLCK, 1)
                os.lseek(self._fd, 0, os.SEEK_SET)
            else:
                import fcntl

                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        except OSError as error:
            raise OutputError(
                f"cannot lock {self._path}: {error.strerror or error}", remedy="Choose a directory on a local disk."
            ) from error
        return True


def _ticks(pid: int) -> int | None:
    """Start of a process that runs, on Linux; None elsewhere, and for one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None
