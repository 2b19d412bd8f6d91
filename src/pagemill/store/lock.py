"""Lock files: one process at a time changes a run directory."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from pagemill.errors import LockedError, OutputError
from pagemill.store.files import output_errors

DERIVED_WAIT_S = 600.0
"""Wait of a run for an export that writes the same files, at its end and with ``--fresh``."""
_DYING_S = 2.0
"""Default wait for the owner: a killed process holds the lock until its memory is freed."""
_POLL_S = 0.05
DESCRIBING = "describe"
"""A task."""


class Owner(msgspec.Struct, kw_only=True):
    """The process that is using a run directory."""

    pid: int
    host: str
    started: str
    """When it opened the directory, ISO 8601."""
    task: str = ""
    """Its task; empty for parsing and for short tasks."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.started}"


def owner_of(path: Path) -> Owner | None:
    """The owner of a lock file; None if it is free, or if its owner has just taken it."""
    try:
        with path.open("rb") as stream:
            return None if _lock(stream.fileno(), shared=True) else msgspec.json.decode(stream.read(4096), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None


class RunLock:
    """Holds a lock file until it is released or the process dies. A context manager.

    Args:
        path: The file; created if it does not exist, and not deleted.
        wait_s: Seconds to wait for the owner.
        task: See :attr:`Owner.task`.

    Raises:
        LockedError: Another process holds it, or this one does.
        OutputError: The file cannot be locked.
    """

    def __init__(self, path: Path, *, wait_s: float = _DYING_S, task: str = "") -> None:
        self._path = path
        with output_errors(path):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._acquire(wait_s)
            # The owner is only for messages. What locks is flock, which the kernel releases with the process: a file
            # that a killed process left behind locks nothing.
            with output_errors(path):
                os.ftruncate(self._fd, 0)
                started = datetime.now(UTC).isoformat(timespec="seconds")
                owner = Owner(pid=os.getpid(), host=socket.gethostname(), started=started, task=task)
                os.write(self._fd, msgspec.json.encode(owner))
        except BaseException:
            os.close(self._fd)
            raise

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _acquire(self, wait_s: float) -> None:
        deadline = time.monotonic() + wait_s
        try:
            # Polled: flock with a timeout does not exist, and a blocking one could not be given up.
            while not _lock(self._fd):
                if time.monotonic() >= deadline:
                    raise LockedError(
                        f"{self._path.parent.parent} is in use by {owner_of(self._path) or 'another process'}",
                        remedy="Wait until it finishes, stop it, or choose another directory with -o.",
                    )
                time.sleep(_POLL_S)
        except OSError as error:
            raise OutputError(
                f"cannot lock {self._path}: {error.strerror or error}", remedy="Choose a directory on a local disk."
            ) from error


def _lock(fd: int, *, shared: bool = False) -> bool:
    """Lock a file; False if it is locked already."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
