"""Parses inputs with ``pagemill parse`` in a process of its own, for commands that work on the run afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.config.options import options_of, secrets_of, words
from pagemill.config.recognition import RecognitionSettings
from pagemill.errors import ExitCode, PagemillError
from pagemill.processes import die_with_parent, exit_reason

GOES_ON_AFTER = frozenset({ExitCode.OK, ExitCode.PAGES_FAILED})
"""Statuses of a command after which the next one is run: some pages may have failed, the others are there."""


class ParsingStoppedError(PagemillError):
    """``pagemill parse`` ended without a finished run, after reporting the reason."""

    def __init__(self, status: int) -> None:
        reason = "it was interrupted" if status == ExitCode.INTERRUPTED else exit_reason(status)
        super().__init__(
            f"parsing did not finish: {reason}", remedy="See the message above. Repeat the command to resume."
        )
        self.exit_code = ExitCode(status) if status in set(ExitCode) else ExitCode.CRASH


def parse_inputs(
    inputs: Sequence[str | Path],
    out: Path,
    options: ParseOptions,
    directory: DirectoryOptions,
    *,
    quiet: bool = False,
) -> int:
    """Parse inputs into a run directory, or resume that, and return the exit status: 0, or 3 where pages failed.

    Args:
        inputs: Inputs of ``pagemill parse``.
        out: The run directory.
        options: Inputs and options of parsing.
        directory: How to treat the content of ``out``.
        quiet: Show failures only.

    Raises:
        ParsingStoppedError: The run is not finished.
    """
    command, environment = parse_command(inputs, out, options, directory, quiet=quiet)
    parent = os.getpid()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=2,  # standard output is for the result of the command that needs the run
        env=environment,
        preexec_fn=lambda: die_with_parent(parent),
    )
    try:
        status = child.wait()
    except KeyboardInterrupt:  # the terminal sends it to both; the child finishes its pages in flight
        child.send_signal(signal.SIGTERM)
        child.wait()
        raise
    except BaseException:  # whatever ends this process, also a signal: the child does not outlive it
        child.kill()
        child.wait()
        raise
    if status not in GOES_ON_AFTER:
        raise ParsingStoppedError(status)
    return status


def parse_command(
    inputs: Sequence[str | Path], out: Path, options: ParseOptions, directory: DirectoryOptions, *, quiet: bool = False
) -> tuple[list[str], dict[str, str]]:
    """The command of :func:`parse_inputs`, and its environment, which holds what no command line may show."""
    settings, leave_out = options.settings, []
    if settings.recognition.asked is None:  # which uses no model, so that these belong to another step
        if settings.describing.kinds:  # by the model of that step, where no other is named
            settings = replace(settings, describing=settings.describing.beside(settings.recognition))
            options = replace(options, settings=settings)
        leave_out = [each.key for each in options_of(RecognitionSettings)]
    given = [*words(options, leave_out=leave_out), *words(directory, leave_out=leave_out)]
    # -P: a file named pagemill.py in the working directory must not be run instead.
    command = [sys.executable, "-P", "-m", "pagemill", *parse_words(inputs, out, given, quiet=quiet)]
    # All options are passed: what pagemill.toml sets for `pagemill parse` is not meant for its caller.
    return command, {**os.environ, "PAGEMILL_NO_CONFIG": "1", **secrets_of(options)}


def parse_words(
    inputs: Sequence[str | Path], out: Path, options: Iterable[str], *, quiet: bool, verbose: int = 0
) -> tuple[str, ...]:
    """The command line of ``pagemill parse``, with its inputs last, after ``--``, if one looks like an option.

    Args:
        inputs: Names and addresses.
        out: The run directory.
        options: The words of all other options.
        quiet: Show failures only.
        verbose: Number of ``--verbose`` flags.
    """
    names = tuple(map(str, inputs))
    given = ("-o", word_of(out), *options, *(["--quiet"] if quiet else []), *(["--verbose"] * verbose))
    like_options = any(name.startswith("-") for name in names)
    return ("parse", *given, "--", *names) if like_options else ("parse", *names, *given)


def word_of(path: Path) -> str:
    """A path as a command line argument that cannot be mistaken for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)
