"""What happens to one page, from reference to record: read this first."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from pagemill.config.modes import ReadingMode, TextLayerMode
from pagemill.document.page import PageError, PageResult, Status
from pagemill.errors import (
    ExitCode,
    NetworkError,
    PagemillError,
    PageTimeoutError,
    UsageError,
    WorkerCrashError,
    error_class,
)
from pagemill.export.markdown import page_markdown
from pagemill.imaging.encode import encode_preview
from pagemill.imaging.transforms import rotate_quarter
from pagemill.parsing.analyse import analyse_page
from pagemill.parsing.clean import clean_lines
from pagemill.parsing.crops import cut_pictures
from pagemill.parsing.deskew import StraightPage, estimate_skew, straighten
from pagemill.parsing.marks import with_marks
from pagemill.parsing.regions import finish_page, prepare_page
from pagemill.parsing.text_layer_soundness import judge, merge_lines
from pagemill.parsing.upright import turn_page, turn_to_upright, turned_lines
from pagemill.parsing.whole_pages import UnreadPageError, finish_whole_page, prepare_whole_page
from pagemill.recognition.languages import remedy_for
from pagemill.recognition.reader import POORLY_READ
from pagemill.recognition.script_detection import LANGUAGE_OF_SCRIPT
from pagemill.sources.items import located

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence

    from pagemill.config.settings import ParseSettings
    from pagemill.document.page import TextLine
    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion
    from pagemill.parsing.text_layer_soundness import TextLayerVerdict
    from pagemill.recognition.base import RegionReader
    from pagemill.recognition.reader import ReadPage
    from pagemill.sources.base import DocumentRef, EncodedImage, PageRef, PdfPage

log = logging.getLogger(__name__)

_DECODE = "decode"

P = ParamSpec("P")
R = TypeVar("R")


class PageServices(Protocol):
    """The scarce things that all pages share. Each batches and limits on its own."""

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Decode a page in a worker process (PDF) or on a thread (image), within a time limit."""
        ...

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        """Detect layout regions, in a microbatch with other pages."""
        ...

    async def read(self, pixels: Pixels, languages: Sequence[str] | None) -> ReadPage:
        """Find and read all lines of text, in microbatches with other pages."""
        ...

    async def region_reader(self) -> RegionReader:
        """The region engine of the run, loaded; its answers are checked."""
        ...

    def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run a function that computes for more than a millisecond on a thread."""
        ...


class PageTicket(Protocol):
    """A page's place among those in flight."""

    def pixels_gone(self, *, kept_bytes: int, requests: int) -> None:
        """The page has let its pixels go, keeps so many bytes, and waits for so many answers."""
        ...

    def request_ended(self) -> None:
        """One of the answers is there, or will not come."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage:
    """A record and the encoded images that belong to it."""

    document: DocumentRef
    record: PageResult
    crops: tuple[tuple[str, bytes], ...] = ()
    """Relative path and encoded bytes, as named in ``record.image_crops``."""
    preview: bytes | None = None
    """Small WebP of the page for the report."""
    exit_code: ExitCode = ExitCode.OK
    """Of the first error of a failed page."""
    retryable: bool = False
    """The page failed for a cause that may be gone when it is tried once more, alone."""
    unserved: bool = False
    """The page failed as no server reads for this run: every other page would fail like it."""

    def failures(self) -> Iterator[tuple[str, str, str | None]]:
        """What is wrong, for people: name, message and remedy of each error.

        The name is the page's id; of an input that could not be opened it is the address, which the message then leaves
        out.
        """
        address = self.document.uri if self.record.page_number is None else None
        for error in self.record.errors:
            message = error.message
            for start in (f"{address}: ", f"{address} ", f"{address!r} ") if address else ():
                message = message.removeprefix(start)
            yield address or self.record.page_id, message, error.remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPage:
    """A page of the input that is not to be parsed, as its source says."""

    ref: PageRef
    reason: str

    @property
    def document(self) -> DocumentRef:
        """The document it belongs to."""
        return self.ref.document


@dataclass(slots=True)
class StageClock:
    """Seconds a page spent in each stage, waiting for a shared service included."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a stage, whether or not it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - start, 4)


async def parse_page(
    ref: PageRef, services: PageServices, settings: ParseSettings, ticket: PageTicket | None = None
) -> ParsedPage:
    """Turn a page reference into its record. Never raises for what is wrong with this page alone.

    Args:
        ref: The page.
        services: Shared services.
        settings: Settings of the run.
        ticket: Notified when the page releases its pixels; None if nobody needs to know.
    """
    run = _PageRun(ref, services, settings, ticket)
    if ref.error is not None:
        return _failed(ref, ref.error, error_class(ref.error.category).exit_code, run.clock)
    try:
        async with run.limit:
            await run.decode()
            layer = await _judge_text_layer(run)
            if layer.trusted or not settings.recognition.reads_regions:
                return await _by_lines(run, layer)
            reader = await services.region_reader()
            if reader.reads is ReadingMode.PAGES:
                return await _by_whole_page(run, reader)
            return await _by_regions(run, reader)
    except Exception as raised:
        return _failed_by(raised, run)


def _address(ref: PageRef) -> str:
    """Where the page comes from, as the user would name it; with the row of a dataset."""
    row = ref.metadata.get("row")
    return ref.document.uri if row is None else f"{ref.document.uri}#{row}"


def dead_page(ref: PageRef) -> ParsedPage:
    """The result of a page that ended its process, alone, as often as it was allowed to; it is not parsed."""
    error = PageError(
        component="worker",
        category=WorkerCrashError.category,
        message=f"the process died ({ref.death}) while this page, and no other, was under way",
        remedy="Convert the page to an image of moderate size with another program, or give the process more memory.",
    )
    page = _failed(ref, error, WorkerCrashError.exit_code, StageClock())
    page.record.attempts = ref.attempts
    return page


@dataclass(slots=True)
class _PageRun:
    """What the three routes of a page share: services, clock, time limit, and the pixels until they are released."""

    ref: PageRef
    services: PageServices
    settings: ParseSettings
    ticket: PageTicket | None
    clock: StageClock = field(default_factory=StageClock)
    limit: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    decoded: DecodedPage | None = None

    @property
    def page(self) -> DecodedPage:
        """The decoded page; not to be asked for once its pixels are released."""
        assert self.decoded is not None
        return self.decoded

    @property
    def wants_preview(self) -> bool:
        """Whether the report shows an image of this page."""
        return self.ref.position < self.settings.preview_pages

    async def decode(self) -> None:
        """Decode the page, and start its time limit: decoding has a limit of its own, waiting for it has none."""
        assert self.ref.payload is not None
        with self.clock.stage(_DECODE):
            self.decoded = await self.services.decode(self.ref.payload)
        self.start_limit()

    def start_limit(self) -> None:
        """Give the page its full time limit from now on."""
        self.limit.reschedule(asyncio.get_running_loop().time() + self.settings.page_timeout_s)

    async def compute(self, stage: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function on a computing thread, as part of a stage."""
        with self.clock.stage(stage):
            return await self.services.compute(function, *args, **kwargs)

    async def read_remotely(
        self, read: Callable[[Any], Coroutine[Any, Any, R]], requests: Sequence[Any], kept_bytes: int
    ) -> list[R]:
        """Release the pixels and have all requests of the page answered at once.

        The wait takes seconds, and the next page needs the memory. The page's time limit does not apply: requests have
        limits of their own, and a restarting server is no fault of the page. An error that concerns the whole page
        cancels the other requests.
        """
        self.decoded = None
        self.limit.reschedule(None)
        if self.ticket is not None:
            self.ticket.pixels_gone(kept_bytes=kept_bytes, requests=len(requests))
        readings = [asyncio.ensure_future(self._read_one(read, request)) for request in requests]
        try:
            with self.clock.stage("recognition"):
                return list(await asyncio.gather(*readings))
        except (NetworkError, UsageError) as error:
            raise _UnservedError(error) from error
        finally:
            for reading in readings:
                reading.cancel()  # a no-op for those that are done
            await asyncio.gather(*readings, return_exceptions=True)
            self.start_limit()

    async def _read_one(self, read: Callable[[Any], Coroutine[Any, Any, R]], request: Any) -> R:
        try:
            return await read(request)
        finally:
            if self.ticket is not None:
                self.ticket.request_ended()

    def result(self, record: PageResult, crops: tuple[tuple[str, bytes], ...], preview: bytes | None) -> ParsedPage:
        """The parsed page, with the time that its stages took."""
        record.timings = self.clock.seconds
        if self.ref.warning is not None:
            record.errors.insert(0, self.ref.warning)
        return ParsedPage(document=self.ref.document, record=record, crops=crops, preview=preview)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextLayerUse:
    """What is taken from a page's text layer."""

    judged: TextLayerVerdict | None = None
    """None without a text layer, or if the settings ignore it."""
    trusted: bool = False
    """The page is made from its text layer alone."""


async def _judge_text_layer(run: _PageRun) -> _TextLayerUse:
    layer, mode = run.page.text_layer, run.settings.text_layer
    if layer is None or mode is TextLayerMode.NEVER:
        return _TextLayerUse()
    judged = await run.compute("text_layer", judge, layer, run.page.pixels)
    always = mode is TextLayerMode.ALWAYS and bool(layer.lines or layer.hidden_lines)
    return _TextLayerUse(judged=judged, trusted=judged.sound or always)


async def _by_regions(run: _PageRun, reader: RegionReader) -> ParsedPage:
    """A page whose regions are found by the layout engine and read by a model."""
    with run.clock.stage("layout"):
        detected = await run.services.detect_regions(run.page.pixels)
    prepared = await run.compute(
        "preparation",
        prepare_page,
        run.ref,
        run.page,
        detected,
        reader.prepare,
        footnotes=run.settings.recognition.footnotes,
        crops=run.settings.crops,
        preview=run.wants_preview,
    )
    requests = [request for _, request in prepared.requests]
    readings = await run.read_remotely(reader.read, requests, prepared.kept_bytes)
    await run.compute("analysis", finish_page, prepared, readings)
    return run.result(prepared.record, prepared.crops, prepared.preview)


async def _by_whole_page(run: _PageRun, reader: RegionReader) -> ParsedPage:
    """A page that a model reads as a whole, regions included."""
    prepared = await run.compute(
        "preparation",
        prepare_whole_page,
        run.ref,
        run.page,
        reader.prepare,
        crops=run.settings.crops,
        preview=run.wants_preview,
    )
    readings = await run.read_remotely(reader.read_page, prepared.requests, prepared.kept_bytes)
    reading = readings[0] if readings else None
    if reading is not None and reading.elements is None:
        raise UnreadPageError(reading)
    crops = await run.compute(
        "analysis", finish_whole_page, prepared, reading, footnotes=run.settings.recognition.footnotes
    )
    return run.result(prepared.record, crops, prepared.preview)


@dataclass(slots=True)
class _Lines:
    """The text lines of a page and where they come from."""

    lines: Sequence[TextLine]
    source: str
    languages: tuple[str, ...] = ()
    rotation: int = 0
    """Degrees clockwise by which recognition turned the page."""
    problem: PageError | None = None


async def _by_lines(run: _PageRun, layer: _TextLayerUse) -> ParsedPage:
    """A page made of its text lines: those of its text layer if it is trusted, else what recognition reads."""
    page, pixels, settings = run.page, run.page.pixels, run.settings
    height, width = pixels.shape[:2]
    if layer.trusted:
        found = _Lines(_text_layer_lines(page, settings), "text-layer")
    else:
        found = await _read_lines(run, layer)
    rotation = found.rotation
    if rotation:
        pixels = await run.services.compute(rotate_quarter, pixels, rotation)
    lines, errors = clean_lines(found.lines)
    if layer.trusted and (rotation := turn_to_upright(lines)):
        page, lines = await run.services.compute(turn_page, page, lines, rotation)
        pixels = page.pixels
    if layer.judged is not None and page.text_layer is not None and (marks := page.text_layer.marks):
        lines = with_marks(lines, turned_lines(clean_lines(marks)[0], rotation, width, height))
    straight: StraightPage | None = None
    if found.source != "text-layer" and (angle := estimate_skew(lines)):
        straight = await run.compute("deskew", straighten, pixels, lines, angle)
    level_pixels, level_lines = (straight.pixels, straight.lines) if straight else (pixels, lines)

    with run.clock.stage("layout"):
        detected = await run.services.detect_regions(level_pixels)
    record = await run.compute("analysis", analyse_page, run.ref, page, level_pixels, detected, level_lines)
    if straight:
        straight.restore(record)
    record.errors.extend(errors if found.problem is None else [found.problem, *errors])
    record.errors.extend(page.warnings)
    record.attempts = run.ref.attempts + 1
    record.rotation = rotation
    record.scale = page.scale
    record.languages = found.languages
    record.text_source = found.source if lines else ""

    crops = await run.compute("crops", _with_pictures, record, pixels) if settings.crops else ()
    preview = await run.compute("crops", encode_preview, pixels) if run.wants_preview else None
    return run.result(record, crops, preview)


def _text_layer_lines(page: DecodedPage, settings: ParseSettings) -> tuple[TextLine, ...]:
    assert page.text_layer is not None
    hidden = page.text_layer.hidden_lines if settings.text_layer is TextLayerMode.ALWAYS else ()
    return (*page.text_layer.lines, *hidden)


async def _read_lines(run: _PageRun, layer: _TextLayerUse) -> _Lines:
    """Lines by recognition; together with those of a text layer that is sound in parts."""
    with run.clock.stage("recognition"):
        read = await run.services.read(run.page.pixels, run.settings.languages)
    found = _Lines(read.lines, "ocr", tuple(read.languages), read.rotation)
    if layer.judged is not None and layer.judged.partial and not read.rotation:
        found.lines = merge_lines(_text_layer_lines(run.page, run.settings), read.lines)
        found.source = "text-layer+ocr"
    found.problem = _poorly_read(read) if found.lines else _nothing_read(read)
    return found


class _UnservedError(PagemillError):
    """No server reads for this run; made from the error that says so."""

    def __init__(self, error: PagemillError) -> None:
        super().__init__(error.message, remedy=error.remedy)
        self.category, self.exit_code = error.category, error.exit_code


def _nothing_read(read: ReadPage) -> PageError | None:
    """What to say about lines of text none of which could be read: nothing may be there, or the engine is at fault."""
    if not read.illegible:
        return None
    found = "1 line of text was" if read.illegible == 1 else f"{read.illegible} lines of text were"
    return PageError(
        component="recognition", category="empty_text", message=f"{found} found, but nothing could be read in any"
    )


def _poorly_read(read: ReadPage) -> PageError | None:
    """What to say about a page whose text is not to be relied upon."""
    if read.quality is None or read.quality >= POORLY_READ:
        return None
    what = f"it is probably in {read.script} script" if read.script else "another script, handwriting or a bad scan"
    return PageError(
        component="recognition",
        category="poorly_read",
        message=f"the text is not reliable (quality {read.quality:.2f} of 1): {what}",
        remedy="Install the language of the page and name it with --lang (docs/languages.md)."
        if read.script is None
        else remedy_for([LANGUAGE_OF_SCRIPT[read.script]]),
    )


def _with_pictures(record: PageResult, pixels: Pixels) -> tuple[tuple[str, bytes], ...]:
    files = cut_pictures(record, pixels)
    if files:
        record.markdown = page_markdown(record)  # now with the paths of its pictures
    return files


def _current(clock: StageClock) -> str:
    """The stage entered last: where an error came from."""
    return next(reversed(clock.seconds), "decode")


def _failed_by(raised: Exception, run: _PageRun) -> ParsedPage:
    """The failed record for an exception; one that is not ours is logged with its traceback."""
    error: PagemillError
    if isinstance(raised, PagemillError):
        error = raised
    elif run.limit.expired():
        error = PageTimeoutError(
            f"the page took longer than {run.settings.page_timeout_s:g} s (in {_current(run.clock)})",
            remedy="Give it more time with --page-timeout.",
        )
    elif isinstance(raised, MemoryError):
        error = PagemillError(
            "there was not enough memory for the page",
            remedy="Keep fewer pages in flight (--pages-in-flight), or give the process more memory.",
        )
    else:
        log.error("page %s failed", run.ref.page_id, exc_info=raised)
        error = PagemillError(
            f"{type(raised).__name__}: {raised}", remedy="This is a defect of pagemill; please report."
        )
    component = _current(run.clock)
    message = located(error.message, _address(run.ref)) if component == _DECODE else error.message
    data = PageError(component=component, category=error.category, message=message, remedy=error.remedy)
    unserved = isinstance(error, _UnservedError)
    return _failed(run.ref, data, error.exit_code, run.clock, retryable=error.retryable, unserved=unserved)


def _failed(
    ref: PageRef,
    error: PageError,
    exit_code: ExitCode,
    clock: StageClock,
    *,
    retryable: bool = False,
    unserved: bool = False,
) -> ParsedPage:
    record = PageResult(
        page_id=ref.page_id,
        page_idx=ref.position,
        page_key=str(ref.key),
        doc_id=ref.document.doc_id,
        source=ref.document.uri,
        page_number=ref.page_number,
        status=Status.FAILED,
        attempts=ref.attempts + 1,
        errors=[error],
        missing=ref.missing,
        timings=clock.seconds,
        metadata=ref.metadata,
    )
    return ParsedPage(
        document=ref.document, record=record, exit_code=exit_code, retryable=retryable or unserved, unserved=unserved
    )
