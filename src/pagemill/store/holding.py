"""The content of an output directory, judging by its files, without opening a database."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import msgspec

from pagemill.errors import OutputError
from pagemill.store import paths
from pagemill.store.files import output_errors
from pagemill.store.summary import GENERATOR, RunSummary

_DERIVED = (paths.RUN_JSON, paths.RESULTS, paths.TEXTS, paths.REPORT)
_MAX_RUN_JSON_BYTES = 64 * 2**20


class Holding(Enum):
    """What an output directory holds."""

    NOTHING = "nothing"
    RUN = "run"
    """It may be damaged."""
    REMAINS = "remains"
    """The rest of a run that was being deleted, or a run of an earlier version that ``--fresh`` deletes."""


def examine(out: Path, *, fresh: bool = False) -> Holding:
    """Find out what a directory holds; it need not exist.

    Args:
        out: The directory.
        fresh: The run in it will be deleted.

    Raises:
        OutputError: It holds foreign files with names that we use, a run of an earlier version without ``fresh``, or
            cannot be read.
    """
    with output_errors(out):
        # A file of that name would make every later look fail with an error that names no cause.
        if (out / paths.FOLDER).is_file():
            raise foreign(out, paths.FOLDER)
        # First: while a run is being deleted, the rest of its files looks like a damaged run.
        if (out / paths.DISCARDING).exists():
            return Holding.REMAINS
        if (out / paths.DATABASE).exists():
            return Holding.RUN
        if (out / paths.EARLIER_LEDGER).exists():
            if fresh:
                return Holding.REMAINS
            raise OutputError(
                f"{out} contains a run of an earlier version of pagemill, which this version cannot read",
                remedy="Replace it with --fresh or choose another directory.",
            )
        present = [name for name in _DERIVED if (out / name).exists()]
        if not present:
            return Holding.NOTHING
        # Such names are not rare: only our lock or our run.json show that a run may overwrite these files.
        if not (out / paths.LOCK).exists() and read_run_json(out) is None:
            raise foreign(out, present[0])
        return Holding.RUN  # one that has lost its database


def require_run(out: Path) -> None:
    """Check that a directory holds a run of this version, which may be damaged.

    Raises:
        OutputError: It holds none, or cannot be read.
    """
    if examine(out) is not Holding.RUN:
        raise OutputError(f"{out} contains no run", remedy="Pass a directory that pagemill parse has written to.")


def foreign(out: Path, name: str) -> OutputError:
    """The error for a directory with a foreign file under a name that we use."""
    return OutputError(
        f"{out} contains {name} but no run; a run might overwrite it", remedy="Choose another directory with -o."
    )


def read_run_json(out: Path) -> RunSummary | None:
    """The content of ``run.json``; None when it is missing, or not from a run that can be resumed."""
    try:
        with (out / paths.RUN_JSON).open("rb") as stream:
            summary = msgspec.json.decode(stream.read(_MAX_RUN_JSON_BYTES), type=RunSummary)
    except (OSError, msgspec.DecodeError):
        return None
    return summary if summary.identity and summary.generator == GENERATOR else None
