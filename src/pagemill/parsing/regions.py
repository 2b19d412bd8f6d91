"""A page that a model reads, in regions or as a whole: what is done before and after its requests are in flight.

Both halves compute and are pure but for the encoding: :func:`prepare_page` takes from the pixels all that is needed of
them, so that they can be let go; :func:`finish_page` makes the record of what was read.

A page that is read as a whole (:func:`prepare_whole_page`) passes no layout engine. Where its pictures stand is known
only after the answer, when the pixels are long gone: it keeps a JPEG of all of them instead, in full resolution,
which is opened again only where there is something to be cut out: about 2 MB of the 26 of a scanned A4 page at 300
dpi, in 50 ms. What a page keeps counts as in flight, so memory does not grow with the time that servers take. No more
copies are open at once than there are computing threads, and no source is read or rendered twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import simplejpeg

from pagemill.config.settings import ParseSettings
from pagemill.describing.elements import wanted
from pagemill.document.geometry import as_array, union_box
from pagemill.document.labels import FIGURES, TASK_OF_LABEL, TITLES, Label, Task
from pagemill.document.page import WHOLE_PAGE, ContentFormat, PageResult, Region
from pagemill.errors import PagemillError
from pagemill.export.model_markdown import without_heading_marks
from pagemill.imaging.encode import encode_jpeg
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.transforms import crop
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.layout.reading_order import reading_order
from pagemill.parsing.formulas import mark_numbers
from pagemill.parsing.headings import heading_level, link_captions, plain_text
from pagemill.parsing.paragraphs import ends_sentence, mark_continuations
from pagemill.parsing.record import (
    Files,
    PreparedPage,
    add_region,
    begun_record,
    cut_out,
    is_picture,
    preview_of,
    region_error,
)
from pagemill.parsing.thresholds import PARSING
from pagemill.recognition.base import PageElement, PageReading, Problem, RegionReading
from pagemill.sources.base import PageRef

_COPY_QUALITY = 95
"""JPEG quality of a whole page that is kept, with full chroma: crops of it are encoded once more, at 90."""
_MAX_REGIONS = 2000
"""Regions of a page; pictures in many pieces are kept as one beyond it."""


def prepare_page(
    ref: PageRef,
    page: DecodedPage,
    detected: Sequence[DetectedRegion],
    prepare: Callable[[Pixels, Task], Any],
    settings: ParseSettings,
) -> PreparedPage:
    """Put regions in reading order, cut them out and have them prepared. Computes for tens of milliseconds.

    A region that cannot be prepared is noted as an error of that region alone. Where nothing was detected on a page
    that is not blank, the whole page is one region of text.

    Args:
        ref: The page.
        page: Its pixels; nothing in the answer refers to them.
        detected: Regions that the layout engine found.
        prepare: Of the region engine (:meth:`pagemill.recognition.base.RegionReader.prepare`).
        settings: Of the run.
    """
    pixels = page.pixels
    record = begun_record(ref, page)
    for found in in_reading_order(detected or _whole_page(pixels), record.width, record.height):
        add_region(record, found.label, found.box, polygon=found.polygon, score=found.score, source=found.source)
    tasks = tasks_of(record.regions, footnotes=settings.recognition.footnotes)
    requests, asked = prepare_regions(record, tasks, pixels, prepare)
    crops, elements = cut_out(record, pixels, settings)
    return PreparedPage(
        record=record,
        requests=requests,
        crops=crops,
        elements=elements,
        preview=preview_of(ref, pixels, settings),
        request_pixels=asked,
    )


def tasks_of(regions: Iterable[Region], *, footnotes: bool) -> dict[int, Task]:
    """The regions that are to be read, by index, with their tasks; footnotes only where they are wanted."""
    tasks = {
        region.index: Task.TEXT if footnotes and region.label is Label.FOOTNOTE else TASK_OF_LABEL[region.label]
        for region in regions
    }
    return {index: task for index, task in tasks.items() if task not in (Task.SKIP, Task.ABANDON)}


def prepare_regions(
    record: PageResult, tasks: Mapping[int, Task], pixels: Pixels, prepare: Callable[[Pixels, Task], Any]
) -> tuple[dict[int, Any], int]:
    """What the region engine makes of each region that has a task, and the pixels that these have.

    One that it cannot prepare is an error of that region.
    """
    requests: dict[int, Any] = {}
    size = 0
    for index, task in tasks.items():
        region = record.regions[index]
        cut = crop(pixels, region.bbox, region.polygon)
        try:
            requests[index] = prepare(cut, task)
        except PagemillError as error:
            record.errors.append(region_error(index, error))
        size += cut.shape[0] * cut.shape[1]
    return requests, size


def in_reading_order(detected: Sequence[DetectedRegion], width: int, height: int) -> list[DetectedRegion]:
    """Regions in the order that the layout model predicts where it ranks all of them, else by geometry."""
    ranks = [region.order for region in detected]
    if all(rank is not None for rank in ranks):
        return sorted(detected, key=lambda region: region.order or 0)
    boxes, labels = as_array(region.box for region in detected), [region.label for region in detected]
    return [detected[i] for i in reading_order(boxes, labels, (width, height), ranks=ranks)]


def finish_page(prepared: PreparedPage, readings: Sequence[RegionReading], settings: ParseSettings) -> Files:
    """Complete the record of a page with what was read, one reading a request, in their order; its pictures."""
    record = prepared.record
    for index, reading in zip(prepared.requests, readings, strict=True):
        region = record.regions[index]
        region.content, region.content_format = reading.content, reading.content_format
        region.engine, region.attempts = reading.engine, reading.attempts
        if reading.problem is not None:
            record.errors.append(region_error(index, reading.problem))
    complete(record)
    return prepared.crops


def complete(record: PageResult) -> None:
    """Complete a record whose regions have their content: what they are to each other."""
    record.errors.sort(key=lambda error: -1 if error.region is None else error.region)
    record.text_source = "ocr" if any(region.content for region in record.regions) else ""
    for region in record.regions:
        if region.label in TITLES and region.content_format is ContentFormat.MARKDOWN and region.content:
            region.content = without_heading_marks(region.content)  # the label says it, and the level
        region.level = heading_level(region.label, plain_text(region))
    link_captions(record.regions, record.height)
    mark_numbers(record.regions)
    mark_continuations(record.regions, lambda before, after: _is_cut(before, after, record.regions))


def is_blank(pixels: Pixels) -> bool:
    """Whether there is nothing to be seen on a page."""
    sample = pixels[::4, ::4]
    return int(sample.max()) - int(sample.min()) < PARSING.blank_contrast


def _whole_page(pixels: Pixels) -> list[DetectedRegion]:
    """The page as one region of text; nothing for a blank page."""
    if is_blank(pixels):
        return []
    height, width = pixels.shape[:2]
    whole = (0.0, 0.0, float(width), float(height))
    return [DetectedRegion(box=whole, label=Label.TEXT, score=None, source=WHOLE_PAGE)]


def _is_cut(region: Region, after: Region | None, regions: Sequence[Region]) -> bool:
    """Whether a text is one paragraph of prose that stops in the middle of a sentence, in a column or above a picture.

    What a model reads does not tell how full the last line is, so only a break in the layout counts, or a hyphen.
    """
    text = (region.content or "").rstrip()
    elsewhere = (
        after is None
        or after.bbox[1] < region.bbox[1]
        or region.bbox[2] <= after.bbox[0]
        or any(between.label in FIGURES for between in regions[region.index : after.index])
    )
    return (
        (text.endswith("-") or (elsewhere and len(text) >= PARSING.open_characters))
        and "\n" not in text
        and "<" not in text  # what is joined to it shall not stand in a block of HTML
        and not text.endswith(("`", "$", ":", "：", "|"))
        and not ends_sentence(text[-200:])
    )


def prepare_whole_page(
    ref: PageRef,
    page: DecodedPage,
    detected: Sequence[DetectedRegion],
    prepare: Callable[[Pixels, Task], Any],
    settings: ParseSettings,
) -> PreparedPage:
    """Have a page prepared and keep what is needed of its pixels; as :func:`prepare_page`.

    Raises:
        PagemillError: The engine cannot prepare it.
    """
    pixels = page.pixels
    blank, kinds = is_blank(pixels), settings.describing.kinds
    return PreparedPage(
        record=begun_record(ref, page),
        requests={} if blank else {0: prepare(pixels, Task.PAGE)},
        copy=encode_jpeg(pixels, _COPY_QUALITY) if (settings.crops or kinds) and not blank else None,
        preview=preview_of(ref, pixels, settings),
        request_pixels=0 if blank else pixels.shape[0] * pixels.shape[1],
    )


def finish_whole_page(prepared: PreparedPage, readings: Sequence[PageReading], settings: ParseSettings) -> Files:
    """Complete the record of a page with what was read, and cut out its pictures.

    Args:
        prepared: The page.
        readings: One, with elements; none for a blank page.
        settings: Of the run.
    """
    record = prepared.record
    for reading in readings:
        for element in reading.elements or ():
            _add(record, element, reading, footnotes=settings.recognition.footnotes)
        if reading.problem is not None:
            record.errors.append(region_error(None, reading.problem))
    files: Files = ()
    kinds = settings.describing.kinds
    if prepared.copy is not None and (any(map(is_picture, record.regions)) or any(wanted(record, kinds))):
        pixels = simplejpeg.decode_jpeg(prepared.copy, colorspace="RGB")
        files, elements = cut_out(record, pixels, settings)
        prepared.elements.update(elements)
    complete(record)
    return files


def _add(record: PageResult, element: PageElement, reading: PageReading, *, footnotes: bool) -> None:
    """Add the regions of an element to a record, and its problem.

    A picture in several pieces is several regions. A text in several pieces is one, in the box around them all. What
    has no place stands in the box of the page; a picture without one cannot be shown.
    """
    placed, is_picture_element = bool(element.boxes), TASK_OF_LABEL[element.label] is Task.SKIP
    boxes = element.boxes or ((0.0, 0.0, 1.0, 1.0),)
    if not is_picture_element or len(boxes) > _MAX_REGIONS - len(record.regions):
        boxes = (union_box(boxes),)
    is_read = element.content is not None and (footnotes or element.label is not Label.FOOTNOTE)
    for x1, y1, x2, y2 in boxes:
        region = add_region(
            record,
            element.label,
            (x1 * record.width, y1 * record.height, x2 * record.width, y2 * record.height),
            content=element.content if is_read else None,
            content_format=element.content_format,
            source=reading.engine if placed else WHOLE_PAGE,
            engine=reading.engine if is_read else None,
            attempts=reading.attempts,
        )
        if element.problem:
            record.errors.append(region_error(region.index, element.problem))
        if is_picture_element and not placed:
            problem = Problem("no_grounding", "the model saw a picture and did not tell where")
            record.errors.append(region_error(region.index, problem))
