"""What a server answers to one request, and who asks it: the border between the client and what judges answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pagemill.errors import ExitCode, PagemillError


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One choice of a chat completion."""

    text: str
    """``choices[0].message.content``; empty when that is null."""
    finish_reason: str | None = None
    """``stop``, ``length``, ``repetition``, ...; None when the server does not tell."""
    completion_tokens: int | None = None
    prompt_tokens: int | None = None


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
    """Servers are there, but this request failed on all attempts that the client makes: its region fails, no more."""

    exit_code = ExitCode.NETWORK
    category = "server_error"


class RequestTimeoutError(RequestFailedError):
    """No answer within the time limit of a region, on the last of all attempts that the client makes."""

    exit_code = ExitCode.TIMEOUT
    category = "timeout"


class Asker(Protocol):
    """Sends one request to some server: balancing, limits, retries of what the network did wrong are inside."""

    async def ask(self, body: bytes) -> Answer:
        """Send the JSON body of a chat completion and wait for its answer. May be cancelled.

        Raises:
            RequestRefusedError: The request itself is refused (4xx other than 408 and 429).
            RequestFailedError: It failed on all attempts, while a server is there; :class:`RequestTimeoutError`
                when the last one was not answered in time.
            NetworkError: No server could be reached for as long as the client waits for one: the page should fail and
                be tried again later.
            UsageError: The servers do not serve the model, or not to this user; the remedy says what to do.
        """
        ...

    def has_idle_capacity(self) -> bool:
        """Whether the servers could take more requests than are wanted now: nobody waits for one to be free."""
        ...
