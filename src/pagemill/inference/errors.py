"""Failures of a single request to a model server. Failures of all requests are errors of the command."""

from __future__ import annotations

from pagemill.errors import ExitCode, PagemillError


class RequestRefusedError(PagemillError):
    """A server refused this request with 4xx: retrying it unchanged, here or elsewhere, cannot succeed.

    Args:
        message: The server's message, truncated.
        status: HTTP status; vLLM answers 400 to an image over its encoder cache or a prompt over the model's length.
    """

    exit_code = ExitCode.PAGES_FAILED
    category = "refused"
    retryable = False

    def __init__(self, message: str, *, status: int, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class RequestFailedError(PagemillError):
    """All attempts at this request failed while servers are up: only its region or page fails."""

    exit_code = ExitCode.NETWORK
    category = "server_error"


class RequestTimeoutError(RequestFailedError):
    """The last attempt at this request timed out."""

    exit_code = ExitCode.TIMEOUT
    category = "timeout"
