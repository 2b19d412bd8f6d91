"""What other packages add, by metadata as installers leave it."""

import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from installed_package import install_package

from pagemill import plugins
from pagemill.cli import COMMANDS, cli, exit_status
from pagemill.errors import ExitCode
from pagemill.installation import install_tool


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a package with a command into a place of its own, before all others or as the only ones."""

    def put(name: str, module: str, code: str, *, alone: bool = False) -> None:
        points = f"[console_scripts]\nacme = acme:main\n\n[pagemill.commands]\n{name} = {module}:command\n"
        folder = install_package(tmp_path / "site", f"acme-{name}", points, f"Does {name}.", **{module: code})
        monkeypatch.setattr(sys, "path", [str(folder), *([] if alone else sys.path)])

    return put


HELLO = "import click\n@click.command()\n@click.argument('who')\ndef command(who): click.echo(f'hello {who}')\n"


def called(*words: str) -> int:
    return exit_status(lambda: cli.main(words, standalone_mode=False))


def test_a_command_is_listed_without_being_imported_and_runs(install, capsys) -> None:
    install("greet", "acme_greet_module", HELLO)
    shown = CliRunner().invoke(cli, ["--help"]).output
    assert "Plugins:" in shown
    assert shown.splitlines()[-1].split() == ["greet", "Does", "greet."]
    assert "acme_greet_module" not in sys.modules
    assert called("greet", "mill") == ExitCode.OK
    assert capsys.readouterr().out == "hello mill\n"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("lost", "import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("torn", "def command(:", "SyntaxError"),
        ("empty", "", "AttributeError"),
        ("other", "command = print", "TypeError: acme_other_module:command is not a Command"),
    ],
)
def test_one_that_is_broken_breaks_itself_alone(install, capsys, name: str, code: str, said: str) -> None:
    install(name, f"acme_{name}_module", code)
    assert called("--help") == ExitCode.OK
    assert called("models", "list") == ExitCode.OK
    capsys.readouterr()
    assert called(name) == ExitCode.MISSING_DEPENDENCY
    message = capsys.readouterr().err
    assert f"Error: the command '{name}' cannot be loaded: {said}" in message
    assert f"reinstall acme_{name}" in message
    assert "Traceback" not in message


def test_none_replaces_one_of_the_core(install) -> None:
    install("parse", "acme_parse_module", HELLO)
    found = cli.get_command(click.Context(cli), "parse")
    assert found is not None and found.callback is not None
    assert found.callback.__module__ == "pagemill.cli.parse"
    assert cli.list_commands(click.Context(cli)).count("parse") == 1


@pytest.mark.parametrize(("name", "package"), [("eval", "pagemill-eval"), ("bench", "pagemill-bench")])
def test_without_a_tool_the_command_says_how_to_install_it(install, capsys, name: str, package: str) -> None:
    install("greet", "acme_greet_module", HELLO, alone=True)
    assert name not in cli.list_commands(click.Context(cli))
    assert f"  {name} " not in CliRunner().invoke(cli, ["--help"]).output
    for words in ([name], [name, "run", "--json"], [name, "--help"]):
        assert called(*words) == ExitCode.MISSING_DEPENDENCY
        message = capsys.readouterr().err
        assert f"pagemill {name} is part of the package {package}" in message
        assert f"Install it: {install_tool(package)}" in message


def test_the_metadata_says_the_same_as_the_standard_library() -> None:
    theirs = {point.name: point.value for point in entry_points(group=COMMANDS)}
    assert {name: plugin.place for name, plugin in plugins.installed(COMMANDS).items()} == theirs


def test_a_path_that_is_no_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "archive.zip").write_bytes(b"PK")
    (tmp_path / "torn-1.dist-info").mkdir()
    (tmp_path / "torn-1.dist-info" / "entry_points.txt").write_bytes(
        b"[pagemill.commands]\n\xff\n= x\nno sign\n; a = b\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "archive.zip"), str(tmp_path / "gone"), str(tmp_path)])
    assert plugins.installed(COMMANDS) == {}
