"""The models of servers, decoded from untrusted input."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from pagemill.errors import UsageError

_MOST_TOKENS = 10**7
_NAMES_SHOWN = 20
_NAME_WIDTH = 100


class Served(msgspec.Struct):
    """A row of a server's ``/v1/models``."""

    name: str = msgspec.field(name="id")
    root: Any = None
    """The folder or Hub repository that the model was loaded from, if the server reports it."""
    max_model_len: Any = None
    """The longest request in tokens, if the server reports it, as vLLM does."""

    def __post_init__(self) -> None:
        """Only ``id`` must be valid: the others are optional."""
        self.root = self.root if isinstance(self.root, str) else None
        self.max_model_len = token_count(self.max_model_len) or None


class _Models(msgspec.Struct):
    data: list[Served]


def decode_served(reply: bytes) -> list[Served]:
    """The rows of ``/v1/models``.

    Raises:
        ValueError: It is not a list of models.
        RecursionError: It is nested too deeply.
    """
    return msgspec.json.decode(reply, type=_Models).data


def token_count(given: object) -> int | None:
    """A plausible number of tokens; None otherwise."""
    return given if isinstance(given, int) and 0 <= given <= _MOST_TOKENS else None


def choose_model(served: Mapping[str, Collection[str]], wanted: str | None, known: Sequence[str]) -> str:
    """The name to request a model by, the same on all servers: one that most of them serve.

    Args:
        served: The models of each server (:meth:`pagemill.inference.client.ServerClient.served_models`).
        wanted: The name the user gave; None to choose.
        known: Known names of the model, most specific first.

    Raises:
        UsageError: No server serves it, or it is not clear which one is meant; the remedy lists what there is.
    """
    if wanted is not None:
        if not any(wanted in names for names in served.values()):
            raise not_served(wanted, served)
        return wanted
    best = max(known, key=lambda name: sum(name in names for names in served.values()))
    if any(best in names for names in served.values()):
        return best
    models = {tuple(names) for names in served.values()}
    if len(models) == 1 and len(only := models.pop()) == 1:
        return only[0]
    raise UsageError(
        f"it is not clear which served model is {known[0]}", remedy=f"Pass it with --served-model: {_listing(served)}."
    )


def not_served(name: str, served: Mapping[str, Collection[str]]) -> UsageError:
    """The error for servers that do not serve a model.

    Args:
        name: Name of the model.
        served: The models of each server.
    """
    return UsageError(
        f"{' and '.join(served)} do{'es' if len(served) == 1 else ''} not serve {name!r}",
        remedy=f"Check --served-model: {_listing(served)}.",
    )


def _listing(served: Mapping[str, Collection[str]]) -> str:
    """What each server serves, safe to show on a terminal."""
    parts = []
    for root, names in served.items():
        shown = ["".join(filter(str.isprintable, name))[:_NAME_WIDTH] for name in list(names)[:_NAMES_SHOWN]]
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        parts.append(f"{root} serves {', '.join(shown) or 'nothing'}{more}")
    return "; ".join(parts)
