"""What comes back from a server, and the ways in which nothing does: between the HTTP client and those who ask."""

from __future__ import annotations

from typing import Protocol

import msgspec

from pagemill.errors import EngineError, ExitCode


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The first choice of a chat completion."""

    content: str
    """Empty where the server gave none."""
    finish_reason: str | None = None
    """``stop``, ``length``, ``repetition``, ...; None where the server did not say."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 1
    """HTTP requests that it took, those that failed included."""


class Asker(Protocol):
    """Takes the body of a chat completion to a server. Safe to be called many times at once on one event loop."""

    async def ask(self, body: bytes) -> Answer:
        """Send a request until a server has answered it. Limits, retries and server choice are inside.

        Args:
            body: JSON of ``/v1/chat/completions``.

        Raises:
            RequestRefusedError: The server does not take this request (HTTP 400, 413, 422); another one it might.
            RequestFailedError: Servers are there, but this request failed on each attempt.
            NetworkError: No server could be reached for too long; the page should fail and be tried again later.
            UsageError: The servers do not serve this model, or not to this user; the remedy says what to do.
        """
        ...

    def idle(self) -> bool:
        """Whether there is room for further requests right now: nobody waits for a server."""
        ...


class RequestRefusedError(EngineError):
    """A server refused a request for what it is, for example because its image is too large."""

    category = "refused"
    retryable = False

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"the server refused the request with HTTP {status}: {reason}")
        self.status = status
        self.reason = reason
        """What the server said, shortened."""

    @property
    def too_large(self) -> bool:
        """Whether a smaller image may be taken: the server speaks of a size, length or cache."""
        said = self.reason.lower()
        return self.status == 413 or any(
            word in said for word in ("encoder cache", "too large", "too long", "maximum", "max_model_len", "exceed")
        )


class RequestFailedError(EngineError):
    """A request failed on every attempt, while servers are there."""

    exit_code = ExitCode.NETWORK

    def __init__(self, message: str, *, category: str, requests: int) -> None:
        super().__init__(message)
        self.category = category
        """Of the last attempt: ``timeout``, ``network``, ``server_error``, ``busy`` or ``bad_answer``."""
        self.requests = requests
        """HTTP requests that were made."""
