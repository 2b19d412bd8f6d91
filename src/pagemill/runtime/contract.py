"""The border to the engines: what they answer is checked here, so that a faulty one fails its pages and says why."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pagemill.document.geometry import clip
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat
from pagemill.errors import EngineError, PagemillError
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import DetectedLine, PageElement, PageReading, Problem, RecognizedText, RegionReading

if TYPE_CHECKING:
    from pagemill.document.geometry import Box, Point
    from pagemill.imaging.types import Pixels

log = logging.getLogger(__name__)

_OVERHANG = 0.02
"""Of the page's side: how far a box may stick out of the page (rounding, padding); it is clipped."""
_LEAST_OVERHANG = 2.0  # pixels
_FAR_OUTSIDE = 0.5  # of the page's side: detected lines are padded and tilted; cutting out one far away takes memory
_ROUNDING = 1e-3  # how far a share in 32-bit floats may be over 1

_LONGEST_CONTENT = 2_000_000
"""Characters of a region's content: far above what a page can hold, and what a record of a page bears."""
_MOST_ATTEMPTS = 2**31 - 1
"""What Parquet files hold."""

_OUT_OF_MEMORY = re.compile(
    r"out of memory|bad[ _]alloc|failed to allocate|insufficient memory|alloc_failed|cannot allocate", re.IGNORECASE
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an engine's exception says that it had too little memory, on the processor or the graphics card.

    Knows ``MemoryError``, ``torch.OutOfMemoryError`` (by its name: nothing is imported for it), and the messages of
    ONNX Runtime, CUDA's libraries and OpenCV, which raise a general class for it.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or _OUT_OF_MEMORY.search(str(error)) is not None


def engine_error(name: str, error: BaseException) -> PagemillError:
    """What an engine's exception means for the page: our own stay as they are, others get the engine's name.

    Args:
        name: What the engine is called, as in ``the layout engine 'onnx'``.
        error: The exception.
    """
    if is_out_of_memory(error):
        return EngineError(
            f"{name} ran out of memory on a single item: {error}",
            remedy="Let fewer pages be under way at once (--pages-in-flight, --threads), or give it more memory.",
        )
    if isinstance(error, PagemillError):
        return error
    log.info("%s failed", name, exc_info=error)
    return EngineError(f"{name} failed: {type(error).__name__}: {error}")


def checked_regions(name: str, page: Pixels, regions: Any) -> list[DetectedRegion]:
    """Check what a layout engine found on a page; boxes that stick out of it a little are clipped.

    Args:
        name: What the engine is called, for messages.
        page: What it was given, shape (height, width, 3).
        regions: What it gave.

    Raises:
        EngineError: A region is of another type, its label none of ours, its box not four finite numbers in order, or
            it lies outside the page.
    """
    if not isinstance(regions, (list, tuple)):
        raise EngineError(f"{name} gave {type(regions).__name__} instead of a list of regions")
    height, width = page.shape[:2]
    return [_checked_region(name, region, width, height) for region in regions]


def _checked_region(name: str, region: Any, width: int, height: int) -> DetectedRegion:
    if not isinstance(region, DetectedRegion):
        raise EngineError(f"{name} gave {type(region).__name__} instead of a region")
    if not isinstance(region.label, Label):
        raise EngineError(f"{name} gave the label {region.label!r}, which is no layout class")
    score = None if region.score is None else _share(region.score)
    if score is None and region.score is not None:
        raise EngineError(f"{name} gave a region the score {region.score!r}, which is not between 0 and 1")
    numbers = _finite(region.box)
    if numbers is None or len(numbers) != 4:
        raise EngineError(f"{name} gave a region the box {region.box!r}, which is not four finite numbers")
    x1, y1, x2, y2 = numbers
    if x2 < x1 or y2 < y1:
        raise EngineError(f"{name} gave an inverted box: {numbers}")
    beyond_x, beyond_y = (max(_LEAST_OVERHANG, _OVERHANG * side) for side in (width, height))
    if x1 < -beyond_x or y1 < -beyond_y or x2 > width + beyond_x or y2 > height + beyond_y:
        raise EngineError(f"{name} gave a box outside of the page of {width} x {height} pixels: {numbers}")
    polygon = None if region.polygon is None else _points(region.polygon)
    if region.polygon is not None and (polygon is None or len(polygon) < 3):
        raise EngineError(f"{name} gave a region a polygon that is not three or more finite points")
    return replace(region, box=clip((x1, y1, x2, y2), float(width), float(height)), score=score, polygon=polygon)


def checked_lines(name: str, page: Pixels, lines: Any) -> list[DetectedLine]:
    """Check which lines a text detector found on a page.

    Raises:
        EngineError: A line is of another type, its polygon not four finite points, or it lies far outside the page.
    """
    if not isinstance(lines, (list, tuple)):
        raise EngineError(f"{name} gave {type(lines).__name__} instead of a list of lines")
    height, width = page.shape[:2]
    beyond_x, beyond_y = _FAR_OUTSIDE * width, _FAR_OUTSIDE * height
    for line in lines:
        if not isinstance(line, DetectedLine):
            raise EngineError(f"{name} gave {type(line).__name__} instead of a line")
        points = _points(line.polygon)
        if points is None or len(points) != 4:
            raise EngineError(f"{name} gave a line the polygon {line.polygon!r}, which is not four finite points")
        if any(not -beyond_x <= x <= width + beyond_x or not -beyond_y <= y <= height + beyond_y for x, y in points):
            raise EngineError(f"{name} gave a line far outside of the page: {line.polygon!r}")
    return list(lines)


def checked_text(name: str, line: Pixels, text: Any) -> RecognizedText:
    """Check what a recognition engine read in a line image.

    Raises:
        EngineError: It is of another type, the confidence not in 0-1, or a position not finite.
    """
    if not isinstance(text, RecognizedText):
        raise EngineError(f"{name} gave {type(text).__name__} instead of a recognized text")
    if not isinstance(text.text, str):
        raise EngineError(f"{name} gave a text that is {type(text.text).__name__}")
    confidence = _share(text.confidence)
    if confidence is None:
        raise EngineError(f"{name} gave the confidence {text.confidence!r}, which is not between 0 and 1")
    if _finite(text.centers) is None or any(_finite(span[1:]) is None for span in text.word_spans):
        raise EngineError(f"{name} gave positions of characters that are not finite")
    return text if confidence is text.confidence else replace(text, confidence=confidence)


def checked_reading(name: str, reading: Any) -> RegionReading:
    """Check what a region engine read in a region.

    Raises:
        EngineError: It is of another type, too long to be the content of a region, took no number of attempts, or is
            nothing without a reason.
    """
    if not isinstance(reading, RegionReading):
        raise EngineError(f"{name} gave {type(reading).__name__} instead of the reading of a region")
    _check_content(name, reading)
    _check_attempts(name, reading.attempts)
    if reading.content is None and reading.problem is None:
        raise EngineError(f"{name} gave neither a content nor a reason why there is none")
    return reading


def checked_page_reading(name: str, reading: Any) -> PageReading:
    """Check what an engine read on a page; boxes are clipped to it.

    Raises:
        EngineError: It is of another type, too long, nothing without a reason, or tells of labels, places or attempts
            that are none.
    """
    if not isinstance(reading, PageReading):
        raise EngineError(f"{name} gave {type(reading).__name__} instead of the reading of a page")
    _check_problem(name, reading.problem)
    _check_attempts(name, reading.attempts)
    if reading.elements is None:
        if reading.problem is None:
            raise EngineError(f"{name} gave neither elements of a page nor a reason why there are none")
        return reading
    if not isinstance(reading.elements, (list, tuple)):
        raise EngineError(f"{name} gave {type(reading.elements).__name__} instead of elements of a page")
    elements = tuple(_checked_element(name, element) for element in reading.elements)
    if sum(len(element.content or "") for element in elements) > _LONGEST_CONTENT:
        raise EngineError(f"{name} gave more than {_LONGEST_CONTENT:,} characters for one page")
    return replace(reading, elements=elements)


def _checked_element(name: str, element: Any) -> PageElement:
    if not isinstance(element, PageElement):
        raise EngineError(f"{name} gave {type(element).__name__} instead of an element of a page")
    if not isinstance(element.label, Label):
        raise EngineError(f"{name} gave the label {element.label!r}, which is no layout class")
    _check_content(name, element)
    boxes: list[Box] = []
    for box in element.boxes:
        numbers = _finite(box)
        if numbers is None or len(numbers) != 4 or numbers[2] < numbers[0] or numbers[3] < numbers[1]:
            raise EngineError(f"{name} gave an element the box {box!r}, which is not four finite numbers in order")
        boxes.append(clip((numbers[0], numbers[1], numbers[2], numbers[3]), 1.0, 1.0))
    return replace(element, boxes=tuple(boxes))


def _check_content(name: str, read: RegionReading | PageElement) -> None:
    content = read.content
    if content is not None and not isinstance(content, str):
        raise EngineError(f"{name} gave a content that is {type(content).__name__}")
    if content is not None and len(content) > _LONGEST_CONTENT:
        raise EngineError(f"{name} gave a content of {len(content):,} characters for one region")
    if not isinstance(read.content_format, ContentFormat):
        raise EngineError(f"{name} gave the format {read.content_format!r}, which is none of ours")
    _check_problem(name, read.problem)


def _check_attempts(name: str, attempts: Any) -> None:
    if type(attempts) is not int or not 1 <= attempts <= _MOST_ATTEMPTS:
        raise EngineError(f"{name} gave {attempts!r} as the number of attempts, which is none")


def _check_problem(name: str, problem: Any) -> None:
    if problem is not None and not isinstance(problem, Problem):
        raise EngineError(f"{name} gave a problem that is {type(problem).__name__}")


def _share(number: Any) -> float | None:
    """A number between 0 and 1 as a float, rounding of small floats undone; None for anything else."""
    numbers = _finite((number,))
    if numbers is None or not -_ROUNDING <= numbers[0] <= 1 + _ROUNDING:
        return None
    return min(max(numbers[0], 0.0), 1.0)


def _points(points: Any) -> tuple[Point, ...] | None:
    """Points as pairs of floats; None where one is none."""
    if not isinstance(points, Iterable):
        return None
    pairs: list[Point] = []
    for point in points:
        pair = _finite(point)
        if pair is None or len(pair) != 2:
            return None
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _finite(numbers: Any) -> list[float] | None:
    """The numbers as floats; None where one is none, or not finite."""
    try:
        floats = [float(number) for number in numbers]
    except (TypeError, ValueError):
        return None
    return floats if all(map(math.isfinite, floats)) else None
