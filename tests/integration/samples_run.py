"""A run over all samples, with vectors and an index: it takes a minute, and several modules read it."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from forked_command import run_forked
from shared_runs import made_once

SAMPLES = Path(__file__).parents[2] / "samples"


def samples_run(factory: pytest.TempPathFactory) -> Path:
    """The output directory; nobody may write to it."""
    return made_once(factory, "samples-run", lambda folder: make_searchable([SAMPLES], folder / "out")) / "out"


def make_searchable(inputs: Sequence[Path], out: Path) -> None:
    """Parse, embed and index; a run that is there goes on."""
    pagemill_command("parse", *inputs, "--lang", "ko,en", "--no-report", "-q", "-o", out)
    pagemill_command("embed", out, "-q")
    pagemill_command("index", out, "-q")


def pagemill_command(*arguments: object) -> str:
    """What a command prints."""
    ended = run_forked(*arguments, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
