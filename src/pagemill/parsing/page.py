"""What happens to one page, from reference to record: read this first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from pagemill import tracing
from pagemill.config.modes import FurnitureMode, PhotographMode, ReadingMode, TextLayerMode
from pagemill.config.settings import ParseSettings
from pagemill.describing.elements import requests_for, take
from pagemill.document.page import DOUBTS, Furniture, PageError, PageResult, Status
from pagemill.errors import LanguageError, PagemillError, PageTimeoutError, WorkerCrashError
from pagemill.export.markdown import strip_marks, with_markdown
from pagemill.imaging.encode import PREVIEW_SIDE
from pagemill.imaging.photograph import evenly_lit
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.document_page import read_part, record_of_part
from pagemill.parsing.line_reading import read_again, read_by_lines
from pagemill.parsing.model_reading import read_by_model
from pagemill.parsing.page_run import DECODE, PageRun, PageServices, PageTicket
from pagemill.parsing.photographs import level_photograph, unwarp_page
from pagemill.parsing.picture_reading import read_pictures
from pagemill.parsing.quality import assess
from pagemill.parsing.record import Files, PreparedPage, begun_record
from pagemill.parsing.text_layer_soundness import SOUND, UNSOUND, judge
from pagemill.sources.base import DocumentRef, PageRef, PdfPage, ReadPart
from pagemill.sources.items import located

log = tracing.PageLogger(__name__)

_DRAWN_LINE = PageError(
    component="text_layer",
    category="drawn_line",
    message="a line between lines of the text layer is drawn as shapes; it is read from the pixels where they are read",
    remedy="Compare the page with its text.",
)


class ParsedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A record and the encoded images that belong to it."""

    document: DocumentRef
    record: PageResult
    crops: Files = ()
    """Relative path and encoded bytes, as named in ``record.image_crops``."""
    preview: bytes | None = None
    """Small JPEG of the page for the report."""
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


class SkippedPage(msgspec.Struct, frozen=True, kw_only=True):
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
    run = PageRun(ref, services, settings, ticket)
    if ref.error is not None:
        return _failed(run, ref.error)
    try:
        async with run.limit:
            page = await _read(run)
            if not settings.inline_marks:
                await run.compute("analysis", strip_marks, page.record)
            _complete(run, page.record)
            await _describe(run, page)
            # Here alone: until now regions may get other words, descriptions, or paths of their pictures.
            await run.compute("analysis", with_markdown, page.record)
            return ParsedPage(document=ref.document, record=page.record, crops=page.crops, preview=page.preview)
    except Exception as raised:
        return _failed_by(run, raised)


def dead_page(ref: PageRef) -> ParsedPage:
    """The result of a page that ended its process, alone, as often as it was allowed to; it is not parsed."""
    error = PageError(
        component="worker",
        category=WorkerCrashError.category,
        message=f"the process died ({ref.death}) while only this page was in flight",
        remedy="Convert the page to an image of moderate size with another program, or give the process more memory.",
    )
    record = begun_record(ref)
    record.status, record.attempts, record.errors = Status.FAILED, ref.attempts, [error]
    return ParsedPage(document=ref.document, record=record)


async def _read(run: PageRun) -> PreparedPage:
    """Decode a page, choose what it is read by, and read it."""
    recognition = run.settings.recognition
    if isinstance(payload := run.ref.payload, ReadPart):
        run.start_limit()
        log.info("read from the structure of the file, without pixels")
        part = await run.compute(DECODE, read_part, payload)
        pictures = await read_pictures(run, part) if run.settings.read_images else {}
        return await run.compute("analysis", record_of_part, run.ref, payload, part, run.settings, pictures)
    detected = await _decode(run, text_only_side=_text_only_side(run))
    await _judge_text_layer(run)
    if run.page.is_text_only:
        prepared = await read_by_lines(run) if run.verdict == SOUND else None
        if prepared is not None:
            return prepared
        log.info("the page is rendered after all: its fonts do not show its structure")
        detected = await _decode(run)
        await _judge_text_layer(run)
    await _unwarp(run)
    if run.verdict == SOUND or not recognition.reads_regions:
        try:
            prepared = await read_by_lines(run)
        except LanguageError as error:  # no engine here reads the script
            if recognition.escalate is None:
                raise
            log.info("the page is read by the model instead: %s", error.message)
        else:
            assert prepared is not None
            return await read_again(run, prepared)
    # What was detected while it was decoded is on the photograph, not on the flat page.
    return await read_by_model(run, detected if run.photograph is None else None)


def _text_only_side(run: PageRun) -> int | None:
    """How large a page that shows only text is to be drawn; None where the pixels may be needed all the same."""
    settings = run.settings
    needed = settings.recognition.escalate is not None or settings.describing.kinds
    if needed or not settings.reads_fonts or settings.text_layer is TextLayerMode.NEVER:
        return None
    return PREVIEW_SIDE if run.ref.position < settings.preview_pages else 0


async def _decode(run: PageRun, *, text_only_side: int | None = None) -> list[DetectedRegion] | None:
    """Decode the page, and start its time limit: decoding has a limit of its own, waiting for it has none.

    Returns:
        The regions of the page, where a model is to read them and one device decodes and detects; else None.
    """
    payload = run.ref.payload
    assert payload is not None and not isinstance(payload, ReadPart)
    if isinstance(payload, PdfPage):
        payload = replace(payload, text_only_side=text_only_side)
    reader = await run.services.region_reader() if run.settings.recognition.reads_regions else None
    wants_regions = reader is not None and reader.reads is ReadingMode.REGIONS
    with run.stage(DECODE):
        both = await run.services.decode_with_regions(payload) if wants_regions else None
        run.page, detected = both or (await run.services.decode(payload), None)
        if run.ref.stamp is not None:  # what was decoded is of the file that the digest names
            await run.services.compute(run.ref.stamp.check)
        if both is None:
            tracing.moved(run.page.pixels.nbytes)
    run.start_limit()
    return detected


async def _judge_text_layer(run: PageRun) -> None:
    """Decide what becomes of the text layer, where there is one that may be used."""
    layer, mode = run.page.text_layer, run.settings.text_layer
    if layer is None or mode is TextLayerMode.NEVER:
        log.info("text layer not used: %s", "there is none" if layer is None else "--text-layer never")
        return
    run.judgement = await run.compute("text_layer", judge, layer, None if run.page.is_text_only else run.page.pixels)
    if run.judgement.lacks_line:
        run.page = replace(run.page, warnings=(*run.page.warnings, _DRAWN_LINE))
    is_trusted = mode is TextLayerMode.ALWAYS and (layer.lines or layer.hidden_lines)
    run.verdict = SOUND if is_trusted else run.judgement.verdict
    log.info("text layer %s", _use_of_layer(run.verdict, run.judgement.why))


def _use_of_layer(verdict: str, why: str) -> str:
    if verdict == SOUND:
        return f"used, as --text-layer always asks for, although {why}" if why else "used: it is sound"
    return f"refused: {why}" if verdict == UNSOUND else f"used, and the page is read as well: {why}"


async def _unwarp(run: PageRun) -> None:
    """Lay the page flat where it is the photograph of one, and none of its text layer is used."""
    mode, layer = run.settings.photographs, run.page.text_layer
    is_layer_used = run.verdict not in (None, UNSOUND) or (layer is not None and layer.marks)
    if is_layer_used or mode is PhotographMode.NEVER:
        return
    previewed = run.ref.position < run.settings.preview_pages
    flat = await run.compute("unwarping", unwarp_page, run.page, mode, previewed=previewed)
    if flat is not None:
        photograph = run.page.pixels
        run.page, run.photograph = flat
        log.info("laid flat: %s", "it is a photograph" if mode is PhotographMode.AUTO else "--photographs always")
        if not run.settings.recognition.reads_regions:
            lit = await run.compute("unwarping", evenly_lit, run.page.pixels)
            with run.stage("unwarping"):
                lines = await run.services.detect_lines(lit)
            flat = await run.compute("unwarping", level_photograph, flat, photograph, lit, lines)
            run.page, run.photograph = flat


def _complete(run: PageRun, record: PageResult) -> None:
    """Complete the record of a page that was read."""
    record.timings = run.seconds
    if run.photograph is not None:
        run.photograph.restore(record)
    if run.ref.warning is not None:
        record.errors.insert(0, run.ref.warning)
    assess(record)
    if run.settings.furniture is FurnitureMode.LIKELY:
        record.leaves_out = Furniture.LIKELY


async def _describe(run: PageRun, page: PreparedPage) -> None:
    """Add descriptions of its elements to a page; other pages are decoded and read meanwhile."""
    if not page.elements:
        return
    requests = requests_for(page.record, page.elements)
    answers = await run.ask_remotely("describing", run.services.describe_element, requests, page.kept_bytes)
    found = {request.index: answer for request, answer in zip(requests, answers, strict=True)}
    await run.services.compute(take, page.record, found)


def _failed(run: PageRun, error: PageError, *, retryable: bool = False) -> ParsedPage:
    """The page with nothing but an error."""
    record = begun_record(run.ref)
    record.status, record.errors, record.timings = Status.FAILED, [error], run.seconds
    return ParsedPage(
        document=run.ref.document, record=record, retryable=retryable or run.unserved, unserved=run.unserved
    )


def _failed_by(run: PageRun, raised: Exception) -> ParsedPage:
    """The failed record for an exception; one that is not ours is logged with its traceback."""
    error: PagemillError
    if isinstance(raised, PagemillError):
        error = raised
    elif run.limit.expired():
        error = PageTimeoutError(
            f"the page took longer than {run.settings.page_timeout_s:g} s (in {run.last_stage})",
            remedy="Allow more time with --page-timeout.",
        )
    elif isinstance(raised, MemoryError):
        error = PagemillError(
            "there was not enough memory for the page",
            remedy="Reduce the pages in flight (--pages-in-flight), or give the process more memory.",
        )
    else:
        log.error("the page failed", exc_info=raised)
        error = PagemillError(
            f"{type(raised).__name__}: {raised}", remedy="This is a defect of pagemill; please report."
        )
    message = error.message
    if run.last_stage == DECODE:  # named as the user would name it; with the row of a dataset
        row = run.ref.metadata.get("row")
        message = located(message, run.ref.document.uri if row is None else f"{run.ref.document.uri}#{row}")
    data = PageError(component=run.last_stage, category=error.category, message=message, remedy=error.remedy)
    return _failed(run, data, retryable=error.retryable)
