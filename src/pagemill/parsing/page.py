"""What happens to one page, from reference to record: read this first."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, Protocol, TypeVar

import msgspec

from pagemill import tracing
from pagemill.config.modes import EMBEDDED_TABLES, PhotographMode, ReadingMode, TextLayerMode
from pagemill.config.settings import ParseSettings
from pagemill.describing.elements import ElementRequest, pictures, requests_for, take
from pagemill.document.page import DOUBTS, Description, PageError, PageResult, Status, TextLine
from pagemill.errors import (
    LanguageError,
    NetworkError,
    PagemillError,
    PageTimeoutError,
    UsageError,
    WorkerCrashError,
    error_class,
    first_of,
)
from pagemill.export.markdown import page_markdown
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.photograph import evenly_lit
from pagemill.imaging.transforms import rotate_quarter
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.analyse import analyse_page
from pagemill.parsing.doubts import (
    doubts_of,
    doubts_of_layer,
    lost_lines,
    plain_formulas,
    unmapped_characters,
    unsaid_text,
)
from pagemill.parsing.escalation import keep_better, not_asked, prepare_again
from pagemill.parsing.formula_reading import crops_of, formula_error, take_latex, unread_formulas
from pagemill.parsing.lines import clean_lines
from pagemill.parsing.photographs import Photograph, unwarp_page
from pagemill.parsing.quality import assess, signals_of_layer, signals_of_reading
from pagemill.parsing.record import Files, PreparedPage, begun_record, cut_pictures, preview_of
from pagemill.parsing.regions import finish_page, finish_whole_page, prepare_page, prepare_whole_page
from pagemill.parsing.text_layer_soundness import (
    PARTIAL,
    SOUND,
    UNSOUND,
    Judgement,
    holds_unsaid_text,
    is_unmapped,
    judge,
    lines_not_read,
    merge_lines,
)
from pagemill.parsing.upright import level_page
from pagemill.recognition.base import PageReading, Problem, RecognizedFormula, RegionReader
from pagemill.recognition.reader import ReadPage
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef, PdfPage
from pagemill.sources.items import located
from pagemill.tables.structure_model import StructureModel

log = logging.getLogger(__name__)

_DECODE = "decode"

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

    async def read(self, pixels: Pixels, languages: Sequence[str] | None) -> ReadPage:
        """Find and read all lines of text, in microbatches with other pages."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage:
    """A record and the encoded images that belong to it."""

    document: DocumentRef
    record: PageResult
    crops: Files = ()
    """Relative path and encoded bytes, as named in ``record.image_crops``."""
    preview: bytes | None = None
    """Small WebP of the page for the report."""
    retryable: bool = False
    """The page failed for a cause that may be gone when it is tried once more, alone."""
    unserved: bool = False
    """The page failed as no server reads for this run: every other page would fail like it."""
    node: str | None = None
    """Name of the machine of a cluster that parsed it."""

    def failures(self, *, doubts: bool = False) -> Iterator[tuple[str, str, str | None]]:
        """What is wrong, for people: name, message and remedy of each error, of doubts about what was read if wanted.

        The name is the page's id; of an input that could not be opened it is the address, which the message then leaves
        out.
        """
        address = self.document.uri if self.record.page_number is None else None
        for error in self.record.errors:
            if error.category in DOUBTS and not doubts:
                continue
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
    tracing.PAGE.set(ref.page_id)
    run = _PageRun(ref, services, settings, ticket)
    if ref.error is not None:
        return run.failed(ref.error)
    try:
        async with run.limit:
            detected = await run.decode_with_regions()
            if detected is None:
                await run.decode()
            verdict = await _judge_text_layer(run)
            if await run.unwarp(verdict):
                detected = None  # they lie on the photograph
            if verdict == SOUND or not settings.recognition.reads_regions:
                try:
                    prepared = await _by_lines(run, verdict)
                except LanguageError:  # no engine here reads the script
                    if settings.recognition.escalate is None:
                        raise
                else:
                    return await run.described(await _finished(run, prepared))
            return await run.described(await _by_model(run, await services.region_reader(), detected))
    except Exception as raised:
        return _failed_by(raised, run)


def dead_page(ref: PageRef) -> ParsedPage:
    """The result of a page that ended its process, alone, as often as it was allowed to; it is not parsed."""
    error = PageError(
        component="worker",
        category=WorkerCrashError.category,
        message=f"the process died ({ref.death}) while this page, and no other, was in flight",
        remedy="Convert the page to an image of moderate size with another program, or give the process more memory.",
    )
    record = begun_record(ref)
    record.status, record.attempts, record.errors = Status.FAILED, ref.attempts, [error]
    return ParsedPage(document=ref.document, record=record)


@dataclass(slots=True)
class _PageRun:
    """What the routes of a page share: services, clock, time limit, and the pixels until they are released."""

    ref: PageRef
    services: PageServices
    settings: ParseSettings
    ticket: PageTicket | None
    seconds: dict[str, float] = field(default_factory=dict)
    """Spent in each stage, waiting for a shared service included."""
    limit: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    page: DecodedPage = field(init=False)
    """From its decoding until its pixels are released."""
    photograph: Photograph | None = None
    """What ``page`` was unwarped from."""
    layer: Judgement | None = None
    """What there is to be said of the text layer, where there is one that may be used."""
    unserved: bool = False
    elements: dict[int, bytes] = field(default_factory=dict)
    """JPEGs of what a model is to describe, by region."""

    @property
    def last_stage(self) -> str:
        """The stage entered last: where an error came from."""
        return next(reversed(self.seconds), _DECODE)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a stage, whether or not it raises."""
        start = time.perf_counter()
        try:
            with tracing.stage(name):
                yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - start, 4)

    async def decode(self) -> None:
        """Decode the page, and start its time limit: decoding has a limit of its own, waiting for it has none."""
        assert self.ref.payload is not None
        with self.stage(_DECODE):
            self.page = await self.services.decode(self.ref.payload)
            tracing.moved(self.page.pixels.nbytes)
        self.start_limit()

    async def decode_with_regions(self) -> list[DetectedRegion] | None:
        """Decode the page and find its regions in one go, for a model that reads regions; None where that is not done.

        All of it counts as decoding.
        """
        assert self.ref.payload is not None
        if not self.settings.recognition.reads_regions:
            return None
        if (await self.services.region_reader()).reads is not ReadingMode.REGIONS:
            return None
        with self.stage(_DECODE):
            both = await self.services.decode_with_regions(self.ref.payload)
        if both is None:
            return None
        self.page, detected = both
        self.start_limit()
        return detected

    async def unwarp(self, verdict: str | None) -> bool:
        """Lay the page flat where it is the photograph of one, and none of its text layer is used."""
        layer = self.page.text_layer
        is_used = verdict not in (None, UNSOUND) or (layer is not None and layer.marks)
        if is_used or self.settings.photographs is PhotographMode.NEVER:
            return False
        previewed = self.ref.position < self.settings.preview_pages
        found = await self.compute("unwarping", unwarp_page, self.page, self.settings.photographs, previewed=previewed)
        if found is not None:
            self.page, self.photograph = found
        return found is not None

    def start_limit(self) -> None:
        """Give the page its full time limit from now on."""
        self.limit.reschedule(asyncio.get_running_loop().time() + self.settings.page_timeout_s)

    async def compute(self, stage: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function on a computing thread, as part of a stage."""
        with self.stage(stage):
            return await self.services.compute(function, *args, **kwargs)

    async def described(self, page: ParsedPage) -> ParsedPage:
        """The page with descriptions of its elements; other pages are decoded and read meanwhile."""
        if self.elements and page.record.status is Status.DONE:
            requests = requests_for(page.record, self.elements)
            kept = sum(len(data) for _, data in page.crops) + sum(map(len, self.elements.values()))
            answers = await self.ask_remotely("describing", self.services.describe_element, requests, kept)
            found = {request.index: answer for request, answer in zip(requests, answers, strict=True)}
            await self.services.compute(take, page.record, found)
        return page

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
        self.limit.reschedule(None)
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

    def done(self, record: PageResult, crops: Files, preview: bytes | None) -> ParsedPage:
        """The parsed page, with the time that its stages took."""
        record.timings = self.seconds
        if self.photograph is not None:
            self.photograph.restore(record)
        if self.ref.warning is not None:
            record.errors.insert(0, self.ref.warning)
        assess(record)
        return ParsedPage(document=self.ref.document, record=record, crops=crops, preview=preview)

    def failed(self, error: PageError, *, retryable: bool = False) -> ParsedPage:
        """The page with nothing but an error."""
        record = begun_record(self.ref)
        record.status, record.errors, record.timings = Status.FAILED, [error], self.seconds
        return ParsedPage(
            document=self.ref.document,
            record=record,
            retryable=retryable or self.unserved,
            unserved=self.unserved,
        )


async def _judge_text_layer(run: _PageRun) -> str | None:
    """What :func:`judge` says; ``SOUND`` also where the user trusts the layer; None for no layer, or one left aside."""
    layer, mode = run.page.text_layer, run.settings.text_layer
    if layer is None or mode is TextLayerMode.NEVER:
        return None
    judgement = await run.compute("text_layer", judge, layer, run.page.pixels)
    run.layer = judgement
    return SOUND if mode is TextLayerMode.ALWAYS and (layer.lines or layer.hidden_lines) else judgement.verdict


async def _by_model(run: _PageRun, reader: RegionReader, detected: Sequence[DetectedRegion] | None) -> ParsedPage:
    """A page that a model reads: in the regions that the layout engine finds, or as a whole, regions included."""
    prepare = prepare_whole_page
    read: Callable[[Any], Coroutine[Any, Any, Any]] = functools.partial(_read_page, reader)
    finish: Callable[[PreparedPage, Sequence[Any], ParseSettings], Files] = finish_whole_page
    if reader.reads is ReadingMode.REGIONS:
        prepare, read, finish = prepare_page, reader.read, finish_page
        if detected is None:
            with run.stage("layout"):
                detected = await run.services.detect_regions(run.page.pixels)
    found = detected or ()
    prepared = await run.compute("preparation", prepare, run.ref, run.page, found, reader.prepare, run.settings)
    readings = await run.ask_remotely("recognition", read, prepared.requests.values(), prepared.kept_bytes)
    crops = await run.compute("analysis", finish, prepared, readings, run.settings)
    run.elements = prepared.elements
    preview = prepared.preview
    if run.photograph is not None:
        preview = await run.compute("preparation", preview_of, run.ref, run.photograph.turned(0), run.settings)
    return run.done(prepared.record, crops, preview)


async def _read_page(reader: RegionReader, request: Any) -> PageReading:
    """Have a whole page read; one of which nothing was read has failed."""
    reading = await reader.read_page(request)
    if reading.elements is not None:
        return reading
    assert reading.problem is not None
    error = PagemillError(reading.problem.message, remedy=reading.problem.remedy)
    error.category, error.retryable = reading.problem.category, error_class(reading.problem.category).retryable
    raise error


async def _by_lines(run: _PageRun, verdict: str | None) -> PreparedPage:
    """A page made of its text lines: those of its text layer if it is sound, else what recognition reads.

    Its record is complete; the requests are those for a second reading.
    """
    page, settings = run.page, run.settings
    if run.photograph is not None:
        page = replace(page, pixels=await run.compute("unwarping", evenly_lit, page.pixels))
    layer = page.text_layer if verdict is not None else None
    of_layer: Sequence[TextLine] = ()
    if layer is not None:
        of_layer = layer.lines
        if settings.text_layer is TextLayerMode.ALWAYS:
            of_layer = layer.lines + layer.hidden_lines
            if run.layer is not None and run.layer.verdict != SOUND:
                of_layer = [msgspec.structs.replace(line, confidence=None) for line in of_layer]
    read: ReadPage | None = None
    found, source = of_layer, "text-layer"
    if verdict != SOUND:
        with run.stage("recognition"):
            read = await run.services.read(page.pixels, settings.languages)
        found, source = read.lines, "ocr"
        if verdict == PARTIAL and not read.rotation:
            found = await run.compute("text_layer", merge_lines, of_layer, read.lines)
            source = "text-layer+ocr"
    lines, errors = clean_lines(found)
    marks = clean_lines(layer.marks)[0] if layer is not None else []
    level = await run.compute("deskew", level_page, page, lines, marks, turned=read.rotation if read else None)

    with run.stage("layout"):
        detected = await run.services.detect_regions(level.straight.pixels)
    placed = level.lines
    lacks_text = False
    if verdict == SOUND and settings.text_layer is not TextLayerMode.ALWAYS:
        straight = level.straight
        lacks_text = any(map(is_unmapped, placed)) or await run.compute(
            "text_layer", holds_unsaid_text, detected, placed, straight.image_boxes, straight.pixels
        )
    if lacks_text:
        try:
            with run.stage("recognition"):
                more = await run.services.read(level.straight.pixels, settings.languages)
        except LanguageError as error:  # the layer itself can be read
            errors.append(unsaid_text(error.message, error.remedy))
        else:
            if more.rotation:
                errors.append(unsaid_text(f"recognition takes the page for turned by {more.rotation} degrees"))
            else:
                read, source = more, "text-layer+ocr"
                found = await run.compute("text_layer", merge_lines, placed, more.lines)
                placed, odd = clean_lines(found)
                errors += odd
    embedded = settings.table_choice.name == EMBEDDED_TABLES
    engine = None if embedded else await run.services.table_engine()
    record = await run.compute(
        "analysis", analyse_page, run.ref, level.straight, detected, placed, settings.tables, engine
    )
    failures = await _read_formulas(run, record, level.straight.pixels)
    level.restore(record)
    record.errors += failures
    if verdict in (SOUND, PARTIAL) and run.layer is not None:
        record.signals |= signals_of_layer(run.layer, alone=read is None)
        record.errors += doubts_of_layer(run.layer, alone=read is None)
    if read is not None:
        record.signals |= signals_of_reading(read)
        record.errors += doubts_of(read, found, record)
        if verdict == UNSOUND and layer is not None and not read.rotation and run.photograph is None:
            lost = await run.compute("text_layer", lines_not_read, layer, read.lines, page.pixels)
            record.errors += lost_lines(lost)
    record.errors += [*unmapped_characters(placed), *plain_formulas(record), *errors]
    record.rotation = level.rotation
    record.languages = tuple(read.languages) if read else ()
    record.text_source = source if placed else ""

    pixels = level.upright.pixels
    if run.photograph is not None:  # in their own colours
        pixels = rotate_quarter(run.page.pixels, level.rotation)
    crops = await run.compute("crops", _with_pictures, record, pixels) if settings.crops else ()
    kinds = settings.describing.kinds
    elements = await run.compute("crops", pictures, record, pixels, kinds, crops) if kinds else {}
    shown = pixels if run.photograph is None else run.photograph.turned(level.rotation)
    preview = await run.compute("crops", preview_of, run.ref, shown, settings)
    requests: Mapping[int, Any] = {}
    size = 0
    if settings.recognition.escalate is not None:
        reader = await run.services.region_reader()
        least = settings.recognition.escalate_from
        requests, size = await run.compute("preparation", prepare_again, record, pixels, least, reader.prepare)
    return PreparedPage(
        record=record, requests=requests, crops=crops, elements=elements, preview=preview, request_pixels=size
    )


async def _finished(run: _PageRun, prepared: PreparedPage) -> ParsedPage:
    """A page that was made of lines, its doubtful regions read again where that is wanted."""
    record, indices = prepared.record, list(prepared.requests)
    run.elements = prepared.elements
    if indices:
        reader = await run.services.region_reader()
        try:
            readings = await run.ask_remotely(
                "recognition", reader.read, prepared.requests.values(), prepared.kept_bytes
            )
        except (NetworkError, UsageError) as error:
            record.errors.append(not_asked(len(indices), error))
        else:
            await run.compute("analysis", keep_better, record, dict(zip(indices, readings, strict=True)))
    return run.done(record, prepared.crops, prepared.preview)


async def _read_formulas(run: _PageRun, record: PageResult, pixels: Pixels) -> list[PageError]:
    """Have the formulas read that have no LaTeX; the page is none the worse where that fails, but says so."""
    formulas = unread_formulas(record)
    if not formulas:
        return []
    with run.stage("formulas"):
        try:
            engine = await run.services.formula_engine()
            if engine is None:
                return []
            read = await run.services.read_formulas(crops_of(formulas, pixels))
        except PagemillError as error:
            return [formula_error(error)]
    return await run.compute("formulas", take_latex, record, formulas, read, engine)


def _with_pictures(record: PageResult, pixels: Pixels) -> Files:
    files = cut_pictures(record, pixels)
    if files:
        record.markdown = page_markdown(record)  # now with the paths of its pictures
    return files


def _failed_by(raised: Exception, run: _PageRun) -> ParsedPage:
    """The failed record for an exception; one that is not ours is logged with its traceback."""
    error: PagemillError
    if isinstance(raised, PagemillError):
        error = raised
    elif run.limit.expired():
        error = PageTimeoutError(
            f"the page took longer than {run.settings.page_timeout_s:g} s (in {run.last_stage})",
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
    message = error.message
    if run.last_stage == _DECODE:  # named as the user would name it; with the row of a dataset
        row = run.ref.metadata.get("row")
        message = located(message, run.ref.document.uri if row is None else f"{run.ref.document.uri}#{row}")
    data = PageError(component=run.last_stage, category=error.category, message=message, remedy=error.remedy)
    return run.failed(data, retryable=error.retryable)
