"""The border to the engines: what they answer is checked here, so that a faulty one fails its pages and says why."""

from __future__ import annotations

import logging
import math
import re
from dataclasses import replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from pagemill.document.geometry import clip
from pagemill.document.labels import Label
from pagemill.errors import EngineError, PagemillError
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import DetectedLine, PageElement, PageReading, RecognizedText, RegionReading

if TYPE_CHECKING:
    from collections.abc import Callable

    from pagemill.document.geometry import Box, Point
    from pagemill.imaging.types import Pixels

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
Reading = TypeVar("Reading", RegionReading, PageReading)

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
            remedy="Let fewer pages be in flight at once (--pages-in-flight, --threads), or give it more memory.",
        )
    if isinstance(error, PagemillError):
        return error
    log.info("%s failed", name, exc_info=error)
    return EngineError(f"{name} failed: {type(error).__name__}: {error}")


def checked(name: str, check: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call one of the checks below; what it raises becomes an EngineError.

    Args:
        name: What the engine is called.
        check: The check.
        *args: Its arguments.
        **kwargs: Likewise.
    """
    try:
        return check(*args, **kwargs)
    except (AttributeError, TypeError, ValueError) as error:
        raise EngineError(f"{name} gave an invalid answer: {error}") from error


def checked_regions(page: Pixels, regions: Any) -> list[DetectedRegion]:
    """Check what a layout engine found on a page; boxes that stick out of it a little are clipped.

    Args:
        page: What it was given, shape (height, width, 3).
        regions: What it gave.
    """
    _require_list(regions)
    height, width = page.shape[:2]
    return [_checked_region(region, width, height) for region in regions]


def _checked_region(region: DetectedRegion, width: int, height: int) -> DetectedRegion:
    _require(isinstance(region.label, Label), f"the label {region.label!r} is no layout class")
    x1, y1, x2, y2 = _corners(region.box)
    beyond_x, beyond_y = (max(_LEAST_OVERHANG, _OVERHANG * side) for side in (width, height))
    _require(
        x1 >= -beyond_x and y1 >= -beyond_y and x2 <= width + beyond_x and y2 <= height + beyond_y,
        f"the box {region.box} is outside of the page of {width} x {height} pixels",
    )
    score = None if region.score is None else _share("the score", region.score)
    polygon = None if region.polygon is None else _points(region.polygon)
    _require(polygon is None or len(polygon) > 2, "a polygon has fewer than three points")
    return replace(region, box=clip((x1, y1, x2, y2), float(width), float(height)), score=score, polygon=polygon)


def checked_lines(page: Pixels, lines: Any) -> list[DetectedLine]:
    """Check which lines a text detector found on a page."""
    _require_list(lines)
    height, width = page.shape[:2]
    beyond_x, beyond_y = _FAR_OUTSIDE * width, _FAR_OUTSIDE * height
    for line in lines:
        points = _points(line.polygon)
        _require(len(points) == 4, f"the polygon {line.polygon} has not four points")
        _require(
            all(-beyond_x <= x <= width + beyond_x and -beyond_y <= y <= height + beyond_y for x, y in points),
            f"the line {line.polygon} is far outside of the page",
        )
    return list(lines)


def checked_text(line: Pixels, text: RecognizedText) -> RecognizedText:
    """Check what a recognition engine read in a line image."""
    _require(isinstance(text.text, str), f"a text is {type(text.text).__name__}")
    confidence = _share("the confidence", text.confidence)
    if text.centers:
        _finite("positions of characters", text.centers, len(text.text))
    return text if confidence is text.confidence else replace(text, confidence=confidence)


def checked_reading(reading: RegionReading) -> RegionReading:
    """Check what a region engine read in a region: not too long, and something, or a reason why there is nothing."""
    reading = _typed(reading, RegionReading)
    _check_content(reading)
    _require(reading.content is not None or reading.problem is not None, "neither a content nor a reason")
    return reading


def checked_page_reading(reading: PageReading) -> PageReading:
    """Check what an engine read on a page; boxes are clipped to it."""
    reading = _typed(reading, PageReading)
    if reading.elements is None:
        _require(reading.problem is not None, "neither elements of a page nor a reason")
        return reading
    elements = tuple(_checked_element(element) for element in reading.elements)
    length = sum(len(element.content or "") for element in elements)
    _require(length <= _LONGEST_CONTENT, f"{length:,} characters for one page")
    return replace(reading, elements=elements)


def _checked_element(element: PageElement) -> PageElement:
    _check_content(element)
    return replace(element, boxes=tuple(clip(_corners(box), 1.0, 1.0) for box in element.boxes))


def _check_content(read: RegionReading | PageElement) -> None:
    length = len(read.content or "")
    _require(length <= _LONGEST_CONTENT, f"a content of {length:,} characters for one region")


def _typed(reading: Reading, kind: type[Reading]) -> Reading:
    """A reading whose values, numpy's included, are of the types that its class declares."""
    plain = msgspec.to_builtins(reading, builtin_types=[bytes], enc_hook=methodcaller("tolist"))
    typed = msgspec.convert(plain, kind)
    _require(1 <= typed.attempts <= _MOST_ATTEMPTS, f"{typed.attempts} is no number of attempts")
    return typed


def _require_list(answer: Any) -> None:
    """Require a list: a check would use a generator up, and an empty string or mapping would count as no findings."""
    _require(isinstance(answer, list | tuple), f"{type(answer).__name__} instead of a list")


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise ValueError(complaint)


def _share(what: str, number: Any) -> float:
    """A number between 0 and 1 as a float, rounding of small floats undone."""
    (share,) = _finite(what, [number], 1)
    _require(-_ROUNDING <= share <= 1 + _ROUNDING, f"{what} {number!r} is not between 0 and 1")
    return min(max(share, 0.0), 1.0)


def _points(points: Any) -> tuple[Point, ...]:
    pairs = (_finite("a point of a polygon", point, 2) for point in points)
    return tuple((x, y) for x, y in pairs)


def _corners(box: Any) -> Box:
    x1, y1, x2, y2 = _finite("the box", box, 4)
    _require(x1 <= x2 and y1 <= y2, f"the box {box} is inverted")
    return x1, y1, x2, y2


def _finite(what: str, numbers: Any, count: int) -> list[float]:
    """So many finite numbers, as floats."""
    try:
        floats = [float(number) for number in numbers]
    except (TypeError, ValueError):
        floats = []
    _require(
        len(floats) == count and all(map(math.isfinite, floats)), f"{what} {numbers} is not {count} finite numbers"
    )
    return floats
