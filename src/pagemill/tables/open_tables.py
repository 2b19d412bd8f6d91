"""Tables that a page draws with horizontal rules alone, found by their rules and the text between them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import cv2
import numpy as np

from pagemill.document.geometry import as_array, union_box
from pagemill.tables.grid import is_number
from pagemill.tables.rules import find_rules, has_rules
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import line_height

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.geometry import Box
    from pagemill.document.page import TextLine
    from pagemill.imaging.types import Pixels
    from pagemill.tables.rules import Rule


@dataclass(slots=True)
class _Band:
    """What is between two neighbouring rules of one extent."""

    above: Rule
    below: Rule
    boxes: list[Box]
    stub_outside: bool
    """It begins with a number, and there is text on its left beyond the rules."""


def find_open_tables(pixels: Pixels, lines: Sequence[TextLine]) -> list[Box]:
    """Find tables without vertical rules whose rows are ruled off.

    Three bands at least between rules of one extent, each with text in two columns, and a gutter through all of them.
    A page of columns between two or three rules is no table, nor are figures under rules with their labels beside.

    Args:
        pixels: The page, shape (height, width, 3), uint8.
        lines: Lines of text of the page, in page pixels.

    Returns:
        Boxes in page pixels, from top to bottom.
    """
    if len(lines) < 2 * TABLES.open_rows:
        return []
    gray = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY).astype(np.uint8)
    text_height = max(4.0, float(np.median([line_height(line) for line in lines])))
    if not has_rules(gray, text_height):
        return []
    boxes = [line.box for line in lines]
    rules = [
        rule
        for rule in find_rules(gray, text_height, as_array(boxes)).horizontal
        if rule.length >= TABLES.open_rule_length * text_height
    ]
    if len(rules) > TABLES.open_max_rules:
        return []
    found = []
    for column in _columns(rules, text_height):
        run: list[_Band] = []
        for above, below in pairwise(column):
            band = _band(above, below, lines)
            grown = [*run, band] if run and run[-1].below is above else [band]
            if not _is_row(band, text_height):
                found += _table(run)
                run = []
            elif not _has_gutter(grown, text_height):
                found += _table(run)
                run = [band]
            else:
                run = grown
        found += _table(run)
    return sorted(found, key=lambda box: (box[1], box[0]))


def _columns(rules: Sequence[Rule], text_height: float) -> list[list[Rule]]:
    """Rules of one extent, from top to bottom."""
    columns: list[list[Rule]] = []
    for rule in rules:
        for column in columns:
            last = column[-1]
            if abs(rule.start - last.start) < text_height and abs(rule.end - last.end) < text_height:
                column.append(rule)
                break
        else:
            columns.append([rule])
    return columns


def _band(above: Rule, below: Rule, lines: Sequence[TextLine]) -> _Band:
    level = [line for line in lines if above.position < (line.box[1] + line.box[3]) / 2 < below.position]
    inside = [line for line in level if above.start < (line.box[0] + line.box[2]) / 2 < above.end]
    first = min(inside, key=lambda line: line.box[0], default=None)
    outside = any(line.box[2] < above.start for line in level)
    return _Band(above, below, [line.box for line in inside], outside and first is not None and is_number(first.text))


def _is_row(band: _Band, text_height: float) -> bool:
    least, most = TABLES.open_row_height
    height = (band.below.position - band.above.position) / text_height
    return least < height < most and _has_gutter([band], text_height)


def _has_gutter(bands: Sequence[_Band], text_height: float) -> bool:
    """Whether a blank runs down through all bands between text on its left and its right in each."""
    spans = sorted((box[0], box[2]) for band in bands for box in band.boxes)
    reach = spans[0][1] if spans else 0.0
    for start, end in spans:
        if start - reach >= TABLES.open_gutter * text_height:
            middle = (reach + start) / 2
            if all(
                any(box[2] < middle for box in band.boxes) and any(box[0] > middle for box in band.boxes)
                for band in bands
            ):
                return True
        reach = max(reach, end)
    return False


def _table(bands: Sequence[_Band]) -> list[Box]:
    if len(bands) < TABLES.open_rows or 2 * sum(band.stub_outside for band in bands) > len(bands):
        return []
    first, last = bands[0].above, bands[-1].below
    extent = (min(first.start, last.start), first.position, max(first.end, last.end), last.position)
    return [union_box([extent, *(box for band in bands for box in band.boxes)])]
