"""Processes of servers whose watchdog was killed, with its owner and before it could end them. Linux."""

from __future__ import annotations

import os
import re
import secrets
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.serving import watchdog

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MARK = "PAGEMILL_SERVER_MARK"
"""Environment variable that the watchdog of a server has, and all that descends from it: the same value, and no other
server's."""
_VARIABLE = re.compile(rb"%s=([0-9a-f]{32})" % MARK.encode())
_CHECKS = 50
_CHECK_S = 0.1


def new_mark() -> str:
    """A mark that no other server has."""
    return secrets.token_hex(16)


def end_orphans() -> int:
    """Kill what descends from servers whose watchdog is no more, and wait until it is gone.

    The kernel has killed such servers with their groups; this is for processes that had left the group, and holds
    where the kernel does not know how. One that has given itself another title hides its environment with that, and is
    not found. A server whose watchdog lives is left alone, whosever it is.

    Returns:
        How many processes that were; 0 where the system has no ``/proc``.
    """
    marks = {mark for _, mark in _marked()}
    # A watchdog begins before its server: one that is alive is seen now, however the processes were listed.
    orphaned = marks - {mark for pid, mark in _marked() if _is_watchdog(pid)}
    ended: set[int] = set()
    for _ in range(_CHECKS):
        left = kill_marked(orphaned) if orphaned else []
        if not left:
            break
        ended.update(left)
        time.sleep(_CHECK_S)
    return len(ended)


def kill_marked(marks: Collection[str]) -> list[int]:
    """Kill all processes with one of these marks; those that were still there."""
    found = [pid for pid, mark in _marked() if mark in marks]
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return found


def _marked() -> Iterator[tuple[int, str]]:
    """Processes of servers with their marks; none where the system has no ``/proc``.

    A variable of that name that somebody has set by hand is no mark, and this process is never one of them.
    """
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone, or another user's
            for variable in place.read_bytes().split(b"\0"):
                if (mark := _VARIABLE.fullmatch(variable)) and int(place.parent.name) != os.getpid():
                    yield int(place.parent.name), mark[1].decode()


def _is_watchdog(pid: int) -> bool:
    """Whether a process is a watchdog, also of another installation."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    module = watchdog.__name__.encode()
    return b"--log-bytes" in words and any(module in word for word in words)
