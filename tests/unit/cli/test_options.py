"""Options: made from their declarations, grouped in the help, and refused where they do not go together."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pagemill.app.options import ParseOptions
from pagemill.cli import cli, exit_status, parse, run
from pagemill.cli.options import GroupedCommand, GroupedOption, server_option, takes
from pagemill.config.modes import ReadingMode, TextLayerMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.errors import ExitCode, UsageError


@click.command(cls=GroupedCommand)
@click.option("-a", "--a", help="An a.", cls=GroupedOption, heading="Second")
@click.option("--other", help="No heading.")
@click.option("--b", help="A b.", cls=GroupedOption, heading="First")
@click.option("--hidden", hidden=True, cls=GroupedOption, heading="Nobody")
@click.option("--c", help="A c.", cls=GroupedOption, heading="Second")
def grouped() -> None:
    pass


def commands(command: click.Command = cli) -> Iterator[click.Command]:
    """A command and all below it."""
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from commands(command.get_command(click.Context(command), name))


def test_the_help_lists_every_command_once_in_sections():
    shown = CliRunner().invoke(cli, ["--help"]).output
    listed = re.findall(r"^  ([a-z][a-z-]*)  +[A-Z]", shown, re.MULTILINE)
    assert listed == cli.list_commands(click.Context(cli))
    assert sorted(listed) == sorted(cli.commands)
    assert shown.index("\nParse:") < shown.index("  parse ") < shown.index("\nServe:") < shown.index("  serve ")


def test_the_help_of_an_option_names_options_of_its_command():
    for command in commands():
        flags = {"--help"}.union(*([*each.opts, *each.secondary_opts] for each in command.params))
        for each in command.params:
            assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", getattr(each, "help", "") or "")) <= flags


def test_options_are_listed_under_their_headings_in_the_order_in_which_these_appear():
    shown = CliRunner().invoke(grouped, ["--help"]).output
    words = ["Second:", "--a", "--c", "First:", "--b", "options:", "--other", "--help"]
    assert [word for word in shown.split() if word in words] == words
    assert "Nobody" not in shown
    assert "--hidden" not in shown


@pytest.mark.parametrize("module", [parse, run], ids=["parse", "run"])
def test_every_option_of_the_large_commands_has_a_heading(module):
    assert all(isinstance(option, (GroupedOption, click.Argument)) for option in module.command.params)


def settings_of(*arguments: str) -> ParseOptions:
    """The settings that options of the command line stand for."""
    built: list[ParseOptions] = []

    @click.command()
    @takes(options=ParseOptions)
    def command(options: ParseOptions) -> None:
        built.append(options)

    CliRunner().invoke(command, arguments, catch_exceptions=False)
    return built[0]


def test_without_options_the_settings_are_the_defaults():
    assert settings_of() == ParseOptions()
    recognition = ParseOptions().settings.recognition
    assert (recognition.reads_regions, recognition.text_layer) == (False, TextLayerMode.AUTO)


def test_all_options_of_recognition_arrive():
    options = settings_of(
        *("--recognition-engine", "vlm", "--model", "paddleocr-vl", "--server", "http://a:1, http://b:2,"),
        *("--server", "https://c", "--reading", "pages", "--no-footnotes", "--served-model", "mine", "--workers", "8"),
        *("--request-timeout", "60", "--server-wait", "30"),
    )
    assert options.settings.recognition == RecognitionSettings(
        engine="vlm",
        model="paddleocr-vl",
        servers=("http://a:1", "http://b:2", "https://c"),
        reading=ReadingMode.PAGES,
        footnotes=False,
        served_model="mine",
        workers=8,
        request_timeout_s=60.0,
        server_wait_s=30.0,
    )
    assert options.settings.text_layer is TextLayerMode.NEVER


def test_an_option_of_two_settings_classes_appears_once_and_reaches_both():
    built: list[Any] = []

    @click.command()
    @takes(one=ParseSettings, other=RecognitionSettings, leave_out=["crops"])
    def command(one: ParseSettings, other: RecognitionSettings) -> None:
        built.extend([one.recognition, other])

    assert len({option.name for option in command.params}) == len(command.params)
    assert "crops" not in {option.name for option in command.params}
    CliRunner().invoke(command, ["--model", "mine"], catch_exceptions=False)
    assert [each.model for each in built] == ["mine", "mine"]


def test_an_engine_of_another_package_needs_no_server():
    assert settings_of("--recognition-engine", "mine").settings.recognition.engine == "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--server", "http://a"], "--server requires a model"),
        (["--reading", "pages"], "--reading requires a model"),
        (["--model", "glm-ocr", "--workers", "3"], "--model and --workers require a model"),
        (["--recognition-engine", "vlm"], "needs --server URL"),
        (["--recognition-engine", "vlm", "--server", " , "], "needs --server URL"),
        (
            ["--recognition-engine", "vlm", "--server", "http://a", "--lang", "ko"],
            "languages apply to",
        ),
        (["--recognition-engine", "vlm", "--server", "http://a", "--workers", "-1"], "workers is -1"),
        (["--recognition-engine", "vlm", "--server", "http://a", "--request-timeout", "0"], "--request-timeout is 0"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_started(options, said, tmp_path: Path, capsys):
    arguments = ["parse", "a.pdf", "-o", str(tmp_path / "out"), *options]
    assert exit_status(lambda: cli.main(arguments, standalone_mode=False)) == ExitCode.USAGE
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "settings",
    [{"request_timeout_s": 0.0}, {"server_wait_s": float("nan")}, {"request_timeout_s": -1.0}, {"workers": -1}],
)
def test_limits_are_numbers_over_zero(settings):
    with pytest.raises(UsageError):
        RecognitionSettings(**settings)


def test_what_a_model_is_given_may_be_a_plain_word():
    assert RecognitionSettings(reading="pages").reading is ReadingMode.PAGES
    with pytest.raises(UsageError, match="reading is 'words'"):
        RecognitionSettings(reading="words")


def test_servers_may_be_repeated_and_several_in_one_value():
    told = []

    @click.command()
    @server_option("What")
    def command(servers: tuple[str, ...]) -> None:
        told.extend(servers)

    assert CliRunner().invoke(command, ["--server", "http://a:1, http://b:2,", "--server", "https://c"])
    assert told == ["http://a:1", "http://b:2", "https://c"]


@pytest.mark.parametrize("name", ["parse", "embed", "search", "eval retrieval", "doctor", "run"])
def test_all_commands_take_servers_alike(name: str):
    command = cli
    for word in name.split():
        command = command.get_command(click.Context(command), word)
    option = next(option for option in command.params if "--server" in option.opts)
    assert (option.metavar, option.multiple) == ("URL[,URL...]", True)
    with click.Context(command) as context:
        assert option.process_value(context, ("http://a:1,http://b:2",)) == ("http://a:1", "http://b:2")
