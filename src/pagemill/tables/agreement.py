"""How well a grid agrees with where the words of a table stand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from pagemill.tables.columns import chunks_of_row
from pagemill.tables.grid import GridCell
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, are_number, extent, is_spaceless, text_rows

if TYPE_CHECKING:
    from pagemill.tables.rules import Rule, Rules


def agreement(cells: Sequence[GridCell], rules: Rules, text_height: float) -> float:
    """Share of a table's words for which its grid is plausible, less a little for empty cells; 1 at best.

    A word speaks against the grid where

    - its cell holds two pieces of one line with a gap between them as there is between columns, or a rule runs between
      it and the word before it or the line above;
    - words without a gap or rule between them stand in different cells;
    - the distance of its line to the one above it contradicts the rest of the table: one distance must part the lines
      that a cell wraps into (closer) from rows (farther). That distance is chosen so that fewest words contradict it;
    - it begins a further line of its cell although it would have fitted on the line above, or a figure stands below
      another one: these are rows of their own;
    - it begins a row with empty cells, close below a text after which it would not have fitted: a line that wraps.

    Rows and columns that hold no word at all reduce the share in proportion. Of two grids that suit the words alike,
    the one with fewer empty cells is likelier: it has not taken wrapped lines for rows.
    """
    filled = [cell for cell in cells if cell.words]
    words = sum(len(cell.words) for cell in filled)
    if not words:
        return 0.0
    widths = _widths(filled)
    contradictions = chain(
        _torn(filled, _inner(rules.vertical), text_height),
        _parted(filled, rules, text_height),
        _spaced_wrongly(filled, text_height),
        _not_wrapped(filled, widths, text_height),
        _rather_wrapped(filled, widths, text_height),
    )
    against = {id(word) for word in contradictions}
    rows = {row for cell in filled for row in range(cell.row, cell.row + cell.row_span)}
    columns = {column for cell in filled for column in range(cell.column, cell.column + cell.column_span)}
    height = max(cell.row + cell.row_span for cell in cells)
    width = max(cell.column + cell.column_span for cell in cells)
    resolution = len(rows) / height * len(columns) / width
    empty = 1.0 - sum(cell.row_span * cell.column_span for cell in filled) / (height * width)
    return resolution * (1.0 - len(against) / words) - TABLES.empty_cost * empty


def _parted(cells: Sequence[GridCell], rules: Rules, text_height: float) -> Iterator[TableWord]:
    """Words after a gap or a rule inside a cell."""
    for cell in cells:
        lines = text_rows(cell.words, text_height)
        for line in lines:
            for chunk in chunks_of_row(line, TABLES.wide_gap * text_height, rules.vertical)[1:]:
                yield from chunk
        for above, line in pairwise(lines):
            start, end = extent([*above, *line])
            if any(
                _y(above) < rule.position < _y(line) and rule.start <= start and end <= rule.end
                for rule in rules.horizontal
            ):
                yield from line


def _inner(rules: Sequence[Rule]) -> Sequence[Rule]:
    """Vertical rules, sorted, without those of a frame: text that overflows a table is no column of its own."""
    return rules[1:-1] if len(rules) > 2 else rules


def _torn(cells: Sequence[GridCell], walls: Sequence[Rule], text_height: float) -> Iterator[TableWord]:
    """Words of runs without a gap that lie in several cells."""
    owner = {id(word): index for index, cell in enumerate(cells) for word in cell.words}
    for line in text_rows([word for cell in cells for word in cell.words], text_height):
        for run in chunks_of_row(line, TABLES.word_space * text_height, walls):
            if len({owner[id(word)] for word in run}) > 1:
                yield from run


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


def _widths(cells: Sequence[GridCell]) -> dict[tuple[int, int], float]:
    """How wide the text of a column is, of columns together where cells span them: by first column and span."""
    extents: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for cell in cells:
        extents[cell.column, cell.column_span].append(extent(cell.words))
    return {place: max(end for _, end in found) - min(start for start, _ in found) for place, found in extents.items()}


def _fits(above: Sequence[TableWord], line: Sequence[TableWord], width: float, text_height: float) -> bool:
    """Whether the first word of a line would have had room on the line above."""
    first = min(line, key=lambda word: word.x1)
    start, end = extent(above)
    needed = text_height if is_spaceless(first.text[:1]) else first.x2 - first.x1
    return end - start + needed + TABLES.word_space * text_height <= width


def _not_wrapped(
    cells: Sequence[GridCell], widths: dict[tuple[int, int], float], text_height: float
) -> Iterator[TableWord]:
    """Words of lines in a cell that are not there because the line above them is full."""
    for cell in cells:
        width = widths[cell.column, cell.column_span]
        for above, line in pairwise(text_rows(cell.words, text_height)):
            first = min(line, key=lambda word: word.x1)
            figures = are_number(above) and are_number(line) and not first.text.startswith(("(", "["))
            if figures or _fits(above, line, width, text_height):
                yield from line


def _rather_wrapped(
    cells: Sequence[GridCell], widths: dict[tuple[int, int], float], text_height: float
) -> Iterator[TableWord]:
    """Words of cells that look like the next line of the cell above: in a row with empty cells, below a full line."""
    columns = max(cell.column + cell.column_span for cell in cells)
    filled: Counter[int] = Counter()
    for cell in cells:
        for row in range(cell.row, cell.row + cell.row_span):
            filled[row] += cell.column_span
    above: dict[tuple[int, int], GridCell] = {}
    for cell in sorted(cells, key=lambda cell: cell.row):
        place = cell.column, cell.column_span
        upper, above[place] = above.get(place), cell
        if upper is None or filled[cell.row] == columns or are_number(cell.words):
            continue
        last, line = text_rows(upper.words, text_height)[-1], text_rows(cell.words, text_height)[0]
        close = _y(line) - _y(last) < TABLES.row_distance * text_height
        if close and not _fits(last, line, widths[place], text_height):
            yield from cell.words


def _y(line: Sequence[TableWord]) -> float:
    return float(np.mean([word.y for word in line]))
