"""From a table region's pixels and lines of text to a `Table`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from pagemill.document.geometry import area, as_array, clip, intersection, union_box
from pagemill.tables.lattice import lattice_grid
from pagemill.tables.rules import find_rules
from pagemill.tables.stream import stream_grid
from pagemill.tables.table import Cell, Table, build_table, clean_text
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import join_words, usual_height, words_of_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.geometry import Box
    from pagemill.document.page import TextLine
    from pagemill.imaging.types import Pixels


def recognize_table(pixels: Pixels, box: Box, lines: Sequence[TextLine]) -> Table | None:
    """Find rows, columns and spans of a table and put the text into its cells.

    Rules give the grid where they draw one; else gutters and lines of text do.

    Args:
        pixels: The page, level, shape (height, width, 3), uint8.
        box: The table's region in page pixels.
        lines: Lines of the page or of the region, in page pixels; with words where the engine tells.

    Returns:
        The table with the indices of the lines it took in; None where there are not two columns.
    """
    height, width = pixels.shape[:2]
    box = clip(box, width, height)
    inside = {
        index
        for index, line in enumerate(lines)
        if line.text.strip() and intersection(line.box, box) > TABLES.line_inside * max(area(line.box), 1e-6)
    }
    if not inside or area(box) < 1:
        return None
    text_height = usual_height(lines[index] for index in inside)
    left, top, right, bottom = union_box([box, *(lines[index].box for index in inside)])
    margin = text_height / 2
    reach = clip((left - margin, top - margin, right + margin, bottom + margin), width, height)
    x, y = int(reach[0]), int(reach[1])
    cut = pixels[y : int(np.ceil(reach[3])), x : int(np.ceil(reach[2]))]
    gray = np.asarray(cv2.cvtColor(np.ascontiguousarray(cut), cv2.COLOR_RGB2GRAY), np.uint8)

    # Lines beside the table (its caption) are in the image too.
    seen = [
        word
        for index, line in enumerate(lines)
        if intersection(line.box, reach) > 0
        for word in words_of_line(line, index, (x, y), gray)
    ]
    rules = find_rules(gray, text_height, as_array(word.box for word in seen))
    words = [word for word in seen if word.line in inside]
    grid = lattice_grid(words, rules, text_height, gray) or stream_grid(words, rules, text_height, gray)
    if grid is None:
        return None
    cells = [
        Cell(
            row=cell.row,
            column=cell.column,
            row_span=cell.row_span,
            column_span=cell.column_span,
            text=clean_text(join_words(cell.words, text_height)),
            header=cell.row < grid.header_rows,
        )
        for cell in grid.cells
    ]
    table = build_table(cells, {word.line for cell in grid.cells for word in cell.words})
    return table if table.columns > 1 else None
