"""A page that a model reads as a whole and tells the regions of: what is done before and after it is under way.

No layout engine has a part in it. Where pictures stand is known only after the answer, when the pixels are long gone: a
page keeps a JPEG of all of them instead, in full resolution, which is opened again only where there is something to be
cut out: about 2 MB of the 26 of a scanned A4 page at 300 dpi, in 50 ms. What a page keeps counts as in flight, so
memory does not grow with the time that servers take. No more copies are open at once than there are computing threads,
and no source is read or rendered twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import simplejpeg

from pagemill.document.geometry import clip, normalise_1000, union_box
from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.page import Region
from pagemill.imaging.encode import encode_jpeg
from pagemill.parsing.record import (
    WHOLE_PAGE,
    PreparedPage,
    begun_record,
    cut_pictures,
    is_picture,
    preview_of,
    region_error,
)
from pagemill.parsing.regions import complete, is_blank
from pagemill.recognition.base import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pagemill.config.settings import ParseSettings
    from pagemill.document.geometry import Box
    from pagemill.document.page import PageResult
    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion
    from pagemill.parsing.record import Files
    from pagemill.recognition.base import PageElement, PageReading
    from pagemill.sources.base import PageRef

_COPY_QUALITY = 95
"""Of the JPEG that is kept, with full chroma: what is cut out of it is encoded once more, at 90."""
_MAX_REGIONS = 2000
"""Of a page; pictures in many pieces are kept as one beyond it."""


def prepare_whole_page(
    ref: PageRef,
    page: DecodedPage,
    detected: Sequence[DetectedRegion],
    prepare: Callable[[Pixels, Task], Any],
    settings: ParseSettings,
) -> PreparedPage:
    """Have a page prepared and keep what is needed of its pixels; as :func:`pagemill.parsing.regions.prepare_page`.

    Raises:
        PagemillError: The engine cannot prepare it.
    """
    pixels = page.pixels
    blank = is_blank(pixels)
    return PreparedPage(
        record=begun_record(ref, page),
        requests={} if blank else {0: prepare(pixels, Task.PAGE)},
        copy=encode_jpeg(pixels, _COPY_QUALITY) if settings.crops and not blank else None,
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
    if prepared.copy is not None and any(map(is_picture, record.regions)):
        files = cut_pictures(record, simplejpeg.decode_jpeg(prepared.copy, colorspace="RGB"))
    complete(record)
    return files


def _add(record: PageResult, element: PageElement, reading: PageReading, *, footnotes: bool) -> None:
    """Add the regions of an element to a record, and its problem.

    A picture in several pieces is several regions. A text in several pieces is one, in the box around them all. What
    has no place stands in the box of the page; a picture without one cannot be shown.
    """
    size = float(record.width), float(record.height)
    for box in _boxes(element, pieces_left=_MAX_REGIONS - len(record.regions)):
        placed = (0.0, 0.0, *size) if box is None else clip(_scaled(box, size), *size)
        index = len(record.regions)
        is_read = element.content is not None and (footnotes or element.label is not Label.FOOTNOTE)
        region = Region(
            index=index,
            label=element.label,
            bbox_2d=normalise_1000(placed, *size),
            bbox=placed,
            content=element.content if is_read else None,
            content_format=element.content_format,
            source=WHOLE_PAGE if box is None else reading.engine,
            engine=reading.engine if is_read else None,
            attempts=reading.attempts,
        )
        record.regions.append(region)
        problems = [element.problem] if element.problem else []
        if box is None and TASK_OF_LABEL[element.label] is Task.SKIP:
            problems.append(Problem("no_grounding", "the model saw a picture and did not tell where"))
        record.errors += [region_error(index, problem) for problem in problems]


def _boxes(element: PageElement, *, pieces_left: int) -> Iterator[Box | None]:
    """The boxes that become regions; None for one that stands somewhere."""
    if not element.boxes:
        yield None
    elif TASK_OF_LABEL[element.label] is Task.SKIP and len(element.boxes) <= pieces_left:
        yield from element.boxes
    else:
        yield union_box(element.boxes)


def _scaled(box: Box, size: tuple[float, float]) -> Box:
    (x1, y1, x2, y2), (width, height) = box, size
    return x1 * width, y1 * height, x2 * width, y2 * height
