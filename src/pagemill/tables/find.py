"""Tables that a page draws with rules: in both directions, or across alone with text between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import (
    Box,
    area,
    as_array,
    as_boxes,
    components,
    intersection,
    intersection_matrix,
    union_box,
)
from pagemill.document.page import TextLine
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.tables.rules import Rule, Rules, find_rules, has_rules
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import is_number, usual_height


class _Band(msgspec.Struct):
    """What is between two neighbouring rules of one extent."""

    above: Rule
    below: Rule
    boxes: list[Box]
    stub_outside: bool
    """It begins with a number, and there is text on its left beyond the rules."""


def find_tables(pixels: Pixels, lines: Sequence[TextLine]) -> list[Box]:
    """Find the tables whose rows are ruled off.

    Ruled both ways: connected rules with some inner crossings. Ruled across alone: three bands at least between rules
    of one extent, each with text in two columns, and a gutter through all of them. A page of columns between two or
    three rules is no table, nor are figures under rules with their labels beside.

    Args:
        pixels: The page, level, shape (height, width, 3), uint8.
        lines: Lines of text of the page, in page pixels.

    Returns:
        Boxes in page pixels.
    """
    if not lines:
        return []
    gray = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY).astype(np.uint8)
    text_height = usual_height(lines)
    # Most pages have no rules: this test is far cheaper than to find them.
    if not has_rules(gray, text_height):
        return []
    rules = find_rules(gray, text_height, as_array(line.box for line in lines), whole_page=True)
    if len(rules.horizontal) + len(rules.vertical) > TABLES.max_rules:
        return []
    found = _ruled_both_ways(rules, text_height)
    across = [rule for rule in rules.horizontal if rule.length >= TABLES.open_rule_length * text_height]
    for box in _ruled_across(across, lines, text_height):
        if sum(intersection(box, other) for other in found) < TABLES.same_table * area(box):
            found.append(box)
    return found


def _ruled_both_ways(rules: Rules, text_height: float) -> list[Box]:
    near = TABLES.same_line * text_height
    across = as_array((rule.start, rule.position, rule.end, rule.position) for rule in rules.horizontal)
    upright = as_array((rule.position, rule.start, rule.position, rule.end) for rule in rules.vertical)
    boxes = np.concatenate([across, upright])
    reach = np.array([-near, -near, near, near])
    touching = np.argwhere(intersection_matrix(across + reach, upright + reach) > 0)
    found = []
    for group in components(len(boxes), [(i, len(across) + j) for i, j in touching.tolist()]):
        ys, xs = boxes[group[group < len(across)], 1], boxes[group[group >= len(across)], 0]
        rows, columns = (len(np.unique(np.rint(places / (2 * near)))) for places in (ys, xs))
        # Crossings alone are not enough: frames of a form's fields cross as well.
        if not len(xs) or _through(boxes[group[group >= len(across)]], near) < 2:
            continue
        if min(rows, columns) >= 2 and rows * columns >= TABLES.crossings:
            found.append(union_box(as_boxes(boxes[group])))
    return found


def _through(upright: NDArray[np.float64], near: float) -> int:
    """How many places have rules down half of a grid: the frames of a form's fields, one below the other, have one."""
    places = np.rint(upright[:, 0] / (2 * near)).astype(np.intp)
    length = np.bincount(places - places.min(), upright[:, 3] - upright[:, 1])
    return int((length >= TABLES.rule_through * np.ptp(upright[:, 1::2])).sum())


def _ruled_across(rules: Sequence[Rule], lines: Sequence[TextLine], text_height: float) -> list[Box]:
    found = []
    for column in _columns(rules, text_height):
        run: list[_Band] = []
        for above, below in pairwise(column):
            band = _band(above, below, lines)
            is_row = _has_gutter([band], text_height)
            if run and not (is_row and _has_gutter([*run, band], text_height)):
                found += _table(run)
                run = []
            if is_row:
                run.append(band)
        found += _table(run)
    return found


def _columns(rules: Sequence[Rule], text_height: float) -> list[list[Rule]]:
    """Rules of one extent, from top to bottom."""
    columns: list[list[Rule]] = []
    for rule in rules:
        for column in columns:
            if max(abs(rule.start - column[-1].start), abs(rule.end - column[-1].end)) < text_height:
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


def _has_gutter(bands: Sequence[_Band], text_height: float) -> bool:
    """Whether a blank runs down through all bands between text on its left and its right in each."""
    if not all(band.boxes for band in bands):
        return False
    left = max(min(box[2] for box in band.boxes) for band in bands)
    right = min(max(box[0] for box in band.boxes) for band in bands)
    reach = -np.inf
    for start, _, end, _ in sorted(box for band in bands for box in band.boxes):
        if start - reach >= TABLES.open_gutter * text_height and left < (reach + start) / 2 < right:
            return True
        reach = max(reach, end)
    return False


def _table(bands: Sequence[_Band]) -> list[Box]:
    if len(bands) < TABLES.open_rows or 2 * sum(band.stub_outside for band in bands) > len(bands):
        return []
    first, last = bands[0].above, bands[-1].below
    # The text counts, too: a first column may begin left of the rules.
    extent = (min(first.start, last.start), first.position, max(first.end, last.end), last.position)
    return [union_box([extent, *(box for band in bands for box in band.boxes)])]
