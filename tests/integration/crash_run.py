"""A run that is killed again and again at random instants, and resumed each time until it is done."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill_process import OPTIONS, POLL_S, PagemillProcess, Target, kill

if TYPE_CHECKING:
    from collections.abc import Callable

    from coded_pages import Corpus

RESULTS = "ocr_results.jsonl"
MANY_ATTEMPTS = 1_000_000
"""A page in flight when the worker is killed has had a bad attempt; here that must not make it fail."""

_CATCHES = 8
"""How often one kill is tried to be in the middle of writing."""


class Instant(StrEnum):
    """What a run is doing when it is killed."""

    STARTING = "starting"
    OPENING = "opening the directory"
    PAGES = "parsing pages"
    WRITING = "writing a page"
    FINISHING = "finishing"


@dataclass(slots=True)
class CrashLog:
    """What was done to a run."""

    kills: Counter[tuple[Instant, Target]] = field(default_factory=Counter)
    starts: int = 0
    """Of the process; a worker that is killed is started again by its parent."""
    endings: Counter[int] = field(default_factory=Counter)
    """Exit codes of the processes that ended before they could be killed."""
    unfinished: int = 0
    """Kills that left a record whose line was not in ``ocr_results.jsonl`` yet."""
    lost: list[int] = field(default_factory=list)
    """How many committed records were gone after a kill, where any were."""
    seconds: float = 0.0

    @property
    def killed(self) -> int:
        """How often it was killed."""
        return sum(self.kills.values())

    def table(self) -> str:
        """Kills by instant and target, as a Markdown table."""
        rows = [
            f"| {instant} | " + " | ".join(str(self.kills[instant, t]) for t in Target) + " |" for instant in Instant
        ]
        return "\n".join(["| killed while | " + " | ".join(Target) + " |", "|---|" + "--:|" * len(Target), *rows])


class CrashRun:
    """Kills a run ``kills`` times, then lets it end.

    Args:
        corpus: The input.
        out: The output directory.
        environment: From :func:`pagemill_process.environment`.
        kills: How often.
        seed: Of all random choices.
        full_size: Bytes of ``ocr_results.jsonl`` of an undisturbed run, to spread the kills over the whole run.
        progress: Called after every kill with their number.
    """

    def __init__(
        self,
        corpus: Corpus,
        out: Path,
        environment: dict[str, str],
        *,
        kills: int,
        seed: int,
        full_size: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.log = CrashLog()
        patience = ["--max-attempts", str(MANY_ATTEMPTS)]
        self._command: list[str | Path] = ["parse", *corpus.paths, "-o", out, *OPTIONS, *patience]
        self._out = out
        self._environment = environment
        self._kills = kills
        self._dice = random.Random(seed)
        self._full_size = full_size
        self._progress = progress
        self._messages = out.with_name(f"{out.name}.log")

    def go(self) -> int:
        """Do all of it; give the exit status of the last process, which was left alone."""
        start = time.monotonic()
        process: PagemillProcess | None = None
        try:
            while self.log.killed < self._kills:
                process = process or self._start()
                if not self._strike(process):
                    process = None
            if process is None:
                process = self._start()
            status = process.wait()
            process.wait_until_gone()
        finally:
            if process is not None:
                process.clear()
        self.log.seconds = time.monotonic() - start
        return status

    def _start(self) -> PagemillProcess:
        self.log.starts += 1
        return PagemillProcess(self._command, self._environment, self._messages)

    def _strike(self, process: PagemillProcess) -> bool:
        """Wait for a random instant and kill a random target; False when the process ended by that or by itself."""
        instant, target = self._choose()
        before, _ = self._recorded()
        if not self._wait(process, instant) or not (victims := process.victims(target)):
            return self._is_alive(process)
        if instant is Instant.WRITING:
            self._catch_writing(process)
        kill(victims)
        if target is Target.GROUP:
            process.kill(target)  # those that were started meanwhile
        self.log.kills[instant, target] += 1
        self.log.unfinished += self._is_unfinished()
        records, _ = self._recorded()
        if records < before:
            self.log.lost.append(before - records)
        if self._progress:
            self._progress(self.log.killed)
        if target is Target.WORKER:
            return True
        process.wait_until_gone()
        return False

    def _catch_writing(self, process: PagemillProcess) -> None:
        """Stop the worker, if it can be done, where a record is committed and its line is not in the JSONL file yet.

        That is a fraction of a millisecond a page, which a random instant would hardly ever hit. What is stopped can
        be killed as it stands.
        """
        worker = process.worker()
        for _ in range(_CATCHES):
            happened, patience = self._change_of(".pagemill/run.sqlite-wal"), time.monotonic() + 2
            while not happened() and time.monotonic() < patience:
                pass  # sleeping would take too long
            if worker is None or process.exit_code is not None:
                return
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGSTOP)
            if self._is_unfinished():
                return
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)

    def _is_unfinished(self) -> bool:
        return self._size(RESULTS) < self._recorded()[1]

    def _is_alive(self, process: PagemillProcess) -> bool:
        if process.exit_code is None:
            return True
        self.log.endings[process.wait()] += 1
        process.wait_until_gone()
        return False

    def _choose(self) -> tuple[Instant, Target]:
        done = self._size(RESULTS) >= 0.99 * self._full_size
        instants = {
            Instant.STARTING: 1,
            Instant.OPENING: 3,
            Instant.PAGES: 0 if done else 10,
            Instant.WRITING: 0 if done else 3,
            Instant.FINISHING: 8 if done else 0,
        }
        (instant,) = self._dice.choices(list(instants), list(instants.values()))
        return instant, self._dice.choice(list(Target))

    def _wait(self, process: PagemillProcess, instant: Instant) -> bool:
        """Wait for an instant; False when the process ends before."""
        delay = self._dice.uniform(0, 0.05)
        match instant:
            case Instant.STARTING:
                delay = self._dice.uniform(0, 0.3)
                happened = _always
            case Instant.OPENING:
                happened = self._change_of(".pagemill/run.sqlite-wal", ".pagemill/lock")
            case Instant.PAGES | Instant.WRITING:
                left = max(0, self._full_size - self._size(RESULTS))
                # On average what keeps the run going until the last kill.
                growth = self._dice.uniform(0, 2 * left / max(1, self._kills - self.log.killed))
                happened = self._growth_of(RESULTS, growth)
            case Instant.FINISHING:
                happened = self._change_of("documents", "report.html", "run.json")
        while not happened():
            if process.exit_code is not None:
                return False
            time.sleep(POLL_S)
        time.sleep(delay)
        return process.exit_code is None

    def _recorded(self) -> tuple[int, int]:
        """Committed records, and the bytes of their lines; a copy is asked, as SQLite recovers what it opens."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("run.sqlite", "run.sqlite-wal"):
                with suppress(FileNotFoundError):
                    shutil.copy(self._out / ".pagemill" / name, folder)
            try:
                with closing(sqlite3.connect(Path(folder) / "run.sqlite")) as database:
                    ((count, size),) = database.execute("SELECT count(record), ifnull(sum(length), 0) FROM pages")
            except (sqlite3.DatabaseError, ValueError):  # killed before there was one
                return 0, 0
            return int(count), int(size)

    def _growth_of(self, name: str, by: float) -> Callable[[], bool]:
        start = self._size(name)
        return lambda: self._size(name) >= start + by

    def _change_of(self, *names: str) -> Callable[[], bool]:
        def state() -> list[int]:
            return [self._modified(name) for name in names]

        start = state()
        return lambda: state() != start

    def _size(self, name: str) -> int:
        try:
            return (self._out / name).stat().st_size
        except FileNotFoundError:
            return 0

    def _modified(self, name: str) -> int:
        try:
            return (self._out / name).stat().st_mtime_ns
        except FileNotFoundError:
            return 0


def _always() -> bool:
    return True
