"""``pagemill config``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from pagemill.cli import config_file


@click.command(name="config")
@click.pass_context
def command(context: click.Context) -> None:
    """Check pagemill.toml, and show its options.

    It has one table per command; keys are the long options of the command, without dashes. Options of the command
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
    for line in _lines(tables, root.command):
        click.echo(line)


def _lines(tables: Mapping[str, Any], group: click.Group, inside: str = "") -> Iterator[str]:
    for name, values in tables.items():
        command = group.get_command(click.Context(group), name)
        # Its commands have tables inside its table: [models.download].
        if isinstance(command, click.Group):
            yield from _lines(values, command, f"{inside}{name}.")
        elif command is not None and values:
            options = config_file.options_of(command)
            yield f"[{inside}{name}]"
            for key, value in values.items():
                # What this prints ends up in logs and reports of errors.
                hidden = options[key.replace("_", "-")].hide_input
                yield f"{key} = {json.dumps('(hidden)' if hidden else value, ensure_ascii=False, default=str)}"
