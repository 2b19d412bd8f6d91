"""From a table region's pixels and lines of text to a `Table`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.document.direction import is_right_to_left, mirrored
from pagemill.document.geometry import Box, area, as_array, clip, intersection, mirrored_box, union_box
from pagemill.document.marks import without_bold
from pagemill.document.page import TextLine
from pagemill.document.spans import carried, with_scripts
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.tables.agreement import agreement
from pagemill.tables.fitting import fit
from pagemill.tables.grid import Grid, GridCell
from pagemill.tables.lattice import header_rows_of, lattice_grid
from pagemill.tables.rules import Rules, find_rules
from pagemill.tables.stream import stream_grid
from pagemill.tables.table import Cell, Table, build_table, clean_text
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, join_words, usual_height, words_of_line

if TYPE_CHECKING:
    from pagemill.tables.structure_model import StructureModel


class _Picture(msgspec.Struct, frozen=True):
    """A table, cut out: what is in it, in its own pixels."""

    pixels: Pixels
    gray: NDArray[np.uint8]
    words: Sequence[TableWord]
    rules: Rules
    text_height: float


def recognize_table(
    pixels: Pixels,
    box: Box,
    lines: Sequence[TextLine],
    model: Callable[[], StructureModel] | None = None,
    *,
    prefer_model: bool = False,
) -> Table | None:
    """Find rows, columns and spans of a table and put the text into its cells.

    Args:
        pixels: The page, level, shape (height, width, 3), uint8.
        box: The table's region in page pixels.
        lines: Lines of the page or of the region, in page pixels; with words if the engine reports them.
        model: Gives the model that predicts structures, asked where rules do not draw the whole grid; None to do
            without.
        prefer_model: Ask it also where rules draw the grid.

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
    if is_right_to_left("".join(lines[index].text for index in inside)):
        # In the mirror image, the first column is on the left and lines run to the right, as all below assumes.
        pixels, lines = pixels[:, ::-1], [mirrored(line, width) for line in lines]
        box = mirrored_box(box, width)
    picture = _cut_out(pixels, box, lines, inside)
    found = _grid(picture, model, prefer_model)
    if found is None:
        return None
    grid, method = found
    cells = [cell_of(cell, grid.header_rows, picture.text_height) for cell in grid.cells]
    table = build_table(cells, {word.line for cell in grid.cells for word in cell.words})
    return replace(table, method=method) if table.columns > 1 else None


def cell_of(cell: GridCell, header_rows: int, text_height: float) -> Cell:
    """A cell of a grid with the text of its words and their marks."""
    joined, marks = join_words(cell.words, text_height)
    text = clean_text(joined)
    text, spans = with_scripts(text, carried(marks, joined, text))
    header = cell.row < header_rows
    return Cell(
        row=cell.row,
        column=cell.column,
        row_span=cell.row_span,
        column_span=cell.column_span,
        text=text,
        spans=without_bold(text, spans) if header else spans,
        header=header,
    )


def _cut_out(pixels: Pixels, box: Box, lines: Sequence[TextLine], inside: set[int]) -> _Picture:
    height, width = pixels.shape[:2]
    text_height = usual_height(lines[index] for index in inside)
    left, top, right, bottom = union_box([box, *(lines[index].box for index in inside)])
    margin = text_height / 2
    reach = clip((left - margin, top - margin, right + margin, bottom + margin), width, height)
    x, y = int(reach[0]), int(reach[1])
    cut = np.ascontiguousarray(pixels[y : int(np.ceil(reach[3])), x : int(np.ceil(reach[2]))])
    gray = np.asarray(cv2.cvtColor(cut, cv2.COLOR_RGB2GRAY), np.uint8)
    # Lines beside the table (its caption) are in the image too.
    seen = [
        word
        for index, line in enumerate(lines)
        if intersection(line.box, reach) > 0
        for word in words_of_line(line, index, (x, y))
    ]
    rules = find_rules(gray, text_height, as_array(word.box for word in seen))
    return _Picture(cut, gray, [word for word in seen if word.line in inside], rules, text_height)


def _grid(picture: _Picture, model: Callable[[], StructureModel] | None, prefer_model: bool) -> tuple[Grid, str] | None:
    """The grid of a table and how it was found: of several, the one that agrees best with the words' places.

    Rules are believed where nothing speaks against them, then the text's places where nothing does; else the model is
    asked as well.
    """
    given = picture.words, picture.rules, picture.text_height, picture.gray
    found: list[tuple[float, Grid, str]] = []
    ways = ("rules", lattice_grid, TABLES.trust_rules), ("text", stream_grid, TABLES.trust_text)
    for method, find, trust in ways:
        grid = find(*given)
        if grid is None:
            continue
        if model is None:
            return grid, method
        agreed = agreement(grid.cells, picture.rules, picture.text_height)
        sure = agreed >= TABLES.sure_agreement
        grouped = method == "text" and any(cell.row_span > 1 for cell in grid.cells)
        if sure and not (prefer_model or found or grouped):
            return grid, method
        trust = TABLES.trust_groups if sure and grouped else trust
        found.append((agreed + trust, grid, method))
    if model is not None:
        predicted = list(_predicted(picture, model()))
        found = predicted if prefer_model and predicted else found + predicted
    best = max(found, key=lambda candidate: candidate[0], default=None)
    return best and best[1:]


def _predicted(picture: _Picture, model: StructureModel) -> Iterator[tuple[float, Grid, str]]:
    """The grids that the model predicts, up to the first that agrees surely."""
    given = picture.words, picture.rules, picture.text_height
    for margin in TABLES.margins:
        side = round(margin * picture.text_height)
        structure = model.predict(_with_margin(picture.pixels, side))
        fitted = fit(structure, *given, side) if structure is not None else None
        if fitted is None or fitted.agreement < TABLES.least_agreement:
            continue
        grid = Grid(fitted.cells, fitted.header_rows or header_rows_of(fitted.cells))
        yield fitted.agreement + TABLES.trust_model, grid, model.name
        if fitted.agreement >= TABLES.sure_agreement:
            break


def _with_margin(pixels: Pixels, side: int) -> Pixels:
    """An image with so many pixels of its edge's shade around it; with fewer than it has, where that is negative."""
    if side < 0:
        height, width = pixels.shape[:2]
        return np.ascontiguousarray(pixels[-side : max(height + side, 1 - side), -side : max(width + side, 1 - side)])
    return np.asarray(cv2.copyMakeBorder(pixels, side, side, side, side, cv2.BORDER_REPLICATE), np.uint8)
