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
from pagemill.errors import ExitCode, NetworkError, PagemillError, PageTimeoutError, UsageError, WorkerCrashError
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence

    from pagemill.config.settings import ParseSettings
    from pagemill.document.page import TextLine
    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion
    from pagemill.parsing.text_layer_soundness import Verdict
    from pagemill.recognition.base import RegionReader
    from pagemill.recognition.reader import ReadPage
    from pagemill.sources.base import DocumentRef, EncodedImage, PageRef, PdfPage

log = logging.getLogger(__name__)

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
        settings: Of the run.
        ticket: Told when the page has let its pixels go; None when nobody wants to know.
    """
    clock = StageClock()
    if ref.error is not None:
        return _failed(ref, ref.error, ExitCode(ref.exit_code or ExitCode.INPUT), clock)
    limit = asyncio.timeout(None)
    error: PagemillError
    try:
        async with limit:
            parsed = await _parse(ref, services, settings, clock, limit, ticket)
            if ref.warning is not None:
                parsed.record.errors = [ref.warning, *parsed.record.errors]
            return parsed
    except PagemillError as raised:
        error = raised
    except Exception as raised:
        if limit.expired():
            error = PageTimeoutError(
                f"the page took longer than {settings.page_timeout_s:g} s (in {_current(clock)})",
                remedy="Give it more time with --page-timeout.",
            )
        elif isinstance(raised, MemoryError):
            error = PagemillError(
                "there was not enough memory for the page",
                remedy="Let fewer pages be under way at once (--pages-in-flight), or give the process more memory.",
            )
        else:
            log.exception("page %s failed", ref.page_id)
            error = PagemillError(
                f"{type(raised).__name__}: {raised}", remedy="This is a defect of pagemill; please report."
            )
    data = PageError(component=_current(clock), category=error.category, message=error.message, remedy=error.remedy)
    exit_code, retryable = error.exit_code, error.retryable
    unserved = isinstance(error, _UnservedError)
    del error  # its traceback holds the page's pixels, and this frame
    return _failed(ref, data, exit_code, clock, retryable=retryable, unserved=unserved)


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


async def _parse(
    ref: PageRef,
    services: PageServices,
    settings: ParseSettings,
    clock: StageClock,
    limit: asyncio.Timeout,
    ticket: PageTicket | None,
) -> ParsedPage:
    assert ref.payload is not None
    with clock.stage("decode"):
        page = await services.decode(ref.payload)
    # From here on: decoding has a limit of its own, and waiting behind a page that hangs there is no fault.
    _start(limit, settings)
    verdict: Verdict | None = None
    if page.text_layer is not None and settings.text_layer is not TextLayerMode.NEVER:
        with clock.stage("text_layer"):
            verdict = await services.compute(judge, page.text_layer, page.pixels)
    always = (
        settings.text_layer is TextLayerMode.ALWAYS
        and page.text_layer is not None
        and (page.text_layer.lines or page.text_layer.hidden_lines)
    )
    trusted = verdict is not None and bool(verdict.sound or always)
    if trusted or not settings.recognition.reads_regions:
        return await _parse_lines(ref, page, verdict, services, settings, clock, trusted=trusted)

    # Both ways let the page's pixels go before they wait: seconds go by until the answers are there, and the next page
    # wants the memory. What is read elsewhere has limits of its own: a server that starts anew is no fault of the page.
    reader = await services.region_reader()
    if reader.reads is ReadingMode.PAGES:
        with clock.stage("preparation"):
            whole = await services.compute(
                prepare_whole_page,
                ref,
                page,
                reader.prepare,
                crops=settings.crops,
                preview=ref.position < settings.preview_pages,
            )
        del page
        limit.reschedule(None)
        with clock.stage("recognition"):
            page_readings = await _read_all(reader.read_page, whole.requests, whole.kept_bytes, ticket)
            reading = page_readings[0] if page_readings else None
            if reading is not None and reading.elements is None:
                raise UnreadPageError(reading)
        _start(limit, settings)
        with clock.stage("analysis"):
            crops = await services.compute(finish_whole_page, whole, reading, footnotes=settings.recognition.footnotes)
        whole.record.timings = clock.seconds
        return ParsedPage(document=ref.document, record=whole.record, crops=crops, preview=whole.preview)

    with clock.stage("layout"):
        detected = await services.detect_regions(page.pixels)
    with clock.stage("preparation"):
        prepared = await services.compute(
            prepare_page,
            ref,
            page,
            detected,
            reader.prepare,
            footnotes=settings.recognition.footnotes,
            crops=settings.crops,
            preview=ref.position < settings.preview_pages,
        )
    del page, detected
    limit.reschedule(None)
    with clock.stage("recognition"):
        requests = [request for _, request in prepared.requests]
        readings = await _read_all(reader.read, requests, prepared.kept_bytes, ticket)
    _start(limit, settings)
    with clock.stage("analysis"):
        await services.compute(finish_page, prepared, readings)
    prepared.record.timings = clock.seconds
    return ParsedPage(document=ref.document, record=prepared.record, crops=prepared.crops, preview=prepared.preview)


def _start(limit: asyncio.Timeout, settings: ParseSettings) -> None:
    limit.reschedule(asyncio.get_running_loop().time() + settings.page_timeout_s)


class _UnservedError(PagemillError):
    """No server reads for this run; made from the error that says so."""

    def __init__(self, error: PagemillError) -> None:
        super().__init__(error.message, remedy=error.remedy)
        self.category, self.exit_code = error.category, error.exit_code


async def _read_all(
    read: Callable[[Any], Coroutine[Any, Any, R]], requests: Sequence[Any], kept_bytes: int, ticket: PageTicket | None
) -> list[R]:
    """Have all that a page asks for read at once. An error of one that concerns the page gives the others up."""
    if ticket is not None:
        ticket.pixels_gone(kept_bytes=kept_bytes, requests=len(requests))

    async def read_one(request: Any) -> R:
        try:
            return await read(request)
        finally:
            if ticket is not None:
                ticket.request_ended()

    readings = [asyncio.ensure_future(read_one(request)) for request in requests]
    try:
        return list(await asyncio.gather(*readings))
    except (NetworkError, UsageError) as error:
        raise _UnservedError(error) from error
    finally:
        for reading in readings:
            reading.cancel()  # a no-op for those that are done
        await asyncio.gather(*readings, return_exceptions=True)


async def _parse_lines(
    ref: PageRef,
    page: DecodedPage,
    verdict: Verdict | None,
    services: PageServices,
    settings: ParseSettings,
    clock: StageClock,
    *,
    trusted: bool,
) -> ParsedPage:
    """A page made of its lines: those of its text layer (``verdict``) where it is ``trusted``, else what is read."""
    pixels, rotation = page.pixels, 0
    layer = page.text_layer if verdict is not None else None
    lines: Sequence[TextLine] = layer.lines if layer is not None else ()
    if layer is not None and settings.text_layer is TextLayerMode.ALWAYS:
        lines = (*lines, *layer.hidden_lines)
    marks, (height, width) = layer.marks if layer is not None else (), pixels.shape[:2]
    empty: PageError | None = None
    text_source = "text-layer"
    languages: tuple[str, ...] = ()
    if not trusted:
        with clock.stage("recognition"):
            read = await services.read(pixels, settings.languages)
        text_source, languages, rotation = "ocr", read.languages, read.rotation
        if rotation:
            pixels = await services.compute(rotate_quarter, pixels, rotation)
        if verdict is not None and verdict.partial and not rotation:
            lines, text_source = merge_lines(lines, read.lines), "text-layer+ocr"
        else:
            lines = read.lines
        empty = None if lines else _nothing_read(read)

    lines, errors = clean_lines(lines)
    if trusted and (rotation := turn_to_upright(lines)):
        page, lines = await services.compute(turn_page, page, lines, rotation)
        pixels = page.pixels
    if marks:
        lines = with_marks(lines, turned_lines(clean_lines(marks)[0], rotation, width, height))
    straight: StraightPage | None = None
    if text_source != "text-layer" and (angle := estimate_skew(lines)):
        with clock.stage("deskew"):
            straight = await services.compute(straighten, pixels, lines, angle)
    level_pixels, level_lines = (straight.pixels, straight.lines) if straight else (pixels, lines)

    with clock.stage("layout"):
        detected = await services.detect_regions(level_pixels)

    with clock.stage("analysis"):
        record = await services.compute(analyse_page, ref, page, level_pixels, detected, level_lines)
    if straight:
        straight.restore(record)
    record.errors.extend(errors if empty is None else [empty, *errors])
    record.errors.extend(page.warnings)
    record.attempts = ref.attempts + 1
    record.rotation = rotation
    record.scale = page.scale
    record.languages = tuple(languages)
    record.text_source = text_source if lines else ""

    with clock.stage("crops"):
        crops = await services.compute(_with_pictures, record, pixels) if settings.crops else ()
        preview = await services.compute(encode_preview, pixels) if ref.position < settings.preview_pages else None
    record.timings = clock.seconds
    return ParsedPage(document=ref.document, record=record, crops=crops, preview=preview)


def _nothing_read(read: ReadPage) -> PageError | None:
    """What to say about lines of text none of which could be read: nothing may be there, or the engine is at fault."""
    if not read.illegible:
        return None
    found = "1 line of text was" if read.illegible == 1 else f"{read.illegible} lines of text were"
    return PageError(
        component="recognition", category="empty_text", message=f"{found} found, but nothing could be read in any"
    )


def _with_pictures(record: PageResult, pixels: Pixels) -> tuple[tuple[str, bytes], ...]:
    files = cut_pictures(record, pixels)
    if files:
        record.markdown = page_markdown(record)  # now with the paths of its pictures
    return files


def _current(clock: StageClock) -> str:
    """The stage entered last: where an error came from."""
    return next(reversed(clock.seconds), "decode")


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
