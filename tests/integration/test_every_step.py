"""A process that dies, or a disk that fails, before any single step of a run: the next one ends as if nothing had been.

A step is a change to the directory: a file made, written, cut, renamed, deleted or flushed, or a statement of SQLite.
PAGEMILL_TEST_LARGE=1 tries each of them; else every eleventh.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import every_step
import pytest
from every_step import DEAD, EARLIER, EXPORTERS, NO_SPACE, NOW, parse
from small_run import records_of

from pagemill.store.reading import RunReader
from pagemill.store.verify import verify

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")]

STRIDE = 1 if os.environ.get("PAGEMILL_TEST_LARGE") else 11


class Lives:
    """Processes that parse, and of which a step fails."""

    def __enter__(self) -> Self:
        command = [sys.executable, every_step.__file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def live(self, out: Path, at: int, fault: str) -> int:
        """A life whose step of this number fails; how it ended, or, where none fails, the number of its steps."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{at} {fault} {out}\n")
        self._process.stdin.flush()
        return self.ended()

    def ended(self) -> int:
        """The next number that it tells."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("earlier") / "out"
    parse(out, EARLIER, leave_out=1)
    return out


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives() as lives:
        yield lives


@pytest.fixture(scope="module")
def undisturbed(earlier: Path, lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """How it ends, and the number of steps there."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    shutil.copytree(earlier, out)
    steps = lives.live(out, 0, "none")
    assert lives.ended() == 0
    check(out)
    return out, steps


def check(out: Path) -> None:
    verdict = verify(out, exporters=EXPORTERS)
    assert [(group.kind, group.examples) for group in verdict.groups] == []


def contents(out: Path) -> dict[str, bytes]:
    names = ("crops", "documents")
    return {path.name: path.read_bytes() for name in names for path in (out / name).iterdir()}


def is_readable(out: Path) -> None:
    """Whoever looks at it in between sees whole pages."""
    with RunReader.open(out) as reader:
        assert len(list(reader.pages())) == reader.summary.pages


def ended_as(expected: Path, out: Path) -> None:
    """Finish the run; it is as if nothing had happened."""
    is_readable(out)
    parse(out, NOW)
    check(out)
    assert records_of(out) == records_of(expected)
    assert contents(out) == contents(expected)


@pytest.mark.parametrize("fault", ["death", "full-disk"])
def test_any_step_may_fail(
    fault: str, earlier: Path, undisturbed: tuple[Path, int], lives: Lives, tmp_path: Path
) -> None:
    expected, total = undisturbed
    assert total > 300
    for at in range(1, total + 1, STRIDE):
        out = tmp_path / str(at)
        shutil.copytree(earlier, out)
        ended = lives.live(out, at, fault)
        assert ended in ({DEAD} if fault == "death" else {NO_SPACE, 0}), at  # 0: what failed is not needed
        try:
            ended_as(expected, out)
        except Exception as error:
            raise AssertionError(f"step {at} of {total}") from error
        shutil.rmtree(out)


def test_recovery_may_be_cut_off_too(
    earlier: Path, undisturbed: tuple[Path, int], lives: Lives, tmp_path: Path
) -> None:
    expected, total = undisturbed
    for first in range(5, total + 1, 10 * STRIDE):
        for second in range(1 + first % STRIDE, total, 2 * STRIDE):
            out = tmp_path / f"{first} {second}"
            shutil.copytree(earlier, out)
            assert lives.live(out, first, "death") == DEAD
            ended = lives.live(out, second, "death")
            assert ended in {DEAD, 0}
            try:
                ended_as(expected, out)
            except Exception as error:
                raise AssertionError(f"steps {first} and {second} of {total}") from error
            shutil.rmtree(out)
            if ended == 0:
                break
