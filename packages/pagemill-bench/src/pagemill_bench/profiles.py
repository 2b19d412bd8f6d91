"""The run of ``pagemill profile``: a parse without results, and a stage made free to measure its cost."""

from __future__ import annotations

import copy
import dataclasses
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from enum import Enum, auto
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pagemill import tracing
from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.parse import parse_into
from pagemill.app.preflight import require_inputs
from pagemill.app.profile import Profiler
from pagemill.app.reporting import ParseDisplay, RunOutcome
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.profiling.profile import Freed
from pagemill.recognition.reader import ReadPage
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources.base import EncodedImage, PdfPage

P = ParamSpec("P")
R = TypeVar("R")

_FREED_PAGES = 12
"""Number of the input's first pages; the answers of a stage are kept in memory, and decoded pages have 26 MB each."""


async def parse_and_forget(inputs: Sequence[str], options: ParseOptions, progress: ParseDisplay) -> RunOutcome:
    """Parse inputs into a temporary directory.

    Raises:
        PagemillError: As :func:`pagemill.app.parse.parse_into`.
    """
    directory = DirectoryOptions(report=False)
    with tempfile.TemporaryDirectory(prefix="pagemill-profile-") as folder:
        out = Path(folder) / "run"
        require_inputs(out, inputs, directory, options.source.download)
        pipeline = Pipeline(Services(options.settings, options.runtime, options.layout))
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
    services = _FreeStage(options, stage)
    async with Pipeline(services) as pipeline:
        for mode in (_Mode.RECORD, _Mode.PLAIN, _Mode.FREE):  # the first one also loads the models
            services.begin(mode)
            with Profiler(options.runtime) as profiler:
                started = time.perf_counter()
                async with aclosing(pipeline.stream(inputs, options.source, max_attempts=1)) as pages:
                    count = 0
                    async for _ in pages:
                        count += 1
                seconds[mode] = time.perf_counter() - started
    left = {name: figures.busy for (_, name, _), figures in profiler.trace.figures.items() if name != stage}
    return Freed(
        stage=stage,
        pages=count,
        seconds=seconds[_Mode.PLAIN],
        freed_s=seconds[_Mode.FREE],
        next_bottleneck=max(left, key=lambda name: left[name], default=""),
    )


class _FreeStage(Services):
    """Services that can give the answers of one stage without computing them."""

    def __init__(self, options: ParseOptions, stage: str) -> None:
        super().__init__(options.settings, options.runtime, options.layout)
        self._free = stage
        self.begin(_Mode.PLAIN)
        self._answers: dict[tuple[str, int], Any] = {}

    def begin(self, mode: _Mode) -> None:
        """How the next stream uses the stage's answers."""
        self._mode = mode
        self._calls: defaultdict[str, int] = defaultdict(int)

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        return await self._answer(lambda: super(_FreeStage, self).decode(payload))

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        return await self._answer(lambda: super(_FreeStage, self).detect_regions(pixels))

    async def read(self, pixels: Pixels, languages: Sequence[str] | None, *, bends: bool = False) -> ReadPage:
        return await self._answer(lambda: super(_FreeStage, self).read(pixels, languages, bends=bends))

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
            self._answers[place] = copy.deepcopy(answer)  # the page continues to change its own
        return answer
