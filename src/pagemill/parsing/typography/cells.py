"""Tables of a born-digital page: grids of drawn lines, and rows of text that is aligned below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

import msgspec
import numpy as np

from pagemill.document.geometry import Box, split_when, union_box
from pagemill.document.page import Mark
from pagemill.late import re
from pagemill.parsing.lists import marker
from pagemill.parsing.typography.drawn import Drawn, rule_between
from pagemill.parsing.typography.rows import Leading, PageRow, Piece, leading_at, rows_of_pieces, same_size
from pagemill.parsing.typography.table_rows import BROKEN, CellPieces, Slot, extent, span_of, table_cells
from pagemill.parsing.typography.thresholds import TYPOGRAPHY
from pagemill.tables.columns import find_separators, without_currency_columns
from pagemill.tables.grid import GridCell
from pagemill.tables.recognize import cell_of
from pagemill.tables.table import Cell, Table, build_table
from pagemill.tables.words import TableWord, are_number, spans_of_word
from pagemill.tables.words import extent as extent_of_words

LEADERS = re.compile(
    r"(?:[.·…]\s?){4,}\s*(?:[€$£¥₩]?\s?\d[\d.,]{0,12}(?:\s?[€$£¥₩%])?|[ivxlc]{1,6})?\s*$", re.IGNORECASE
)
"""Dots up to a page number or price at the end of a row of a table of contents or menu."""
_NO_PIXELS = np.full((1, 1), 255, dtype=np.uint8)
_ON_GRID = 0.12
"""Share of a character's width by which code is off its grid."""
_START, _STARTS = 0.2, 2
"""Distance in font sizes within which cells begin at one place, and least cells that do so elsewhere in the table."""
_ROWS_COMPARED = 6
"""Rows above with which the places of a row's cells are compared."""


class FoundTable(msgspec.Struct):
    """A table with the pieces of text that it takes up."""

    box: Box
    table: Table
    pieces: list[Piece] = []


def words_of(pieces: Sequence[Piece]) -> list[TableWord]:
    """Their words, as tables know them."""
    words = []
    for index, piece in enumerate(pieces):
        y1, y2 = piece.line.box[1], piece.line.box[3]
        at = piece.offset
        for place, (text, x1, x2) in enumerate(piece.words):
            glued = place > 0 and piece.words[place - 1][0] + text in piece.line.text
            spans, at = spans_of_word(piece.line, text, at)
            cut = piece.cut and place == len(piece.words) - 1
            words.append(TableWord(text, x1, x2, y1, y2, index, glued, place, spans, cut))
    return words


def aligned_tables(rows: Sequence[PageRow], drawn: Drawn, leading: Leading) -> list[tuple[int, int, FoundTable]]:
    """Runs of rows whose pieces are aligned below each other: first row, row behind the last one, table."""
    found: list[tuple[int, int, FoundTable]] = []
    start = behind = 0
    while start < len(rows):
        end = _run_from(rows, start, drawn, leading)
        head = _with_heads(rows, start, behind, drawn) if end - start > 1 else start
        table = table_of(rows[head:end], drawn, leading) if end - head >= TYPOGRAPHY.table_rows else None
        if table is None and head < start:
            head, table = start, table_of(rows[start:end], drawn, leading)
        if table is None or _is_justified(rows, head, end, leading):
            start += 1
        else:
            found.append((head, end, table))
            start = behind = end
    return found


def _is_justified(rows: Sequence[PageRow], start: int, end: int, leading: Leading) -> bool:
    """Whether rows are those of a justified paragraph: flush on both sides, as one without wide gaps is."""
    size = rows[start].size
    lines = (
        [rows[start - 1]] if start and rows[start].pitch <= TYPOGRAPHY.looser * leading_at(leading, rows[start]) else []
    )
    if end < len(rows) and rows[end].pitch <= TYPOGRAPHY.looser * leading_at(leading, rows[end]):
        lines.append(rows[end])
    flush = [row for row in lines if len(row.pieces) == 1 and abs(row.x2 - rows[start].x2) < TYPOGRAPHY.aligned * size]
    edges = [(row.x1, row.x2) for row in [*rows[start:end], *flush]]
    spread = max(max(side) - min(side) for side in zip(*edges, strict=True))
    return bool(flush) and spread < TYPOGRAPHY.aligned * size


def _with_heads(rows: Sequence[PageRow], start: int, behind: int, drawn: Drawn) -> int:
    """The first row of a table whose head spans columns, and so has other places than the rows below."""
    while start > behind:
        below = rows[start]
        if _is_between_heads(rows, start) or _spanned(rows, start, drawn) is not None:
            start -= 1
            continue
        middle = below.pitch < TYPOGRAPHY.beside * below.size  # of a cell with more lines, the first of which is above
        if middle or any(_is_written_on(rows[start - 1], cell) for cell in cells_of(below)[1:]):
            start -= 1
            continue
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


def _spanned(rows: Sequence[PageRow], place: int, drawn: Drawn) -> tuple[float, float] | None:
    """What the row above spans if it has one head over all columns but the first: it is centred over these."""
    row, below, body = rows[place - 1], rows[place], rows[place + 1 : place + 1 + _ROWS_COMPARED]
    heads, extents = _extents(below), _extents(row)
    first = min((row.x1 for row in body), default=0.0)
    if heads[0][0] < first + row.size:  # that of the first column
        del heads[0]
    if len(extents) != 1 or len(heads) < 2 or below.parted or not same_size(row.size, below.size):
        return None
    (x1, x2), left, right = extents[0], heads[0][0], heads[-1][1]
    if not (first + row.size < min(left, x1) and below.pitch < TYPOGRAPHY.written_on * row.size):
        return None  # a line over the first column, too, is that of a table below its title
    between = [rule for rule in drawn.horizontal if row.baseline < rule.position < below.baseline - 0.4 * below.size]
    near = 2 * TYPOGRAPHY.cell_gap * row.size
    ruled = all(any(first < rule.start < end and start < rule.end for rule in between) for start, end in heads)
    if ruled and left < x1 and x2 < right and abs(x1 + x2 - left - right) < near:
        return left, right
    # Heads may end where their numbers do, which begin before them: the rule, or the numbers, tell the middle.
    numbers = [cell for other in body for cell in _extents(other)[1:] if cell[0] < heads[0][1]]
    for start, end in (
        (min((rule.start for rule in between), default=left), max((rule.end for rule in between), default=right)),
        *((begin, right) for begin, _ in numbers),
    ):
        if (ruled or not between) and start < x1 and x2 < end and abs(x1 + x2 - start - end) < near:
            return min(left, start), max(right, end)
    return None


def _is_between(rows: Sequence[PageRow], place: int) -> bool:
    """Whether a row stands in the middle between two rows that have nothing above and below its cells."""
    if not 0 < place < len(rows) - 1 or rows[place].parted or rows[place + 1].parted:
        return False
    row, pitches = rows[place], [rows[place].pitch, rows[place + 1].pitch]
    even = max(pitches) - min(pitches) < TYPOGRAPHY.same_baseline * row.size and (
        TYPOGRAPHY.beside * row.size < min(pitches) < TYPOGRAPHY.written_on * row.size
    )
    others = [*_extents(rows[place - 1]), *_extents(rows[place + 1])]
    apart = not any(x1 < end and start < x2 for x1, x2 in _extents(row) for start, end in others)
    return even and apart


def _is_between_heads(rows: Sequence[PageRow], place: int) -> bool:
    """Whether a row has the heads in the middle between those over several columns and those of these columns."""
    if not _is_between(rows, place):
        return False
    above, below = _extents(rows[place - 1]), _extents(rows[place + 1])
    return len(below) > 1 and all(below[0][0] < (x1 + x2) / 2 < below[-1][1] for x1, x2 in above)


def _is_written_on(above: PageRow, cell: CellPieces) -> bool:
    """Whether a cell goes on with a text of the row above: the only one, or one written right before it in its row."""
    order = cell[0].order
    near = [p.order for p in above.pieces if abs(p.x1 - cell[0].x1) < TYPOGRAPHY.aligned * cell[0].size]
    only = len(above.pieces) == 1 or any(piece.order > order for piece in above.pieces)
    return only and order - 1 in near


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


def gaps_of(row: PageRow) -> list[tuple[float, float]]:
    """Start and end of what is free between its cells."""
    return [(left[1], right[0]) for left, right in pairwise(_extents(row))]


def _extents(row: PageRow) -> list[tuple[float, float]]:
    return [(cell[0].x1, max(piece.x2 for piece in cell)) for cell in cells_of(row)]


def _run_from(rows: Sequence[PageRow], start: int, drawn: Drawn, leading: Leading) -> int:
    """Behind the last row of a table that may begin at a row; the same row where none does."""
    between = _is_between_heads(rows, start)
    first = sorted(_extents(rows[start]) + (_extents(rows[start + 1]) if between else []))
    if len(first) < 2 or _is_code(rows[start]) or LEADERS.search(rows[start].text):
        return start
    known = [first]
    end = place = start + 1 + between
    widest = float("inf")
    while place < len(rows):
        row = rows[place]
        extents = _extents(row)
        if len(extents) == 1:
            extents = _narrowly_apart(row, known) or extents
        other = not same_size(row.size, rows[place - 1].size) and row.pitch > 2.0 * row.size
        if row.parted or other or LEADERS.search(row.text):
            break
        far = row.pitch > 4.5 * row.size
        if place > start + 2 and row.pitch > TYPOGRAPHY.set_off * widest:
            far = far or not all(any(_aligned(cell, above, row.size) for above in known) for cell in extents)
        if far and not rule_between(rows[place - 1], row, drawn):
            break
        tight = row.pitch < TYPOGRAPHY.beside * row.size  # cells in the middle of taller ones
        head = place == start + 1 + between  # a head may be centred over numbers that end below each other
        if len(extents) > 1 and (tight or _fits(extents, known, row.size) or (head and _is_below(extents, first))):
            known = [*known[-_ROWS_COMPARED:], extents]
            end = place + 1
        elif len(extents) == 1 and (tight or _wraps(row, extents[0], known, leading) or _is_between(rows, place)):
            # What wraps within a cell stays with the table; before the next full row nobody knows.
            above = rows[place - 1].pieces
            broken = any(piece.x1 < extents[0][1] and (piece.cut or BROKEN.search(piece.text)) for piece in above)
            wrapped = broken or (end == place and _is_written_on(rows[place - 1], row.pieces))
            if tight or wrapped or extents[0][0] > max(row[0][1] for row in known):
                end = place + 1
        elif not (len(extents) == 1 and place + 1 < len(rows) and _stands_above(row, rows[place + 1], known)):
            break
        if place > start + 1 and not tight:  # the first one is below a head
            widest = max(row.pitch, widest if widest < float("inf") else 0.0)
        place += 1
    return end


def _narrowly_apart(row: PageRow, known: Sequence[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The pieces of a row where the first cell is so long that it nearly touches the next; none where they are text."""
    pieces = [(piece.x1, piece.x2) for piece in row.pieces]
    least = TYPOGRAPHY.narrow_gap * row.size
    apart = all(right[0] - left[1] > least for left, right in pairwise(pieces))
    begin = [any(abs(piece[0] - cell[0]) < TYPOGRAPHY.aligned * row.size for cell in known[-1]) for piece in pieces]
    return pieces if len(pieces) > 1 and apart and all(begin) else []


def _is_code(row: PageRow) -> bool:
    """Whether a row is of code: its parts are whole characters apart, which cells are by chance alone."""
    if not row.fixed:
        return False
    main = max(row.pieces, key=lambda piece: len(piece.text) if piece.text.isascii() else 0)
    advance = (main.x2 - main.x1) / max(1, len(main.text))
    offsets = [(piece.x1 - row.x1) / advance for piece in row.pieces[1:]] if advance else []
    return all(abs(offset - round(offset)) < _ON_GRID for offset in offsets)


def _fits(extents: Sequence[tuple[float, float]], known: Sequence[list[tuple[float, float]]], size: float) -> bool:
    """Whether at least half of the cells of a row, one behind the first among them, have their place in rows above."""
    fits = [any(_aligned(cell, row, size) for row in known) for cell in extents]
    return any(fits[1:]) and 2 * sum(fits) >= len(fits)


def _is_below(extents: Sequence[tuple[float, float]], heads: Sequence[tuple[float, float]]) -> bool:
    """Whether most cells of a row, and three at least, have a head of their own over them, and none has two."""
    over = [sum(x1 < end and begin < x2 for begin, end in heads) for x1, x2 in extents]
    under = [sum(x1 < end and begin < x2 for begin, end in extents) for x1, x2 in heads]
    return max(*over, *under) < 2 and sum(over) > max(2, len(extents) // 2)


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


def table_of(rows: Sequence[PageRow], drawn: Drawn, leading: Leading, *, ruled: bool = False) -> FoundTable | None:
    """The table that rows make; None where they do not make one.

    Args:
        rows: Of text.
        drawn: Rules of the page.
        leading: Of the text.
        ruled: Whether rules draw where the table begins and ends.
    """
    level = split_when(rows, lambda _, row: row.pitch >= TYPOGRAPHY.beside * row.size)  # with those of taller cells
    cells = [_side_by_side([extent for row in group for extent in _extents(row)]) for group in level]
    full = max(sum(count > 1 for count in cells), sum(len(_extents(row)) > 1 for row in rows))
    most = max((len(_extents(row)) for row in rows), default=0) if full else 0
    if most < 2 or full < (1 if ruled else 2 if most > 2 else 3):
        return None
    pieces = [piece for row in rows for piece in row.pieces]
    rows, starts = _parted_at_starts(rows)
    heads = 1 if _is_between_heads(rows, 1) else 0  # over several columns, whose gutters they cross
    if not heads and len(rows) > 2 and (spanned := _spanned(rows, 1, drawn)) is not None:
        first = rows[0].pieces
        wide = [replace(first[0], x1=spanned[0]), *first[1:]]
        wide[-1] = replace(wide[-1], x2=spanned[1])
        heads, rows = 1, [PageRow(wide), *rows[1:]]
    separators = _separators(rows[heads:], drawn)
    reach = TYPOGRAPHY.cell_gap * rows[0].size
    separators = sorted([*separators, *(x for x in starts if not any(x - reach < other <= x for other in separators))])
    cut = [[part for cell in cells_of(row) for part in _cut(cell, separators)] for row in rows[heads:]]
    cut = [*map(cells_of, rows[:heads]), *cut]
    separators = without_currency_columns(separators, [word for row in rows[heads:] for word in words_of(row.pieces)])
    columns = _columns(cut, separators)
    if len(columns) < 2 or not _are_cells(cut, columns) or (not ruled and _run_on(cut)):
        return None
    size = median(piece.size for piece in pieces)
    table = build_table(_cells(table_cells(rows, cut, columns, drawn, leading), size), range(len(pieces)))
    if table.columns < 2 or table.rows < 2:
        return None
    return FoundTable(union_box(piece.line.box for piece in pieces), replace(table, method="text"), pieces)


def _side_by_side(extents: Sequence[tuple[float, float]]) -> int:
    """How many cells the texts are of, those above each other in one."""
    count, right = 0, -float("inf")
    for x1, x2 in sorted(extents):
        count += x1 >= right
        right = max(right, x2)
    return count


def _parted_at_starts(rows: Sequence[PageRow]) -> tuple[Sequence[PageRow], list[float]]:
    """Rows with the texts parted that run up to the next cell, or over it: code that was too long for its column.

    Also where columns end, as x, that this tells.
    """
    size = median(row.size for row in rows)
    near = _START * size
    begins = [piece.x1 for row in rows for piece in row.pieces[1:]]
    starts = [x for x in begins if sum(abs(x - other) < near for other in begins) >= _STARTS]
    if not starts:
        return rows, []
    beside = [(row.baseline, piece.x1) for row in rows for piece in row.pieces]
    beside = [(y, x) for y, x in beside if any(abs(x - start) < near for start in starts)]
    result: list[Piece] = []
    used: list[float] = []
    for row in rows:
        for piece in row.pieces:
            parts = _parted(piece, starts, near)
            over = [x for y, x in beside if abs(y - row.baseline) < near and piece.x1 + near < x < parts[-1].x2 + near]
            used += [part.x1 - near for part in parts[1:]]
            if over:
                used.append(min(over) - near)
                parts[-1] = _ended(parts[-1], min(over) - 2 * near)
            result += parts
    if not used:
        return rows, []
    return rows_of_pieces(result), sorted({min(x for x in used if abs(x - one) < 2 * near) for one in used})


def _ended(piece: Piece, end: float) -> Piece:
    """A piece whose text ends before the next cell, which it runs over."""
    words = tuple((text, min(x1, end), min(x2, end)) for text, x1, x2 in piece.words)
    return replace(piece, x2=min(piece.x2, end), words=words)


def _parted(piece: Piece, starts: Sequence[float], near: float) -> list[Piece]:
    """A piece as two where the code that it begins with runs up to such a place, or into the word that begins there."""
    text, words = piece.line.text, piece.words
    at = text.find(words[0][0], piece.offset)
    code = max((s.end for s in piece.line.spans if s.mark is Mark.CODE and s.start <= at < s.end), default=0)
    for place, (word, x1, x2) in enumerate(words):
        if at > code:
            break
        begin = max(at, text.find(word, at))
        at = begin + len(word)
        glued = place == 0 and begin < code < at  # its end is not exactly known
        x, reach = (x1 + (x2 - x1) * (code - begin) / len(word), 4 * near) if glued else (x1, near)
        start = next((start for start in starts if abs(start - x) < reach and start > piece.x1 + 4 * near), None)
        if start is None or not (place or glued):
            continue
        before, behind = words[:place], words[place:]
        if glued:
            before, behind = ((word[: code - begin], x1, start),), ((word[code - begin :], start, x2), *words[1:])
        first = _ended(replace(piece, x2=start, words=before, cut=False), start - 2 * near)
        rest = replace(piece, x1=start, words=behind, offset=code if glued else begin)
        return [first, *_parted(rest, starts, near)]
    return [piece]


def _separators(rows: Sequence[PageRow], drawn: Drawn) -> list[float]:
    """Where columns end, as x: the gutters that run down through the rows."""
    words: list[list[TableWord]] = []
    for place, row in enumerate(rows):
        own = [word for piece in row.pieces for word in ([_as_word(piece)] if piece.fixed else words_of([piece]))]
        if words and (row.pitch < TYPOGRAPHY.beside * row.size or _is_between(rows, place)):
            words[-1] += own  # lines of cells in the middle of a taller one, or of several
        else:
            words.append(own)
    height = max(4.0, median(word.y2 - word.y1 for row in words for word in row))
    top, bottom = rows[0].box[1], rows[-1].box[3]
    walls = [
        rule.position for rule in drawn.vertical if rule.start < bottom and rule.end > top and rule.length > 2 * height
    ]
    left, right = min(row.x1 for row in rows), max(row.x2 for row in rows)
    found = find_separators(words, height, [x for x in walls if left + height / 2 < x < right - height / 2])
    edges = [-float("inf"), *found, float("inf")]
    return sorted([*found, *(x for low, high in pairwise(edges) for x in _between_numbers(words, low, high))])


def _as_word(piece: Piece) -> TableWord:
    """A piece of code as one word: its spaces are wide, and below each other by nature."""
    _, y1, _, y2 = piece.line.box
    return TableWord(piece.text, piece.x1, piece.x2, y1, y2, 0)


def _between_numbers(rows: Sequence[Sequence[TableWord]], low: float, high: float) -> list[float]:
    """Borders within a column whose cells are as many numbers each as its head has words: its gutters are narrow."""
    head, *body = [[word for word in row if low < word.x < high] for row in rows]
    body = [row for row in body if row]
    if len(body) < 2 or len(head) < 2 or any(len(row) != len(head) for row in body):
        return []
    if not all(are_number([word]) for row in body for word in row):
        return []
    spans = [extent_of_words(of) for of in zip(*body, strict=True)]
    return [(left[1] + right[0]) / 2 for left, right in pairwise(spans) if left[1] < right[0]]


def _cut(cell: CellPieces, separators: Sequence[float]) -> list[CellPieces]:
    """A cell cut where a column ends between two of its words, but one that is across the border stays whole."""
    parts: list[CellPieces] = [[]]
    end = float("inf")
    for piece in cell:
        start = 0
        for place, (_, x1, x2) in enumerate(piece.words):
            apart = x1 - end >= TYPOGRAPHY.column_gap * piece.size
            if apart and any(end <= x <= x1 for x in separators):
                if place > start:
                    parts[-1].append(piece.part(start, place))
                    start = place
                parts.append([])
            end = x2
        parts[-1].append(piece.part(start, len(piece.words)) if start else piece)
    return parts


def _columns(cut: Sequence[Sequence[CellPieces]], separators: Sequence[float]) -> list[tuple[float, float]]:
    """Start and end of the text of each column."""
    columns: list[tuple[float, float]] = []
    for low, high in pairwise([-float("inf"), *separators, float("inf")]):
        own = [cell for row in cut for cell in map(extent, row) if low - 1 < cell[0] and cell[1] < high + 1]
        if own:
            columns.append((min(x1 for x1, _ in own), max(x2 for _, x2 in own)))
    return columns


def _are_cells(cut: Sequence[Sequence[CellPieces]], columns: Sequence[tuple[float, float]]) -> bool:
    """Whether the texts of rows are those of cells, rather than lines of running text with wide gaps."""
    cells = [extent(cell) for row in cut if len(row) > 1 for cell in row]
    size = median(cell[0].size for row in cut for cell in row)
    near = TYPOGRAPHY.aligned * size
    crossing = sum(first != last for first, last in (span_of(cell, columns) for cell in cells))
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


def _run_on(cut: Sequence[Sequence[CellPieces]]) -> bool:
    """Whether answers stand right behind labels of several lengths, rather than below each other."""
    pairs = [list(map(extent, row)) for row in cut]
    if any(len(pair) != 2 for pair in pairs):
        return False
    size = cut[0][0][0].size
    ends, gaps = [first[1] for first, _ in pairs], [second[0] - first[1] for first, second in pairs]
    return max(gaps) - min(gaps) < TYPOGRAPHY.column_gap * size and max(ends) - min(ends) > size


def _cells(slots: dict[Slot, CellPieces], size: float) -> list[Cell]:
    """Cells of the text in them; spans that overlap in a row become one."""
    merged: list[tuple[Slot, CellPieces]] = []
    for slot, pieces in sorted(slots.items(), key=lambda item: (item[0].row, item[0].first, item[0])):
        (row, rows, first, last), other = merged[-1] if merged else (Slot(-1, 0, 0, 0), [])
        if row == slot.row and slot.first <= last:
            merged[-1] = Slot(row, min(rows, slot.rows), first, max(last, slot.last)), other + pieces
        else:
            merged.append((slot, pieces))
    grid = [GridCell(row, first, rows, last - first + 1, words_of(text)) for (row, rows, first, last), text in merged]
    heads = max((cell.row_span for cell in grid if cell.row == 0), default=1)
    return [cell_of(cell, heads, max(4.0, size)) for cell in grid]
