"""From a table region's pixels and lines of text to a `Table`, and from a page's pixels to ruled tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from pagemill.document.geometry import area, as_array, clip, intersection, union_box
from pagemill.tables.lattice import lattice_grid
from pagemill.tables.rules import find_rules, has_rules, skew_of_rules
from pagemill.tables.stream import stream_grid
from pagemill.tables.table import Cell, Table, build_table, clean_text
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import Plane, join_words, line_height, line_slope, words_of_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.document.geometry import Box
    from pagemill.document.page import TextLine
    from pagemill.imaging.types import Pixels


def recognize_table(pixels: Pixels, box: Box, lines: Sequence[TextLine]) -> Table | None:
    """Find rows, columns and spans of a table and put the text into its cells.

    Rules give the grid where they draw one; else gutters and lines of text do. Skew up to about 4 degrees is
    taken out.

    Args:
        pixels: The page, shape (height, width, 3), uint8.
        box: The table's region in page pixels.
        lines: Lines of the page or of the region, in page pixels; with words where the engine tells.

    Returns:
        The table with the indices of the lines it took in; None where there are not two columns.
    """
    height, width = pixels.shape[:2]
    box = clip(box, width, height)
    inside = [
        index
        for index, line in enumerate(lines)
        if line.text.strip() and intersection(line.box, box) > TABLES.line_inside * max(area(line.box), 1e-6)
    ]
    taken = set(inside)
    if not inside or area(box) < 1:
        return None
    text_height = max(4.0, float(np.median([line_height(lines[index]) for index in inside])))
    reach = union_box([box, *(lines[index].box for index in inside)])
    margin = text_height / 2
    reach = clip((reach[0] - margin, reach[1] - margin, reach[2] + margin, reach[3] + margin), width, height)
    x1, y1, x2, y2 = (int(reach[0]), int(reach[1]), int(np.ceil(reach[2])), int(np.ceil(reach[3])))
    gray = cv2.cvtColor(np.ascontiguousarray(pixels[y1:y2, x1:x2]), cv2.COLOR_RGB2GRAY).astype(np.uint8)

    slope = _slope(gray, [lines[index] for index in inside], text_height)
    plane = Plane((x1, y1), (x2 - x1, y2 - y1), slope)
    if slope:
        gray = _upright(gray, slope)
    words = [word for index in inside for word in words_of_line(lines[index], index, plane, gray)]
    # Lines beside the table (its caption) are in the image too.
    beside = [
        word
        for index, line in enumerate(lines)
        if index not in taken and intersection(line.box, reach) > 0
        for word in words_of_line(line, index, plane, gray)
    ]
    boxes = as_array((word.x1, word.y1, word.x2, word.y2) for word in words + beside)
    rules = find_rules(gray, text_height, boxes)
    grid = lattice_grid(words, rules, text_height, gray) or stream_grid(words, rules, text_height, gray)
    if grid is None:
        return None
    cells = []
    for cell in grid.cells:
        place = cell.box or union_box([(w.x1, w.y1, w.x2, w.y2) for w in cell.words])
        cells.append(
            Cell(
                row=cell.row,
                column=cell.column,
                row_span=cell.row_span,
                column_span=cell.column_span,
                text=clean_text(join_words(cell.words, text_height)),
                header=cell.row < grid.header_rows,
                box=clip(plane.to_page(place), width, height),
            )
        )
    placed = {word.line for cell in grid.cells for word in cell.words}
    table = build_table(cells, box=box, line_indices=sorted(placed))
    return table if table.columns > 1 else None


def find_ruled_tables(pixels: Pixels) -> list[Box]:
    """Find tables drawn with horizontal and vertical rules on a page.

    Args:
        pixels: The page, shape (height, width, 3), uint8.

    Returns:
        Boxes in page pixels, from top to bottom: connected rules with at least two inner crossings.
    """
    gray = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY).astype(np.uint8)
    height, width = gray.shape
    if min(height, width) < 20:
        return []
    # No text is known yet: take the height of a line on a page of usual print.
    text_height = max(8.0, max(height, width) / TABLES.page_lines)
    if not has_rules(gray, text_height):
        return []
    slope = skew_of_rules(gray, text_height) or 0.0
    plane = Plane((0, 0), (width, height), slope if abs(slope) > TABLES.least_slope else 0.0)
    if plane.slope:
        gray = _upright(gray, plane.slope)
    rules = find_rules(gray, text_height)
    near = TABLES.same_line * text_height
    found = []
    groups = _connected(
        [(r.start - near, r.position - near, r.end + near, r.position + near) for r in rules.horizontal],
        [(r.position - near, r.start - near, r.position + near, r.end + near) for r in rules.vertical],
    )
    for horizontal, vertical in groups:
        ys = {round(rules.horizontal[index].position / (2 * near)) for index in horizontal}
        xs = {round(rules.vertical[index].position / (2 * near)) for index in vertical}
        if min(len(xs), len(ys)) >= 2 and len(xs) * len(ys) >= TABLES.crossings:
            sides = [rules.horizontal[i] for i in horizontal]
            posts = [rules.vertical[i] for i in vertical]
            place = (
                min(min(r.start for r in sides), min(r.position for r in posts)),
                min(min(r.position for r in sides), min(r.start for r in posts)),
                max(max(r.end for r in sides), max(r.position for r in posts)),
                max(max(r.position for r in sides), max(r.end for r in posts)),
            )
            # Large letters and logos have strokes like rules, but no table's size.
            if place[2] - place[0] < TABLES.least_width * text_height:
                continue
            if place[3] - place[1] < TABLES.least_height * text_height:
                continue
            box = clip(plane.to_page(place), width, height)
            found.append((float(box[0]), float(box[1]), float(box[2]), float(box[3])))
    return sorted(found, key=lambda box: (box[1], box[0]))


def _slope(gray: NDArray[np.uint8], lines: Sequence[TextLine], text_height: float) -> float:
    """Slope of the table: of its rules, else the usual one of its lines of text."""
    slope = skew_of_rules(gray, text_height)
    if slope is None:
        slopes = [slope for line in lines if (slope := line_slope(line)) is not None]
        slope = float(np.median(slopes)) if len(slopes) >= 3 else 0.0
    return slope if TABLES.least_slope < abs(slope) < TABLES.max_text_slope else 0.0


def _upright(gray: NDArray[np.uint8], slope: float) -> NDArray[np.uint8]:
    """Turn an image about its centre so that lines of a slope become horizontal; its size stays."""
    height, width = gray.shape
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), float(np.degrees(np.arctan(slope))), 1.0)
    turned: NDArray[np.uint8] = cv2.warpAffine(
        gray, matrix, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    ).astype(np.uint8)
    return turned


def _connected(horizontal: Sequence[Box], vertical: Sequence[Box]) -> list[tuple[list[int], list[int]]]:
    """Groups of rules that touch each other: indices of horizontal and of vertical ones."""
    if not horizontal or not vertical:
        return []
    h, v = np.asarray(horizontal), np.asarray(vertical)
    touch = (
        (h[:, None, 0] <= v[None, :, 2])
        & (v[None, :, 0] <= h[:, None, 2])
        & (h[:, None, 1] <= v[None, :, 3])
        & (v[None, :, 1] <= h[:, None, 3])
    )
    group_of_h = np.arange(len(h))
    for column in touch.T:
        members = np.unique(group_of_h[column])
        if len(members) > 1:
            group_of_h[np.isin(group_of_h, members)] = members[0]
    group_of_v = np.array([group_of_h[column][0] if column.any() else -1 for column in touch.T])
    return [
        (np.flatnonzero(group_of_h == group).tolist(), np.flatnonzero(group_of_v == group).tolist())
        for group in np.unique(group_of_v[group_of_v >= 0])
    ]
