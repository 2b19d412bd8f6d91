"""Errors with an HTTP status, and the status of all others."""

from __future__ import annotations

from pagemill.document.jobs import JobError
from pagemill.errors import (
    EncryptedError,
    ExitCode,
    InputError,
    LanguageError,
    LockedError,
    MissingInputError,
    NetworkError,
    NoSpaceError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
    UsageError,
)


class HttpError(PagemillError):
    """An error that is sent as a response."""

    exit_code = ExitCode.USAGE
    category = "request"
    retryable = False
    status = 400

    def __init__(
        self, message: str, *, remedy: str | None = None, retry_after_s: int | None = None, status: int | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s
        """When to try again."""
        self.status = status or self.status


class UnauthorizedError(HttpError):
    """The request has no key, or a wrong one."""

    category = "unauthorized"
    status = 401


class ForbiddenError(HttpError):
    """The server does not allow this request, with any key."""

    category = "forbidden"
    status = 403


class NotFoundError(HttpError):
    """There is no such job, page or document, or it belongs to another key."""

    category = "not_found"
    status = 404


class ConflictError(HttpError):
    """The state of the job does not allow the operation."""

    category = "conflict"
    status = 409


class SlowRequestError(HttpError):
    """The request took too long to arrive."""

    category = "slow_request"
    status = 408


class ContentTooLargeError(HttpError):
    """The request is over a limit."""

    category = "too_large"
    status = 413


class FetchError(HttpError):
    """A URL that a client names cannot be fetched."""

    exit_code = ExitCode.NETWORK
    category = "network"
    status = 502


class TooManyError(HttpError):
    """A limit of jobs or connections is reached; retry later."""

    category = "too_many"
    status = 429


class UnavailableError(HttpError):
    """The server cannot answer now."""

    category = "unavailable"
    status = 503


_STATUS: tuple[tuple[type[PagemillError], int], ...] = (
    (TooLargeError, 413),
    (MissingInputError, 404),
    (UnsupportedInputError, 415),
    (UsageError, 422),
    (LanguageError, 422),
    (InputError, 422),
    (EncryptedError, 422),
    (NetworkError, 502),
    (LockedError, 409),
    (NoSpaceError, 507),
)


def reported(error: PagemillError) -> JobError:
    """An error as clients get it."""
    return JobError(category=error.category, message=error.message, remedy=error.remedy)


def sentence(message: str, remedy: str | None) -> str:
    """An error as one text, for clients of APIs that have no remedies."""
    return f"{message}. {remedy}" if remedy else message


def status_of(error: PagemillError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, HttpError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
