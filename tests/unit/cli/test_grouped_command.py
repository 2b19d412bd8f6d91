"""Help with headings."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from pagemill.cli import parse, run
from pagemill.cli.grouped_command import GroupedCommand


@click.command(cls=GroupedCommand, groups={"Second": ("--b",), "First": ("--a",), "Nobody": ("--none",)})
@click.option("-a", "--a", help="An a.")
@click.option("--b", help="A b.")
@click.option("--hidden", hidden=True)
@click.option("--c", help="A c.")
def command() -> None:
    pass


def test_options_stand_under_their_headings_in_the_order_of_the_headings():
    shown = CliRunner().invoke(command, ["--help"]).output
    words = ["Second:", "--b", "First:", "--a", "options:", "--c", "--help"]
    assert [word for word in shown.split() if word in words] == words
    assert "Nobody" not in shown
    assert "--hidden" not in shown


@pytest.mark.parametrize("module", [parse, run], ids=["parse", "run"])
def test_every_option_has_a_heading_and_every_name_an_option(module):
    names = [name for group in module.command.groups.values() for name in group]
    options = [option for option in module.command.params if isinstance(option, click.Option)]
    assert len(names) == len(set(names)) == len(options)
    assert all(sum(name in option.opts for name in names) == 1 for option in options)
