"""Answers of the server as objects. Fields that a newer server adds are ignored."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from pagemill.document.geometry import Box
from pagemill.document.page import PageError


class JobState(StrEnum):
    """State of a job."""

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
    """Why a job failed."""

    category: str
    message: str
    remedy: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    id: str
    state: JobState
    name: str
    created: datetime
    started: datetime | None = None
    finished: datetime | None = None
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


class PageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a job, without its content."""

    n: int
    """Number of the page in its job; it does not change."""
    document: str
    name: str
    status: str
    page_number: int | None = None
    page_idx: int = 0
    confidence: float | None = None
    errors: list[PageError] = []
    width: int | None = None
    height: int | None = None


class PageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A page is finished, or has failed."""

    n: int
    document: str
    status: str
    page_number: int | None = None
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
    score: float
    snippet: Snippet
    page_number: int | None = None
    box: Box | None = None
    """Of the best region, in pixels of the page."""
    bbox_2d: tuple[int, int, int, int] | None = None
    """The same in thousandths of the page."""
    region_id: int | None = None
    label: str | None = None


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """A collection of jobs."""

    name: str
    jobs: int
    pages: int
