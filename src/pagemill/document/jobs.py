"""Jobs of the server, as its JSON shows them: what it sends, what its client reads, and what OpenAPI describes."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from pagemill.document.geometry import Box
from pagemill.document.page import PageError


class JobState(StrEnum):
    """State of a job. The last three are final, until failed pages are parsed again."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    """All pages are finished; some may have failed."""
    FAILED = "failed"
    """Nothing could be read."""
    CANCELLED = "cancelled"


class JobPages(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is."""

    total: int | None = None
    """Pages in the input; None while it is not known."""
    finished: int = 0
    """Finished pages, failed ones included."""
    failed: int = 0


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a job."""

    id: str
    name: str
    pages: int | None = None


class JobError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed, or a request was refused."""

    category: str
    message: str
    remedy: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    id: str
    state: JobState
    created: datetime
    started: datetime | None = None
    finished: datetime | None = None
    name: str
    collection: str | None = None
    options: dict[str, Any] = {}
    pages: JobPages = JobPages()
    pages_per_second: float | None = None
    eta_seconds: float | None = None
    documents: list[JobDocument] = []
    error: JobError | None = None

    @property
    def has_ended(self) -> bool:
        """Whether no more pages are parsed."""
        return self.state in (JobState.FINISHED, JobState.FAILED, JobState.CANCELLED)


class Jobs(msgspec.Struct, frozen=True):
    """A part of the list of jobs, the newest first."""

    jobs: list[Job]
    next: str | None = None
    """Value for ``after``; None at the end."""


class PageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a job, without its content."""

    n: int
    """Number of the page in its job; it does not change."""
    document: str
    name: str
    page_number: int | None = None
    page_idx: int = 0
    status: str
    """``running``, ``waiting``, ``done``, ``failed`` or ``skipped``."""
    title: str | None = None
    """Its first heading, else the beginning of its text."""
    confidence: float | None = None
    errors: list[PageError] = []
    width: int | None = None
    height: int | None = None


class Pages(msgspec.Struct, frozen=True):
    """Pages in reading order."""

    pages: list[PageSummary]
    next: str | None = None
    """Value for ``after``; None at the end."""


class PageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A page is finished, or has failed."""

    n: int
    document: str
    page_number: int | None = None
    status: str
    title: str | None = None
    """Its first heading, else the beginning of its text."""
    errors: list[PageError] = []


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """A text around hits."""

    text: str
    marks: list[tuple[int, int]] = []
    """Start and end of each hit, in characters."""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """A page that was found."""

    job: str
    document: str
    name: str
    n: int
    page_number: int | None = None
    score: float
    snippet: Snippet
    box: Box | None = None
    """Box of the best region, in pixels of the page."""
    bbox_2d: tuple[int, int, int, int] | None = None
    """The same in thousandths of the page."""
    region_id: int | None = None
    label: str | None = None


class Hits(msgspec.Struct, frozen=True):
    """Pages that were found, best first."""

    hits: list[SearchResult]


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """A collection of jobs."""

    name: str
    jobs: int
    pages: int


class Collections(msgspec.Struct, frozen=True):
    """The collections of a key."""

    collections: list[Collection]
