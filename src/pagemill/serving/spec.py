"""The specification of a model server, and the events that are reported about one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FIRST_PORT = 8000
"""Where the first server listens unless a port is asked for or this one is taken; the next ones follow it."""
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long what may take, in seconds, and how often."""

    start_s: float = 1800.0
    """From the start to the first healthy answer; loading and compiling take minutes, a download longer."""
    check_s: float = 5.0
    """Between two looks at a server that runs."""
    answer_s: float = 20.0
    """For an answer of ``/health``."""
    failed_checks: int = 3
    """Bad answers in a row after which it is started again."""
    grace_s: float = 15.0
    """Between the request to end and the kill."""
    first_pause_s: float = 1.0
    """Before it is started again; doubled with every quick death."""
    longest_pause_s: float = 60.0
    quick_life_s: float = 120.0
    """A server that dies before it has been healthy for so long died quickly."""
    quick_deaths: int = 5
    """Quick deaths in a row that are tolerated."""


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
    """Something that happened to a server."""

    what: What
    url: str
    text: str
    """The command, a line of the log, a reason."""


Tell = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """A server that is wanted."""

    command: Callable[[int], Sequence[str]]
    """The command line for a port."""
    environment: Mapping[str, str]
    served_name: str
    """What clients call the model."""
    model: str
    """What it is loaded from, as the server says in ``/v1/models``."""
    max_model_len: int = 0
    """Tokens that a server must take to be used in place of one of our own."""
    log: Path
    """Takes what the server prints."""
    host: str = HOST
    port: int | None = None
    """None: ``preferred_port``, or any other where that is taken."""
    preferred_port: int = FIRST_PORT
