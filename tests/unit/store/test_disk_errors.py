"""What a failing disk leaves of the page that was being written: nothing."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pagemill.errors import ExitCode, NoSpaceError, OutputError


class Failing:
    """Fails the n-th call of what it stands for, and all later ones while ``broken``."""

    def __init__(self, real: Any, number: int, error: Exception) -> None:
        self.real, self.number, self.error, self.calls, self.broken = real, number, error, 0, True

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        if self.broken and self.calls >= self.number:
            raise self.error
        return self.real(*arguments, **options)


def full(code: int) -> OSError:
    return OSError(code, os.strerror(code))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("step", [1, 2])
def test_a_crop_that_cannot_be_written_leaves_no_trace_of_the_page(
    store, monkeypatch: pytest.MonkeyPatch, code: int, step: int
) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        store.start(run, 2)
        page = store.page(2)
        crops = store.with_crops(page, b"one", b"two")
        failing = Failing(Path.open, step, full(code))
        monkeypatch.setattr(Path, "open", lambda path, *arguments, **options: failing(path, *arguments, **options))
        with pytest.raises(OutputError) as caught:
            run.write_page(page, crops, b"preview")
        monkeypatch.undo()
        no_space = code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        assert caught.value.exit_code is (ExitCode.NO_SPACE if no_space else ExitCode.OUTPUT)
        assert ("ulimit" if code == errno.EFBIG else "space") in (caught.value.remedy or "") or not no_space
        assert store.states() == {"doc_1": "DONE", "doc_2": "RUNNING"}
        assert store.files("crops") == set()
        store.check(run)
        run.write_page(page, crops, b"preview")  # space again: the run can go on
        run.finish()
        store.check(run)
    assert store.ids() == store.ids("parsed_texts.jsonl") == ["doc_1", "doc_2"]


def test_a_line_that_does_not_fit_is_made_up_for(store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        real, calls = os.write, 0

        def nearly_full(fd: int, data: Any) -> int:
            nonlocal calls
            calls += 1
            if calls == 1:
                return real(fd, data[:7])
            raise full(errno.ENOSPC)

        def broken(fd: int, size: int) -> None:
            raise full(errno.EIO)

        monkeypatch.setattr(os, "write", nearly_full)
        monkeypatch.setattr(os, "ftruncate", broken)
        with pytest.raises(OutputError):
            run.write_page(store.page(2))
        monkeypatch.undo()
        assert store.states() == {"doc_1": "DONE", "doc_2": "DONE"}  # the record is in the database
        run.write_page(store.page(3))
        store.check(run)
        run.finish()
    assert store.ids() == ["doc_1", "doc_2", "doc_3"]


class FailingConnection:
    """An SQLite connection that fails at the n-th statement of some kind."""

    def __init__(self, real: sqlite3.Connection, begins: str, code: int) -> None:
        self.real, self.begins, self.code = real, begins, code

    def execute(self, statement: str, *parameters: Any) -> Any:
        if statement.startswith(self.begins):
            error = sqlite3.OperationalError("it fails")
            error.sqlite_errorcode = self.code
            raise error
        return self.real.execute(statement, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@pytest.mark.parametrize("begins", ["BEGIN", "INSERT INTO pages", "UPDATE counts", "INSERT INTO records", "COMMIT"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, NoSpaceError),
        (sqlite3.SQLITE_IOERR_WRITE, OutputError),
        (sqlite3.SQLITE_READONLY, OutputError),
    ],
)
def test_an_error_of_the_run_leaves_no_trace_of_the_page(
    store, begins: str, code: int, kind: type[OutputError]
) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        store.start(run, 2)
        page = store.page(2)
        crops = store.with_crops(page, b"one")
        before = run.summary.counters()
        database = run._run
        real, database._connection = database._connection, FailingConnection(database._connection, begins, code)
        with pytest.raises(kind):
            run.write_page(page, crops, b"preview")
        if begins != "INSERT INTO records":
            with pytest.raises(kind):
                run.skip_page(store.key(3), store.place(3), reason="why")
        database._connection = real
        assert run.summary.counters() == before
        assert store.states() == {"doc_1": "DONE", "doc_2": "RUNNING"}
        store.check(run)
        run.write_page(page, crops)
        store.check(run)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_leaves_no_half_crop(store) -> None:
    with store.open() as run:
        (store.out / "crops" / "doc_1_crop_0.jpg").symlink_to("/dev/full")
        with pytest.raises(NoSpaceError):
            run.write_page(store.page(1), [("crops/doc_1_crop_0.jpg", b"x" * 10)])
        assert not list((store.out / "crops").iterdir())
        assert not store.lines()


def test_after_a_failed_sync_no_crop_counts_as_safe(store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.open() as run:
        page = store.page(1)
        run.write_page(page, store.with_crops(page, b"crop"))
        failing = Failing(os.fsync, 1, full(errno.EIO))
        monkeypatch.setattr(os, "fsync", failing)
        with pytest.raises(OutputError):
            run.sync()
        failing.broken = False
        run.sync()
        assert len(list(run._run.unsynced_crops())) == 1


def test_after_a_failed_sync_the_lines_are_rewritten(store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        failing = Failing(os.fsync, 1, full(errno.EIO))
        monkeypatch.setattr(os, "fsync", failing)
        with pytest.raises(OutputError):
            run.sync()
        failing.broken = False
        run.sync()  # the disk may have dropped what the first one did not write
        results = store.out / "ocr_results.jsonl"
        results.write_bytes(bytes(results.stat().st_size))
        run.finish()
    assert store.ids() == ["doc_1"]
