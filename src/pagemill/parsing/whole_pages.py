"""A page that a model reads as a whole and tells the regions of: what is done before and after it is under way.

No layout engine has a part in it. Where pictures stand is known only after the answer, when the pixels are long gone: a
page keeps a JPEG of all of them instead, in full resolution, which is opened again only where there is something to be
cut out: about 2 MB of the 26 of a scanned A4 page at 300 dpi, in 50 ms. What a page keeps counts as in flight, so
memory does not grow with the time that servers take. No more copies are open at once than there are computing threads,
and no source is read or rendered twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import simplejpeg

from pagemill.document.geometry import clip, normalise_1000, union_box
from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.page import PageResult, Region
from pagemill.errors import PagemillError, error_class
from pagemill.imaging.encode import encode_jpeg, encode_preview
from pagemill.parsing.crops import WHOLE_PAGE, cut_pictures, is_picture
from pagemill.parsing.regions import BYTES_A_PIXEL, begun_record, complete, is_blank, region_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pagemill.document.geometry import Box
    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.recognition.base import PageElement, PageReading
    from pagemill.sources.base import PageRef

_COPY_QUALITY = 95
"""Of the JPEG that is kept, with full chroma: what is cut out of it is encoded once more, at 90."""
_MAX_REGIONS = 2000
"""Of a page; pictures in many pieces are kept as one beyond it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedWholePage:
    """What a page keeps when its pixels go."""

    record: PageResult
    """Without regions."""
    requests: tuple[Any, ...]
    """What the region engine made of the page: one, or none for a blank page."""
    copy: bytes | None
    """The page as a JPEG in full resolution, to cut pictures out; None where none are wanted."""
    preview: bytes | None
    kept_bytes: int
    """What all this takes, by estimate."""


class UnreadPageError(PagemillError):
    """The one request of a page failed: nothing was read of it.

    Args:
        reading: Without elements.
    """

    def __init__(self, reading: PageReading) -> None:
        assert reading.problem is not None
        super().__init__(reading.problem.message, remedy=reading.problem.remedy)
        self.category = reading.problem.category
        known = error_class(self.category)
        self.exit_code, self.retryable = known.exit_code, known.retryable


def prepare_whole_page(
    ref: PageRef, page: DecodedPage, prepare: Callable[[Pixels, Task], Any], *, crops: bool, preview: bool
) -> PreparedWholePage:
    """Have a page prepared and keep what is needed of its pixels. Computes for tens of milliseconds.

    Args:
        ref: The page.
        page: Its pixels; nothing in the answer refers to them.
        prepare: Of the region engine (:meth:`pagemill.recognition.base.RegionReader.prepare`).
        crops: Pictures and formulas are to be cut out afterwards.
        preview: Make the small image for the report.

    Raises:
        PagemillError: The engine cannot prepare it.
    """
    pixels = page.pixels
    blank = is_blank(pixels)
    requests = () if blank else (prepare(pixels, Task.PAGE),)
    copy = encode_jpeg(pixels, _COPY_QUALITY) if crops and not blank else None
    small = encode_preview(pixels) if preview else None
    kept = (
        round(len(requests) * pixels.shape[0] * pixels.shape[1] * BYTES_A_PIXEL) + len(copy or b"") + len(small or b"")
    )
    return PreparedWholePage(
        record=begun_record(ref, page), requests=requests, copy=copy, preview=small, kept_bytes=kept
    )


def finish_whole_page(
    prepared: PreparedWholePage, reading: PageReading | None, *, footnotes: bool
) -> tuple[tuple[str, bytes], ...]:
    """Complete the record of a page with what was read, and cut out its pictures.

    Args:
        prepared: The page.
        reading: With elements; None for a blank page.
        footnotes: Keep what was read in footnotes.

    Returns:
        Relative path and JPEG of each picture.
    """
    record = prepared.record
    if reading is not None:
        for element in reading.elements or ():
            _add(record, element, reading, footnotes=footnotes)
        if (problem := reading.problem) is not None:
            record.errors.append(region_error(None, problem.category, problem.message, problem.remedy))
    files: tuple[tuple[str, bytes], ...] = ()
    if prepared.copy is not None and any(map(is_picture, record.regions)):
        pixels: Pixels = simplejpeg.decode_jpeg(prepared.copy, colorspace="RGB")
        files = cut_pictures(record, pixels)
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
        if (problem := element.problem) is not None:
            record.errors.append(region_error(index, problem.category, problem.message, problem.remedy))
        if box is None and TASK_OF_LABEL[element.label] is Task.SKIP:
            message = "the model saw a picture and did not tell where"
            record.errors.append(region_error(index, "no_grounding", message, None))


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
