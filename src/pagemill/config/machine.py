"""Settings that change speed and memory, not results: this machine, and the machines of a Ray cluster."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from pagemill.config.headings import MACHINE, MACHINES
from pagemill.config.modes import ScheduleMode
from pagemill.config.options import Settings, option
from pagemill.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings(Settings):
    """Settings that change speed and memory, not results. 0 means: choose for this machine."""

    HEADING: ClassVar = MACHINE
    RESULTS: ClassVar = False

    threads: int = option(default=0, minimum=0, help="Compute threads.", shown_default="one per core")
    decoders: int = option(
        default=0,
        minimum=0,
        help="Maximum number of PDF rendering processes.",
        shown_default="one per two cores, from 2 to 8",
    )
    decoder_memory_gib: float = option(
        "--decoder-memory",
        default=2.0,
        metavar="GIB",
        # A process needs 0.15 GiB for its libraries and 0.07 for the largest page; the rest is for the page's images.
        minimum=0.5,
        help="Memory limit of each PDF rendering process (Linux).",
    )
    pages_in_flight: int = option(
        default=0,
        minimum=0,
        help="Maximum number of pages in flight.",
        shown_default="three per thread, plus those that keep the servers busy",
    )
    layout_batch: int = option(
        "--layout-batch",
        "--batch-size",
        default=0,
        minimum=0,
        maximum=256,
        help="Maximum number of pages per call of pp-doclayout-v3.",
        shown_default="8 on a GPU, 1 on the CPU",
    )
    schedule: ScheduleMode = option(
        default=ScheduleMode.STREAMING,
        help="Order in which the stages of pages run. All but streaming are slower, and there to be compared with it: "
        "see `pagemill profile`.",
    )
    bytes_in_flight: ClassVar = 2 * 2**30
    """Maximum number of bytes of decoded pixels in flight."""
    postponed_bytes: ClassVar = 256 * 2**20
    """Maximum number of bytes of encoded pages that wait for their retry at the end of the input; beyond it pages are
    retried at once."""

    @property
    def decoder_memory(self) -> int:
        """Bytes of address space that a PDF rendering process may use."""
        return int(self.decoder_memory_gib * 2**30)

    def resolved(self, *, waiting_pages: int = 0) -> RuntimeSettings:
        """Replace every 0 by a number for this machine.

        Args:
            waiting_pages: Number of further pages in flight that wait for responses of servers.
        """
        cores = available_cores()
        threads = self.threads or cores
        return replace(
            self,
            threads=threads,
            # Reading a page that shows only text costs its process more than it costs this one: one would keep two
            # cores half idle.
            decoders=self.decoders or min(8, cores, max(2, cores // 2)),
            pages_in_flight=self.pages_in_flight or 3 * threads + waiting_pages,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RaySettings(Settings):
    """The Ray cluster that parses the pages, if any. These settings change speed, not results."""

    HEADING: ClassVar = MACHINES
    RESULTS: ClassVar = False

    address: str | None = option(
        "--ray",
        key="ray",
        metavar="ADDRESS",
        help="Parse on the Ray cluster at HOST:PORT, on the one that this machine is part of (auto), or on one that is "
        "started within this machine (local).",
    )
    workers: int = option(
        key="ray_workers",
        default=0,
        minimum=0,
        help="Workers, of --threads CPUs each.",
        shown_default="as many as the machines have room for, also those that join",
    )
    gpus: float = option(
        key="ray_gpus", default=0.0, minimum=0, metavar="GPUS", help="GPUs that each worker takes for its layout model."
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.address is None and (self.workers or self.gpus):
            raise UsageError("--ray-workers and --ray-gpus require --ray", remedy="Pass the cluster with --ray.")


def available_cores() -> int:
    """Cores that this process may use: its CPU affinity if the system reports one, bounded by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _cgroup_quota(Path("/sys/fs/cgroup/cpu.max")) or cores))


def _cgroup_quota(path: Path) -> int | None:
    """Cores granted by the control group (``docker run --cpus``), rounded up; None without a quota."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return None if quota == "max" else math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
