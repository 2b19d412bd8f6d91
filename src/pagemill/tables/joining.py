"""Tables that a page break cut apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pagemill.document.joining import goes_on, join_pair
from pagemill.document.spans import carried, cut, shifted, tidy
from pagemill.tables.table import Cell, Table


def join_tables(first: Table, rest: Table) -> Table:
    """One table of the two parts of one: without the rows at the rest's top that repeat the head, a broken row whole.

    Tables of different widths are put below each other; the caption is the first one's.
    """
    ours, theirs = _rows(first), _rows(rest)
    repeated = 0
    while repeated < min(max(first.header_rows, 1), rest.rows) and _texts(theirs[repeated]) == _texts(ours[repeated]):
        repeated += 1
    if repeated == rest.rows or any(cell.row < repeated < cell.row + cell.row_span for cell in rest.cells):
        repeated = 0
    cells = list(first.cells)
    broken = repeated < rest.rows and _is_rest(ours[-1], theirs[repeated])
    if broken:
        cells = [cell for cell in cells if cell.row < first.rows - 1] + [
            _joined(cell, more) for cell, more in zip(ours[-1], theirs[repeated], strict=True)
        ]
    down, heads = first.rows - repeated - broken, rest.header_rows
    # A head that is not repeated is a head of that part alone: Markdown has one at the top only.
    cells += [
        replace(cell, row=cell.row + down, header=cell.header and cell.row >= heads)
        for cell in rest.cells
        if cell.row >= repeated + broken
    ]
    rows = rest.rows + down
    columns = max(first.columns, rest.columns)
    missing = range(min(first.columns, rest.columns), columns)
    narrow = range(first.rows) if first.columns < columns else range(first.rows, rows)
    cells += [Cell(row=row, column=column) for row in narrow for column in missing]
    cells.sort(key=lambda cell: (cell.row, cell.column))
    return replace(first, cells=tuple(cells), rows=rows, columns=columns)


def _rows(table: Table) -> list[list[Cell]]:
    rows: list[list[Cell]] = [[] for _ in range(table.rows)]
    for cell in table.cells:
        rows[cell.row].append(cell)
    return rows


def _texts(row: Sequence[Cell]) -> list[tuple[str, int, int]]:
    return [(" ".join(cell.text.split()), cell.column, cell.column_span) for cell in row]


def _is_rest(last: Sequence[Cell], first: Sequence[Cell]) -> bool:
    """Whether a row is the rest of the last one: it has no first cell, and goes on where that one is not finished."""
    if [cell.column for cell in last] != [cell.column for cell in first] or len(first) < 2:
        return False
    if any(cell.row_span > 1 or cell.column_span > 1 for cell in (*last, *first)):
        return False
    pairs = [(cell.text.rstrip(), more.text) for cell, more in zip(last, first, strict=True) if more.text]
    is_open = any(text and goes_on(text, more) for text, more in pairs)
    return is_open and not first[0].text and bool(last[0].text) and all(text for text, _ in pairs)


def _joined(cell: Cell, more: Cell) -> Cell:
    rest = more.text.lstrip()
    if not cell.text or not rest:
        return cell
    text = join_pair(cell.text.rstrip(), rest)
    start = len(text) - len(rest)
    spans = (*cut(cell.spans, 0, start), *shifted(carried(more.spans, more.text, rest), start))
    return replace(cell, text=text, spans=tidy(text, spans))
