"""Which rows of text make a row of a table, where cells have several lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import msgspec

from pagemill.late import re
from pagemill.parsing.typography.drawn import Drawn, rule_between
from pagemill.parsing.typography.rows import Leading, PageRow, Piece, first_chunk, leading_at
from pagemill.parsing.typography.thresholds import TYPOGRAPHY
from pagemill.tables.words import is_number

BROKEN = re.compile(r"[^\W\d_]{2}-$")
"""A word that a hyphen breaks at the end of a line."""
CellPieces = list[Piece]
"""What stands in one cell of a row of text, from the left."""


def extent(cell: CellPieces) -> tuple[float, float]:
    """Where a cell's text begins and ends."""
    return cell[0].x1, max(piece.x2 for piece in cell)


def span(cell: CellPieces, columns: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """First and last column of a cell: those that it overlaps, else the nearest."""
    return span_of(extent(cell), columns)


def span_of(cell: tuple[float, float], columns: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """The same of a start and end."""
    x1, x2 = cell
    over = [i for i, (start, end) in enumerate(columns) if min(end, x2) - max(start, x1) > 0]
    if not over:
        nearest = min(range(len(columns)), key=lambda i: abs(sum(columns[i]) - x1 - x2))
        return nearest, nearest
    return over[0], over[-1]


class _Pair(msgspec.Struct, frozen=True):
    """Two texts of a column with nothing between them."""

    above: int
    below: int
    first: bool
    """Whether theirs is the first column: rows with text in another one alone are rare."""
    pitch: float
    """Distance of their baselines, in font sizes of the table."""
    alike: bool
    """Whether they are of one style; the baselines of two fonts are not exactly known."""
    ended: bool
    """Whether the first word of the lower one had room beside the upper one, which so was ended on purpose."""
    lower: bool | None
    """Whether the lower one begins with a small letter; None where its script has none."""
    wide: bool
    """Whether the column has room for several such words, so that the end of a line tells."""
    follows: bool
    """Whether the lower one was written right behind the upper one."""
    numbers: bool
    """Whether both are numbers, which have no second line."""
    broken: bool
    """Whether the upper one ends inside a word."""
    beside: bool
    """Whether there is text behind the upper one or before the lower one, which so would have been written between
    them if they were not in one cell."""
    apart: bool
    """Whether they are surely of different rows of the table."""


class Slot(NamedTuple):
    """Where a cell is in its table."""

    row: int
    rows: int
    """Number of rows that it spans."""
    first: int
    last: int
    """Its columns."""


def table_cells(
    rows: Sequence[PageRow],
    cut: Sequence[Sequence[CellPieces]],
    columns: Sequence[tuple[float, float]],
    drawn: Drawn,
    leading: Leading,
) -> dict[Slot, CellPieces]:
    """The cells of a table; those over several rows are known where they are in the middle of these.

    Args:
        rows: Of text.
        cut: Their cells.
        columns: Start and end of each.
        drawn: Rules of the page.
        leading: Of the text.
    """
    spans = [[span(cell, columns) for cell in cells] for cells in cut]
    between = _between(rows, cut, spans, _pairs(rows, cut, spans, columns, leading))
    kept = [place for place in range(len(rows)) if place not in between]
    whole = [PageRow(rows[place].pieces) for place in kept]
    for above, row in pairwise(whole):
        row.above = above
    two_heads = between.get(1) == (0, 2)
    grouped = _grouped(whole, [cut[place] for place in kept], columns, drawn, leading, two_heads=two_heads)
    number = {kept[place]: index for index, group in enumerate(grouped) for place in group}
    began = {cell[0].order: number[place] for place in kept for cell in cut[place]}
    taken: list[set[int]] = [set() for _ in grouped]
    for place in kept:
        taken[number[place]] |= _columns_of(spans[place])
    slots: dict[Slot, CellPieces] = {}
    for place, cells in enumerate(cut):
        for cell, (start, end) in zip(cells, spans[place], strict=True):
            first, last = (number[place],) * 2 if place in number else (number[other] for other in between[place])
            begin = began.get(cell[-1].order + 1, first)
            others = [row for row in range(begin, last + first - begin + 1) if place not in number or row != first]
            if begin < first and others[-1] < len(grouped):  # it was written before the first row that it goes over
                first, last = (begin, last + first - begin)
            if any(column in taken[row] for row in others if first <= row <= last for column in range(start, end + 1)):
                first = last = number.get(place, first)
            slots.setdefault(Slot(first, last - first + 1, start, end), []).extend(cell)
    return _with_wide_heads(slots, columns)


def _with_wide_heads(slots: dict[Slot, CellPieces], columns: Sequence[tuple[float, float]]) -> dict[Slot, CellPieces]:
    """The cells where heads of heads are over all of these: those in whose middle they are."""
    head = [slot for slot in slots if slot.row == 0]
    if not any(slot.rows == 2 for slot in head):
        return slots
    free = {slot.first for slot in slots if slot.row == 1 and slot.first == slot.last}
    for slot in head:
        free -= {*range(slot.first, slot.last + 1)} if slot.rows > 1 else set()
    wide: dict[Slot, Slot] = {}
    for slot in head:
        if slot.rows > 1:
            continue
        start, end = slot.first, slot.last
        others = {column for _, _, x, y in head if (x, y) != (start, end) for column in range(x, y + 1)}
        first, last, middle = start, end, sum(extent(slots[slot])) / 2
        while first - 1 in free - others:
            first -= 1
        while last + 1 in free - others:
            last += 1
        reach = [(x, y) for x in range(first, start + 1) for y in range(end, last + 1)]
        x, y = min(reach, key=lambda ends: abs((columns[ends[0]][0] + columns[ends[1]][1]) / 2 - middle))
        wide[slot] = slot._replace(first=x, last=y)
    return {wide.get(slot, slot): cell for slot, cell in slots.items()}


def _columns_of(spans: Sequence[tuple[int, int]]) -> set[int]:
    return {column for first, last in spans for column in range(first, last + 1)}


def _between(
    rows: Sequence[PageRow],
    cut: Sequence[Sequence[CellPieces]],
    spans: Sequence[Sequence[tuple[int, int]]],
    pairs: Sequence[_Pair],
) -> dict[int, tuple[int, int]]:
    """Rows of text in the middle between those of two rows of the table, which their cells go over; with these two."""
    own = [_columns_of(row) for row in spans]
    apart = {(pair.above, pair.below) for pair in pairs if pair.apart}
    parts = [(pair.above, pair.below, pair.follows and not pair.apart) for pair in pairs]
    far = len(rows) > 2 and rows[2].baseline - rows[0].baseline > 2 * TYPOGRAPHY.beside * rows[0].size
    if far and len(spans[2]) > 1 and min(own[2]) <= min(own[0]) and max(own[0]) <= max(own[2]):
        apart.add((0, 2))  # heads over several heads
    found: dict[int, tuple[int, int]] = {}
    for above, below in sorted(apart):
        inside = range(above + 1, below)
        if not inside or any(own[place] & (own[above] | own[below]) for place in inside):
            continue
        if any(
            one_cell != (y1 in inside and y2 in inside) for y1, y2, one_cell in parts if y1 in inside or y2 in inside
        ):
            continue  # lines of cells in the middle of taller ones
        lines: dict[int, list[float]] = {}
        for place in inside:
            for cell, (column, _) in zip(cut[place], spans[place], strict=True):
                lines.setdefault(column, []).append(cell[0].baseline)
        middle, size = (rows[above].baseline + rows[below].baseline) / 2, rows[above].size
        if all(abs(min(y) + max(y) - 2 * middle) < 2 * TYPOGRAPHY.same_baseline * size for y in lines.values()):
            found |= dict.fromkeys(inside, (above, below))
    return {place: ends for place, ends in found.items() if found.keys().isdisjoint(ends)}


def _grouped(
    rows: Sequence[PageRow],
    cut: Sequence[Sequence[CellPieces]],
    columns: Sequence[tuple[float, float]],
    drawn: Drawn,
    leading: Leading,
    *,
    two_heads: bool,
) -> list[list[int]]:
    """Which rows of text are a row of the table each.

    Within a cell lines are closer than those of two cells of a column, and a line ends where the next word has no room.
    Where all distances are one, a row begins where the first column has text, or a column that had ended.

    Args:
        rows: Of text.
        cut: Their cells.
        columns: Start and end of each.
        drawn: Rules of the page.
        leading: Of the text.
        two_heads: Whether the first row has heads over those of the second.
    """
    spans = [[span(cell, columns) for cell in cells] for cells in cut]
    pairs = _pairs(rows, cut, spans, columns, leading)
    rules = [rule_between(above, below, drawn) for above, below in pairwise(rows)]
    starts = sum(own[0][0] == 0 for own in spans)
    singles = sum(len(own) == 1 for own in spans)
    by_rules = sum(rules) >= max(min(2, starts - 1), starts // 2, 1) and sum(rules) >= 0.5 * (len(rows) - 1 - singles)
    spaced = None if by_rules else _spaced(pairs)
    # Most producers write cell by cell.
    written = {(pair.above, pair.below) for pair in pairs if _is_written_on(pair, spaced)}
    by_cells = any(pair.beside and (pair.above, pair.below) in written for pair in pairs)
    usual = median(leading_at(leading, row) for row in rows)
    groups: list[list[int]] = [[0]]
    for place in range(1, len(rows)):
        across = [pair for pair in pairs if pair.above < place <= pair.below]
        if any(pair.broken for pair in across):
            begins = False
        elif any(pair.apart and pair.below - pair.above == 1 for pair in across):
            begins = True
        elif place == 1 and (two_heads or any(first != last for first, last in spans[0])):
            begins = True  # a head of two levels
        elif sum(pair.numbers and pair.below == place and pair.above in groups[-1] for pair in across) > 1 or (
            len(spans[place - 1]) == 1 < len(spans[place]) and _introduces(rows[place - 1], rows[place])
        ):
            begins = True
        elif by_rules:
            begins = rules[place - 1] or (
                spans[place] == spans[place - 1]
                and len(spans[place]) > 1
                and ((len(spans[place]) > 2 and any(pair.ended for pair in across)) or (place == 1 and _has_head(cut)))
            )
        elif by_cells:
            begins = not any(above < place <= below for above, below in written)
        elif spaced is not None:
            begins = not any(pair.pitch <= spaced for pair in across)
        elif rows[place].pitch < 0.8 * usual:
            begins = False  # cells in the middle of a taller one
        elif rows[place].pitch > TYPOGRAPHY.same_pitch * usual and spans[place][0][0] == 0:
            begins = True
        else:
            begins = _begins(place, rows, spans, across)
        if begins:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def _introduces(head: PageRow, below: PageRow) -> bool:
    """Whether a row is a head of rows within a table: ``Costs and expenses:``."""
    return head.text.endswith((":", "：")) and not below.text[:1].islower() and below.x1 >= head.x1


def _has_head(cut: Sequence[Sequence[CellPieces]]) -> bool:
    """Whether the first row is of another style than the next two: striped tables have no edge below such a head.

    Cells that begin with a line of their own style each have it in the third row as well.
    """
    head, *body = ({piece.line.style for cell in cells for piece in cell} for cells in cut[:3])
    return len(body) == 2 and all(head.isdisjoint(styles) for styles in body)


def _pairs(
    rows: Sequence[PageRow],
    cut: Sequence[Sequence[CellPieces]],
    spans: Sequence[Sequence[tuple[int, int]]],
    columns: Sequence[tuple[float, float]],
    leading: Leading,
) -> list[_Pair]:
    pairs = []
    written = any(piece.order % 2 for row in rows for piece in row.pieces)
    latest: dict[int, tuple[int, CellPieces]] = {}
    usual = median(piece.size for cells in cut for cell in cells for piece in cell)  # code in a cell is smaller
    for place, cells in enumerate(cut):
        for cell, (column, last) in zip(cells, spans[place], strict=True):
            if column == last and column in latest:
                above, other = latest[column]
                size = min(cell[0].size, other[0].size)
                width = columns[column][1] - columns[column][0]
                start, end = extent(other)
                room = width - (end - start) - TYPOGRAPHY.word_fits * size
                initial, needed = cell[0].text[:1], first_chunk(cell[0].words[0])
                numbers = _is_number(cell) and _is_number(other)
                ended = needed < room or numbers
                pitch = cell[0].baseline - other[0].baseline
                far = min(TYPOGRAPHY.wrapped_cell * leading_at(leading, rows[place]), TYPOGRAPHY.written_on * usual)
                parted = written and cell[0].order > other[-1].order + 1 and pitch > TYPOGRAPHY.beside * usual
                pairs.append(
                    _Pair(
                        above=above,
                        below=place,
                        first=column == 0,
                        pitch=pitch / usual,
                        alike=cell[0].line.style == other[0].line.style,
                        ended=ended,
                        lower=initial.islower()
                        if initial.lower() != initial.upper()
                        else None
                        if initial.isalpha()
                        else False,
                        wide=2 * needed < width,
                        follows=cell[0].order == other[-1].order + 1,
                        numbers=numbers,
                        broken=other[-1].cut or (BROKEN.search(other[-1].text) is not None and initial.isalnum()),
                        beside=spans[above][-1][1] > column or spans[place][0][0] < column,
                        apart=parted and (ended or pitch > far),
                    )
                )
            if column == last:
                latest[column] = place, cell
            else:
                for covered in range(column, last + 1):
                    latest.pop(covered, None)
    return pairs


def _is_number(cell: CellPieces) -> bool:
    return is_number(" ".join(text for piece in cell for text, _, _ in piece.words))


def _is_written_on(pair: _Pair, spaced: float | None) -> bool:
    """Whether a cell goes on, by the order in which its lines were written."""
    if not pair.follows or pair.pitch > TYPOGRAPHY.written_on:
        return False
    if pair.beside or not pair.first:
        return True
    return not pair.ended and (pair.lower is not False if spaced is None else pair.pitch <= spaced)


def _spaced(pairs: Sequence[_Pair]) -> float | None:
    """The greatest distance of two lines of a cell, where those of two cells are greater; else None."""
    pairs = [pair for pair in pairs if pair.alike]
    pitches = sorted(pair.pitch for pair in pairs if pair.pitch > 0.8)
    if not pitches:
        return None
    most = pitches[len(pitches) // 20]
    for pitch in pitches:  # some producers round places to pixels
        most = pitch if most < pitch <= TYPOGRAPHY.same_pitch * most else most
    tight = [pair for pair in pairs if 0.8 < pair.pitch <= most]
    usual = median(pair.pitch for pair in tight)
    # A head is set off, and a column that ends early leaves whole lines free.
    off = 1 - 1 / TYPOGRAPHY.same_pitch
    loose = any(pair.above > 0 and off < (pair.pitch / usual) % 1 < 1 - off for pair in pairs)
    if not loose or sum(pair.ended for pair in tight) > TYPOGRAPHY.ended * len(tight):
        return None
    return most


def _begins(
    place: int, rows: Sequence[PageRow], spans: Sequence[Sequence[tuple[int, int]]], across: Sequence[_Pair]
) -> bool:
    """Whether a row of the table begins at a row of text that is as far from the one above as all are."""
    own, above = spans[place], spans[place - 1]
    if all(is_number(row.pieces[-1].text) for row in rows[place - 1 : place + 1]):
        return True
    if len(own) > max(1, len(above)) and place > 1:
        return True  # what goes on has fewer cells from line to line
    if own[0][0] > 0:
        return False
    pairs = [pair for pair in across if pair.below == place and pair.above == place - 1]
    if len(own) > 1 and set(own) <= set(above) and rows[place].bold == rows[place - 1].bold and not rows[place].fixed:
        return any(pair.ended or not pair.lower for pair in pairs) or not any(pair.wide for pair in pairs)
    return len(own) > 1 or not rows[place].text[:1].islower()
