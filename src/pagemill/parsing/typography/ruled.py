"""Tables of a born-digital page that rules draw: grids, and rows between level lines of one extent."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np

from pagemill.document.geometry import Box, components, intersection, union_box
from pagemill.parsing.typography.cells import FoundTable, aligned_tables, cells_of, gaps_of, table_of, words_of
from pagemill.parsing.typography.drawn import TOUCH, Drawn
from pagemill.parsing.typography.rows import PageRow, Piece, leading_of, rows_of_pieces, same_size
from pagemill.parsing.typography.thresholds import TYPOGRAPHY
from pagemill.tables.grid import Grid, GridCell
from pagemill.tables.lattice import lattice_grid
from pagemill.tables.recognize import cell_of
from pagemill.tables.rules import Rule, Rules
from pagemill.tables.table import Table, build_table
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, is_number

_PART = 0.6
"""Share of the text of a part of a table that is in rows that are aligned; heads of columns often are not."""
_OPEN_ROWS = 3
"""Most rows of a grid that may lack lines between its rows: two of heads, and all that is below."""
_NO_PIXELS = np.full((1, 1), 255, dtype=np.uint8)


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
        if flat.start - TOUCH <= wall.position <= flat.end + TOUCH
        and wall.start - TOUCH <= flat.position <= wall.end + TOUCH
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
        if all(0.1 < _covered(flats, y, box) < 0.9 for y in (box[1], box[3])):
            continue  # boxes of a drawing, connected by lines
        inside = [piece for piece in pieces if _is_inside(piece, box)]
        table = _lattice(inside, Rules(flats, walls))
        heights = [below - above for above, below in pairwise(flat.position for flat in flats) if below - above > TOUCH]
        drawn_rows = len(heights)
        is_open = 0 < drawn_rows <= _OPEN_ROWS and 2 * max(heights) > sum(heights)
        if table is not None and is_open:  # lines may part columns and the head alone
            rows = rows_of_pieces(inside)
            by_text = table_of(rows, drawn, leading_of(rows), ruled=True)
            least = table.rows + (table.rows <= drawn_rows)
            if by_text is not None and by_text.table.rows >= least and by_text.table.columns == table.columns:
                table = by_text.table
        if table is not None:
            found.append(FoundTable(_on_page(inside, box), table, inside))
    return found


def _covered(rules: Sequence[Rule], y: float, box: Box) -> float:
    """Share of a level side of a box that is drawn."""
    return sum(rule.length for rule in rules if abs(rule.position - y) <= TOUCH) / max(1.0, box[2] - box[0])


def _is_inside(piece: Piece, box: Box) -> bool:
    """Whether a piece stands in a table; it may overflow its cell at the end."""
    middle = piece.baseline - 0.3 * piece.size
    begins = box[0] - TOUCH < piece.x1 < box[2] - piece.size
    return (begins or box[0] < (piece.x1 + piece.x2) / 2 < box[2]) and box[1] < middle < box[3]


def _on_page(pieces: Sequence[Piece], box: Box) -> Box:
    """The box of a table in page pixels, where x may be mirrored: that of its text, as high as it is drawn."""
    left, top, right, bottom = union_box(piece.line.box for piece in pieces)
    x1 = min(piece.x1 for piece in pieces) - box[0]
    x2 = box[2] - max(piece.x2 for piece in pieces)
    mirrored = abs(left - min(piece.x1 for piece in pieces)) > 1
    before, after = (x2, x1) if mirrored else (x1, x2)
    return left - max(0.0, before), min(top, box[1]), right + max(0.0, after), max(bottom, box[3])


def _lattice(pieces: Sequence[Piece], rules: Rules) -> Table | None:
    words = words_of(pieces)
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


def open_tables(pieces: Sequence[Piece], drawn: Drawn, size: float) -> list[FoundTable]:
    """Tables between level rules of one extent, such as those above and below the head and at the foot.

    Args:
        pieces: Level text that is in no grid.
        drawn: Rules of the page.
        size: Font size of running text in pixels.
    """
    found: list[FoundTable] = []
    lines = sorted({*drawn.horizontal, *drawn.shades}, key=lambda rule: rule.position)
    for rules in _of_one_extent(lines, TABLES.open_rule_length * size):
        run: list[PageRow] = []
        title: list[PageRow] = []  # one text across, of the rows below it
        for above, below in [*pairwise(rules), (rules[-1], None)]:
            if run and below is not None and below.position - above.position < 0.5 * size:
                continue  # two lines, or the edge of a shade at a line
            rows = _rows_between(pieces, above, below, size) if below is not None else []
            head = [] if run else _head(pieces, above)
            if not rows and below is not None and (run or head):
                rows = _below_heads(_inside(pieces, above, below), (run or head)[0], above, below)
            if rows:
                run += [*title, *rows] if run else [*head, *rows]
                title = []
                continue
            if run and below is not None and not title and below.position - above.position < 2 * size:
                title = _inside(pieces, above, below)
                if len(title) == 1:
                    continue
            if run and (table := table_of(run, drawn, leading_of(run), ruled=True)) is not None:
                found.append(table)
            run, title = [], []
    return _whole(found, pieces, drawn)


def _whole(found: Sequence[FoundTable], pieces: Sequence[Piece], drawn: Drawn) -> list[FoundTable]:
    """Tables without those that are parts of one: edges of its cells and rows are rules of one extent, too.

    Parts are of a table of rows that are aligned, beyond where no line ends them, or mostly of one, and close together.
    """
    rows = rows_of_pieces(pieces) if found else []
    aligned = [table for _, _, table in aligned_tables(rows, drawn, leading_of(rows))] if rows else []
    whole: list[FoundTable] = []
    taken: set[int] = set()
    for table in sorted(found, key=lambda table: table.box[0] - table.box[2]):
        own = set(map(id, table.pieces))
        size = median(piece.size for piece in table.pieces)
        x1, y1, x2, y2 = table.box
        around = x1 - 2 * size, y1 - 2 * size, x2 + 2 * size, y2 + 2 * size
        near = any(other is not table and intersection(around, other.box) > 0 for other in found)
        is_part = False
        top, bottom = (_is_ruled(y, table.box, drawn, size) for y in (y1, y2))
        for other in aligned:
            larger = set(map(id, other.pieces))
            beyond = (not top and other.box[1] < y1 - size) or (not bottom and y2 + size < other.box[3])
            shares = near and len(own & larger) > _PART * len(own) and not larger <= own
            is_part |= (own < larger and beyond) or shares or _lacks_labels(table, other)
        if not is_part and taken.isdisjoint(own):
            whole.append(table)
            taken |= own
    return sorted(whole, key=lambda table: table.box[1])


def _lacks_labels(table: FoundTable, larger: FoundTable) -> bool:
    """Whether a table holds the numbers of another one, whose labels stand beside the rules over the numbers."""
    own = set(map(id, table.pieces))
    if len(own & set(map(id, larger.pieces))) < _PART * len(own):
        return False
    rows = rows_of_pieces(larger.pieces)
    inside = [[piece for piece in row.pieces if id(piece) in own] for row in rows]
    labelled = [
        row.pieces[0].x2 < min(piece.x1 for piece in numbers) and id(row.pieces[0]) not in own
        for row, numbers in zip(rows, inside, strict=True)
        if numbers
    ]
    told = sum(is_number(piece.text) for piece in table.pieces)
    return told > _PART * len(own) and sum(labelled) > _PART * len(labelled)


def _is_ruled(y: float, box: Box, drawn: Drawn, size: float) -> bool:
    """Whether a line, and not the edge of a shade, runs along the upper or lower side of a table."""
    return any(
        abs(rule.position - y) < size and rule.start < box[0] + size and box[2] - size < rule.end
        for rule in drawn.horizontal
    )


def _of_one_extent(rules: Sequence[Rule], least: float) -> list[list[Rule]]:
    groups: list[list[Rule]] = []
    for rule in rules:
        if rule.length < least:
            continue
        for group in groups:
            if abs(group[0].start - rule.start) <= TOUCH and abs(group[0].end - rule.end) <= TOUCH:
                group.append(rule)
                break
        else:
            groups.append([rule])
    return [group for group in groups if len(group) > 1]


def _rows_between(pieces: Sequence[Piece], above: Rule, below: Rule, body: float) -> list[PageRow]:
    """The rows between two rules if they may be those of a table: no larger than text, none beyond the rules' ends."""
    rows = _inside(pieces, above, below)
    inside = [piece for row in rows for piece in row.pieces]
    if len(rows) > 1 and all(row.fixed for row in rows):
        return []  # a block of code on a shade
    if not (any(len(cells_of(row)) > 1 for row in rows) or _are_apart(inside)):
        return []
    size = median(row.size for row in rows)
    if any(p.x1 < above.start - TOUCH or p.x2 > above.end + size for p in inside):
        return []
    if any(_crosses(row, rows) for row in rows[1:]):
        return []  # a paragraph below a table whose head alone has a line
    largest = max(size, body)
    return rows if all(same_size(row.size, largest) or row.size < largest for row in rows) else []


def _below_heads(rows: Sequence[PageRow], head: PageRow, above: Rule, below: Rule) -> list[PageRow]:
    """Rows that fill what is between two rules, if each has text below a single head: their other cells are empty."""
    starts = [cell[0].x1 for cell in cells_of(head)]
    if not rows or len(starts) < 2 or head.fixed:
        return []
    edges = [(above.position, rows[0].box[1]), *((a.box[3], b.box[1]) for a, b in pairwise(rows))]
    edges.append((rows[-1].box[3], below.position))
    if any(low - high > rows[0].size for high, low in edges):
        return []  # a heading between two tables
    for row in rows:
        near = TYPOGRAPHY.aligned * row.size
        place = bisect(starts, row.x1 + near)
        if place == 0 or any(x < row.x2 + near for x in starts[place:]):
            return []  # it reaches below another head
    return [*rows]


def _inside(pieces: Sequence[Piece], above: Rule, below: Rule) -> list[PageRow]:
    inside = [p for p in pieces if above.position < p.baseline - 0.3 * p.size < below.position]
    return rows_of_pieces([p for p in inside if p.x1 < above.end and above.start < p.x2])


def _crosses(row: PageRow, rows: Sequence[PageRow]) -> bool:
    """Whether a row of a single text runs over the gutters of most rows of several."""
    gaps = [gaps_of(other) for other in rows if len(other.pieces) > 1]
    crossed = sum(any(row.x1 < start and end < row.x2 for start, end in own) for own in gaps)
    return len(row.pieces) == 1 and 2 * crossed > sum(map(bool, gaps))


def _are_apart(pieces: Sequence[Piece]) -> bool:
    """Whether a gutter runs down between pieces: lines of cells in the middle of taller ones have rows of their own."""
    end = float("inf")
    for piece in sorted(pieces, key=lambda piece: piece.x1):
        if piece.x1 - end > TYPOGRAPHY.cell_gap * piece.size:
            return True
        end = max(end, piece.x2) if end < float("inf") else piece.x2
    return False


def _head(pieces: Sequence[Piece], rule: Rule) -> list[PageRow]:
    """The head of a table that has no rule above it: a row of cells right above the first one, below its caption."""
    own = [
        p
        for p in pieces
        if 0 < rule.position - p.baseline < 2 * p.size and rule.start - TOUCH < p.x1 and p.x2 < rule.end + TOUCH
    ]
    rows = rows_of_pieces(own)
    return rows[-1:] if [len(cells_of(row)) > 1 for row in rows] == [False] * (len(rows) - 1) + [True] else []


def without(pieces: Sequence[Piece], tables: Sequence[FoundTable]) -> list[Piece]:
    """Pieces that are in no table."""
    taken = {id(piece) for table in tables for piece in table.pieces}
    return [piece for piece in pieces if id(piece) not in taken]
