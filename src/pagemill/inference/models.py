"""Models that servers offer, decoded from untrusted JSON, and the choice of the one that is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_MOST_TOKENS = 10**7
_NAMES_SHOWN = 20
_NAME_WIDTH = 100


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model on the servers."""

    name: str
    """Its name in requests."""
    max_tokens: int | None
    """Longest request in tokens that every server accepts, if they report it."""


class _Model(msgspec.Struct):
    id: str
    root: Any = None
    max_model_len: Any = None


class _Models(msgspec.Struct):
    data: list[_Model]


_MODELS = msgspec.json.Decoder(_Models)


@dataclass(frozen=True, slots=True)
class Served:
    """A row of a server's ``/v1/models``."""

    name: str
    root: str | None
    """The folder or Hub repository that the model was loaded from, if the server reports it."""
    max_model_len: int | None


def decode_served(reply: bytes) -> list[Served]:
    """The rows of ``/v1/models``.

    Raises:
        ValueError: It is not a list of models.
        RecursionError: It is nested too deeply.
    """
    return [
        Served(
            name=model.id,
            root=model.root if isinstance(model.root, str) else None,
            max_model_len=token_count(model.max_model_len) or None,
        )
        for model in _MODELS.decode(reply).data
    ]


def decode_models(reply: bytes) -> dict[str, int | None]:
    """The names of a server's models, and the longest request in tokens where it is reported.

    Raises:
        ValueError: It is not a list of models.
        RecursionError: It is nested too deeply.
    """
    return {model.name: model.max_model_len for model in decode_served(reply)}


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
        f"it is not clear which served model is {known[0]}", remedy=f"Name it with --served-model: {_listing(served)}."
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
