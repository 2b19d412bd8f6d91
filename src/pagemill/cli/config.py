"""``pagemill config``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from pagemill.cli import config_file

_SECRET = ("password", "token", "key")


@click.command(name="config")
@click.pass_context
def command(context: click.Context) -> None:
    """Check pagemill.toml, and show what it sets.

    It holds a table for each command; keys are the long options of the command, without dashes. Options of the command
    line go before it. It is looked for in the working directory, or named: pagemill --config FILE COMMAND.

    \b
    [parse]
    lang = ["ko", "en"]
    output = "out"
    \b
    [serve]
    port = 9000
    """  # noqa: D301 - click wants the control character
    root = context.find_root()
    path = config_file.find(root.params.get("config"))
    if path is None:
        click.echo(f"There is no {config_file.NAME} in this folder; pagemill --config FILE names another.")
        return
    tables = config_file.load(path)
    assert isinstance(root.command, click.Group)
    config_file.defaults(path, tables, root.command, explicit=True)  # refuses what is unknown
    click.echo(f"# {path}")
    for line in _lines(tables):
        click.echo(line)


def _lines(tables: Mapping[str, Any], inside: str = "") -> Iterator[str]:
    for name, values in tables.items():
        place = f"{inside}{name}"
        plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
        if plain:
            yield f"[{place}]"
        for key, value in plain.items():
            hidden = any(part in _SECRET for part in key.replace("_", "-").split("-"))
            yield f"{key} = {json.dumps('(hidden)' if hidden else value, ensure_ascii=False, default=str)}"
        yield from _lines({key: value for key, value in values.items() if isinstance(value, dict)}, f"{place}.")
