"""The pipeline: services and engines of a run, and the stream of its pages."""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import msgspec

from pagemill.config.settings import ParseSettings, RuntimeSettings
from pagemill.layout.settings import LayoutSettings
from pagemill.parsing.page import ParsedPage, parse_page
from pagemill.runtime import engines
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.flight import FlightControl
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.once import Once
from pagemill.runtime.stream import stream_pages
from pagemill.runtime.text_reading import TextReading
from pagemill.sources import resolve

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from types import TracebackType

    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion, LayoutEngine
    from pagemill.recognition.reader import ReadPage
    from pagemill.sources import SourceOptions
    from pagemill.sources.base import EncodedImage, PageRef, PageSource, PdfPage

DECODE_TIMEOUT_S = 60.0
"""Time limit for decoding a page, waiting for its turn not included; far above what honest pages need."""

EMBEDDED_LAYOUT = "onnx"
"""The layout engine that is always there."""

P = ParamSpec("P")
R = TypeVar("R")


class Pipeline:
    """Parses streams of pages with one set of engines, processes and threads.

    An async context manager: engines load on first use, everything is closed at the end. Implements
    :class:`pagemill.parsing.page.PageServices`.

    Args:
        settings: What decides about results.
        runtime: What decides about speed and memory.
        layout_engine: Name of an installed layout engine.
        layout_model: The user's own model file for it; None for the embedded one.
    """

    def __init__(
        self,
        settings: ParseSettings | None = None,
        runtime: RuntimeSettings | None = None,
        *,
        layout_engine: str = EMBEDDED_LAYOUT,
        layout_model: str | Path | None = None,
    ) -> None:
        self.settings = settings or ParseSettings()
        self.runtime = (runtime or RuntimeSettings()).resolved()
        self._layout_engine = layout_engine
        self._layout_settings = LayoutSettings(model_path=Path(layout_model) if layout_model else None)
        self._source: PageSource | None = None

    @property
    def total(self) -> int | None:
        """Pages of the stream that is under way, where that is known yet."""
        return self._source.total if self._source else None

    def describe(self) -> dict[str, Any]:
        """The settings as plain JSON values, for the record of a run."""
        return {
            "parse": msgspec.to_builtins(self.settings),
            "runtime": msgspec.to_builtins(self.runtime),
            "layout_engine": self._layout_engine,
            "layout_model": str(self._layout_settings.model_path) if self._layout_settings.model_path else None,
        }

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._executor = ThreadPoolExecutor(self.runtime.threads, thread_name_prefix="pagemill.compute")
            # Calls that run are waited for without holding up the event loop, which may be a server's.
            stack.push_async_callback(asyncio.to_thread, self._executor.shutdown, cancel_futures=True)
            self._decoding = await stack.enter_async_context(
                DecodingService(
                    workers=self.runtime.decoders,
                    threads=self.runtime.threads,
                    timeout_s=min(DECODE_TIMEOUT_S, self.settings.page_timeout_s),
                )
            )
            self._layout = Once(self._load_layout)
            stack.push_async_callback(self._close_layout)
            self._text = TextReading(executor=self._executor, lanes=self.runtime.threads)
            stack.push_async_callback(self._text.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def prepare(self) -> None:
        """Find out now what would otherwise fail on every page.

        Raises:
            LanguageError: No installed engine reads a language that was asked for.
            PagemillError: The layout engine or model that the user chose cannot be loaded; the class says why.
        """
        if self.settings.languages:
            await self._text.check(self.settings.languages)
        if self._layout_engine != EMBEDDED_LAYOUT or self._layout_settings.model_path:
            await self._layout.get()

    async def stream(self, inputs: Sequence[str | Path | bytes], options: SourceOptions) -> AsyncGenerator[ParsedPage]:
        """Parse all pages of the inputs and yield them as they finish."""
        source = resolve(inputs, options=options, decoder=self._decoding)
        self._source = source
        flight = FlightControl(max_pages=self.runtime.pages_in_flight, max_bytes=self.runtime.bytes_in_flight)
        async with aclosing(stream_pages(source, self._parse, flight)) as pages:
            async for page in pages:
                yield page

    async def _parse(self, position: int, ref: PageRef) -> ParsedPage:
        return await parse_page(ref, position, self, self.settings)

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Decode a page."""
        return await self._decoding.decode(payload)

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        """Detect layout regions, in a microbatch with other pages."""
        batcher, _ = await self._layout.get()
        return await batcher.submit(pixels)

    async def read(self, pixels: Pixels, languages: Sequence[str] | None) -> ReadPage:
        """Find and read all lines of text, in microbatches with other pages."""
        return await self._text.read(pixels, languages)

    async def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function on one of the computing threads."""
        call = functools.partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def _load_layout(self) -> tuple[MicroBatcher[Pixels, list[DetectedRegion]], LayoutEngine]:
        create = await self.compute(engines.load, engines.LAYOUT_ENGINES, self._layout_engine)
        engine: LayoutEngine = await self.compute(create, self._layout_settings)
        batcher = MicroBatcher(
            engine.detect, executor=self._executor, max_batch=engine.max_batch, concurrency=self.runtime.threads
        )
        return batcher, engine

    async def _close_layout(self) -> None:
        await self._layout.cancel()
        if made := self._layout.made:
            batcher, engine = made
            await batcher.close()
            engine.close()
