"""The recognition service: the lines of all pages in flight, in microbatches, by the engines that are installed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pagemill.imaging.types import Pixels
from pagemill.recognition.base import DetectedLine, RecognizedText, RecognizerOffer, TextDetector, TextRecognizer
from pagemill.recognition.languages import Plan, plan
from pagemill.runtime import engines
from pagemill.runtime.contract import checked, checked_lines, checked_text, engine_error
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.once import Once
from pagemill.runtime.threads import ComputeThreads

if TYPE_CHECKING:
    from pagemill.recognition.reader import ReadPage

P = ParamSpec("P")
R = TypeVar("R")

PRIMARY = "rapidocr"
"""The engine that reads every line first: the fastest for the scripts it covers."""
_LAST = "tesseract"
"""The fallback engine: an installed one is preferred."""


class TextReading:
    """Reads pages with one detector and as many recognizers as they need; each loads on first use.

    Implements :class:`pagemill.recognition.reader.ReadingServices`.

    Args:
        threads: Threads on which the engines compute.
        lanes: Calls of one engine that may run at once.
    """

    def __init__(self, *, threads: ComputeThreads, lanes: int) -> None:
        self._threads = threads
        self._lanes = lanes
        self._detector: Once[TextDetector] = Once(self._load_detector)
        self._offers: Once[dict[str, RecognizerOffer]] = Once(lambda: self.compute(offers))
        self._recognizers: dict[str, Once[MicroBatcher[Pixels, RecognizedText]]] = {}

    async def read(self, page: Pixels, languages: Sequence[str] | None, *, bends: bool = False) -> ReadPage:
        """Find and read all lines of a page, which ``bends`` like that of a photograph.

        Raises:
            LanguageError: No installed engine reads a language that was asked for, or the page's script.
        """
        from pagemill.recognition.reader import PageReader  # pages of text do without

        return await PageReader(await self._plan(languages), self).read(page, bends=bends)

    async def check(self, languages: Sequence[str]) -> None:
        """Raise a LanguageError when no installed engine reads one of the languages."""
        await self._plan(languages)

    async def languages(self) -> list[str]:
        """Codes of the languages that installed engines read, sorted."""
        return sorted({code for offer in (await self._offers.get()).values() for code in offer.languages})

    async def _plan(self, languages: Sequence[str] | None) -> Plan:
        offers = await self._offers.get()
        return plan(languages, {name: offer.languages for name, offer in offers.items()}, PRIMARY)

    async def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find the lines of a page.

        Raises:
            EngineError: The detector failed, or gave lines that are not good.
        """
        detector = await self._detector.get()
        return await self.compute(_detect, detector, page)

    async def recognize(self, engine: str, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images with an engine, in microbatches with other pages."""
        if engine not in self._recognizers:
            load = functools.partial(self._load_recognizer, engine)
            self._recognizers[engine] = Once(load, lambda batcher: batcher.close())
        return await (await self._recognizers[engine].get()).submit_all(lines)

    async def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function on one of the computing threads."""
        return await self._threads.run(function, *args, **kwargs)

    async def close(self) -> None:
        """Stop all calls and free the models."""
        await self._offers.close()
        await self._detector.close()
        for recognizer in self._recognizers.values():
            await recognizer.close()

    async def _load_detector(self) -> TextDetector:
        create = await self.compute(engines.load, engines.TEXT_DETECTORS, PRIMARY)
        detector: TextDetector = await self.compute(create)
        return detector

    async def _load_recognizer(self, name: str) -> MicroBatcher[Pixels, RecognizedText]:
        offers = await self._offers.get()
        engine: TextRecognizer = await self.compute(offers[name].create)
        return MicroBatcher(
            engine.recognize,
            name=f"the recognition engine {name!r}",
            threads=self._threads,
            max_batch=engine.max_batch,
            concurrency=self._lanes,
            check=checked_text,
            free=engine.close,
        )


def _detect(detector: TextDetector, page: Pixels) -> list[DetectedLine]:
    name = f"the text detector {detector.name!r}"
    try:
        lines = detector.detect(page)
    except Exception as error:
        raise engine_error(name, error) from error
    return checked(name, checked_lines, page, lines)


def offers() -> dict[str, RecognizerOffer]:
    """What all installed recognition engines offer, the primary first; the first that reads a language reads it."""
    names = sorted(engines.names(engines.TEXT_ENGINES), key=lambda name: (name != PRIMARY, name == _LAST, name))
    return {offer.name: offer for name in names for offer in engines.load(engines.TEXT_ENGINES, name)()}
