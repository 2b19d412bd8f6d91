"""``pagemill`` as a process that can be watched and killed, with the engines of ``fault_engines`` installed. Linux.

It is forked, see :mod:`forked_command`.
"""

import os
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import fault_engines
from forked_command import start
from installed_package import install_package

PATIENCE_S = 300.0
"""After this long whatever is waited for is taken for lost."""
RUN_PATIENCE_S = 1800.0
"""The same for the end of a whole run, which may be long."""
POLL_S = 0.002
OPTIONS = ("--layout-engine", "fast", "--lang", "en", "--quiet")
"""Of every run: the engines below, and no others."""
_MARK = "PAGEMILL_TEST_RUN"
_ENTRY_POINTS = """[pagemill.layout_engines]
fast = fault_engines:create_layout
[pagemill.text_detectors]
rapidocr = fault_engines:create_detector
[pagemill.text_engines]
rapidocr = fault_engines:offers
"""


class Target(StrEnum):
    """Who of a run's processes is killed."""

    WORKER = "worker"
    PARENT = "parent"
    GROUP = "group"


def install_engines(folder: Path) -> Path:
    """Lay the engines out as pip installs a package; give the folder for ``PYTHONPATH``.

    What stands there comes before what is installed, so the detector and the recognizer replace the embedded ones.
    """
    code = Path(fault_engines.__file__).read_text(encoding="utf-8")
    return install_package(folder, "pagemill-fault-engines", _ENTRY_POINTS, fault_engines=code)


def environment(packages: Path, state: Path | None = None) -> dict[str, str]:
    """The environment of a run with the engines of a folder; ``state`` is where transient faults leave notes."""
    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
    noted = {fault_engines.STATE_VARIABLE: str(state)} if state else {}
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200", **noted}


def wait_for(event: Callable[[], object], what: str) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: It did not come.
    """
    end = time.monotonic() + PATIENCE_S
    while not event():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE_S:g} s for {what}")
        time.sleep(POLL_S)


class PagemillProcess:
    """A run in a process group of its own.

    Args:
        arguments: After ``pagemill``.
        environment: From :func:`environment`.
        log: Takes what it prints.
    """

    def __init__(self, arguments: Sequence[str | Path], environment: dict[str, str], log: Path) -> None:
        self.log = log
        log.touch()  # it may be read before the process has opened it
        name, value = _MARK, secrets.token_hex(8)
        self._mark = f"{name}={value}".encode()
        self._process = start([*map(str, arguments)], {**environment, name: value}, Path.cwd(), log, log)
        assert self._process.pid is not None
        self.pid: int = self._process.pid
        """Of the process that was started, the parent of the others."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.exitcode

    def wait(self, patience_s: float = RUN_PATIENCE_S) -> int:
        """Wait for its end and give its status, negative for a signal."""
        self._process.join(patience_s)
        if (status := self.exit_code) is None:
            raise TimeoutError(f"waited {patience_s:g} s for the end of a run")
        return status

    def members(self) -> list[int]:
        """All processes that stem from it and have not ended, whoever their parent is now."""
        # What is forked is in the session; what is started has the environment.
        own = {self.pid} if self.exit_code is None else set()
        return [
            pid
            for pid in _all_pids()
            if pid in own or _status_of(pid).session == self.pid or self._mark in _environment_of(pid).split(b"\0")
        ]

    def worker(self) -> int | None:
        """The process that does the work: the one child of the process that was started."""
        return next((pid for pid in self.members() if _status_of(pid).parent == self.pid), None)

    def victims(self, target: Target) -> list[int]:
        """The processes to kill for a target, those first that start others; none when there is none of that kind."""
        match target:
            case Target.WORKER:
                return [pid] if (pid := self.worker()) else []
            case Target.PARENT:
                return [self.pid] if self.exit_code is None else []
            case Target.GROUP:
                return sorted(self.members(), key=lambda pid: (pid != self.pid, _status_of(pid).parent != self.pid))

    def kill(self, target: Target) -> None:
        """Kill one of its processes, or all."""
        while victims := self.victims(target):
            kill(victims)
            if target is not Target.GROUP:
                break

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process that was started, as a terminal's user or a service manager would."""
        if self.exit_code is None:
            os.kill(self.pid, number)

    def wait_until_gone(self) -> None:
        """Wait for the end of a killed process and of all that stem from it.

        Raises:
            TimeoutError: Some did not end.
        """
        wait_for(lambda: self.exit_code is not None, "a run to end")
        wait_for(lambda: not self.members(), "the processes of a run to end with it")

    def clear(self) -> None:
        """Kill what is left, at the end of a test."""
        self.kill(Target.GROUP)
        self.wait(PATIENCE_S)


def kill(pids: Sequence[int]) -> None:
    """Kill processes, as far as they are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def run(arguments: Sequence[str | Path], environment: dict[str, str], log: Path) -> int:
    """Run ``pagemill`` to its end and give its exit status; nothing of it may be left then."""
    process = PagemillProcess(arguments, environment, log)
    try:
        status = process.wait()
        process.wait_until_gone()
    finally:
        process.clear()
    return status


def kill_when_written(
    lines: int, out: Path, arguments: Sequence[str | Path], environment: dict[str, str], log: Path
) -> None:
    """Run ``pagemill`` until it has written so many records into ``out``, then kill all of it."""
    process = PagemillProcess(arguments, environment, log)
    try:
        wait_until_written(lines, out)
        process.kill(Target.GROUP)
        process.wait_until_gone()
    finally:
        process.clear()


def wait_until_written(lines: int, out: Path) -> None:
    """Wait until a run has written so many records into ``out``."""
    wait_for(lambda: lines_written(out) >= lines, "pages to be written")


def lines_written(out: Path) -> int:
    """Lines of the records in a run directory; none before it is there."""
    try:
        return (out / "ocr_results.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()  # empty when it has ended and nobody has asked for its status
    except OSError:  # gone, or somebody else's
        return b""


class _Status(NamedTuple):
    parent: int = 0
    session: int = 0


def _status_of(pid: int) -> _Status:
    """None of both when it has ended."""
    try:
        state, parent, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return _Status()
    return _Status() if state in "ZX" else _Status(int(parent), int(session))
