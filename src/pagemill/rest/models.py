"""The JSON of the API, as OpenAPI describes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.rest.jobs import JobDocument, JobRow
    from pagemill.rest.runner import ActiveJob

JOB_EXAMPLE: dict[str, Any] = {
    "id": "5f1c0e9a7b3d2c4e6f80",
    "state": "running",
    "created": "2026-01-31T12:00:00Z",
    "started": "2026-01-31T12:00:01Z",
    "finished": None,
    "name": "report.pdf",
    "collection": "reports",
    "options": {"languages": ["en", "ko"]},
    "pages": {"total": 120, "finished": 30, "failed": 1},
    "pages_per_second": 3.2,
    "eta_seconds": 28.1,
    "documents": [{"id": "0001", "name": "report.pdf", "pages": 120}],
    "error": None,
}


class Error(BaseModel):
    """What is wrong."""

    category: str
    message: str
    remedy: str | None = None


class ErrorAnswer(BaseModel):
    """The body of every answer with an error."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"error": {"category": "not_found", "message": "there is no such job", "remedy": None}}
        }
    )
    error: Error


ERRORS: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorAnswer}, "5XX": {"model": ErrorAnswer}}
"""Of routes, in the words of FastAPI."""


class JobPages(BaseModel):
    """How far a job is."""

    total: int | None = Field(description="Pages in the input; null while nobody knows.")
    finished: int = Field(description="Pages that ended, failed ones included.")
    failed: int


class JobDocumentModel(BaseModel):
    """A file of a job."""

    id: str
    name: str
    pages: int | None


class Job(BaseModel):
    """A job."""

    model_config = ConfigDict(json_schema_extra={"example": JOB_EXAMPLE})
    id: str
    state: Literal["queued", "running", "finished", "failed", "cancelled"]
    created: datetime
    started: datetime | None
    finished: datetime | None
    name: str
    collection: str | None
    options: dict[str, Any]
    pages: JobPages
    pages_per_second: float | None
    eta_seconds: float | None
    documents: list[JobDocumentModel]
    error: Error | None


class Jobs(BaseModel):
    """A page of the list of jobs, the newest first."""

    jobs: list[Job]
    next: str | None = Field(description="To be sent as `after`; null at the end.")


class PageError(BaseModel):
    """Something that went wrong on a page."""

    component: str
    category: str
    message: str
    remedy: str | None = None
    region: int | None = None


class Page(BaseModel):
    """A page of a job."""

    n: int = Field(description="Number of the page in its job; it does not change.")
    document: str
    name: str
    page_number: int | None
    page_idx: int
    status: Literal["running", "waiting", "done", "failed", "skipped"]
    confidence: float | None
    errors: list[PageError]
    width: int | None
    height: int | None


class Pages(BaseModel):
    """Pages in reading order."""

    pages: list[Page]
    next: str | None = Field(description="To be sent as `after`; null at the end.")


class Source(BaseModel):
    """A file to be fetched."""

    url: str


class NewJob(BaseModel):
    """A job of URLs, where the server fetches some."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"sources": [{"url": "https://example.org/report.pdf"}], "options": {"languages": ["en"]}}
        },
    )
    sources: list[Source]
    options: dict[str, Any] = {}
    collection: str | None = None


class Snippet(BaseModel):
    """A text around the best hits."""

    text: str
    marks: list[tuple[int, int]] = Field(description="Start and end of each hit, in code points.")


class Hit(BaseModel):
    """A page that was found."""

    job: str
    document: str
    name: str
    n: int
    page_number: int | None
    score: float
    snippet: Snippet
    box: tuple[float, float, float, float] | None = Field(description="Of the best region, in pixels of the page.")
    bbox_2d: tuple[int, int, int, int] | None = Field(description="The same in thousandths of the page.")
    region_id: int | None
    label: str | None


class Hits(BaseModel):
    """Pages that were found, best first."""

    hits: list[Hit]


class Collection(BaseModel):
    """A collection of jobs."""

    model_config = ConfigDict(json_schema_extra={"example": {"name": "reports", "jobs": 3, "pages": 240}})
    name: str
    jobs: int
    pages: int


class Collections(BaseModel):
    """The collections of the key."""

    collections: list[Collection]


class Options(BaseModel):
    """What jobs can choose, and the limits of the server."""

    version: str
    languages: list[str]
    engines: list[str]
    options: list[dict[str, Any]]
    formats: dict[str, str] = Field(description="Of documents: the suffix of the address, and the name.")
    limits: dict[str, int]
    allow_urls: bool
    needs_key: bool


def job_model(row: JobRow, documents: Sequence[JobDocument], active: ActiveJob | None) -> Job:
    """A job as clients get it."""
    pages = {} if active is None else active.pages
    total, ended, failed, rate = row.pages, row.ended, row.failed, None
    if active is not None:
        total, ended, failed, rate = active.total, active.ended, active.failed, active.rate
    left = None if total is None or rate is None else max(0, total - ended) / rate
    return Job(
        id=row.id,
        state=row.state.value,
        created=_time(row.created),
        started=None if row.started is None else _time(row.started),
        finished=None if row.finished is None else _time(row.finished),
        name=row.name,
        collection=row.collection,
        options=row.options,
        pages=JobPages(total=total, finished=ended, failed=failed),
        pages_per_second=rate and round(rate, 3),
        eta_seconds=None if left is None else round(left, 1),
        documents=[
            JobDocumentModel(id=each.id, name=each.name, pages=pages.get(each.id, each.pages)) for each in documents
        ],
        error=None if row.error is None else Error(**row.error),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
