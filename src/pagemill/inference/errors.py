"""How a request to model servers may fail, alone: what concerns all requests is told by the errors of every command."""

from __future__ import annotations

from pagemill.errors import ExitCode, PagemillError


class RequestRefusedError(PagemillError):
    """A server said 4xx to this very request: trying again as it is, here or elsewhere, is of no use.

    Args:
        message: What the server said, cut to a bearable length.
        status: HTTP status; vLLM says 400 for an image over its encoder cache or a prompt over the model's length.
    """

    exit_code = ExitCode.PAGES_FAILED
    category = "refused"
    retryable = False

    def __init__(self, message: str, *, status: int, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class RequestFailedError(PagemillError):
    """Servers are there, but this request failed on all attempts that the client makes: what it is for fails alone."""

    exit_code = ExitCode.NETWORK
    category = "server_error"


class RequestTimeoutError(RequestFailedError):
    """No answer within the time limit of a request, on the last of all attempts that the client makes."""

    exit_code = ExitCode.TIMEOUT
    category = "timeout"
