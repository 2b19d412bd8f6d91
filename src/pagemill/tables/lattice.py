"""Grids drawn with rules: every cell bounded, merged cells where a piece of a rule is missing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import split_when
from pagemill.tables.columns import chunks_of_row
from pagemill.tables.grid import Grid, GridCell, shade_edges, shaded_header_rows
from pagemill.tables.rules import Rule, Rules
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, are_number, text_rows


def lattice_grid(words: Sequence[TableWord], rules: Rules, text_height: float, gray: NDArray[np.uint8]) -> Grid | None:
    """Build the grid that the rules draw; None if they draw none, or a coarser one than the text has."""
    if not (rules.vertical and rules.horizontal and words):
        return None
    horizontal = _with_shade_edges(rules, text_height, gray)
    xs = _positions(rules.vertical, text_height)
    ys = _positions(horizontal, text_height)
    # Many tables are open at the sides: there the reach of the rules across closes them.
    near = TABLES.same_line * text_height
    xs, ys = _close(xs, horizontal, text_height), _close(ys, rules.vertical, text_height)
    if len(xs) < 3 or len(ys) < 3 or len(xs) * len(ys) > TABLES.max_slots:
        return None
    # A frame around a part of the text is no grid of it, such as the frame of one remark in a table.
    framed = [word for word in words if xs[0] - near < word.x < xs[-1] + near and ys[0] - near < word.y < ys[-1] + near]
    if len(framed) < TABLES.framed_words * len(words):
        return None
    cells, owner = _merge(_borders(rules.vertical, xs, ys, text_height), _borders(horizontal, ys, xs, text_height))
    for word in _with_rest_of_lines(framed, words, ys):
        row = int(np.clip(np.searchsorted(ys, word.y) - 1, 0, len(ys) - 2))
        column = int(np.clip(np.searchsorted(xs, word.x) - 1, 0, len(xs) - 2))
        cells[owner[row, column]].words.append(word)
    cells = _split_stacked(cells, text_height)
    if len({cell.column for cell in cells}) < 2 or _too_coarse(cells, text_height):
        return None
    # Shade marks a head explicitly; the texts decide only where there is none.
    shaded = shaded_header_rows(gray, (xs[0], xs[-1]), list(pairwise(ys)))
    return Grid(cells, shaded or header_rows_of(cells))


def _with_rest_of_lines(
    framed: Sequence[TableWord], words: Sequence[TableWord], ys: Sequence[float]
) -> list[TableWord]:
    """All words of the lines that stand in the grid: some cells overflow.

    A line on the grid's upper or lower edge that reaches beyond its sides is none of its rows.
    """
    lines = {word.line for word in framed}
    beside = {word.line for word in set(words).difference(framed) if not ys[0] < word.y < ys[-1]}
    return [word for word in words if word.line in lines - beside]


def _with_shade_edges(rules: Rules, text_height: float, gray: NDArray[np.uint8]) -> list[Rule]:
    """The horizontal rules, and the edges of shaded rows where none is drawn."""
    left, right = min(rule.start for rule in rules.horizontal), max(rule.end for rule in rules.horizontal)
    edges = [
        Rule(y, left, right)
        for y in shade_edges(gray, (left, right), TABLES.shaded_row * text_height)
        if all(abs(rule.position - y) >= TABLES.same_line * text_height for rule in rules.horizontal)
    ]
    return sorted([*rules.horizontal, *edges], key=lambda rule: (rule.position, rule.start))


def _positions(rules: Sequence[Rule], text_height: float) -> list[float]:
    """Distinct positions of rules, those closer than most of a line of text taken as one."""
    groups = split_when(rules, lambda one, other: other.position - one.position >= TABLES.same_line * text_height)
    # By length: a long rule is a line of the grid, a short one may be an underline that is off by some pixels.
    return [float(np.average([r.position for r in g], weights=[r.length for r in g])) for g in groups]


def _close(lines: list[float], across: Sequence[Rule], near: float) -> list[float]:
    """Add an outer line on each side where the rules across mostly reach beyond the last one by more than ``near``."""
    before = [rule.start for rule in across if rule.start < lines[0] - near]
    after = [rule.end for rule in across if rule.end > lines[-1] + near]
    most = max(2, len(across) // 2)
    first = [float(np.median(before))] if len(before) >= most else []
    last = [float(np.median(after))] if len(after) >= most else []
    return first + lines + last


def _borders(rules: Sequence[Rule], lines: list[float], across: list[float], text_height: float) -> NDArray[np.bool_]:
    """Which pieces of the inner lines are drawn: shape (inner lines, spaces between the lines across)."""
    drawn = np.zeros((len(lines) - 2, len(across) - 1), dtype=np.bool_)
    for line in range(1, len(lines) - 1):
        on_line = [rule for rule in rules if abs(rule.position - lines[line]) < TABLES.same_line * text_height]
        for space, (start, end) in enumerate(pairwise(across)):
            covered = sum(max(0.0, min(rule.end, end) - max(rule.start, start)) for rule in on_line)
            drawn[line - 1, space] = covered >= TABLES.border_covered * (end - start)
    return drawn


def _merge(vertical: NDArray[np.bool_], horizontal: NDArray[np.bool_]) -> tuple[list[GridCell], NDArray[np.int_]]:
    """Grow cells over missing pieces of rules; a cell is always a rectangle.

    From the top-left: as far right as no border stands, then down while no border stands below any of its columns.

    Args:
        vertical: Whether the border right of column c stands in row r, shape (columns - 1, rows).
        horizontal: Whether the border below row r stands in column c, shape (rows - 1, columns).

    Returns:
        The cells, and the index of the cell that each slot belongs to, shape (rows, columns).
    """
    rows, columns = vertical.shape[1], horizontal.shape[1]
    owner = np.full((rows, columns), -1)
    cells: list[GridCell] = []
    for row, column in np.ndindex(rows, columns):
        if owner[row, column] >= 0:
            continue
        right, below = column + 1, row + 1
        while right < columns and not vertical[right - 1, row] and owner[row, right] < 0:
            right += 1
        while (
            below < rows
            and not horizontal[below - 1, column:right].any()
            and not vertical[column : right - 1, below].any()
            and owner[below, column:right].max() < 0
        ):
            below += 1
        owner[row:below, column:right] = len(cells)
        cells.append(GridCell(row, column, below - row, right - column))
    return cells, owner


def _split_stacked(cells: Sequence[GridCell], text_height: float) -> list[GridCell]:
    """Split rows in which most cells stack the same number of figures: there the rules bound groups of rows.

    Cells with fewer lines then span the rows of their group.
    """
    parts: dict[int, int] = {}
    for row in {cell.row for cell in cells}:
        stacks = [text_rows(cell.words, text_height) for cell in cells if cell.row == row and cell.words]
        counts = [len(stack) for stack in stacks]
        most = max(counts, default=1)
        figures = sum(len(s) == most and all(map(are_number, s)) for s in stacks)
        if most > 1 and figures >= 3 and 2 * counts.count(most) > len(counts):
            parts[row] = most
    ends = np.cumsum([0, *(parts.get(row, 1) for row in range(max(c.row + c.row_span for c in cells)))])
    result = []
    for cell in cells:
        first, last = int(ends[cell.row]), int(ends[cell.row + cell.row_span])
        lines = text_rows(cell.words, text_height)
        if cell.row_span > 1 or len(lines) != parts.get(cell.row):
            result.append(GridCell(first, cell.column, last - first, cell.column_span, cell.words))
        else:
            result += [
                GridCell(first + index, cell.column, 1, cell.column_span, line) for index, line in enumerate(lines)
            ]
    return result


def _too_coarse(cells: Sequence[GridCell], text_height: float) -> bool:
    """Whether many cells hold text in several columns, or rules leave whole columns of rows in single cells."""
    filled = [cell for cell in cells if cell.words]
    # Only one row of the grid is below the head: no rules separate its rows, so two stacked figures are two rows. Where
    # rules do, two figures may belong together, such as two times of a day; three are rows.
    least = 2 if max((cell.row + cell.row_span for cell in cells), default=0) < 3 else 3
    coarse = 0
    for cell in filled:
        rows = text_rows(cell.words, text_height)
        chunks = [len(chunks_of_row(row, TABLES.cell_columns_gap * text_height)) for row in rows]
        figures = sum(are_number(row) and row[0].text[:1] not in "([" for row in rows)
        stacked = len(rows) >= least and figures >= max(2, len(rows) - 1)
        coarse += sum(count > 1 for count in chunks) >= 2 or max(chunks) > 2 or stacked
    return coarse > TABLES.coarse_cells * len(filled)


def header_rows_of(cells: Sequence[GridCell]) -> int:
    """The first row with text in several columns is the header, unless figures are in it; titles above belong to it."""
    rows = sorted({cell.row for cell in cells})
    for row in rows[: max(1, len(rows) // 2)]:
        filled = [cell for cell in cells if cell.row == row and cell.words]
        if sum(are_number(cell.words) for cell in filled) > TABLES.header_figures * len(filled):
            return 0
        if len(filled) > 1:
            end = max(cell.row + cell.row_span for cell in filled)
            return end if end <= (rows[-1] + 1) // 2 else row + 1
    return 0
