"""The option that names model servers."""

import importlib

import click
import pytest
from click.testing import CliRunner

from pagemill.cli.server_option import server_option


def test_servers_may_be_repeated_and_several_in_one_value():
    told = []

    @click.command()
    @server_option("What", name="--other-server", parameter="others")
    def command(others: tuple[str, ...]) -> None:
        told.extend(others)

    assert CliRunner().invoke(command, ["--other-server", "http://a:1, http://b:2,", "--other-server", "https://c"])
    assert told == ["http://a:1", "http://b:2", "https://c"]


@pytest.mark.parametrize("name", ["parse", "embed", "search", "eval retrieval", "doctor", "run"])
def test_all_commands_take_servers_alike(name: str):
    first, *rest = name.split()
    command = importlib.import_module(f"pagemill.cli.{first}").command
    for word in rest:
        command = command.commands[word]
    option = next(option for option in command.params if "--server" in option.opts)
    assert (option.metavar, option.multiple) == ("URL[,URL...]", True)
    with click.Context(command) as context:
        assert option.process_value(context, ("http://a:1,http://b:2",)) == ("http://a:1", "http://b:2")
