"""Orphaned server processes, whose watchdog and owner were both killed. Linux only."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.serving import watchdog

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MARK = "PAGEMILL_SERVER_MARK"
"""Environment variable of a server's watchdog and its descendants, with a value unique to that server."""
_VARIABLE = re.compile(rb"%s=([0-9a-f]{32})" % MARK.encode())
_CHECKS = 50
_CHECK_S = 0.1


def end_orphans() -> int:
    """Kill descendants of servers whose watchdog is gone, and wait until they have exited.

    The kernel kills such servers with their process groups; this is for processes that left the group, and for kernels
    without that feature. A process that changed its title hides its environment and is not found. Servers with a live
    watchdog are left alone.

    Returns:
        The number of killed processes; 0 on systems without ``/proc``.
    """
    marks = {mark for _, mark in _marked()}
    # A watchdog starts before its server, so a live one is in the list whatever its order.
    orphaned = marks - {mark for pid, mark in _marked() if _is_watchdog(pid)}
    return end_marked(orphaned) if orphaned else 0


def end_marked(marks: Collection[str]) -> int:
    """Kill all processes with one of these marks, and wait until they have exited; returns how many there were."""
    ended: set[int] = set()
    for _ in range(_CHECKS):
        left = [pid for pid, mark in _marked() if mark in marks]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
        ended.update(left)
        time.sleep(_CHECK_S)
    return len(ended)


def _marked() -> Iterator[tuple[int, str]]:
    """Processes of servers with their marks; empty on systems without ``/proc``.

    A variable set by hand is not a mark, and this process is never included.
    """
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone, or another user's
            for variable in place.read_bytes().split(b"\0"):
                if (mark := _VARIABLE.fullmatch(variable)) and int(place.parent.name) != os.getpid():
                    yield int(place.parent.name), mark[1].decode()


def _is_watchdog(pid: int) -> bool:
    """Whether a process is a watchdog, possibly of another installation."""
    with suppress(OSError):
        return watchdog.__name__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
