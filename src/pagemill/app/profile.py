"""Profiles: a run that is traced, and a stage made free to see what it costs."""

from __future__ import annotations

import copy
import dataclasses
import resource
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from pagemill import tracing
from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.parse import parse_into
from pagemill.app.preflight import require_inputs
from pagemill.app.reporting import ParseDisplay, RunOutcome
from pagemill.config.machine import RuntimeSettings, available_cores
from pagemill.errors import unwritable
from pagemill.export.target import whole_file
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.profiling.gpu_use import GpuSample, sampled_gpus
from pagemill.profiling.html import profile_html
from pagemill.profiling.machine import machine
from pagemill.profiling.profile import Freed, Profile, make_profile
from pagemill.profiling.trace import Trace
from pagemill.recognition.reader import ReadPage
from pagemill.runtime.pipeline import Pipeline
from pagemill.sources.base import EncodedImage, PdfPage
from pagemill.store.files import encoded

P = ParamSpec("P")
R = TypeVar("R")

_SAMPLE_S = 0.25
"""Between two questions to the driver of the GPUs."""
_FREED_PAGES = 12
"""Of the input's first pages; the answers of a stage are kept in memory, and decoded pages have 26 MB each."""


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
        """The figures; to be asked for after the block."""
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
        """Write ``profile.html``, ``profile.json`` and ``trace.json`` into a folder, over earlier ones.

        Raises:
            OutputError: A file cannot be written.
        """
        files = {
            "profile.json": iter([msgspec.json.format(msgspec.json.encode(profile)).decode() + "\n"]),
            "trace.json": self.trace.chrome(self._gpu_samples),
            "profile.html": profile_html(profile, self.trace, self._gpu_samples, title),
        }
        for name, pieces in files.items():
            with whole_file(folder / name, overwrite=True) as stream:
                stream.writelines(encoded(pieces))

    def _sample(self) -> None:
        with sampled_gpus() as gpus:
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
        remedy = "Name another folder for the profile."
        raise unwritable(folder, error, remedy=remedy, no_space_remedy="Free some space.") from error


@contextmanager
def profiled(folder: Path | None, runtime: RuntimeSettings, title: str) -> Iterator[None]:
    """Profile the block, and write what comes of it into a folder; for None nothing is traced.

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


async def parse_and_forget(inputs: Sequence[str], options: ParseOptions, progress: ParseDisplay) -> RunOutcome:
    """Parse inputs into a directory that is thrown away.

    Raises:
        PagemillError: As :func:`pagemill.app.parse.parse_into`.
    """
    directory = DirectoryOptions(report=False)
    with tempfile.TemporaryDirectory(prefix="pagemill-profile-") as folder:
        out = Path(folder) / "run"
        require_inputs(out, inputs, directory, options.source.download)
        pipeline = Pipeline(options.settings, options.runtime, options.layout)
        return await parse_into(out, inputs, options, directory, pipeline=pipeline, progress=progress)


class _Mode(Enum):
    PLAIN = auto()
    RECORD = auto()
    FREE = auto()


async def free_stage(inputs: Sequence[str], options: ParseOptions, stage: str) -> Freed | None:
    """Measure the first pages of inputs with and without a stage, whose answers are kept from a run before.

    Returns:
        None where the stage is one of a model behind servers, whose answers are not kept.
    """
    if options.settings.recognition.reads_regions and stage == "recognition":
        return None
    source = options.source
    limit = min(_FREED_PAGES, source.limit or _FREED_PAGES)
    options = dataclasses.replace(options, source=dataclasses.replace(source, limit=limit))
    seconds: dict[_Mode, float] = {}
    async with _FreeStage(options, stage) as pipeline:
        for mode in (_Mode.RECORD, _Mode.PLAIN, _Mode.FREE):  # the first one also loads the models
            pipeline.begin(mode)
            with Profiler(options.runtime) as profiler:
                begun = time.perf_counter()
                async with aclosing(pipeline.stream(inputs, options.source, max_attempts=1)) as pages:
                    count = 0
                    async for _ in pages:
                        count += 1
                seconds[mode] = time.perf_counter() - begun
    left = {name: figures.busy for (_, name, _), figures in profiler.trace.figures.items() if name != stage}
    return Freed(
        stage=stage,
        pages=count,
        seconds=seconds[_Mode.PLAIN],
        freed_s=seconds[_Mode.FREE],
        next_bottleneck=max(left, key=lambda name: left[name], default=""),
    )


class _FreeStage(Pipeline):
    """A pipeline that can give the answers of one stage without computing them."""

    def __init__(self, options: ParseOptions, stage: str) -> None:
        super().__init__(options.settings, options.runtime, options.layout)
        self._free = stage
        self.begin(_Mode.PLAIN)
        self._answers: dict[tuple[str, int], Any] = {}

    def begin(self, mode: _Mode) -> None:
        """What the next stream does with the stage's answers."""
        self._mode = mode
        self._calls: defaultdict[str, int] = defaultdict(int)

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        return await self._answer(lambda: super(_FreeStage, self).decode(payload))

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        return await self._answer(lambda: super(_FreeStage, self).detect_regions(pixels))

    async def read(self, pixels: Pixels, languages: Sequence[str] | None) -> ReadPage:
        return await self._answer(lambda: super(_FreeStage, self).read(pixels, languages))

    async def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._answer(lambda: super(_FreeStage, self).compute(function, *args, **kwargs))

    async def _answer(self, compute: Callable[[], Awaitable[R]]) -> R:
        if self._mode is _Mode.PLAIN or tracing.STAGE.get() != self._free:
            return await compute()
        page = tracing.PAGE.get()
        place = (page, self._calls[page])
        self._calls[page] += 1
        if self._mode is _Mode.FREE and place in self._answers:
            kept: R = self._answers[place]
            return kept
        answer = await compute()
        if self._mode is _Mode.RECORD:
            self._answers[place] = copy.deepcopy(answer)  # the page goes on to change its own
        return answer


def _cpu_seconds() -> float:
    """Of this process and those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _peak_memory_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
