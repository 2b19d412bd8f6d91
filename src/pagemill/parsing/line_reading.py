"""How a page is made of its text lines: those of its text layer if it is sound, else those that recognition reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill import tracing
from pagemill.config.modes import EMBEDDED_TABLES, TextLayerMode
from pagemill.document.geometry import as_array, union_box
from pagemill.document.labels import FIGURES, Label
from pagemill.document.page import PageError, PageResult, TextLine
from pagemill.document.shown import count
from pagemill.errors import LanguageError, NetworkError, PagemillError, UsageError
from pagemill.imaging.completeness import may_show_more
from pagemill.imaging.page import TextLayer
from pagemill.imaging.photograph import as_scanned, evenly_lit
from pagemill.imaging.transforms import crop, rotate_quarter
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.layout.text_blocks import are_plain_columns, is_press, line_height, text_columns
from pagemill.parsing.analyse import analyse_page, analyse_typography
from pagemill.parsing.doubts import (
    doubts_of,
    doubts_of_layer,
    left_out_notes,
    lost_lines,
    notes_of,
    plain_formulas,
    unmapped_characters,
    unsaid_text,
)
from pagemill.parsing.escalation import keep_better, not_asked, to_ask
from pagemill.parsing.formula_reading import take_latex, unread_formulas
from pagemill.parsing.lines import clean_lines, is_mostly_vertical
from pagemill.parsing.page_run import PageRun
from pagemill.parsing.quality import signals_of_layer, signals_of_reading
from pagemill.parsing.record import PreparedPage, cut_out, preview_of, region_error
from pagemill.parsing.regions import prepare_regions
from pagemill.parsing.text_layer_soundness import (
    PARTIAL,
    SOUND,
    UNSOUND,
    holds_unsaid_text,
    is_unmapped,
    lines_not_read,
    merge_lines,
)
from pagemill.parsing.thresholds import PARSING
from pagemill.parsing.upright import LevelPage, level_page

if TYPE_CHECKING:
    from pagemill.recognition.reader import ReadPage

log = tracing.PageLogger(__name__)


class _Found(msgspec.Struct):
    """The text of a page, as found."""

    lines: Sequence[TextLine]
    source: str
    read: ReadPage | None = None
    """What recognition read, if it was asked."""
    errors: list[PageError] = []


async def read_by_lines(run: PageRun) -> PreparedPage | None:
    """Make a page of its text lines. Its record is complete; the requests are those for :func:`read_again`.

    Returns:
        None where the pixels are needed of a page that was decoded without.

    Raises:
        LanguageError: No installed engine reads the page's script.
    """
    page = run.page
    if run.photograph is not None:
        page = replace(page, pixels=await run.compute("unwarping", evenly_lit, page.pixels))
    found = await _find_lines(run, page.pixels)
    lines, found.errors = clean_lines(found.lines)
    layer = _used_layer(run)
    marks = clean_lines(layer.marks)[0] if layer is not None else []
    turned = found.read.rotation if found.read else None
    level = await run.compute("deskew", level_page, page, lines, marks, turned=turned)
    if level.rotation:
        log.info("turned clockwise by %d degrees, so that most of its text runs level", level.rotation)
    if level.skew:
        log.info("straightened: its lines run askew by %.1f degrees", level.skew)
    record, detected = await _by_typography(run, level, found.errors)
    complete = level.lines
    if record is None:
        if page.is_text_only:
            return None
        detected = detected if detected is not None else await _detect(run, level)
        log.info("layout model: %s", count(len(detected), "region"))
        complete = await _with_missing_text(run, found, level, detected)
        record = await _analyse(run, level, detected, complete)
    await _add_doubts(run, record, found, complete)
    record.rotation = level.rotation
    record.languages = tuple(found.read.languages) if found.read else ()
    record.text_source = found.source if complete else ""
    return await _prepare(run, record, level)


async def read_again(run: PageRun, prepared: PreparedPage) -> PreparedPage:
    """Have the doubtful regions of a page that was made of lines read by a model, where that is wanted."""
    record, requests = prepared.record, prepared.requests
    if requests:
        reader = await run.services.region_reader()
        try:
            readings = await run.ask_remotely("recognition", reader.read, requests.values(), prepared.kept_bytes)
        except (NetworkError, UsageError) as error:
            record.errors.append(not_asked(len(requests), error))
            log.info("kept as read by the engine for lines: %s", error.message)
        else:
            await run.compute("analysis", keep_better, record, dict(zip(requests, readings, strict=True)))
            kept = sum(
                record.regions[index].engine == answer.engine for index, answer in zip(requests, readings, strict=True)
            )
            log.info(
                "%s read again by the model, which was better in %d", count(len(requests), "doubtful region"), kept
            )
    return prepared.answered()


async def _find_lines(run: PageRun, pixels: Pixels) -> _Found:
    """Take the lines of the text layer, read the page, or both, as the verdict on the layer says."""
    layer = _used_layer(run)
    of_layer = _lines_of_layer(run, layer) if layer is not None else ()
    if run.verdict == SOUND:
        return _Found(of_layer, "text-layer")
    with run.stage("recognition"):
        read = await run.services.read(pixels, run.settings.languages, bends=run.photograph is not None)
    _log_reading(read)
    if run.verdict == PARTIAL and not read.rotation:
        merged = await run.compute("text_layer", merge_lines, of_layer, read.lines)
        return _Found(merged, "text-layer+ocr", read)
    return _Found(read.lines, "ocr", read)


def _log_reading(read: ReadPage) -> None:
    engines = Counter(line.engine for line in read.lines)
    by = ", ".join(f"{count(lines, 'line')} by {engine}" for engine, lines in engines.most_common())
    log.info("recognized: %s; languages: %s", by or "no lines", ", ".join(read.languages) or "unknown")


def _used_layer(run: PageRun) -> TextLayer | None:
    """The text layer of the page, if it may be used."""
    return run.page.text_layer if run.judgement is not None else None


def _lines_of_layer(run: PageRun, layer: TextLayer) -> Sequence[TextLine]:
    """The visible lines of a text layer; all where the user trusts it, but no confidence is known of an unsound one."""
    if run.settings.text_layer is not TextLayerMode.ALWAYS:
        return layer.lines
    lines = layer.lines + layer.hidden_lines
    if run.judgement is not None and run.judgement.verdict != SOUND:
        return [msgspec.structs.replace(line, confidence=None) for line in lines]
    return lines


async def _detect(run: PageRun, level: LevelPage) -> Sequence[DetectedRegion]:
    pixels = level.straight.pixels
    if run.photograph is not None and level.lines:
        pixels = await run.compute("layout", as_scanned, pixels, union_box(line.box for line in level.lines))
    with run.stage("layout"):
        return await run.services.detect_regions(pixels)


async def _by_typography(
    run: PageRun, level: LevelPage, errors: list[PageError]
) -> tuple[PageResult | None, Sequence[DetectedRegion] | None]:
    """The record of a page whose PDF tells its structure, else None; the regions of the layout engine, if it was asked.

    It is asked where the page shows pictures or drawings, for these alone.
    """
    page, lines = level.straight, level.lines
    if run.verdict != SOUND or not run.settings.reads_fonts or level.rotation or not lines:
        log.debug("structure from the pixels: %s", "the page is turned" if level.rotation else "no sound text layer")
        return None, None
    if any(map(is_unmapped, lines)):
        log.info("structure from the pixels: characters of a line have no Unicode value")
        return None, None
    if is_mostly_vertical(lines):
        log.info("structure from the pixels: vertical text")
        return None, None
    detected = None
    assert page.text_layer is not None
    if page.is_text_only or not await run.compute("analysis", may_show_more, page.text_layer, page.image_boxes):
        log.info("layout model not asked: the page shows only what its text layer and its rules say")
    else:
        detected = await _detect(run, level)
        if await run.compute("text_layer", holds_unsaid_text, detected, lines, page.image_boxes, page.pixels):
            log.info("structure from the pixels: they show text that the text layer lacks")
            return None, detected
        log.info("layout model asked for pictures alone; structure from fonts and places")
    try:
        record = await run.compute("analysis", analyse_typography, run.ref, page, lines, detected or ())
    except Exception as error:  # the pixels show the structure, too
        message = f"the structure is read from the pixels, not from the fonts: {type(error).__name__}: {error}"
        errors.append(PageError(component="analysis", category="internal", message=message))
        log.warning(message)
        return None, detected
    if record is not None and await run.compute("analysis", is_of_press, lines, record):
        log.info("structure from the pixels: columns of the press")
        return None, detected
    return record, detected


def is_of_press(lines: Sequence[TextLine], record: PageResult) -> bool:
    """Whether a page is in three columns or more of the press, with articles below each other.

    On drawn newspapers fonts alone mixed up the order of 44 % of the elements, pixels that of 7 %; on pages in three
    plain columns, with nothing but titles above them, 1 % and 4 %.

    Args:
        lines: Of the page.
        record: Its structure by fonts: without a table in it, short columns are none of a table's cells.
    """
    boxes = as_array(line.box for line in lines)
    least = PARSING.press_lines if any(region.label is Label.TABLE for region in record.regions) else 1
    columns = [column for column in text_columns(boxes) if len(column) >= least]
    if not is_press(boxes, columns):
        return False
    told = [region.bbox for region in record.regions if region.label not in FIGURES and region.furniture is None]
    return not are_plain_columns(as_array(told), line_height(boxes))


async def _with_missing_text(
    run: PageRun, found: _Found, level: LevelPage, detected: Sequence[DetectedRegion]
) -> Sequence[TextLine]:
    """The lines of a level page; what its sound text layer lacks is read from the pixels."""
    page, lines = level.straight, level.lines
    if run.verdict != SOUND or run.settings.text_layer is TextLayerMode.ALWAYS:
        return lines
    if not any(map(is_unmapped, lines)) and not await run.compute(
        "text_layer", holds_unsaid_text, detected, lines, page.image_boxes, page.pixels
    ):
        return lines
    try:
        with run.stage("recognition"):
            read = await run.services.read(page.pixels, run.settings.languages)
    except LanguageError as error:  # the layer itself can be read
        found.errors.append(unsaid_text(error.message, error.remedy))
        return lines
    if read.rotation:
        found.errors.append(unsaid_text(f"recognition takes the page for turned by {read.rotation} degrees"))
        return lines
    _log_reading(read)
    found.read, found.source = read, "text-layer+ocr"
    found.lines = await run.compute("text_layer", merge_lines, lines, read.lines)
    merged, errors = clean_lines(found.lines)
    found.errors += errors
    return merged


async def _analyse(
    run: PageRun, level: LevelPage, detected: Sequence[DetectedRegion], lines: Sequence[TextLine]
) -> PageResult:
    """The record of a page, on the upright page, with its tables and formulas."""
    settings, page = run.settings, level.straight
    embedded = settings.table_choice.name == EMBEDDED_TABLES
    engine = None if embedded else await run.services.table_engine()
    record = await run.compute(
        "analysis",
        analyse_page,
        run.ref,
        page,
        detected,
        lines,
        settings.tables,
        engine,
        by_typography=settings.reads_fonts and run.photograph is None,  # a page laid flat has no even sizes
        photographed=run.photograph is not None,
        is_turned=level.rotation % 180 > 0,
    )
    failures = await _read_formulas(run, record, page.pixels)
    record.errors += failures
    level.restore(record)
    return record


async def _read_formulas(run: PageRun, record: PageResult, pixels: Pixels) -> list[PageError]:
    """Read formulas that lack LaTeX; a failure only adds a warning."""
    formulas = unread_formulas(record)
    if not formulas:
        return []
    with run.stage("formulas"):
        try:
            engine = await run.services.formula_engine()
            if engine is None:
                return []
            read = await run.services.read_formulas([crop(pixels, formula.bbox) for formula in formulas])
        except PagemillError as error:
            return [region_error(None, error)]
    return await run.compute("formulas", take_latex, record, formulas, read, engine)


async def _add_doubts(run: PageRun, record: PageResult, found: _Found, lines: Sequence[TextLine]) -> None:
    """Add to a record what speaks against its text: signals and warnings."""
    read = found.read
    notes = notes_of(read) if read is not None else []
    if run.judgement is not None and run.verdict != UNSOUND:
        record.signals |= signals_of_layer(run.judgement, alone=read is None)
        notes += left_out_notes(_used_layer(run))
        record.errors += doubts_of_layer(run.judgement, alone=read is None)
    if notes:
        log.info("%s", "; ".join(notes))
        record.metadata["notes"] = [*record.metadata.get("notes", ()), *notes]
    if read is not None:
        record.signals |= signals_of_reading(read)
        record.errors += doubts_of(read, found.lines, record)
        layer = _used_layer(run)
        if run.verdict == UNSOUND and layer is not None and not read.rotation:
            lost = await run.compute("text_layer", lines_not_read, layer, read.lines, run.page.pixels)
            record.errors += lost_lines(lost)
    record.errors += [*unmapped_characters(lines), *plain_formulas(record), *found.errors]


async def _prepare(run: PageRun, record: PageResult, level: LevelPage) -> PreparedPage:
    """Cut out and encode all that is needed of the pixels from now on."""
    settings = run.settings
    pixels = shown = level.upright.pixels
    if run.photograph is not None:  # pictures in their own colours, the preview as it was taken
        pixels, shown = rotate_quarter(run.page.pixels, level.rotation), run.photograph.turned(level.rotation)
    crops, elements = await run.compute("crops", cut_out, record, pixels, settings)
    preview = await run.compute("crops", preview_of, run.ref, shown, settings)
    requests: Mapping[int, Any] = {}
    size = 0
    if settings.recognition.escalate is not None:
        reader = await run.services.region_reader()
        tasks = to_ask(record, settings.recognition.escalate_from)
        requests, size = await run.compute("preparation", prepare_regions, record, tasks, pixels, reader.prepare)
    return PreparedPage(
        record=record, requests=requests, crops=crops, elements=elements, preview=preview, request_pixels=size
    )
