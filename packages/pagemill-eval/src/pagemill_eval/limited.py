"""Programs for untrusted input: run within limits, without a shell, in their own folder."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_MOST_WRITTEN = 2**26
"""Bytes of a file."""
_KEPT = ("PATH", "PERL5LIB")
"""Variables of the environment that are passed on: where programs and the modules of LaTeXML are found."""


class Ended(NamedTuple):
    """How a program ended."""

    status: int
    """0 on success."""
    reason: str
    """The reason that it was killed; empty if it exited on its own."""
    output: str
    """Its standard output and standard error."""


def run_limited(
    command: Sequence[str],
    folder: Path,
    *,
    seconds: float,
    cpu_seconds: int,
    memory: int,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program; it and its children are killed when it takes too long.

    Args:
        command: The program and its arguments.
        folder: Its working directory and home. The file ``output`` in it receives the output.
        seconds: The longest it may take.
        cpu_seconds: Most time of the processor, on Linux.
        memory: Most bytes of address space, on Linux.
        environment: Variables beside ``PATH`` and ``HOME``; it gets no others.

    Raises:
        OSError: The program cannot be started.
    """
    limits = ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, _MOST_WRITTEN), (resource.RLIMIT_CPU, cpu_seconds))
    # A minimal environment: LaTeX and its helpers read variables that change their output.
    variables = {"PATH": os.defpath} | {name: os.environ[name] for name in _KEPT if name in os.environ}
    reason = ""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**variables, "HOME": str(folder), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Its own process group, so that everything that it started can be killed with it.
            start_new_session=True,
        )
        try:
            if sys.platform == "linux":
                # After the start: a preexec_fn is not safe in a process with threads.
                for what, most in limits:
                    resource.prlimit(process.pid, what, (most, most))
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            reason = f"took over {seconds:g} s"
        finally:
            with suppress(ProcessLookupError):  # nothing of its group is left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if not reason and process.returncode < 0:
        reason = f"was ended by signal {-process.returncode}"
    return Ended(process.returncode, reason, (folder / "output").read_text(encoding="utf-8", errors="replace"))
