"""The command line: one thin file a command, imported only when that command runs."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

import click

from pagemill import __version__
from pagemill.errors import ExitCode, PagemillError

if TYPE_CHECKING:
    from collections.abc import Callable

_COMMANDS = {
    "parse": ("pagemill.cli.parse", "Parse documents into text, tables, Markdown and JSON records, or go on with it."),
    "status": ("pagemill.cli.status", "Show how a run stands, also while it runs."),
    "verify": ("pagemill.cli.verify", "Check what a run wrote, and mend it."),
    "export": ("pagemill.cli.export", "Write the pages of a run in another format."),
    "bench": ("pagemill.cli.bench", "Measure parts of pagemill on this machine."),
}


class _LazyGroup(click.Group):
    """Lists its commands without importing them, so that ``pagemill --help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(_COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pagemill")
def cli() -> None:
    """Turn PDFs, scans and datasets of page images into structured pages.

    \b
    pagemill parse report.pdf scans/ -o out
    """  # noqa: D301 - click wants the control character


def main() -> NoReturn:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal's encoding lacks must not end a run
            stream.reconfigure(errors="backslashreplace")
    sys.exit(exit_status(lambda: cli.main(standalone_mode=False)))


def exit_status(action: Callable[[], object]) -> int:
    """Do something and give the exit status; errors of ours become a message, a remedy and their exit code."""
    try:
        status = action()
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return ExitCode.INTERRUPTED
    except PagemillError as error:
        click.echo(f"Error: {error.message}", err=True)
        if error.remedy:
            click.echo(f"  {error.remedy}", err=True)
        return error.exit_code
    except Exception:
        traceback.print_exc()
        click.echo("Error: this is a defect of pagemill. Please report it with the lines above.", err=True)
        return ExitCode.INTERNAL
    return status if isinstance(status, int) else ExitCode.OK
