"""How well a grid agrees with where the words of a table stand."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pagemill.tables.columns import chunks_of_row
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import are_number, extent, is_spaceless, text_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pagemill.tables.grid import GridCell
    from pagemill.tables.words import TableWord


def agreement(cells: Sequence[GridCell], text_height: float) -> float:
    """Share of a table's words for which its grid is plausible, less a little for empty cells; 1 at best.

    A word speaks against the grid where

    - its cell holds two pieces of one line with a gap between them as there is between columns;
    - words without a gap stand in different cells;
    - the distance of its line to the one above it contradicts the rest of the table: one distance must part the lines
      that a cell wraps into (closer) from rows (farther). That distance is chosen so that fewest words contradict it;
    - it begins a further line of its cell although it would have fitted on the line above, or a figure stands below
      another one: these are rows of their own.

    Rows and columns that hold no word at all reduce the share in proportion. Of two grids that suit the words alike,
    the one with fewer empty cells is likelier: it has not taken wrapped lines for rows.
    """
    filled = [cell for cell in cells if cell.words]
    words = sum(len(cell.words) for cell in filled)
    if not words:
        return 0.0
    against = {id(word) for word in _torn(filled, text_height)} | {id(word) for word in _parted(filled, text_height)}
    against |= {id(word) for word in _spaced_wrongly(filled, text_height)}
    against |= {id(word) for word in _not_wrapped(filled, text_height)}
    rows = {row for cell in filled for row in range(cell.row, cell.row + cell.row_span)}
    columns = {column for cell in filled for column in range(cell.column, cell.column + cell.column_span)}
    height = max(cell.row + cell.row_span for cell in cells)
    width = max(cell.column + cell.column_span for cell in cells)
    told = len(rows) / height * len(columns) / width
    empty = 1.0 - sum(cell.row_span * cell.column_span for cell in filled) / (height * width)
    return told * (1.0 - len(against) / words) - TABLES.empty_cost * empty


def _parted(cells: Sequence[GridCell], text_height: float) -> Iterator[TableWord]:
    """Words after a gap inside a cell."""
    for cell in cells:
        for line in text_rows(cell.words, text_height):
            for chunk in chunks_of_row(line, TABLES.wide_gap * text_height)[1:]:
                yield from chunk


def _torn(cells: Sequence[GridCell], text_height: float) -> Iterator[TableWord]:
    """Words right behind a word of another cell."""
    owner = {id(word): index for index, cell in enumerate(cells) for word in cell.words}
    for line in text_rows([word for cell in cells for word in cell.words], text_height):
        for run in chunks_of_row(line, TABLES.word_space * text_height):
            for before, word in pairwise(run):
                if owner[id(before)] != owner[id(word)]:
                    yield word


def _spaced_wrongly(cells: Sequence[GridCell], text_height: float) -> Iterator[TableWord]:
    """Words of lines whose distance to the line above is that of the other kind: of wrapped lines, or of rows."""
    pairs: list[tuple[float, bool, list[TableWord]]] = []
    columns: defaultdict[int, list[tuple[GridCell, list[list[TableWord]]]]] = defaultdict(list)
    for cell in cells:
        lines = text_rows(cell.words, text_height)
        pairs += [(_y(line) - _y(above), True, line) for above, line in pairwise(lines)]
        if cell.row_span == 1:
            for column in range(cell.column, cell.column + cell.column_span):
                columns[column].append((cell, lines))
    for members in columns.values():
        members.sort(key=lambda member: member[0].row)
        for (upper, over), (lower, under) in pairwise(members):
            if lower.row == upper.row + 1 and (upper.column, upper.column_span) == (lower.column, lower.column_span):
                pairs.append((_y(under[0]) - _y(over[-1]), False, under[0]))
    if not any(inside for _, inside, _ in pairs):
        return
    pairs.sort(key=lambda pair: pair[0])
    weights = np.array([len(line) if inside else -len(line) for _, inside, line in pairs])
    # Up to each place: rows that are closer, and wrapped lines that are farther.
    wrong = np.concatenate([[0], np.cumsum(np.clip(-weights, 0, None))]) + np.concatenate(
        [np.cumsum(np.clip(weights, 0, None)[::-1])[::-1], [0]]
    )
    cut = int(np.argmin(wrong))
    for index, (_, inside, line) in enumerate(pairs):
        if inside != (index < cut):
            yield from line


def _not_wrapped(cells: Sequence[GridCell], text_height: float) -> Iterator[TableWord]:
    """Words of lines in a cell that are not there because the line above them is full."""
    widths: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for cell in cells:
        widths[cell.column, cell.column_span].append(extent(cell.words))
    for cell in cells:
        lines = text_rows(cell.words, text_height)
        places = widths[cell.column, cell.column_span]
        width = max(end for _, end in places) - min(start for start, _ in places)
        for above, line in pairwise(lines):
            first = min(line, key=lambda word: word.x1)
            start, end = extent(above)
            needed = text_height if is_spaceless(first.text[:1]) else first.x2 - first.x1
            fits = end - start + needed + TABLES.word_space * text_height <= width
            if fits or (are_number(above) and are_number(line) and not first.text.startswith(("(", "["))):
                yield from line


def _y(line: Sequence[TableWord]) -> float:
    return float(np.mean([word.y for word in line]))
