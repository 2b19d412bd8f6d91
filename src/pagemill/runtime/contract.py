"""The boundary to the engines: their answers are checked here, so that a faulty one fails its pages with the reason."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from operator import methodcaller
from typing import ParamSpec, TypeVar

import msgspec

from pagemill.document.geometry import Box, clip
from pagemill.errors import EngineError, PagemillError, is_out_of_memory
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import (
    LONGEST_CONTENT,
    DetectedLine,
    PageElement,
    PageReading,
    RecognizedFormula,
    RecognizedText,
    RegionReading,
)

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_OVERHANG = 0.02
"""Share of the page's side by which a box may stick out of the page (rounding, padding); it is clipped."""
_LEAST_OVERHANG = 2.0  # pixels
_FAR_OUTSIDE = 0.5  # of the page's side: detected lines are padded and tilted; cutting out one far away takes memory
_ROUNDING = 1e-3  # how far a share in 32-bit floats may be over 1


def engine_error(name: str, error: BaseException) -> PagemillError:
    """What an engine's exception means for the page: our own stay as they are, others get the engine's name.

    Args:
        name: Name of the engine, as in ``the layout engine 'onnx'``.
        error: The exception.
    """
    if isinstance(error, PagemillError):  # of a model that does not fit into memory, too: its remedy is its own
        return error
    if is_out_of_memory(error):
        return EngineError(
            f"{name} ran out of memory on a single item: {error}",
            remedy="Reduce the pages in flight (--pages-in-flight, --threads), or give it more memory.",
        )
    log.info("%s failed", name, exc_info=error)
    return EngineError(f"{name} failed: {type(error).__name__}: {error}")


def checked(name: str, check: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call one of the checks below; what it raises becomes an EngineError.

    Args:
        name: Name of the engine.
        check: The check.
        *args: Its arguments.
        **kwargs: Its keyword arguments.
    """
    try:
        return check(*args, **kwargs)
    except (AttributeError, TypeError, ValueError) as error:
        raise EngineError(f"{name} returned an invalid answer: {error}") from error


def checked_regions(page: Pixels, regions: list[DetectedRegion]) -> list[DetectedRegion]:
    """Check what a layout engine found on a page; boxes that stick out of it a little are clipped.

    Args:
        page: The page that it received, shape (height, width, 3).
        regions: The regions that it returned.
    """
    height, width = page.shape[:2]
    return [_checked_region(region, width, height) for region in _typed(regions, list[DetectedRegion])]


def _checked_region(region: DetectedRegion, width: int, height: int) -> DetectedRegion:
    x1, y1, x2, y2 = _in_order(region.box)
    beyond_x, beyond_y = (max(_LEAST_OVERHANG, _OVERHANG * side) for side in (width, height))
    _require(
        x1 >= -beyond_x and y1 >= -beyond_y and x2 <= width + beyond_x and y2 <= height + beyond_y,
        f"the box {region.box} is outside of the page of {width} x {height} pixels",
    )
    score = None if region.score is None else _share("the score", region.score)
    if region.polygon is not None:
        _require(len(region.polygon) > 2, "a polygon has fewer than three points")
        _require_finite(chain.from_iterable(region.polygon))
    return replace(region, box=clip(region.box, float(width), float(height)), score=score)


def checked_lines(page: Pixels, lines: list[DetectedLine]) -> list[DetectedLine]:
    """Check which lines a text detector found on a page."""
    height, width = page.shape[:2]
    beyond_x, beyond_y = _FAR_OUTSIDE * width, _FAR_OUTSIDE * height
    lines = _typed(lines, list[DetectedLine])
    for line in lines:
        _require(
            all(-beyond_x <= x <= width + beyond_x and -beyond_y <= y <= height + beyond_y for x, y in line.polygon),
            f"the line {line.polygon} is far outside of the page",
        )
    return lines


def checked_text(line: Pixels, text: RecognizedText) -> RecognizedText:
    """Check what a recognition engine read in a line image."""
    text = _typed(text, RecognizedText)
    _require(len(text.centers) in (0, len(text.text)), f"{len(text.centers)} positions of {len(text.text)} characters")
    _require_finite(text.centers)
    return replace(text, confidence=_share("the confidence", text.confidence))


def checked_formula(crop: Pixels, formula: RecognizedFormula) -> RecognizedFormula:
    """Check what a formula engine read in a crop."""
    formula = _typed(formula, RecognizedFormula)
    confidence = formula.confidence
    return replace(formula, confidence=None if confidence is None else _share("the confidence", confidence))


def checked_reading(reading: RegionReading) -> RegionReading:
    """Check what a region engine read in a region: something, or a reason why there is nothing."""
    reading = _typed(reading, RegionReading)
    _require(reading.content is not None or reading.problem is not None, "neither a content nor a reason")
    return reading


def checked_page_reading(reading: PageReading) -> PageReading:
    """Check what an engine read on a page; boxes are clipped to it."""
    reading = _typed(reading, PageReading)
    if reading.elements is None:
        _require(reading.problem is not None, "neither elements of a page nor a reason")
        return reading
    length = sum(len(element.content or "") for element in reading.elements)
    _require(length <= LONGEST_CONTENT, f"{length:,} characters for one page")
    return replace(reading, elements=tuple(map(_checked_element, reading.elements)))


def _checked_element(element: PageElement) -> PageElement:
    return replace(element, boxes=tuple(clip(_in_order(box), 1.0, 1.0) for box in element.boxes))


def _typed(answer: R, kind: type[R]) -> R:
    """An answer whose values, including numpy's, have the types that its class declares."""
    plain = msgspec.to_builtins(answer, builtin_types=[bytes], enc_hook=methodcaller("tolist"))
    return msgspec.convert(plain, kind)


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise ValueError(complaint)


def _require_finite(numbers: Iterable[float]) -> None:
    _require(all(map(math.isfinite, numbers)), "a position is not a finite number")


def _in_order(box: Box) -> Box:
    """The corners of a box; no comparison holds for NaN."""
    x1, y1, x2, y2 = box
    _require(x1 <= x2 and y1 <= y2, f"the box {box} is inverted")
    return box


def _share(what: str, share: float) -> float:
    """A number between 0 and 1, rounding of small floats undone."""
    _require(-_ROUNDING <= share <= 1 + _ROUNDING, f"{what} {share} is not between 0 and 1")
    return min(max(share, 0.0), 1.0)
