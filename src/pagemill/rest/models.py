"""The JSON of the API: answers, and how OpenAPI describes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from pagemill.document.jobs import Collections, Hits, Job, JobDocument, JobError, JobPages, Jobs, Pages
from pagemill.rest.jobs import JobFile, JobRow
from pagemill.rest.runner import ActiveJob

_EXAMPLES: dict[str, dict[str, Any]] = {
    "Job": {
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
    },
    "ErrorAnswer": {"error": {"category": "not_found", "message": "there is no such job", "remedy": None}},
    "NewJob": {"sources": [{"url": "https://example.org/report.pdf"}], "options": {"languages": ["en"]}},
    "Collection": {"name": "reports", "jobs": 3, "pages": 240},
}


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The body of every answer with an error."""

    error: JobError


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to be fetched."""

    url: str


class NewJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job of URLs, where the server fetches some."""

    sources: list[Source]
    options: dict[str, Any] = {}
    collection: str | None = None


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How failed pages are parsed again."""

    password: Annotated[str, msgspec.Meta(max_length=1000)] | None = None
    """Password of encrypted files."""


class Options(msgspec.Struct, frozen=True):
    """What jobs can choose, and the limits of the server."""

    version: str
    languages: list[str]
    engines: list[str]
    suffixes: list[str]
    """Suffixes of files that are read by their names; others by their first bytes."""
    options: list[dict[str, Any]]
    formats: dict[str, str]
    """Formats of documents: the suffix of the address, and the name."""
    limits: dict[str, int]
    allow_urls: bool
    needs_key: bool


def answer(content: msgspec.Struct, status: int = 200, **headers: str) -> Response:
    """An answer of JSON."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def returns(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The OpenAPI description of an answer, for the ``responses`` of a route."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {"description": (kind.__doc__ or "").partition("\n")[0], "content": {"application/json": {"schema": schema}}}


ERRORS: dict[int | str, dict[str, Any]] = {"4XX": returns(ErrorAnswer), "5XX": returns(ErrorAnswer)}
"""The ``responses`` of all routes."""


def schemas() -> dict[str, Any]:
    """The schemas that :func:`returns` names, by name."""
    kinds = (Job, Jobs, Pages, Hits, Collections, Options, ErrorAnswer, NewJob, Retry)
    _, found = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    return {name: found[name] | ({"example": _EXAMPLES[name]} if name in _EXAMPLES else {}) for name in found}


def job_model(row: JobRow, documents: Sequence[JobFile], active: ActiveJob | None) -> Job:
    """A job as clients get it."""
    pages = {} if active is None else active.pages
    total, ended, failed, rate = row.pages, row.ended, row.failed, None
    if active is not None:
        total, ended, failed, rate = active.total, active.ended, active.failed, active.rate
    # No estimate before the first page: a rate of nothing would promise an end that never comes.
    left = None if total is None or rate is None else max(0, total - ended) / rate
    return Job(
        id=row.id,
        state=row.state,
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
            JobDocument(id=document.id, name=document.name, pages=pages.get(document.id, document.pages))
            for document in documents
        ],
        error=row.error,
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
