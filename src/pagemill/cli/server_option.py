"""The option that names model servers, the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def server_option(what: str, *, name: str = "--server", parameter: str = "servers") -> Callable[..., Any]:
    """An option with URLs of servers: repeatable, and several in one value.

    Args:
        what: What the servers are for, as its help says it.
        name: The option.
        parameter: What the command gets it as: a tuple of URLs.
    """
    return click.option(
        name,
        parameter,
        multiple=True,
        metavar="URL[,URL...]",
        callback=lambda context, option, values: _urls(values),
        help=f"{what}; may be repeated.",
    )


def _urls(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(url.strip() for value in values for url in value.split(",") if url.strip())
