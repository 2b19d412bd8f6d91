"""A predicted structure laid over the words of a table, and how well the two agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pagemill.document.geometry import Box
from pagemill.tables.agreement import agreement
from pagemill.tables.columns import chunks_of_row
from pagemill.tables.grid import GridCell
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, extent, text_rows

if TYPE_CHECKING:
    from pagemill.tables.rules import Rules
    from pagemill.tables.structure_model import Structure

_MAX_PLACES = 2000
"""Most places at which a column border is tried."""


class Fitted(msgspec.Struct, frozen=True):
    """A structure with its words."""

    cells: Sequence[GridCell]
    header_rows: int
    agreement: float
    """:func:`pagemill.tables.agreement.agreement`, times the share of words where the model saw their cell."""


class _Run(msgspec.Struct):
    """Words of one line of text without a gap between them: a cell holds it whole."""

    words: list[TableWord]
    x1: float
    x2: float
    y: float
    row: int = 0
    """Slot of the grid."""


def fit(
    structure: Structure, words: Sequence[TableWord], rules: Rules, text_height: float, margin: float = 0
) -> Fitted | None:
    """Put the words into the cells of a predicted structure.

    The model sees the table shrunk, so its boxes are off by several pixels: they show roughly where rows and columns
    end, and the blanks between the words show where exactly. Row borders go between lines of text, in order and as near
    as possible to where they are predicted; column borders to where the fewest words, and hardly any move, are in the
    way.

    Args:
        structure: Its boxes are in pixels of the image that the model was shown.
        words: Words of the table.
        rules: That are drawn in it.
        text_height: Usual height of a line of text in pixels.
        margin: How much was added on each side of the table for that image.

    Returns:
        The cells with their words; None where there are fewer lines than rows.
    """
    structure = _moved(structure, -margin)
    lines = text_rows(words, text_height)
    ys = _row_borders(structure, lines, text_height)
    if ys is None:
        return None
    runs = [
        _Run(chunk, *extent(chunk), float(np.mean([word.y for word in chunk])))
        for line in lines
        for chunk in chunks_of_row(line, TABLES.word_space * text_height, rules.vertical)
    ]
    for run in runs:
        run.row = int(np.searchsorted(ys, run.y))
    owner = np.empty((structure.rows, structure.columns), dtype=np.intp)
    for index, cell in enumerate(structure.cells):
        owner[cell.row : cell.row + cell.row_span, cell.column : cell.column + cell.column_span] = index
    xs = _column_borders(structure, owner, runs, text_height)
    if xs is None:
        return None
    cells = [GridCell(cell.row, cell.column, cell.row_span, cell.column_span) for cell in structure.cells]
    good = 0
    for run in runs:
        column = int(np.searchsorted(xs, (run.x1 + run.x2) / 2))
        index = int(owner[run.row, column])
        cells[index].words += run.words
        good += len(run.words) * _near(run, structure.cells[index].box, text_height)
    return Fitted(cells, structure.header_rows, good / len(words) * agreement(cells, rules, text_height))


def _moved(structure: Structure, by: float) -> Structure:
    """A structure whose boxes are moved right and down."""
    cells = [
        replace(cell, box=cell.box and (cell.box[0] + by, cell.box[1] + by, cell.box[2] + by, cell.box[3] + by))
        for cell in structure.cells
    ]
    return replace(structure, cells=cells)


def _near(run: _Run, box: Box | None, text_height: float) -> bool:
    """Whether a run stands in the box that was predicted for its cell, or close to it."""
    if box is None:
        return False
    return (
        box[0] - text_height < (run.x1 + run.x2) / 2 < box[2] + text_height
        and box[1] - text_height < run.y < box[3] + text_height
    )


def _row_borders(structure: Structure, lines: Sequence[Sequence[TableWord]], text_height: float) -> list[float] | None:
    """Where rows end, as y: blanks between lines of text, in order, as near to the predicted places as possible."""
    slots = [(cell.row, cell.row_span, cell.box) for cell in structure.cells]
    wanted = _predicted_borders(slots, structure.rows, 1)
    # A row without a line of text has no blank between lines that could bound it.
    if wanted is None or len(wanted) >= len(lines):
        return None
    places = [(max(word.y2 for word in one) + min(word.y1 for word in other)) / 2 for one, other in pairwise(lines)]
    cost = np.abs(np.array(wanted)[:, None] - np.array(places)) / text_height
    return [places[i] for i in _in_order(cost)]


def _column_borders(
    structure: Structure, owner: NDArray[np.intp], runs: Sequence[_Run], text_height: float
) -> list[float] | None:
    """Where columns end, as x: where fewest words are cut, and as near to the predicted places as possible."""
    slots = [(cell.column, cell.column_span, cell.box) for cell in structure.cells]
    wanted = _predicted_borders(slots, structure.columns, 0)
    left, right = min(run.x1 for run in runs), max(run.x2 for run in runs)
    # Every second pixel: a border between words has more room than that.
    places = np.linspace(left, right, max(2, min(_MAX_PLACES, int((right - left) / 2))))
    if wanted is None or len(wanted) > len(places):
        return None
    starts, ends = np.array([run.x1 for run in runs]), np.array([run.x2 for run in runs])
    rows = np.array([run.row for run in runs])
    cost = np.empty((len(wanted), len(places)))
    for border, x in enumerate(wanted):
        bound = owner[rows, border] != owner[rows, border + 1]  # in rows without a cell across this border
        cut = (starts[bound, None] < places) & (ends[bound, None] > places)
        cost[border] = cut.sum(axis=0) + TABLES.border_moved * np.abs(places - x) / text_height
    return [float(places[i]) for i in _in_order(cost)]


def _predicted_borders(slots: Sequence[tuple[int, int, Box | None]], count: int, axis: int) -> list[float] | None:
    """Where neighbours along an axis part: midway between where most of one end and most of the next start.

    Cells with a span are only used if there are no others.

    Args:
        slots: First slot, span and box of each cell.
        count: Number of slots.
        axis: 0 for columns, 1 for rows.
    """
    ends: list[list[float]] = [[] for _ in range(2 * count)]
    starts: list[list[float]] = [[] for _ in range(2 * count)]
    for first, span, box in slots:
        if box is not None:
            spanning = count * (span > 1)
            starts[spanning + first].append(box[axis])
            # Those with a span are kept apart: they say nothing about the borders that they cover.
            ends[spanning + first + span - 1].append(box[axis + 2])
    borders = []
    for slot in range(count - 1):
        one, other = ends[slot] or ends[count + slot], starts[slot + 1] or starts[count + slot + 1]
        if not one or not other:
            return None
        borders.append(float(np.median(one) + np.median(other)) / 2)
    return borders


def _in_order(cost: NDArray[np.float64]) -> list[int]:
    """For every row of costs a column, strictly rising, so that the sum is least: shape (n, m), n <= m."""
    if not len(cost):
        return []
    # Dynamic programming: trying all ascending choices would be exponential in the number of borders.
    total = cost[0]
    came: list[NDArray[np.intp]] = []
    for row in cost[1:]:
        best = np.minimum.accumulate(total)
        came.append(np.maximum.accumulate(np.where(total == best, np.arange(len(total)), 0)))
        total = row + np.concatenate([[np.inf], best[:-1]])
    chosen = [int(np.argmin(total))]
    for before in reversed(came):
        chosen.append(int(before[chosen[-1] - 1]))
    return chosen[::-1]
