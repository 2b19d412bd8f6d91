"""A chat completion that is streamed, and when its first token and its end came."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from pagemill.inference.exchange import AttemptFailedError, Cause, Exchange
from pagemill.inference.models import token_count

STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
"""Fields of a request's body that ask for a stream which ends with the numbers of tokens."""
_EVENT = b"data:"
_END = b"[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedAnswer:
    """How long an answer took, and how long it is."""

    seconds: float
    """From sending the request to the end of the answer."""
    first_token_s: float | None
    """From sending the request to the first text; None for an answer without any."""
    prompt_tokens: int | None
    """None if the server does not report it."""
    output_tokens: int
    """The number of pieces that the text came in, if the server does not report it."""
    finish_reason: str | None


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Piece(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Any = None
    error: Any = None


async def ask_timed(exchange: Exchange, root: str, body: bytes, timeout_s: float) -> TimedAnswer:
    """Request a chat completion once and time it.

    Args:
        exchange: Connections.
        root: Base URL of the server, without ``/v1``.
        body: JSON with the fields of :data:`STREAMED`.
        timeout_s: Time limit in seconds.

    Raises:
        AttemptFailedError: There is no valid answer.
        RequestRefusedError: The server refused the request.
        UsageError: The model, the path or the API key is wrong.
    """
    url, loop = f"{root}/v1/chat/completions", asyncio.get_running_loop()
    start = loop.time()
    first: float | None = None
    usage: dict[str, Any] = {}
    reason: str | None = None
    pieces, ended = 0, False
    async with aclosing(exchange.lines(url, timeout_s, body)) as lines:
        async for line in lines:
            if not line.startswith(_EVENT):
                continue  # between events, or a comment
            data = line[len(_EVENT) :].strip()
            if data == _END:
                ended = True
                # Not a break: only a response that is read to its end leaves its connection usable.
                continue
            piece = _decode(data, url)
            for choice in piece.choices[:1]:
                reason = choice.finish_reason or reason
                if choice.delta.content:
                    pieces += 1
                    first = first if first is not None else loop.time() - start
            usage = piece.usage if isinstance(piece.usage, dict) else usage
    if not ended:
        raise AttemptFailedError(Cause.BAD_ANSWER, f"{url} does not stream its answers to the end")
    tokens = token_count(usage.get("completion_tokens"))
    return TimedAnswer(
        seconds=loop.time() - start,
        first_token_s=first,
        prompt_tokens=token_count(usage.get("prompt_tokens")),
        output_tokens=pieces if tokens is None else tokens,
        finish_reason=reason,
    )


def _decode(data: bytes, url: str) -> _Piece:
    try:
        piece = msgspec.json.decode(data, type=_Piece)
    except (ValueError, RecursionError) as error:
        raise AttemptFailedError(Cause.BAD_ANSWER, f"{url} streams an invalid answer: {error}") from error
    if piece.error is not None:  # vLLM reports a failure midway as an event
        raise AttemptFailedError(Cause.SERVER_ERROR, f"{url} failed in the middle of an answer")
    return piece
