"""A run on a cluster whose workers, nodes and driver are killed while it goes on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from pagemill_process import PagemillProcess, Target, wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ray_cluster_nodes import SmallCluster


class Victim(StrEnum):
    """What is killed."""

    WORKER = "worker"
    NODE = "node"
    DRIVER = "driver"


@dataclass(slots=True)
class RayDrill:
    """Kills what it is told to, spread over the run, and lets the run end.

    Args:
        cluster: Where the run is.
        command: After ``pagemill``.
        environment: Of the driver.
        out: The output directory.
        log: Takes what the driver prints.
        pages: Of the input.
    """

    cluster: SmallCluster
    command: Sequence[str | Path]
    environment: dict[str, str]
    out: Path
    log: Path
    pages: int
    killed: Counter[Victim] = field(default_factory=Counter)

    def go(self, *, workers: int, nodes: int, drivers: int, seed: int) -> int:
        """Do all of it; the exit status of the last driver."""
        dice = random.Random(seed)
        victims = [Victim.WORKER] * workers + [Victim.NODE] * nodes + [Victim.DRIVER] * drivers
        dice.shuffle(victims)
        process = self._start()
        try:
            for index, victim in enumerate(victims):
                due = (index + 1) * self.pages * 8 // 10 // (len(victims) + 1)
                wait_for(lambda: self._finished() >= due or process.exit_code is not None, f"{due} pages")  # noqa: B023
                if process.exit_code is not None:
                    break
                process = self._strike(victim, process, dice)
            status = process.wait()
        finally:
            process.kill(Target.GROUP)
        return status

    def _strike(self, victim: Victim, process: PagemillProcess, dice: random.Random) -> PagemillProcess:
        if victim is Victim.WORKER:
            wait_for(lambda: self.cluster.kill_worker(dice), "a worker to kill")
        elif victim is Victim.NODE:
            self.cluster.kill_node(dice)
            self.cluster.add_node()
        else:
            process.kill(Target.GROUP)
            process.wait_until_gone()
            process = self._start()
        self.killed[victim] += 1
        return process

    def _start(self) -> PagemillProcess:
        return PagemillProcess(self.command, self.environment, self.log)

    def _finished(self) -> int:
        """Pages whose records are written."""
        try:
            lines = (self.out / "ocr_results.jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return 0
        return len(lines)
