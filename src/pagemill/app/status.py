"""The status of a run, read from its directory during the run or afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime  # msgspec reads the annotations
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec

from pagemill.document.page import READING
from pagemill.store import paths
from pagemill.store.lock import DESCRIBING, Owner
from pagemill.store.nodes import read_node_rates
from pagemill.store.reading import (
    FailureKind,  # msgspec reads the annotation
    RunReader,
)
from pagemill.store.rows import PageState
from pagemill.store.run_database import NO_LONGER_IN_THE_INPUT
from pagemill.store.summary import RunSummary

_PARTS = {
    paths.RESULTS: "records",
    paths.TEXTS: "texts",
    paths.CROPS: "crops",
    paths.DOCUMENTS: "documents",
    paths.REPORT: "report",
    paths.FOLDER: "database",
}


_Number = TypeVar("_Number", int, float)


class RunState(StrEnum):
    """State of a run."""

    RUNNING = "running"
    DESCRIBING = "describing"
    """`pagemill describe` is running, whatever the result of parsing."""
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CUT_OFF = "cut off"
    """Its process is gone: killed, crashed, or the machine went down. The run can be resumed."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """The process that works on the directory."""

    pid: int
    host: str
    since: datetime


class InvocationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """From a start or resume of the run until it stopped, or until now, without pauses between invocations."""

    pages: int
    """Pages done or failed."""
    seconds: float
    rate: float | None
    """Pages per second; None if no page is finished."""


class RunStatus(msgspec.Struct, kw_only=True):
    """What ``pagemill status --json`` prints."""

    path: str
    state: RunState
    process: Process | None
    started: datetime
    finished: datetime | None
    total: int | None
    """Pages in the input of the last invocation; None while unknown."""
    pages: dict[str, int]
    """By state: ``done``, ``failed``, ``skipped``, ``running``, ``waiting``."""
    documents: int
    """Documents that are complete: no page failed or is still to be done."""
    rate: float | None
    """Recent pages per second; None if the run is not in progress or too little is known."""
    nodes: dict[str, float] = {}
    """The same by machine of a cluster; empty without one."""
    invocation: InvocationStatus | None
    """The last or current invocation; None while too little is known."""
    seconds_left: float | None
    failures: list[FailureKind]
    """The most frequent first."""
    skipped: dict[str, int]
    """Skipped pages by reason."""
    warnings: dict[str, int]
    """Number of incomplete pages by category of the error."""
    review: int
    """Pages that need a human check of what was read."""
    in_flight: list[str]
    """Ids of the pages in flight."""
    seconds_by_stage: dict[str, float]
    """Work in seconds, the largest share first; stages of different pages overlap."""
    bytes_on_disk: dict[str, int]
    """Bytes by part of the directory, the largest first."""

    @property
    def completed(self) -> int:
        """Pages that need no more work, except those that were removed from the input."""
        return self.pages["done"] + self.pages["failed"] + self.pages["skipped"] - self.gone

    @property
    def gone(self) -> int:
        """Pages skipped because they were removed from the input; they are not part of ``total`` either."""
        return self.skipped.get(NO_LONGER_IN_THE_INPUT, 0)


def read_status(reader: RunReader, *, examples: int = 3, sizes: dict[str, int] | None = None) -> RunStatus:
    """Read the status of a run.

    Args:
        reader: The run.
        examples: Maximum number of failed pages to name per category.
        sizes: Result of :func:`bytes_on_disk`, which takes a while in a large directory; measured if not given.

    Raises:
        OutputError: The directory cannot be read; DamagedRunError when its database is damaged.
    """
    summary, counts = reader.summary, reader.counts()
    worker = reader.owner()
    is_described = worker is not None and worker.task == DESCRIBING
    # A lock can be held on a finished run, for example to repair it: that does not make it run again.
    owner = worker if summary.finished is None and not is_described else None
    status = RunStatus(
        path=str(reader.path),
        state=RunState.DESCRIBING if is_described else _state(summary, going_on=owner is not None),
        process=_process(worker) if worker and (owner or is_described) else None,
        started=summary.started,
        finished=summary.finished,
        total=reader.total,
        pages={state.name.lower(): counts.get(state, 0) for state in PageState},
        documents=reader.complete_documents(),
        rate=reader.rate() if owner else None,
        nodes=read_node_rates(reader.path) if owner else {},
        invocation=_invocation(reader.session()),
        seconds_left=None,
        failures=reader.failures(examples),
        skipped=summary.skipped_by_kind,
        warnings=summary.warnings_by_kind,
        review=summary.review,
        in_flight=reader.in_flight() if owner else [],
        seconds_by_stage=_largest_first(summary.seconds_by_stage),
        bytes_on_disk=bytes_on_disk(reader.path) if sizes is None else sizes,
    )
    # Both are unknown in the first seconds.
    if status.total is not None and status.rate:
        status.seconds_left = max(0, status.total - status.completed) / status.rate
    return status


class PageToReview(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``pagemill status --review``."""

    page_id: str
    page_number: int | None
    source: str
    confidence: float | None
    signals: dict[str, float]
    why: list[str]
    """The warnings about what was read."""


def pages_to_review(reader: RunReader) -> Iterator[PageToReview]:
    """The pages that need a human check, in input order; reads all records.

    Raises:
        DamagedRunError: A record is damaged.
    """
    for page in reader.pages(stored=True) if reader.summary.review else ():
        if page.review:
            fields = {name: getattr(page, name) for name in PageToReview.__struct_fields__ if name != "why"}
            yield PageToReview(**fields, why=[e.message for e in page.errors if e.component in READING])


def bytes_on_disk(path: Path) -> dict[str, int]:
    """Bytes in the files of a run, by part, the largest first. Files that change meanwhile may or may not count."""
    sizes = {part: size_on_disk(path / name) for name, part in _PARTS.items()}
    return _largest_first({part: size for part, size in sizes.items() if size})


def size_on_disk(path: Path) -> int:
    """Bytes of a file, or of all files in a folder, which may be changing."""
    if not path.is_dir():
        return _file_size(path)
    return sum(_file_size(f"{folder}/{name}") for folder, _, names in os.walk(path) for name in names)


def _file_size(path: str | Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:  # deleted since the folder was listed
        return 0


def _state(summary: RunSummary, *, going_on: bool) -> RunState:
    if summary.finished is not None:
        return RunState.INTERRUPTED if summary.interrupted else RunState.FINISHED
    # Not finished, and nobody holds the lock: its process has died.
    return RunState.RUNNING if going_on else RunState.CUT_OFF


def _process(owner: Owner) -> Process:
    return Process(pid=owner.pid, host=owner.host, since=datetime.fromisoformat(owner.started))


def _invocation(invocation: tuple[int, float] | None) -> InvocationStatus | None:
    if invocation is None:
        return None
    pages, seconds = invocation
    return InvocationStatus(pages=pages, seconds=seconds, rate=pages / seconds if pages and seconds > 0 else None)


def _largest_first(numbers: dict[str, _Number]) -> dict[str, _Number]:
    return dict(sorted(numbers.items(), key=lambda item: -item[1]))
