"""Chat completions: requests and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from pagemill.inference.client import ServerClient
from pagemill.inference.models import token_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One choice of a chat completion."""

    text: str
    """``choices[0].message.content``; empty when that is null."""
    finish_reason: str | None = None
    """``stop``, ``length``, ``repetition``, ...; None if the server does not report it."""
    completion_tokens: int | None = None
    prompt_tokens: int | None = None


class ChatClient(ServerClient):
    """Requests chat completions."""

    async def ask(self, body: bytes) -> Answer:
        """Send the JSON body of a chat completion and wait for its answer, as :meth:`post`. May be cancelled."""
        return await self.post("/v1/chat/completions", body, decode_completion)


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None
    """Counts for information: an invalid one never costs the answer."""


def decode_completion(reply: bytes) -> tuple[Answer, int]:
    """The answer of a chat completion and its number of tokens.

    Raises:
        ValueError: It is not a chat completion.
        RecursionError: It is nested too deeply.
    """
    completion = msgspec.json.decode(reply, type=_Completion)
    if not completion.choices:
        raise ValueError("no choices")
    choice, usage = completion.choices[0], completion.usage if isinstance(completion.usage, dict) else {}
    text = choice.message.content or ""
    tokens = token_count(usage.get("completion_tokens"))
    asked = token_count(usage.get("prompt_tokens"))
    answer = Answer(text=text, finish_reason=choice.finish_reason, completion_tokens=tokens, prompt_tokens=asked)
    # Without a count, three characters per token: it only scales the latency that the limit compares.
    return answer, len(text) // 3 + 1 if tokens is None else tokens
