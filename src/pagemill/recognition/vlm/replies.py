"""What OpenAI-compatible servers reply, out of JSON that nobody vouches for: completions and lists of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.errors import UsageError
from pagemill.recognition.vlm.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_MOST_TOKENS = 10**7
_NAMES_SHOWN = 20
_NAME_WIDTH = 100


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None
    """Numbers for information: no answer is lost for what stands here."""


class _Model(msgspec.Struct):
    id: str
    max_model_len: Any = None


class _Models(msgspec.Struct):
    data: list[_Model]


_COMPLETION = msgspec.json.Decoder(_Completion)
_MODELS = msgspec.json.Decoder(_Models)


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
    tokens = _count(usage.get("completion_tokens"))
    answer = Answer(
        text=text,
        finish_reason=choice.finish_reason,
        completion_tokens=tokens,
        prompt_tokens=_count(usage.get("prompt_tokens")),
    )
    return answer, len(text) // 3 + 1 if tokens is None else tokens


def decode_models(reply: bytes) -> dict[str, int | None]:
    """The names of a server's models, and the most tokens of a request where it tells them.

    Raises:
        ValueError: It is no list of models.
        RecursionError: It is nested far too deep to be one.
    """
    return {model.id: _count(model.max_model_len) or None for model in _MODELS.decode(reply).data}


def _count(given: object) -> int | None:
    """A number of tokens, where a server gives one that can be."""
    return given if isinstance(given, int) and 0 <= given <= _MOST_TOKENS else None


def choose_model(served: Mapping[str, Collection[str]], wanted: str | None, known: Sequence[str]) -> str:
    """The name by which a model is asked for, the same on all servers.

    Args:
        served: The models of each server (:meth:`pagemill.recognition.vlm.client.ServerClient.served_models`).
        wanted: The name the user gave; None to choose.
        known: Names that the model goes by, the best first.

    Raises:
        UsageError: A server does not serve it, or it is not clear which one is meant; the remedy lists what there is.
    """
    common = [name for name in next(iter(served.values())) if all(name in names for names in served.values())]
    listing = _listing(served)
    if wanted is not None:
        if wanted not in common:
            lacking = next(root for root, names in served.items() if wanted not in names)
            raise UsageError(f"{lacking} does not serve {wanted!r}", remedy=f"Check --served-model: {listing}.")
        return wanted
    for name in known:
        if name in common:
            return name
    if len(common) == 1 and all(len(names) == 1 for names in served.values()):
        return common[0]
    raise UsageError(
        f"it is not clear which served model is {known[0]}", remedy=f"Name it with --served-model: {listing}."
    )


def _listing(served: Mapping[str, Collection[str]]) -> str:
    """What each server serves, as it may be shown on a terminal."""
    parts = []
    for root, names in served.items():
        shown = ["".join(filter(str.isprintable, name))[:_NAME_WIDTH] for name in list(names)[:_NAMES_SHOWN]]
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        parts.append(f"{root} serves {', '.join(shown) or 'nothing'}{more}")
    return "; ".join(parts)
