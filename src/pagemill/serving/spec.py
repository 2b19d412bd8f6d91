"""The specification of a model server, and the events that are reported about one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FIRST_PORT = 8000
"""Default port of the first server, unless it is taken; further servers use the following ones."""
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeouts in seconds, and how many failures are tolerated."""

    start_s: float = 1800.0
    """Until the first healthy answer; loading and compiling take minutes, a download longer."""
    check_s: float = 5.0
    """Interval of health checks."""
    answer_s: float = 20.0
    """For an answer of ``/health``."""
    failed_checks: int = 3
    """Consecutive failed health checks before a restart."""
    grace_s: float = 15.0
    """Between SIGTERM and SIGKILL."""
    first_pause_s: float = 1.0
    """Before a restart; doubled with every quick death."""
    longest_pause_s: float = 60.0
    quick_life_s: float = 120.0
    """A death within this time of the first healthy answer is a quick one."""
    quick_deaths: int = 5
    """Consecutive quick deaths that are tolerated."""


class What(StrEnum):
    """What is reported about a server."""

    STARTING = "starting"
    PROGRESS = "progress"
    READY = "ready"
    REUSED = "reused"
    DIED = "died"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a server."""

    what: What
    url: str
    text: str
    """The command, a line of the log, a reason."""


Report = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """A server to be started."""

    command: Callable[[int], Sequence[str]]
    """The command line for a port."""
    environment: Mapping[str, str]
    served_name: str
    """Name of the model in requests."""
    model: str
    """Folder or repository it is loaded from, which ``/v1/models`` reports as its root."""
    max_model_len: int = 0
    """Minimum request length, in tokens, of a running server that is used instead of a new one."""
    log: Path
    """File for the output of the server."""
    host: str = HOST
    port: int | None = None
    """None: ``preferred_port``, or any other where that is taken."""
    preferred_port: int = FIRST_PORT
