"""Lives of a process that does what a run does with its directory, and of which one step fails.

A program: each line of its standard input, ``AT FAULT DIRECTORY``, is a life in a forked process; it prints how that
ended. The tests do not fork themselves: their process has threads, whose locks nobody would release in the child.
"""

import errno
import os
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from small_run import page_of

from pagemill.app.exporters import default_exporters
from pagemill.document.identity import PageKey
from pagemill.errors import NoSpaceError
from pagemill.store import database
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory

DEAD, NO_SPACE, OTHER = 99, 28, 70
"""How a life ends."""
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
            known = run.catalogue.register(digest, name)
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


def main() -> None:
    """Live and tell."""
    for line in sys.stdin:
        at, fault, out = line.rstrip("\n").split(" ", 2)

        def work(at: str = at, fault: str = fault, out: str = out) -> None:
            steps = Steps(die if fault == "death" else None, int(at))
            steps.watch()
            parse(Path(out), NOW, retry=True)
            if fault == "none":
                print(steps.count, flush=True)

        print(in_a_child(work), flush=True)


if __name__ == "__main__":
    main()
