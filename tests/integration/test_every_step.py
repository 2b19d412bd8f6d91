"""A process that dies, or a disk that fails, before any single step of a run: the next one ends as if nothing had been.

A step is a change to the directory: a file made, written, cut, renamed, deleted or flushed, or a statement of SQLite.
PAGEMILL_TEST_LARGE=1 tries each of them; else every seventh.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import pytest
from small_run import page_of, records_of

from pagemill.app.exporters import default_exporters
from pagemill.document.identity import PageKey
from pagemill.errors import NoSpaceError
from pagemill.store import database
from pagemill.store.reading import RunReader
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory
from pagemill.store.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")]

DEAD, NO_SPACE, OTHER = 99, 28, 70
"""How a child ends."""
STRIDE = 1 if os.environ.get("PAGEMILL_TEST_LARGE") else 7
EXPORTERS = default_exporters()
SETTINGS = {"languages": ["en"]}
EARLIER = (("a", "alpha", 8), ("b", "beta", 2), ("c", "gamma", 2))
"""Name, content and number of pages of the files that an earlier process parsed, but for the last page."""
NOW = (("a", "alpha", 8), ("b", "other beta", 3), ("d", "delta", 2))
"""Page 7 of ``alpha`` failed and is tried again, ``b`` has changed, ``c`` is gone, ``d`` is new."""
_CHANGES = {"os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir", "sqlite3.connect"}


class Steps:
    """Counts the steps of this process from now on, and does something before one of them."""

    def __init__(self, act: Callable[[], None] | None = None, at: int = 0) -> None:
        self.count = 0
        self._act = act
        self._at = at
        self._write, self._fsync = os.write, os.fsync

    def watch(self) -> None:
        """For the rest of the process, which therefore is a forked one."""
        sys.addaudithook(self._heard)
        vars(os).update(write=self._writes, fsync=self._syncs)
        steps = self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
                if not statement.lstrip().startswith(("SELECT", "ROLLBACK")):
                    steps.step(sqlite=True)
                return super().execute(statement, *parameters)

        def connect(path: Path, **options: Any) -> sqlite3.Connection:
            return real(path, factory=Connection, **options)

        real = sqlite3.connect
        module = type(sys)("sqlite3")
        vars(module).update(vars(sqlite3), connect=connect)
        vars(database)["sqlite3"] = module

    def step(self, *, sqlite: bool = False) -> None:
        """What follows is a step; of SQLite, which has errors of its own."""
        self.count += 1
        if self.count != self._at:
            return
        if self._act:
            self._act()
        elif sqlite:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        else:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            self.step(sqlite=event == "sqlite3.connect")

    def _writes(self, fd: int, data: bytes) -> int:
        half = len(data) // 2
        if self.count + 2 == self._at:  # the piece that is written before the disk is full or the process dies
            self.count += 1
            return self._write(fd, data[:half])
        self.step()
        self.step()
        return self._write(fd, data)

    def _syncs(self, fd: int) -> None:
        self.step()  # and no wait: whoever dies loses nothing that the system has


def parse(out: Path, files: tuple[tuple[str, str, int], ...], *, retry: bool = False, leave_out: int = 0) -> None:
    """What a run does with its directory."""
    with RunDirectory.open(out, exporters=EXPORTERS, identity=SETTINGS, settings=SETTINGS, retry_failed=retry) as run:
        position = 0
        for name, content, count in files:
            digest = PageKey(content.encode().hex().ljust(64, "0"), 1).digest
            known = run.catalogue.meet(digest, name)
            doc_id = run.catalogue.document_id(name, name)
            for number in range(1, count + 1):
                position += 1
                key = PageKey(digest, number)
                if number in known.ended or position > sum(file[2] for file in files) - leave_out:
                    continue
                waiting = known.waiting.get(number)
                page_id = waiting.page_id if waiting else run.catalogue.page_id(f"{doc_id}_{number}")
                page, crops = page_of(content, number, position - 1, doc_id=doc_id, page_id=page_id)
                page = msgspec.structs.replace(page, source=name, page_key=str(key), page_idx=number)
                run.start_page(key, Place.of(page))
                run.write_page(page, crops, b"preview")
                if number == 2:
                    run.sync()
            run.finish_document(doc_id)
        run.finish(interrupted=bool(leave_out), complete=not leave_out)


def in_a_child(work: Callable[[], None]) -> int:
    """Do something in a process of its own; how it ended."""
    child = os.fork()
    if not child:
        status = OTHER
        try:
            work()
            status = 0
        except NoSpaceError:
            status = NO_SPACE
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> NoReturn:
    os._exit(DEAD)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("earlier") / "out"
    parse(out, EARLIER, leave_out=1)
    return out


@pytest.fixture(scope="module")
def undisturbed(earlier: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """How it ends, and the number of steps there."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    shutil.copytree(earlier, out)
    counted = tmp_path_factory.mktemp("counted") / "steps"

    def work() -> None:
        steps = Steps()
        steps.watch()
        parse(out, NOW, retry=True)
        count = steps.count
        counted.write_text(str(count))

    assert in_a_child(work) == 0
    check(out)
    return out, int(counted.read_text())


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


def life(out: Path, at: int, act: Callable[[], None] | None) -> int:
    """Parse in a process of which a step fails; how it ended."""

    def work() -> None:
        Steps(act, at).watch()
        parse(out, NOW, retry=True)

    return in_a_child(work)


@pytest.mark.parametrize("fault", ["death", "full disk"])
def test_any_step_may_fail(fault: str, earlier: Path, undisturbed: tuple[Path, int], tmp_path: Path) -> None:
    expected, total = undisturbed
    assert total > 300
    for at in range(1, total + 1, STRIDE):
        out = tmp_path / str(at)
        shutil.copytree(earlier, out)
        if fault == "death":
            assert life(out, at, die) == DEAD, at
        else:
            assert life(out, at, None) in {NO_SPACE, 0}, at  # 0: what failed is not needed
        try:
            ended_as(expected, out)
        except Exception as error:
            raise AssertionError(f"step {at} of {total}") from error
        shutil.rmtree(out)


def test_recovery_may_be_cut_off_too(earlier: Path, undisturbed: tuple[Path, int], tmp_path: Path) -> None:
    expected, total = undisturbed
    for first in range(5, total + 1, 10 * STRIDE):
        for second in range(1 + first % STRIDE, total, 2 * STRIDE):
            out = tmp_path / f"{first} {second}"
            shutil.copytree(earlier, out)
            assert life(out, first, die) == DEAD
            ended = life(out, second, die)
            assert ended in {DEAD, 0}
            try:
                ended_as(expected, out)
            except Exception as error:
                raise AssertionError(f"steps {first} and {second} of {total}") from error
            shutil.rmtree(out)
            if ended == 0:
                break
