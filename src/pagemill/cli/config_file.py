"""``pagemill.toml``: a table for each command, whose keys are the command's long options without dashes."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from pagemill.errors import UsageError

NAME = "pagemill.toml"
_MAX_BYTES = 2**20
_EXPLICIT = {
    **dict.fromkeys(("trust_remote_code", "vllm"), "runs code"),
    "ray": "joins a cluster, which runs code",
    **dict.fromkeys(("insecure", "allow_urls"), "opens the server to others"),
}
"""Ignored in a file found in the working directory: a folder of somebody else must not decide about trust."""


def find(given: Path | None) -> Path | None:
    """The file to use: the one that is named, else the one in the working directory, if there is one."""
    if given is not None:
        return given
    here = Path(NAME)
    return here if here.is_file() else None


def load(path: Path) -> dict[str, Any]:
    """The tables of a configuration file.

    Raises:
        UsageError: It cannot be read, or is not TOML.
    """
    try:
        with path.open("rb") as file:
            # The file may be whatever has that name in the folder, also an endless device.
            text = file.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_BYTES:,} bytes")
        return tomllib.loads(text.decode())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", remedy="Correct it, or choose another with --config."
        ) from error


def defaults(path: Path, table: Mapping[str, Any], group: click.Group, *, explicit: bool) -> dict[str, Any]:
    """The values of a table in the form of click: by command and parameter.

    Args:
        path: The file, for messages.
        table: Its tables; others than those of the group's commands are refused.
        group: The commands. Those without a table are not imported.
        explicit: The user named the file.

    Raises:
        UsageError: There is no such command or option.
    """
    context = click.Context(group)
    commands = group.list_commands(context)
    found: dict[str, Any] = {}
    for name, values in table.items():
        if name not in commands:
            raise _unknown(path, f"[{name}]", "command", name, commands)
        if not isinstance(values, dict):
            raise UsageError(f"{path}: {name} is not a table", remedy=f"Write its options below [{name}].")
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found[name] = defaults(path, values, command, explicit=explicit)
        else:
            found[name] = dict(_option(path, name, command, key, value, explicit) for key, value in values.items())
    return found


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command, by their long flags without dashes."""
    return {
        flag.removeprefix("--"): option
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
        if flag.startswith("--")
    }


def _option(path: Path, name: str, command: click.Command, key: str, value: Any, explicit: bool) -> tuple[str, Any]:
    options = options_of(command)
    option = options.get(key.replace("_", "-"))
    if option is None or option.name is None:
        raise _unknown(path, f"[{name}] {key}", "option", key.replace("_", "-"), options)
    decides = _EXPLICIT.get(option.name)
    # A folder from elsewhere must not send the user's key to a server of its author.
    if option.name.removesuffix("s").endswith("server") and os.environ.get("PAGEMILL_API_KEY"):
        decides = "decides who gets the key in PAGEMILL_API_KEY"
    if decides and not explicit:
        raise UsageError(
            f"{path}: {key} {decides}", remedy=f"Pass it on the command line, or name the file: --config {path}"
        )
    if option.multiple:
        value = value if isinstance(value, list) else [value]
    # Options with commas, such as languages, are natural lists in TOML.
    elif isinstance(value, list):
        value = ",".join(map(str, value))
    # click takes any string for a flag's value, and a boolean for a string.
    if isinstance(value, dict) or option.is_flag != isinstance(value, bool):
        raise UsageError(
            f"{path}: {key} is {value!r}", remedy="Options are on or off: true, false." if option.is_flag else None
        )
    return option.name, value


def _unknown(path: Path, place: str, kind: str, name: str, known: Iterable[str]) -> UsageError:
    # A misspelt key would otherwise be ignored without a word.
    near = difflib.get_close_matches(name, list(known), 1)
    remedy = f"Did you mean {near[0]}?" if near else f"See pagemill{'' if kind == 'command' else ' COMMAND'} --help."
    return UsageError(f"{path}: {place}: there is no such {kind}", remedy=remedy)
