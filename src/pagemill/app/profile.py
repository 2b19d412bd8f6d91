"""Profiles: a run that is traced."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from pagemill import tracing
from pagemill.config.machine import RuntimeSettings, available_cores
from pagemill.errors import unwritable
from pagemill.export.target import whole_file
from pagemill.profiling.gpu_use import GpuSample, sampled_gpus
from pagemill.profiling.machine import machine
from pagemill.profiling.profile import Profile, make_profile
from pagemill.profiling.trace import Trace
from pagemill.runtime import engines as engine_registry
from pagemill.store.files import encoded

_SAMPLE_S = 0.25
"""Interval between two samples of the GPU driver."""
PROFILE_PAGES = "pagemill.profile_pages"
"""Entry points that show a profile: the name is the suffix of the file."""


class Profiler:
    """Traces what happens within its block; made for one run. A context manager, to be entered before the event loop.

    Args:
        runtime: Pools of the run.
    """

    def __init__(self, runtime: RuntimeSettings) -> None:
        self.trace = Trace()
        self._runtime = runtime.resolved()
        self._cpu = _cpu_seconds()
        self._end = threading.Event()
        self._gpu_samples: dict[str, list[GpuSample]] = {}
        self._gpu_use: list[Any] = []

    def __enter__(self) -> Profiler:
        # Tasks copy the context that they start in, so the listener is there before the event loop.
        self._listening = tracing.listening(self.trace)
        self._listening.__enter__()
        self._sampler = threading.Thread(target=self._sample, name="pagemill.gpus", daemon=True)
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.__exit__(None, None, None)
        self._end.set()
        self._sampler.join()
        self._cpu = _cpu_seconds() - self._cpu

    def profile(self) -> Profile:
        """The figures; available after the block."""
        runtime = self._runtime
        return make_profile(
            self.trace,
            schedule=runtime.schedule,
            workers={
                "pagemill.compute": runtime.threads,
                "pagemill.decode": runtime.threads,
                "pagemill.decoder": runtime.decoders,
                "pagemill.store": 1,
            },
            cores=available_cores(),
            cpu_s=self._cpu,
            peak_memory_mib=_peak_memory_mib(),
            machine=machine(),
            gpus=self._gpu_use,
        )

    def write(self, folder: Path, profile: Profile, title: str) -> None:
        """Write ``profile.json``, ``trace.json`` and the installed pages into a folder, over earlier ones.

        Raises:
            OutputError: A file cannot be written.
            MissingDependencyError: A package that makes a page cannot be imported.
        """
        files = {
            "profile.json": iter([msgspec.json.format(msgspec.json.encode(profile)).decode() + "\n"]),
            "trace.json": self.trace.chrome(self._gpu_samples),
        }
        for name in engine_registry.names(PROFILE_PAGES):
            page = engine_registry.load(PROFILE_PAGES, name)
            files[f"profile.{name}"] = page(profile, self.trace, self._gpu_samples, title)
        for name, pieces in files.items():
            with whole_file(folder / name, overwrite=True) as stream:
                stream.writelines(encoded(pieces))

    def _sample(self) -> None:
        with sampled_gpus() as gpus:
            # There is no driver to ask; a profile without GPUs is complete.
            if gpus is None:
                return
            while not self._end.wait(_SAMPLE_S):
                gpus.sample()
            self._gpu_samples, self._gpu_use = gpus.samples(), list(gpus.use())


def require_folder(folder: Path) -> None:
    """Make a folder for a profile, before anything is parsed.

    Raises:
        OutputError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Choose another folder for the profile."
        raise unwritable(folder, error, remedy=remedy, no_space_remedy="Free some space.") from error


@contextmanager
def profiled(folder: Path | None, runtime: RuntimeSettings, title: str) -> Iterator[None]:
    """Profile the block and write the result into a folder; None disables tracing.

    Raises:
        OutputError: A file cannot be written.
    """
    if folder is None:
        yield
        return
    require_folder(folder)
    with Profiler(runtime) as profiler:
        yield
    if profiler.trace.pages:
        profiler.write(folder, profiler.profile(), title)


def _cpu_seconds() -> float:
    """CPU time of this process and those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _peak_memory_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The unit of ru_maxrss is bytes on macOS, and kilobytes elsewhere.
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
