"""The services of pages: engines, processes and threads, of one run or of all jobs of a server."""

from __future__ import annotations

import asyncio
import copy
import functools
import math
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

import msgspec

from pagemill import tracing
from pagemill.config.machine import RuntimeSettings
from pagemill.config.modes import LAYOUT_MODEL, ReadingMode, StructureMode, TextLayerMode
from pagemill.config.settings import LayoutChoice, ParseSettings, TableEngineSettings
from pagemill.describing.elements import ElementRequest
from pagemill.document.page import Description
from pagemill.errors import PagemillError
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DecodedLayout, DetectedRegion, JpegLayoutEngine, LayoutEngine
from pagemill.layout.settings import LayoutSettings
from pagemill.recognition.base import DetectedLine, Problem, RecognizedFormula, RegionReader
from pagemill.runtime import engines
from pagemill.runtime.contract import checked_regions
from pagemill.runtime.decoding import DECODE_TIMEOUT_S, DecodingService
from pagemill.runtime.describing import describe, describing
from pagemill.runtime.flight import FlightControl
from pagemill.runtime.formula_reading import FormulaReading
from pagemill.runtime.identity import settings_identity, without_credentials
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.once import Once
from pagemill.runtime.region_reading import load_reader
from pagemill.runtime.text_reading import TextReading
from pagemill.runtime.threads import STUCK_AFTER_S, ComputeThreads
from pagemill.sources.base import EncodedImage, PdfPage
from pagemill.tables.structure_model import StructureModel

if TYPE_CHECKING:
    from pagemill.describing.describer import DescribeCounts, KeptAnswers
    from pagemill.recognition.reader import ReadPage

_READY = 2
"""Regions that are in flight or ready, for each one that the region engine can have in flight: it never waits for one,
and a run that is stopped has little to finish."""

_LAYOUT_CALLS = 3
"""Calls of a layout engine with a device: one computes, while one is prepared and the answers of one are completed."""

log = tracing.PageLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class Services:
    """One set of engines, processes and threads. Implements :class:`pagemill.parsing.page_run.PageServices`.

    An async context manager: engines load on first use, everything is closed at the end.

    Args:
        settings: Settings that change results.
        runtime: Settings that change speed and memory.
        layout: The layout engine.
    """

    def __init__(
        self,
        settings: ParseSettings = ParseSettings(),
        runtime: RuntimeSettings = RuntimeSettings(),
        layout: LayoutChoice = LayoutChoice(),
    ) -> None:
        self.asked_runtime = runtime
        self.runtime = runtime.resolved()
        self.layout = layout
        self._set(settings)
        self.stuck = asyncio.Event()
        """Set once a thread hangs in a computation that nobody waits for any more. It goes away with the process; the
        pipeline continues, with another thread in its place."""
        self._stack = AsyncExitStack()
        self._own: tuple[Once[Any], ...] = ()
        """What ends with these services, of what is loaded on first use."""
        self._is_borrowed = False

    def _set(self, settings: ParseSettings) -> None:
        self._asked = settings
        if settings.structure is None and self.layout.engine not in (LayoutChoice().engine, LAYOUT_MODEL):
            settings = replace(settings, structure=StructureMode.PIXELS)  # who installs an engine wants its results
        self.settings = settings

    def borrowed(self, settings: ParseSettings | None = None) -> Services:
        """These services for one of many streams, to be entered and left by it.

        Args:
            settings: Settings of the stream, which then describes with a client of its own: answers are kept in its
                run. None for those of the services, and their describer.
        """
        services = copy.copy(self)
        services._stack, services._own = AsyncExitStack(), ()
        if settings is not None:
            services._set(settings)
            services._describer = describing(settings, self._threads)
            services._own = (services._describer,)
        services._is_borrowed = True
        return services

    async def share(self) -> None:
        """Create what streams on borrowed services share, so that the first one need not wait."""
        self.flight = await self.flight_control()
        if self.settings.recognition.asked is None:
            await self._layout.get()

    async def identity(self) -> dict[str, Any]:
        """The settings that change results, as plain JSON values; reads the whole file of a layout model.

        Of a model behind a server, :meth:`prepare` is to be awaited before: it finds out which one that is.

        Raises:
            MissingInputError: The layout model cannot be read.
        """
        identity = await self.compute(settings_identity, self._asked, self.layout)
        if self.settings.recognition.asked is not None:
            identity["served_model"] = (await self.region_reader()).served_model
        if self.settings.describing.kinds:
            identity["describe_served_model"] = (await self._describer.get()).served_model
        return identity

    def describe(self) -> dict[str, Any]:
        """The settings as plain JSON values, for the record of a run."""
        parse = msgspec.to_builtins(self.settings)
        for part, settings in (("recognition", self.settings.recognition), ("describing", self.settings.describing)):
            parse[part]["servers"] = [without_credentials(url) for url in settings.servers]
        return {
            "parse": parse,
            "runtime": msgspec.to_builtins(self.runtime),
            "layout_engine": self.layout.engine,
            "layout_model": None if self.layout.model is None else str(self.layout.model),
        }

    async def __aenter__(self) -> Self:
        if not self._is_borrowed:
            await self._open()
        for service in self._own:
            self._stack.push_async_callback(service.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _open(self) -> None:
        # A page may take so long; a call that continues for as long again, with its page given up, hangs.
        grace_s = min(STUCK_AFTER_S, self.settings.page_timeout_s)
        make = functools.partial(ComputeThreads, stuck=self.stuck, grace_s=grace_s)
        self._threads = make(self.runtime.threads, name="pagemill.compute")
        self._decoding_threads = make(self.runtime.threads, name="pagemill.decode")
        self._layout_threads = make(min(_LAYOUT_CALLS, self.runtime.threads), name="pagemill.layout")
        self.decoding = DecodingService(
            workers=self.runtime.decoders,
            threads=self._decoding_threads,
            timeout_s=min(DECODE_TIMEOUT_S, self.settings.page_timeout_s),
            memory=self.runtime.decoder_memory,
        )
        self._layout = Once(self._load_layout, lambda layout: layout.close())
        self._text = TextReading(threads=self._threads, lanes=self.runtime.threads)
        self._tables = Once(self._load_tables)
        self._formulas = FormulaReading(threads=self._threads, lanes=self.runtime.threads)
        asked = self.settings.recognition.asked or self.settings.recognition
        self._reader = Once(lambda: load_reader(asked, self._threads), lambda reader: reader.aclose())
        self._describer = describing(self.settings, self._threads)
        self._stack.push_async_callback(self._threads.close)
        self._stack.push_async_callback(self._layout_threads.close)
        await self._stack.enter_async_context(self.decoding)
        self._stack.push_async_callback(self._text.close)
        self._stack.push_async_callback(self._formulas.close)
        self._own = (self._layout, self._tables, self._reader, self._describer)

    async def prepare(self) -> None:
        """Detect errors early that would affect every page.

        Raises:
            LanguageError: No installed engine reads a language that was asked for.
            PagemillError: The layout engine or model that the user chose cannot be loaded, or the region engine's
                servers do not answer; its class gives the cause.
        """
        await self.awaited()
        if self.settings.describing.kinds:
            await (await self._describer.get()).check()
        if self.settings.recognition.asked is not None:
            reader = await self.region_reader()
            await reader.check()
            if reader.reads is ReadingMode.PAGES and self.settings.text_layer is TextLayerMode.NEVER:
                return  # no page is laid out
        if self.settings.languages:
            await self.check_languages(self.settings.languages)
        if self.layout != LayoutChoice():
            await self._layout.get()
        if self.settings.table_choice != TableEngineSettings():
            await self._tables.get()

    def stop_waiting(self) -> None:
        """Let pages that wait for a server that is not there fail: not those that other streams need, too."""
        for service in (self._reader, self._describer):
            if service in self._own and service.made is not None:
                service.made.stop_waiting()

    async def keep_answers(self, answers: KeptAnswers | None) -> None:
        """Keep descriptions as they arrive; None: in this process alone."""
        if self.settings.describing.kinds:
            (await self._describer.get()).answers = answers

    async def check_languages(self, languages: Sequence[str]) -> None:
        """Raise a LanguageError when no installed engine reads one of the languages."""
        await self._text.check(languages)

    async def languages(self) -> list[str]:
        """Codes of the languages that installed engines read."""
        return await self._text.languages()

    @property
    def described(self) -> DescribeCounts | None:
        """Counts of the second pass; None without one."""
        describer = self._describer.made
        return None if describer is None else describer.counts

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Decode a page."""
        return await self.decoding.decode(payload)

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        """Detect layout regions, in a microbatch with other pages."""
        return await (await self._layout.get()).regions.submit(pixels)

    async def decode_with_regions(
        self, payload: PdfPage | EncodedImage
    ) -> tuple[DecodedPage, list[DetectedRegion]] | None:
        """Decode a page and detect its regions on the layout engine's device; None for all that it does not decode."""
        jpegs = (await self._layout.get()).jpegs
        if jpegs is None or isinstance(payload, PdfPage):
            return None
        image = await self.decoding.sound_jpeg(payload)
        if image is None:
            return None
        try:
            layout = await jpegs.submit(image.data)
        except PagemillError as error:  # of this page alone, which takes the way of all others
            log.info("decoded on the CPU, as the decoder of the layout engine failed: %s", error)
            return None
        if layout is None or layout.pixels.shape != (image.size[1], image.size[0], 3):
            return None
        return DecodedPage(pixels=layout.pixels, dpi=image.dpi, warnings=image.warnings), layout.regions

    async def read(self, pixels: Pixels, languages: Sequence[str] | None, *, bends: bool = False) -> ReadPage:
        """Find and read all lines of text, in microbatches with other pages."""
        return await self._text.read(pixels, languages, bends=bends)

    async def detect_lines(self, pixels: Pixels) -> list[DetectedLine]:
        """Find all lines of text."""
        return await self._text.detect(pixels)

    async def table_engine(self) -> StructureModel:
        """The model for rows and columns of tables, loaded."""
        return await self._tables.get()

    async def formula_engine(self) -> str | None:
        """The name of the engine that reads pictures of formulas; None where there is none."""
        return await self._formulas.engine()

    async def read_formulas(self, crops: Sequence[Pixels]) -> list[RecognizedFormula | PagemillError]:
        """Read pictures of formulas, in microbatches with other pages; what failed has its error in its place."""
        return await self._formulas.read(crops)

    async def region_reader(self) -> RegionReader:
        """The region engine, loaded. Pages that wait for it are in flight beside those that compute."""
        return await self._reader.get()

    async def describe_element(self, element: ElementRequest) -> Description | Problem | None:
        """The description of an element by a model, or why there is none; None beyond the limit."""
        return await describe(await self._describer.get(), element)

    async def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function on one of the computing threads."""
        return await self._threads.run(function, *args, **kwargs)

    async def _load_tables(self) -> StructureModel:
        chosen = self.settings.table_choice
        create = await self._threads.run(engines.load, engines.TABLE_ENGINES, chosen.name)
        engine: StructureModel = await self._threads.run(create, chosen)
        return engine

    async def flight_control(self) -> FlightControl:
        """What bounds the pages in flight on these services."""
        waiting = await self.awaited()
        computing = RuntimeSettings(threads=self.runtime.threads).resolved().pages_in_flight
        return FlightControl(
            max_pages=self.runtime.pages_in_flight,
            max_bytes=self.runtime.bytes_in_flight,
            max_with_pixels=computing if waiting else math.inf,
            enough_requests=waiting or math.inf,
        )

    async def awaited(self) -> int:
        """How many answers of servers pages may wait for: they are in flight beside those that compute."""
        waiting = 0
        if self.settings.recognition.asked is not None:
            waiting += _READY * (await self.region_reader()).in_flight
        if self.settings.describing.kinds:
            waiting += _READY * (await self._describer.get()).in_flight
        self.runtime = self.asked_runtime.resolved(waiting_pages=waiting)
        return waiting

    async def drained(self) -> None:
        """Wait for what pages that were given up have left running, or until it hangs."""
        for threads in (self._threads, self._layout_threads, self._decoding_threads):
            await threads.drained()

    async def _load_layout(self) -> _LayoutService:
        choice = self.layout
        create = await self.compute(engines.load, engines.LAYOUT_ENGINES, choice.engine)
        settings = LayoutSettings(model_path=choice.model, max_batch=self.runtime.layout_batch or None)
        engine: LayoutEngine = await self.compute(create, settings)
        # Several pages at once mean a device. The threads that wait for it are not among those that compute, where the
        # oldest page goes first: pages are made ready meanwhile, and batches fill.
        has_device = engine.max_batch > 1
        batcher = functools.partial(
            MicroBatcher,
            name=f"the layout engine {choice.engine!r}",
            threads=self._layout_threads if has_device else self._threads,
            max_batch=engine.max_batch,
            concurrency=min(_LAYOUT_CALLS, self.runtime.threads) if has_device else self.runtime.threads,
        )
        jpegs = None
        if getattr(engine, "decodes_jpegs", False):
            jpegs = batcher(cast("JpegLayoutEngine", engine).detect_jpegs, check=_checked_layout)
        return _LayoutService(batcher(engine.detect, check=checked_regions, free=engine.close), jpegs)


class _LayoutService(msgspec.Struct, frozen=True):
    """The layout engine: for pixels, and for JPEGs that its device decodes."""

    regions: MicroBatcher[Pixels, list[DetectedRegion]]
    jpegs: MicroBatcher[bytes, DecodedLayout | None] | None

    async def close(self) -> None:
        """Stop all calls and free the engine, unless a call hangs in it."""
        if self.jpegs is not None:
            await self.jpegs.close()
            self.regions.hangs |= self.jpegs.hangs
        await self.regions.close()


def _checked_layout(_: bytes, layout: DecodedLayout | None) -> DecodedLayout | None:
    return layout and DecodedLayout(layout.pixels, checked_regions(layout.pixels, layout.regions))
