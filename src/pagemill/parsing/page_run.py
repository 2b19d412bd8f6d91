"""What the steps of one page share: services, clock, time limit, and the pixels until they are released."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from pagemill import tracing
from pagemill.computing.timeout import Timeout
from pagemill.config.settings import ParseSettings
from pagemill.describing.elements import ElementRequest
from pagemill.document.page import Description
from pagemill.errors import NetworkError, PagemillError, UsageError, first_of
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.photographs import Photograph
from pagemill.parsing.text_layer_soundness import Judgement
from pagemill.recognition.base import DetectedLine, Problem, RecognizedFormula, RegionReader
from pagemill.sources.base import EncodedImage, PageRef, PdfPage
from pagemill.tables.structure_model import StructureModel

if TYPE_CHECKING:
    from pagemill.recognition.reader import ReadPage

DECODE = "decode"
"""The first stage of each page."""

P = ParamSpec("P")
R = TypeVar("R")


class PageServices(Protocol):
    """The scarce things that all pages share. Each batches and limits on its own."""

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Decode a page in a worker process (PDF) or on a thread (image), within a time limit."""

    async def decode_with_regions(
        self, payload: PdfPage | EncodedImage
    ) -> tuple[DecodedPage, list[DetectedRegion]] | None:
        """Decode a page and detect its regions on one device; None where that is not possible."""

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        """Detect layout regions, in a microbatch with other pages."""

    async def read(self, pixels: Pixels, languages: Sequence[str] | None, *, bends: bool = False) -> ReadPage:
        """Find and read all lines of text, in microbatches with other pages."""

    async def detect_lines(self, pixels: Pixels) -> list[DetectedLine]:
        """Find all lines of text."""

    async def table_engine(self) -> StructureModel:
        """The model for rows and columns of tables that the settings name, loaded. Not asked for the embedded one."""

    async def formula_engine(self) -> str | None:
        """The name of the engine that reads pictures of formulas; None where there is none."""

    async def read_formulas(self, crops: Sequence[Pixels]) -> list[RecognizedFormula | PagemillError]:
        """Read pictures of formulas, in microbatches with other pages; what failed has its error in its place."""

    async def region_reader(self) -> RegionReader:
        """The region engine of the run, loaded; its answers are checked."""

    async def describe_element(self, element: ElementRequest) -> Description | Problem | None:
        """What a model says that an element shows, or why it does not; None beyond the limit."""

    def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run a function that computes for more than a millisecond on a thread."""


class PageTicket(Protocol):
    """A page's place among those in flight."""

    def pixels_gone(self, *, kept_bytes: int, requests: int) -> None:
        """The page has let its pixels go, keeps so many bytes, and waits for so many answers."""

    def request_ended(self) -> None:
        """One of the answers is there, or will not come."""


@dataclass(slots=True)
class PageRun:
    """One page while it is parsed."""

    ref: PageRef
    services: PageServices
    settings: ParseSettings
    ticket: PageTicket | None
    seconds: dict[str, float] = field(default_factory=dict)
    """Spent in each stage, waiting for a shared service included."""
    limit: Timeout = field(default_factory=Timeout)
    page: DecodedPage = field(init=False)
    """From its decoding until its pixels are released."""
    photograph: Photograph | None = None
    """What ``page`` was unwarped from."""
    judgement: Judgement | None = None
    """Judgement of the text layer, if there is one that may be used."""
    verdict: str | None = None
    """What becomes of the text layer: as judged, but ``SOUND`` where the user trusts it. None with ``judgement``."""
    unserved: bool = False
    """No server answered the requests of the page."""

    @property
    def last_stage(self) -> str:
        """The stage entered last: where an error came from."""
        return next(reversed(self.seconds), DECODE)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a stage, whether or not it raises."""
        start = time.perf_counter()
        try:
            with tracing.stage(name):
                yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - start, 4)

    async def compute(self, stage: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function on a computing thread, as part of a stage."""
        with self.stage(stage):
            return await self.services.compute(function, *args, **kwargs)

    def start_limit(self) -> None:
        """Give the page its full time limit from now on."""
        self.limit.start(self.settings.page_timeout_s)

    async def ask_remotely(
        self, stage: str, ask: Callable[[Any], Coroutine[Any, Any, Any]], requests: Collection[Any], kept_bytes: int
    ) -> list[Any]:
        """Release the pixels and have all requests of the page answered at once.

        The wait takes seconds, and the next page needs the memory. The page's time limit does not apply: requests have
        limits of their own, and a restarting server is no fault of the page. An error that concerns the whole page
        cancels the other requests.
        """
        if hasattr(self, "page"):
            del self.page
        self.limit.stop()
        if self.ticket is not None:
            self.ticket.pixels_gone(kept_bytes=kept_bytes, requests=len(requests))
        try:
            with self.stage(stage):
                tracing.moved(kept_bytes)
                async with asyncio.TaskGroup() as group:
                    answers = [group.create_task(ask(request)) for request in requests]
                    for answer in answers:
                        answer.add_done_callback(self._request_ended)
            return [answer.result() for answer in answers]
        except BaseExceptionGroup as failures:
            failure = first_of(failures)
            self.unserved = isinstance(failure, (NetworkError, UsageError))
            raise failure from None
        finally:
            self.start_limit()

    def _request_ended(self, _: object) -> None:
        if self.ticket is not None:
            self.ticket.request_ended()
