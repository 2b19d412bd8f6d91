"""Tables of a born-digital page: grids of drawn lines, and rows of text that is aligned below each other."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

import numpy as np

from pagemill.document.geometry import Box, components, union_box
from pagemill.parsing.lists import marker
from pagemill.parsing.typography.rows import Leading, PageRow, Piece, leading_at, same_size
from pagemill.parsing.typography.thresholds import TYPOGRAPHY
from pagemill.tables.columns import find_separators
from pagemill.tables.grid import Grid, GridCell
from pagemill.tables.lattice import lattice_grid
from pagemill.tables.recognize import cell_of
from pagemill.tables.rules import Rule, Rules
from pagemill.tables.table import Cell, Table, build_table
from pagemill.tables.words import TableWord, is_number, spans_of_word

LEADERS = re.compile(r"(?:[.·…]\s?){4,}\s*(?:\d{1,4}|[ivxlc]{1,6})?\s*$")
"""Dots up to a page number at the end of a row of a table of contents."""
_NO_PIXELS = np.full((1, 1), 255, dtype=np.uint8)
_TOUCH = 3.0
"""Pixels between two strokes that meet: borders of neighbouring cells overlap or leave a hair."""
_MOST_STROKES = 4000
_ROWS_COMPARED = 6
"""Rows above with which the places of a row's cells are compared."""


@dataclass(slots=True)
class FoundTable:
    """A table with the pieces of text that it takes up."""

    box: Box
    table: Table
    pieces: list[Piece] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rules of a page that may bound cells, along the reading direction."""

    horizontal: tuple[Rule, ...]
    vertical: tuple[Rule, ...]
    shades: tuple[Rule, ...]
    """Upper and lower edges of shaded areas."""


def drawn_rules(strokes: Iterable[Box], shaded: Iterable[Box], width: float, *, mirrored: bool) -> Drawn:
    """Strokes as rules, pieces of one line joined, and the level edges of shaded areas."""
    level: list[tuple[float, float, float]] = []
    upright: list[tuple[float, float, float]] = []
    for x1, y1, x2, y2 in list(strokes)[:_MOST_STROKES]:
        if mirrored:
            x1, x2 = width - x2, width - x1
        if x2 - x1 >= y2 - y1:
            level.append(((y1 + y2) / 2, x1, x2))
        else:
            upright.append(((x1 + x2) / 2, y1, y2))
    edges = []
    for x1, y1, x2, y2 in list(shaded)[:_MOST_STROKES]:
        start, end = (width - x2, width - x1) if mirrored else (x1, x2)
        edges += [(y1, start, end), (y2, start, end)]
    return Drawn(tuple(_joined(level)), tuple(_joined(upright)), tuple(_joined(edges)))


def _joined(lines: Sequence[tuple[float, float, float]]) -> list[Rule]:
    """Rules of strokes that overlap or touch on one line."""
    joined: list[Rule] = []
    groups: list[list[tuple[float, float, float]]] = []
    for line in sorted(lines):
        if groups and line[0] - groups[-1][-1][0] <= _TOUCH:
            groups[-1].append(line)
        else:
            groups.append([line])
    for group in groups:
        position = median(line[0] for line in group)
        for start, end in sorted((start, end) for _, start, end in group):
            if joined and joined[-1].position == position and start <= joined[-1].end + _TOUCH:
                joined[-1] = Rule(position, joined[-1].start, max(joined[-1].end, end))
            else:
                joined.append(Rule(position, start, end))
    return joined


def ruled_tables(pieces: Sequence[Piece], drawn: Drawn, size: float) -> list[FoundTable]:
    """Tables whose cells are bounded by lines on all sides, with the text in them.

    Args:
        pieces: All level text of the page.
        drawn: Its rules.
        size: Font size of running text in pixels.
    """
    horizontal = [rule for rule in drawn.horizontal if rule.length >= size]
    vertical = [rule for rule in drawn.vertical if rule.length >= 0.8 * size]
    links = [
        (i, len(horizontal) + j)
        for i, flat in enumerate(horizontal)
        for j, wall in enumerate(vertical)
        if flat.start - _TOUCH <= wall.position <= flat.end + _TOUCH
        and wall.start - _TOUCH <= flat.position <= wall.end + _TOUCH
    ]
    found: list[FoundTable] = []
    for members in components(len(horizontal) + len(vertical), links):
        flats = tuple(horizontal[i] for i in members if i < len(horizontal))
        walls = tuple(vertical[i - len(horizontal)] for i in members if i >= len(horizontal))
        if len(flats) < 2 or len(walls) < 2:
            continue
        box = (
            min(min(rule.start for rule in flats), walls[0].position),
            min(min(rule.start for rule in walls), flats[0].position),
            max(max(rule.end for rule in flats), walls[-1].position),
            max(max(rule.end for rule in walls), flats[-1].position),
        )
        inside = [piece for piece in pieces if _is_inside(piece, box)]
        table = _lattice(inside, Rules(flats, walls))
        if table is not None:
            found.append(FoundTable(_on_page(inside, box), table, inside))
    return found


def _is_inside(piece: Piece, box: Box) -> bool:
    """Whether a piece stands in a table; it may overflow its cell at the end."""
    middle = piece.baseline - 0.3 * piece.size
    begins = box[0] - _TOUCH < piece.x1 < box[2] - piece.size
    return (begins or box[0] < (piece.x1 + piece.x2) / 2 < box[2]) and box[1] < middle < box[3]


def _on_page(pieces: Sequence[Piece], box: Box) -> Box:
    """The box of a table in page pixels, where x may be mirrored: that of its text, as high as it is drawn."""
    left, top, right, bottom = union_box(piece.line.box for piece in pieces)
    x1 = min(piece.x1 for piece in pieces) - box[0]
    x2 = box[2] - max(piece.x2 for piece in pieces)
    mirrored = abs(left - min(piece.x1 for piece in pieces)) > 1
    before, after = (x2, x1) if mirrored else (x1, x2)
    return left - max(0.0, before), min(top, box[1]), right + max(0.0, after), max(bottom, box[3])


def _words(pieces: Sequence[Piece]) -> list[TableWord]:
    words = []
    for index, piece in enumerate(pieces):
        y1, y2 = piece.line.box[1], piece.line.box[3]
        at = piece.offset
        for place, (text, x1, x2) in enumerate(piece.words):
            glued = place > 0 and piece.words[place - 1][0] + text in piece.line.text
            spans, at = spans_of_word(piece.line, text, at)
            words.append(TableWord(text, x1, x2, y1, y2, index, glued, place, spans))
    return words


def _lattice(pieces: Sequence[Piece], rules: Rules) -> Table | None:
    words = _words(pieces)
    if not words:
        return None
    height = max(4.0, median(word.y2 - word.y1 for word in words))
    grid = lattice_grid(words, rules, height, _NO_PIXELS) or _single_row(words, rules)
    if grid is None or len({word.line for cell in grid.cells for word in cell.words}) < len(pieces):
        return None
    header = max(1, grid.header_rows)
    cells = [cell_of(cell, header, height) for cell in grid.cells]
    table = build_table(cells, {word.line for cell in grid.cells for word in cell.words})
    return replace(table, method="rules") if table.columns > 1 else None


def _single_row(words: Sequence[TableWord], rules: Rules) -> Grid | None:
    """One row between two rules, such as what is left of a table on its last page."""
    top, bottom = rules.horizontal[0].position, rules.horizontal[-1].position
    walls = [r.position for r in rules.vertical if r.length > 0.9 * (bottom - top)]
    near = min(word.y2 - word.y1 for word in words)
    if len(walls) < 3 or any(top + near < rule.position < bottom - near for rule in rules.horizontal):
        return None
    cells = [GridCell(0, column) for column in range(len(walls) - 1)]
    for word in words:
        cells[min(max(bisect(walls, word.x) - 1, 0), len(cells) - 1)].words.append(word)
    return Grid(cells, 0) if sum(bool(cell.words) for cell in cells) > 1 else None


def aligned_tables(rows: Sequence[PageRow], drawn: Drawn, leading: Leading) -> list[tuple[int, int, FoundTable]]:
    """Runs of rows whose pieces are aligned below each other: first row, row behind the last one, table."""
    found: list[tuple[int, int, FoundTable]] = []
    start = behind = 0
    while start < len(rows):
        end = _run_from(rows, start, drawn, leading)
        head = _with_heads(rows, start, behind) if end - start > 1 else start
        table = _aligned_table(rows[head:end], drawn, leading) if end - head >= TYPOGRAPHY.table_rows else None
        if table is None and head < start:
            head, table = start, _aligned_table(rows[start:end], drawn, leading)
        if table is None:
            start += 1
        else:
            found.append((head, end, table))
            start = behind = end
    return found


def _with_heads(rows: Sequence[PageRow], start: int, behind: int) -> int:
    """The first row of a table whose head spans columns, and so has other places than the rows below."""
    while start > behind:
        below = rows[start]
        # A title of rows, one cell across the table, may stand below the head.
        step = 2 if len(_extents(rows[start - 1])) < 2 and start - 2 >= behind else 1
        head = rows[start - step]
        extents = _extents(head)
        over = [any(x1 < end and begin < x2 for begin, end in extents) for x1, x2 in _extents(below)[1:]]
        far = below.baseline - head.baseline > 2.5 * step * below.size
        if len(extents) < 2 or far or head.fixed or not any(over):
            break
        start -= step
    return start


def cells_of(row: PageRow) -> list[list[Piece]]:
    """The pieces of a row that stand so far apart that they may be cells."""
    cells: list[list[Piece]] = []
    for piece in row.pieces:
        if cells and piece.x1 - cells[-1][-1].x2 < TYPOGRAPHY.cell_gap * min(piece.size, cells[-1][-1].size):
            cells[-1].append(piece)
        else:
            cells.append([piece])
    if len(cells) > 1 and marker(f"{cells[0][0].text} x") and len(cells[0][0].text) <= 4:
        cells[1] = cells[0] + cells[1]  # a list item's number is no cell
        del cells[0]
    return cells


def _extents(row: PageRow) -> list[tuple[float, float]]:
    return [(cell[0].x1, max(piece.x2 for piece in cell)) for cell in cells_of(row)]


def _run_from(rows: Sequence[PageRow], start: int, drawn: Drawn, leading: Leading) -> int:
    """Behind the last row of a table that may begin at a row; the same row where none does."""
    first = _extents(rows[start])
    if len(first) < 2 or rows[start].fixed or LEADERS.search(rows[start].text):
        return start
    known = [first]
    end, place = start + 1, start + 1
    while place < len(rows):
        row = rows[place]
        extents = _extents(row)
        other = not same_size(row.size, rows[place - 1].size) and row.pitch > 2.0 * row.size
        if LEADERS.search(row.text):
            break
        if other or (row.pitch > 4.5 * row.size and not _rule_between(rows[place - 1], row, drawn)):
            break
        if len(extents) > 1 and _fits(extents, known, row.size):
            known = [*known[-_ROWS_COMPARED:], extents]
            end = place + 1
        elif len(extents) == 1 and _wraps(row, extents[0], known, leading):
            # What wraps within a cell stays with the table; before the next full row nobody knows.
            if extents[0][0] > max(row[0][1] for row in known):
                end = place + 1
        elif not (len(extents) == 1 and place + 1 < len(rows) and _stands_above(row, rows[place + 1], known)):
            break
        place += 1
    return end


def _fits(extents: Sequence[tuple[float, float]], known: Sequence[list[tuple[float, float]]], size: float) -> bool:
    """Whether at least half of the cells of a row, one behind the first among them, have their place in rows above."""
    fits = [any(_aligned(cell, row, size) for row in known) for cell in extents]
    return any(fits[1:]) and 2 * sum(fits) >= len(fits)


def _rule_between(above: PageRow, below: PageRow, drawn: Drawn) -> bool:
    """Whether a rule, or the edge of a shade, runs between most of two rows."""
    least = 0.5 * min(above.x2 - above.x1, below.x2 - below.x1)
    return any(
        above.baseline < rule.position < below.baseline - 0.4 * below.size and rule.length > least
        for rule in (*drawn.horizontal, *drawn.shades)
    )


def _aligned(cell: tuple[float, float], above: Sequence[tuple[float, float]], size: float) -> bool:
    """Whether a cell begins, ends or is centred where one of another row does, and is over no other."""
    near = TYPOGRAPHY.aligned * size
    over = [other for other in above if other[0] < cell[1] and cell[0] < other[1]]
    return len(over) < 2 and any(
        abs(cell[0] - x1) < near or abs(cell[1] - x2) < near or abs(sum(cell) - x1 - x2) < 2 * near for x1, x2 in above
    )


def _wraps(
    row: PageRow,
    cell: tuple[float, float],
    known: Sequence[list[tuple[float, float]]],
    leading: Leading,
) -> bool:
    """Whether a single piece of text goes on in a cell of the rows above."""
    return row.pitch <= TYPOGRAPHY.wrapped_cell * leading_at(leading, row) and _is_in_column(row, cell, known)


def _is_in_column(row: PageRow, cell: tuple[float, float], known: Sequence[list[tuple[float, float]]]) -> bool:
    """Whether a piece of text has its place between the gaps of other rows."""
    if any(_aligned(cell, other, row.size) for other in known):
        walls = [(left[1], right[0]) for other in known for left, right in pairwise(other)]
        crossed = sum(cell[0] < start and end < cell[1] for start, end in walls)
        return 3 * crossed <= len(known)
    return False


def _stands_above(row: PageRow, below: PageRow, known: Sequence[list[tuple[float, float]]]) -> bool:
    """Whether a single piece is the first line of a cell whose row has its other cells lower, in the middle."""
    others = _extents(below)
    return (
        len(others) > 1
        and below.pitch < 1.2 * row.size
        and _fits(others, known, row.size)
        and _is_in_column(row, _extents(row)[0], known)
    )


CellPieces = list[Piece]
"""What stands in one cell of a row, from the left."""


def _aligned_table(rows: Sequence[PageRow], drawn: Drawn, leading: Leading) -> FoundTable | None:
    """The table that rows make; None where they do not make one."""
    full = [row for row in rows if len(_extents(row)) > 1]
    most = max((len(_extents(row)) for row in full), default=0)
    if most < 2 or len(full) < (2 if most > 2 else 3):
        return None
    separators = _separators(rows, drawn)
    cut = [[part for cell in cells_of(row) for part in _cut(cell, separators)] for row in rows]
    columns = _columns(cut, separators)
    if len(columns) < 2 or not _are_cells(cut, columns):
        return None
    pieces = [piece for row in rows for piece in row.pieces]
    size = median(piece.size for piece in pieces)
    cells: list[Cell] = []
    for number, group in enumerate(_table_rows(rows, cut, columns, drawn, leading)):
        slots: dict[tuple[int, int], CellPieces] = {}
        for place in group:
            for cell in cut[place]:
                slots.setdefault(_span(cell, columns), []).extend(cell)
        cells += _cells(number, slots, size)
    table = build_table(cells, range(len(pieces)))
    if table.columns < 2 or table.rows < 2:
        return None
    return FoundTable(union_box(piece.line.box for piece in pieces), replace(table, method="text"), pieces)


def _separators(rows: Sequence[PageRow], drawn: Drawn) -> list[float]:
    """Where columns end, as x: the gutters that run down through the rows."""
    words = [_words(row.pieces) for row in rows]
    height = max(4.0, median(word.y2 - word.y1 for row in words for word in row))
    top, bottom = rows[0].box[1], rows[-1].box[3]
    walls = [
        rule.position for rule in drawn.vertical if rule.start < bottom and rule.end > top and rule.length > 2 * height
    ]
    left, right = min(row.x1 for row in rows), max(row.x2 for row in rows)
    return find_separators(words, height, [x for x in walls if left + height / 2 < x < right - height / 2])


def _cut(cell: CellPieces, separators: Sequence[float]) -> list[CellPieces]:
    """A cell cut where a column ends between two of its words, but one that is across the border stays whole."""
    parts: list[CellPieces] = [[]]
    for piece in cell:
        start = 0
        for place in range(1, len(piece.words)):
            before, after = piece.words[place - 1], piece.words[place]
            apart = after[1] - before[2] >= TYPOGRAPHY.word_gap * piece.size
            if apart and any(before[2] <= x <= after[1] for x in separators):
                parts[-1].append(piece.part(start, place))
                parts.append([])
                start = place
        parts[-1].append(piece.part(start, len(piece.words)) if start else piece)
    return parts


def _columns(cut: Sequence[Sequence[CellPieces]], separators: Sequence[float]) -> list[tuple[float, float]]:
    """Start and end of the text of each column."""
    columns: list[tuple[float, float]] = []
    for low, high in pairwise([-float("inf"), *separators, float("inf")]):
        own = [cell for row in cut for cell in map(_extent, row) if low - 1 < cell[0] and cell[1] < high + 1]
        if own:
            columns.append((min(x1 for x1, _ in own), max(x2 for _, x2 in own)))
    return columns


def _extent(cell: CellPieces) -> tuple[float, float]:
    return cell[0].x1, max(piece.x2 for piece in cell)


def _are_cells(cut: Sequence[Sequence[CellPieces]], columns: Sequence[tuple[float, float]]) -> bool:
    """Whether the texts of rows are those of cells, rather than lines of running text with wide gaps."""
    cells = [_extent(cell) for row in cut if len(row) > 1 for cell in row]
    size = median(cell[0].size for row in cut for cell in row)
    near = TYPOGRAPHY.aligned * size
    crossing = sum(first != last for first, last in (_span_of(cell, columns) for cell in cells))
    if crossing > 0.25 * len(cells):
        return False
    for x1, x2 in columns[1:]:
        own = [cell for cell in cells if cell[0] < x2 and x1 < cell[1]]
        starts = sum(abs(cell[0] - x1) < near for cell in own)
        ends = sum(abs(cell[1] - x2) < near for cell in own)
        middles = sum(abs(sum(cell) - x1 - x2) < 2 * near for cell in own)
        if max(starts, ends, middles) < 0.5 * len(own):
            return False
    return True


def _table_rows(
    rows: Sequence[PageRow],
    cut: Sequence[Sequence[CellPieces]],
    columns: Sequence[tuple[float, float]],
    drawn: Drawn,
    leading: Leading,
) -> list[list[int]]:
    """Which rows of text are a row of the table each.

    They are cut at rules where there are enough, else where the distance is wider, else where the first column has
    text or the last one another number.
    """
    usual = median(leading_at(leading, row) for row in rows)
    starts = [_span(cells[0], columns)[0] == 0 for cells in cut]
    filled = [len(cells) for cells in cut]
    most = max(filled)
    pitches = [row.pitch / usual for row in rows[1:]]
    close = [pitch < 0.8 for pitch in [*pitches, 9.0]]
    rules = [_rule_between(above, below, drawn) for above, below in pairwise(rows)]
    by_rules = sum(rules) >= max(2, sum(starts) // 2) and sum(rules) >= 0.5 * (len(rows) - 1 - filled.count(1))
    spaced = sorted({round(pitch, 1) for pitch in pitches})
    two_pitches = len(spaced) > 1 and spaced[0] <= 1.25 < 1.25 * spaced[0] <= spaced[-1]
    tight = [place for place, pitch in enumerate(pitches, start=1) if pitch <= 1.18 * max(spaced[0], 1.0)]
    # Rows that wrap in their cells are closer to each other than those of the table, and have fewer cells.
    two_pitches = two_pitches and 2 * sum(starts[place] and filled[place] == most for place in tight) < len(tight)
    groups: list[list[int]] = [[0]]
    for place in range(1, len(rows)):
        if by_rules:
            begins = rules[place - 1] or (starts[place] and filled[place] == most > 2 and filled[place - 1] == most)
        elif close[place - 1]:
            begins = False  # cells in the middle of a taller one
        elif filled[place] == 1 and close[place]:
            begins = True
        elif two_pitches and filled.count(1) + starts.count(False) > 0:
            begins = pitches[place - 1] > 1.18 * max(spaced[0], 1.0)
        else:
            begins = starts[place] and (filled[place] > 1 or not rows[place].text[:1].islower())
            begins = begins or all(is_number(row.pieces[-1].text) for row in rows[place - 1 : place + 1])
        if place == 1 and any(first != last for first, last in (_span(cell, columns) for cell in cut[0])):
            begins = True  # a head of two levels
        if begins:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def _span(cell: CellPieces, columns: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """First and last column of a cell: those that it overlaps, else the nearest."""
    return _span_of(_extent(cell), columns)


def _span_of(cell: tuple[float, float], columns: Sequence[tuple[float, float]]) -> tuple[int, int]:
    x1, x2 = cell
    over = [i for i, (start, end) in enumerate(columns) if min(end, x2) - max(start, x1) > 0]
    if not over:
        nearest = min(range(len(columns)), key=lambda i: abs(sum(columns[i]) - x1 - x2))
        return nearest, nearest
    return over[0], over[-1]


def _cells(row: int, slots: dict[tuple[int, int], CellPieces], size: float) -> list[Cell]:
    """The cells of one row; spans that overlap become one."""
    merged: list[tuple[int, int, CellPieces]] = []
    for (first, last), pieces in sorted(slots.items(), key=lambda slot: slot[0]):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last), merged[-1][2] + pieces)
        else:
            merged.append((first, last, pieces))
    grid = [GridCell(row, first, 1, last - first + 1, _words(pieces)) for first, last, pieces in merged]
    return [cell_of(cell, 1, max(4.0, size)) for cell in grid]
