"""Pages of a text layer whose text runs sideways or upside down though the page is not marked as turned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pagemill.document.geometry import union_box
from pagemill.imaging.transforms import rotate_quarter
from pagemill.parsing.lines import direction
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.geometry import Box, Point
    from pagemill.document.page import TextLine
    from pagemill.imaging.page import DecodedPage


def turn_to_upright(lines: Sequence[TextLine]) -> int:
    """Degrees, a multiple of 90, by which the page must be turned clockwise for most of its text to run level.

    Text tells its direction by its polygon; East Asian columns of upright characters have none and are level.
    """
    characters = {0: 0, 90: 0, 180: 0, 270: 0}
    other = 0
    for line in lines:
        angle = direction(line) % 360
        quarter = round(angle / 90) * 90
        if abs(angle - quarter) <= PARSING.turned_tolerance:
            characters[quarter % 360] += len(line.text)
        else:
            other += len(line.text)
    most = max(characters, key=lambda quarter: characters[quarter])
    total = other + sum(characters.values())
    # A page whose text is upside down reads wrong in every way; one with sideways text may be a table beside print.
    share = PARSING.turned_upside_down if most == 180 else PARSING.turned
    return -most % 360 if characters[most] >= max(share * total, PARSING.turned_characters) else 0


def turn_page(page: DecodedPage, lines: Sequence[TextLine], degrees: int) -> tuple[DecodedPage, list[TextLine]]:
    """The page with the places of its images, and its lines, turned clockwise by a multiple of 90 degrees."""
    height, width = page.pixels.shape[:2]
    turned = replace(
        page,
        pixels=rotate_quarter(page.pixels, degrees),
        image_boxes=tuple(_turned_box(box, degrees % 360, width, height) for box in page.image_boxes),
    )
    return turned, turned_lines(lines, degrees, width, height)


def turned_lines(lines: Sequence[TextLine], degrees: int, width: int, height: int) -> list[TextLine]:
    """Lines as they lie once the page is turned.

    Args:
        lines: In pixels of the page as it was.
        degrees: Clockwise, a multiple of 90.
        width: Of the page as it was, in pixels.
        height: Of the page as it was, in pixels.
    """
    return [_turned(line, degrees % 360, width, height) for line in lines]


def _turned(line: TextLine, degrees: int, width: int, height: int) -> TextLine:
    words = tuple(
        msgspec.structs.replace(word, box=_turned_box(word.box, degrees, width, height)) for word in line.words
    )
    x1, y1, x2, y2 = line.box
    corners = line.polygon or ((x1, y1), (x2, y1), (x2, y2), (x1, y2))
    polygon = tuple(_turned_point(point, degrees, width, height) for point in corners)
    turned = msgspec.structs.replace(
        line, box=_turned_box(line.box, degrees, width, height), polygon=polygon, words=words
    )
    level = abs(direction(turned)) <= PARSING.turned_tolerance
    return msgspec.structs.replace(turned, polygon=None) if level else turned


def _turned_box(box: Box, degrees: int, width: int, height: int) -> Box:
    corners = [_turned_point(corner, degrees, width, height) for corner in (box[:2], box[2:])]
    return union_box([(x, y, x, y) for x, y in corners])


def _turned_point(point: Point, degrees: int, width: int, height: int) -> Point:
    x, y = point
    return {0: (x, y), 90: (height - y, x), 180: (width - x, height - y), 270: (y, width - x)}[degrees]
