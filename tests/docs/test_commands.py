"""Every `pagemill ...` line of the documentation names commands, options and choices that exist."""

import re
import shlex
from pathlib import Path

import click
import pytest
from markdown_pages import PAGES, ROOT, blocks, name

from pagemill.cli import cli


def command_lines(text: str) -> list[str]:
    """The calls of pagemill in a shell block, continued lines joined, comments and what follows a pipe left out."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    calls = (re.search(r"(?:^|\s|/)(pagemill (?!-m)[^|&;>]*)", line.removeprefix("$ ")) for line in lines)
    return [call[1] for call in calls if call and not call.string.lstrip().startswith(("#", "pip ", "python "))]


def check(line: str) -> None:
    """Parse a command line without running it."""
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = cli
    context = click.Context(cli, info_name="pagemill")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = command.get_command(context, words[0])
        assert below is not None, f"there is no command {words[0]!r}"
        command, context = below, click.Context(below, info_name=words[0], parent=context)
        words = words[1:]
    values, _, _ = command.make_parser(context).parse_args(words)  # raises for an option that does not exist
    for parameter in command.params:
        if isinstance(parameter.type, click.Choice) and parameter.name in values:
            given = values[parameter.name]
            for value in given if isinstance(given, list | tuple) else [given]:
                if isinstance(value, str):  # else click's marker of a value that was not given
                    parameter.type.convert(value, parameter, context)


def lines_of(page: Path) -> list[str]:
    return [line for block in blocks(page) if block.language == "sh" for line in command_lines(block.code)]


def test_command_lines_parse_and_wrong_ones_are_noticed():
    lines = [(name(page), line) for page in PAGES for line in lines_of(page)]
    assert len(lines) > 50
    for page, line in lines:
        try:
            check(line)
        except click.UsageError as error:
            pytest.fail(f"{page}: {line}\n{error.format_message()}")
    with pytest.raises(click.UsageError):
        check("pagemill parse x.pdf --no-such-option")
    with pytest.raises(click.UsageError):
        check("pagemill export out --format docx")
    with pytest.raises(AssertionError):
        check("pagemill pares x.pdf")


SCRIPTS_TOO = {ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "durability.md"}
"""Pages that name options of scripts in ``benchmarks/``, too."""
GUIDES = sorted({*(ROOT / "docs").rglob("*.md")} - SCRIPTS_TOO)
OTHER_PROGRAMS = {"--group", "--list-langs", "--enforce-eager", "--quantization", "--strict", "--kv-cache-memory-bytes"}


def test_options_in_prose_exist():
    known = {"--help", "--version", *OTHER_PROGRAMS}
    waiting: list[click.Command] = [cli]
    while waiting:
        command = waiting.pop()
        known |= {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        if isinstance(command, click.Group):
            context = click.Context(command)
            waiting += filter(None, (command.get_command(context, each) for each in command.list_commands(context)))
    spans = [(name(page), span) for page in GUIDES for span in re.findall(r"`([^`\n]+)`", page.read_text("utf-8"))]
    used = {
        (page, option)
        for page, span in spans
        if "benchmarks/" not in span
        for option in re.findall(r"--[a-z][a-z-]+", span)
    }
    assert {(page, option) for page, option in used if option not in known} == set()
