"""The command line: one thin file per command, imported only when that command runs."""

from __future__ import annotations

import errno
import gc
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

import click

from pagemill import plugins
from pagemill._version import __version__
from pagemill.errors import ExitCode, MissingDependencyError, PagemillError, is_no_space, unwritable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

COMMANDS = "pagemill.commands"
"""Entry points of other packages: each is a ``click.Command``."""
_SECTIONS = {
    "Parse": {
        "parse": "Parse documents into text, tables, Markdown and JSON records; resume a run.",
        "watch": "Parse the documents of a folder as they arrive.",
        "status": "Show the status of a run, also while it is in progress.",
        "verify": "Check the output of a run, and repair it.",
        "rebuild": "Derive the structure of documents again, after an update of pagemill.",
        "run": "Run the whole pipeline: model server, parsing, embeddings, upload.",
    },
    "Use the pages of a run": {
        "export": "Export them to another format.",
        "index": "Make a run searchable.",
        "search": "Search by full text and by vectors.",
        "embed": "Make vectors of pages, regions and queries.",
        "describe": "Describe figures, charts and tables.",
        "extract": "Extract the values of a JSON Schema, each with its place on the page.",
        "publish": "Publish a run as a dataset on the Hub, in a folder or at a URL.",
    },
    "Serve": {
        "serve": "Serve parsing over HTTP: durable jobs, results page by page, a web app.",
        "mcp": "Offer parsing and search to assistants (Model Context Protocol).",
    },
    "Models": {
        "models": "List, find and download the models that engines use.",
        "plan": "Size a model server: memory, concurrency, flags.",
        "serve-model": "Start, watch and stop vLLM servers of a model.",
    },
    "Check and measure": {
        "config": "Check the configuration file, and show what it sets.",
        "completion": "Print the completion script of a shell.",
        "doctor": "Check that this machine has what a task needs.",
    },
}
_COMMANDS = [name for commands in _SECTIONS.values() for name in commands]
_TOOLS = {
    "eval": ("pagemill-eval", "Score results against ground truth."),
    "profile": ("pagemill-bench", "Show where the time of parsing goes, and what the bottleneck is."),
    "bench": ("pagemill-bench", "Measure parts of pagemill on this machine."),
}
"""Commands of our other packages: the package, and the help line."""
_WIDTH = max(map(len, [*_COMMANDS, *_TOOLS]))  # the sections of --help are in line


def _added() -> dict[str, plugins.Plugin]:
    """The commands of other packages by name, our packages first; built-in commands cannot be replaced."""
    found = plugins.installed(COMMANDS)
    return {name: found[name] for name in dict.fromkeys([*_TOOLS, *found]) if name in found and name not in _COMMANDS}


class _LazyGroup(click.Group):
    """Lists its commands without importing them, so that ``pagemill --help`` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *_added()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            command: click.Command = importlib.import_module(f"pagemill.cli.{cmd_name.replace('-', '_')}").command
            return command
        # Looked up only for names that are not ours: reading the entry points of all packages takes time.
        if plugin := _added().get(cmd_name):
            return plugin.load(f"the command {cmd_name!r}", click.Command)  # type: ignore[no-any-return]
        if tool := _TOOLS.get(cmd_name):
            from pagemill.installation import install_tool

            message = f"pagemill {cmd_name} is part of the package {tool[0]}, which is not installed"
            raise MissingDependencyError(message, remedy=f"Install it: {install_tool(tool[0])}")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found = super().resolve_command(ctx, args)
        if not gc.isenabled():  # see main()
            gc.freeze()
            gc.enable()
        return found

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `pagemill search ... | head -1`; click would exit with 1, our code for a defect
            return ExitCode.OK

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = {title: dict(commands) for title, commands in _SECTIONS.items()}
        for name, plugin in _added().items():
            if name in _TOOLS:
                sections["Check and measure"][name] = _TOOLS[name][1]
            else:
                sections.setdefault("Plugins", {})[name] = plugin.summary()
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(_WIDTH), does) for name, does in commands.items()])


@click.group(
    cls=_LazyGroup,
    commands={
        name: click.Command(name) for name in [*_COMMANDS, *_TOOLS]
    },  # their names, to suggest one for a misspelt one
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, "-V", "--version", prog_name="pagemill")
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Options from this file.  [default: pagemill.toml, if it is here]",
)
@click.pass_context
def cli(context: click.Context, config: Path | None) -> None:
    """Turn PDFs, scans and datasets of page images into structured pages.

    \b
    pagemill parse report.pdf scans/ -o out  # then open out/report.html
    pagemill serve                           # the same in a browser and over HTTP

    `pagemill COMMAND --help` shows the options and examples of a command.
    """  # noqa: D301 - click wants the control character
    is_off = os.environ.get("PAGEMILL_NO_CONFIG") or not os.path.isfile("pagemill.toml")  # noqa: PTH113
    if config is None and is_off:  # the usual case costs no import
        return
    from pagemill.cli import config_file

    path = config_file.find(config)
    name = context.invoked_subcommand
    if path is not None and name is not None and name not in ("config", "completion"):
        tables = config_file.load(path)
        wanted = {name: tables[name]} if name in tables else {}
        assert isinstance(context.command, click.Group)
        context.default_map = config_file.defaults(path, wanted, context.command, explicit=config is not None)
        if wanted:
            click.echo(f"Note: options from {path}.", err=True)


class _Messages(io.FileIO):
    """Standard error: a message that cannot be written (a closed pipe, a full disk) must not stop the work."""

    def write(self, content: ReadableBuffer, /) -> int:
        with suppress(OSError):
            return super().write(content)
        # As if it was written, or else the buffer would keep it and try again.
        return memoryview(content).nbytes


def main() -> NoReturn:
    """Run the command line."""
    gc.disable()  # until the command is imported: nothing of that is garbage
    _open_standard_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # what the terminal cannot encode must not stop a run
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        messages = io.BufferedWriter(_Messages(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(messages, sys.stderr.encoding, "backslashreplace", line_buffering=True)
    color = False if os.environ.get("NO_COLOR") else None  # None: on a terminal only. https://no-color.org
    # Not standalone: click would exit with statuses of its own, which mean something else here.
    status = exit_status(lambda: cli.main(prog_name="pagemill", standalone_mode=False, color=color))
    # Here rather than at exit, where Python would print a traceback and change the status.
    flushed = exit_status(_flush_output)
    sys.exit(status or flushed)


def exit_status(action: Callable[[], object]) -> int:
    """Run an action and return the exit status. A PagemillError becomes a message, a remedy and its exit code."""
    try:
        status = action()
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return ExitCode.INTERRUPTED
    except PagemillError as error:
        _print_error(error.message, error.remedy)
        return error.exit_code
    except Exception as error:
        if isinstance(error, OSError) and is_no_space(error):  # behind a redirection
            full = unwritable("the output", error, remedy="", no_space_remedy="Free some space.")
            _print_error(full.message, full.remedy)
            return full.exit_code
        # An error of any other class is a defect, of which the report needs the place.
        traceback.print_exc()
        _print_error("this is a defect of pagemill. Please report it with the lines above.", None)
        return ExitCode.INTERNAL
    return status if isinstance(status, int) else ExitCode.OK


def _print_error(message: str, remedy: str | None) -> None:
    click.echo(f"Error: {message}" + (f"\n  {remedy}" if remedy else ""), err=True)


def _flush_output() -> None:
    """Write what is buffered. What cannot be written is dropped: Python would fail on it again when it exits.

    Raises:
        OSError: It cannot be written, for another reason than a closed pipe.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        discard(sys.stdout)
        if error.errno != errno.EPIPE:
            raise


def discard(stream: IO[str]) -> None:
    """Discard all further output of a stream."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    # The descriptor rather than the object: child processes and native libraries write to it as well.
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device.

    Otherwise a file of a run would get their numbers, to which libraries print.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - open as long as the process
