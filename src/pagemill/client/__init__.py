"""A client of ``pagemill serve``, for synchronous and for asynchronous code. It needs the extra ``client``."""

from pagemill.client.asynchronous import AsyncClient
from pagemill.client.requests import IncompleteResultsWarning, RequestError
from pagemill.client.synchronous import Client
from pagemill.document.jobs import (
    Collection,
    Job,
    JobDocument,
    JobPages,
    JobState,
    PageEvent,
    PageSummary,
    SearchResult,
)

__all__ = [
    "AsyncClient",
    "Client",
    "Collection",
    "IncompleteResultsWarning",
    "Job",
    "JobDocument",
    "JobPages",
    "JobState",
    "PageEvent",
    "PageSummary",
    "RequestError",
    "SearchResult",
]
