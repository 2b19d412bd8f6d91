"""Chat completions: what a server answers, and who asks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from pagemill.inference.client import ServerClient
from pagemill.inference.models import token_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One choice of a chat completion."""

    text: str
    """``choices[0].message.content``; empty when that is null."""
    finish_reason: str | None = None
    """``stop``, ``length``, ``repetition``, ...; None when the server does not tell."""
    completion_tokens: int | None = None
    prompt_tokens: int | None = None


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


class ChatClient(ServerClient):
    """Asks for chat completions: the :class:`Asker` of real servers."""

    async def ask(self, body: bytes) -> Answer:
        """As :meth:`Asker.ask`."""
        return await self.post("/v1/chat/completions", body, decode_completion)


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None
    """Numbers for information: no answer is lost for what stands here."""


_COMPLETION = msgspec.json.Decoder(_Completion)


def decode_completion(reply: bytes) -> tuple[Answer, int]:
    """The answer of a chat completion, and how many tokens it has.

    Raises:
        ValueError: It is no chat completion.
        RecursionError: It is nested far too deep to be one.
    """
    completion = _COMPLETION.decode(reply)
    if not completion.choices:
        raise ValueError("no choices")
    choice, usage = completion.choices[0], completion.usage if isinstance(completion.usage, dict) else {}
    text = choice.message.content or ""
    tokens = token_count(usage.get("completion_tokens"))
    answer = Answer(
        text=text,
        finish_reason=choice.finish_reason,
        completion_tokens=tokens,
        prompt_tokens=token_count(usage.get("prompt_tokens")),
    )
    return answer, len(text) // 3 + 1 if tokens is None else tokens
