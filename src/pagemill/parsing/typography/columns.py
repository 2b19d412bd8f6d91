"""Columns of running text: where a page is to be cut before its rows are read."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from pagemill.parsing.typography.rows import PageRow, Piece, begins, leading_of, rows_of_pieces
from pagemill.parsing.typography.thresholds import TYPOGRAPHY

_MOST_GUTTERS = 6
"""Candidates looked at on one level."""
_MOST_DEPTH = 4
_CELLS = frozenset(("TD", "TH"))
"""Standard types of structure elements that are cells of a table."""


def flows_of(pieces: Sequence[Piece], depth: int = 0) -> list[list[Piece]]:
    """Cut pieces into flows: text that is read from top to bottom, columns one after the other.

    What stands across a gutter ends the columns above it and begins new ones below.
    """
    if depth < _MOST_DEPTH:
        best, most = None, 0
        for gutter in _gutters(pieces):
            bands = _bands(pieces, gutter)
            parted = sum(
                len(left) + len(right)
                for _, left, right in bands
                if _are_columns(left, right) or _blocks_beside(left, right)
            )
            if parted > most:  # a wide gap in justified text parts few rows
                best, most = bands, parted
        if best is not None:
            return _cut(best, depth)
    return [list(pieces)] if pieces else []


def _cut(bands: Sequence[tuple[list[Piece], list[Piece], list[Piece]]], depth: int) -> list[list[Piece]]:
    flows: list[list[Piece]] = []
    whole: list[Piece] = []
    for across, left, right in bands:
        whole += across
        if _are_columns(left, right):
            flows += flows_of(whole, depth + 1) + flows_of(left, depth + 1) + flows_of(right, depth + 1)
            whole = []
        elif (blocks := _blocks_beside(left, right)) is not None:
            flows += [each for each in (whole, blocks[0], blocks[1]) if each]
            whole = blocks[2]
        else:
            whole += left + right
    return flows + flows_of(whole, depth + 1)


def _gutters(pieces: Sequence[Piece]) -> list[tuple[float, float]]:
    """The gaps that most pieces leave free beside each other, widest support first."""
    gaps: list[tuple[float, float]] = []
    by_top = sorted(pieces, key=lambda piece: piece.line.box[1])
    for place, piece in enumerate(by_top):
        for other in by_top[place + 1 :]:
            if other.line.box[1] > piece.line.box[3] - 0.2 * piece.size:
                break
            left, right = (piece, other) if piece.x1 < other.x1 else (other, piece)
            if right.x1 - left.x2 >= TYPOGRAPHY.gutter * min(left.size, right.size):
                gaps.append((left.x2, right.x1))
    found: list[tuple[float, float]] = []
    while gaps and len(found) < _MOST_GUTTERS:
        events = sorted([(start, 1) for start, _ in gaps] + [(end, -1) for _, end in gaps], key=lambda e: (e[0], -e[1]))
        best, count, place = 0, 0, 0
        for index, (_, step) in enumerate(events):
            count += step
            if count > best:
                best, place = count, index
        if best < TYPOGRAPHY.column_rows:
            break
        x1, x2 = events[place][0], events[place + 1][0]
        found.append((x1, x2))
        middle = (x1 + x2) / 2
        gaps = [gap for gap in gaps if not gap[0] <= middle <= gap[1]]
    return found


def _bands(pieces: Sequence[Piece], gutter: tuple[float, float]) -> list[tuple[list[Piece], list[Piece], list[Piece]]]:
    """Stretches of the page from top to bottom: what stands across the gutter, then what is on its two sides.

    Pictures and tables that the text of both sides flows around follow it.
    """
    middle = (gutter[0] + gutter[1]) / 2
    floats = _floats(pieces, middle)
    size = median(piece.size for piece in pieces)
    waiting: list[Piece] = []
    bands: list[tuple[list[Piece], list[Piece], list[Piece]]] = [([], [], [])]
    for piece in sorted(pieces, key=lambda piece: piece.baseline):
        slack = 0.2 * piece.size
        reaches = not any(bands[-1][1:]) or piece.x2 > gutter[0] + 0.2 * size
        enters = piece.x1 < gutter[1] - 0.2 * size and reaches
        if enters and piece.size > TYPOGRAPHY.larger * size and _is_alone(piece, pieces):
            slack = -float("inf")  # over the columns
        if piece in floats:
            waiting.append(piece)
        elif piece.x2 <= middle + slack:
            bands[-1][1].append(piece)
        elif piece.x1 >= middle - slack:
            bands[-1][2].append(piece)
        else:
            if bands[-1][1] or bands[-1][2]:
                heads = _heads_of(piece, *bands[-1][1:])
                bands += [(waiting, [], []), ([], [], [])] if waiting else [([], [], [])]
                waiting = []
                bands[-1][0].extend(heads)
            bands[-1][0].append(piece)
    return [*bands, (waiting, [], [])]


def _heads_of(piece: Piece, left: list[Piece], right: Sequence[Piece]) -> list[Piece]:
    """The heading of what stands across a gutter, taken out of the column above: set off, below both columns."""
    if len(left) < 2 or not piece.words:
        return []
    above, head = left[-2:]
    gap = head.baseline - above.baseline
    stands_out = head.bold or head.size > TYPOGRAPHY.larger * piece.size
    is_set_off = gap > TYPOGRAPHY.heading_gap * max(head.size, piece.baseline - head.baseline)
    is_below = all(other.line.box[3] <= head.line.box[1] + 0.2 * head.size for other in right)
    is_near = piece.baseline - head.baseline < 2.5 * head.size and abs(piece.x1 - head.x1) < 2 * head.size
    return [left.pop()] if stands_out and is_set_off and is_below and is_near else []


def _floats(pieces: Sequence[Piece], middle: float) -> list[Piece]:
    """Pictures and tables across a gutter that the text of both sides flows around, each with its caption below it."""
    floats: list[Piece] = []
    for shown in pieces:
        bottom = shown.line.box[3]
        if (
            shown.words
            or not shown.x1 < middle < shown.x2
            or not _is_flowed_around(shown, pieces, TYPOGRAPHY.column_rows)
        ):
            continue
        floats.append(shown)
        inside = [p for p in pieces if p.words and shown.x1 - p.size < p.x1 and p.x2 < shown.x2 + p.size]
        for piece in sorted(inside, key=lambda piece: piece.baseline):
            if -piece.size < piece.line.box[1] - bottom < 1.5 * piece.size and _is_flowed_around(piece, pieces, 1):
                floats.append(piece)
                bottom = piece.line.box[3]
    return floats


def _is_alone(piece: Piece, pieces: Sequence[Piece]) -> bool:
    """Whether nothing stands beside a piece."""
    _, top, _, bottom = piece.line.box
    return not any(top < o.line.box[3] and o.line.box[1] < bottom for o in pieces if o is not piece)


def _is_flowed_around(piece: Piece, pieces: Sequence[Piece], least: int) -> bool:
    """Whether at least so many pieces of text are on either side of a piece."""
    _, top, _, bottom = piece.line.box
    beside = [other for other in pieces if other.words and top < other.line.box[3] and other.line.box[1] < bottom]
    return min(sum(o.x2 <= piece.x1 for o in beside), sum(o.x1 >= piece.x2 for o in beside)) >= least


def _are_columns(left: Sequence[Piece], right: Sequence[Piece]) -> bool:
    """Whether both sides of a gutter are columns of text, rather than cells of a table.

    The rows of a table have a common baseline on both sides. Columns that have that, too, hold rows that fill them.
    """
    if not left or not right:
        return False
    if any(2 * sum(piece.line.tag in _CELLS for piece in side) > len(side) for side in (left, right)):
        return False
    size = median(piece.size for piece in left)
    if min(piece.x1 for piece in right) - max(piece.x2 for piece in left) < TYPOGRAPHY.gutter * size * 0.9:
        return False
    rows = [rows_of_pieces(side) for side in (left, right)]
    if any(_are_labels(rows[one], rows[other]) for one, other in ((0, 1), (1, 0))):
        return False
    changes = _changes(left, right)
    coded = any(all(row.fixed for row in side) for side in rows) and all(p.may_be_code for p in (*left, *right))
    if changes > 1 and coded:
        return False  # code with comments in a column, which may be in another script
    if changes == 1 and min(map(len, rows)) > 1 and any(map(_is_prose, rows)):
        return True  # a float or a note beside text, or cards
    sides = [_measures(side) for side in rows]
    if any(_is_beside(rows[one], sides[one], rows[other], sides[other]) for one, other in ((0, 1), (1, 0))):
        return True
    if any(count < TYPOGRAPHY.column_rows or width < TYPOGRAPHY.column_width for count, width, _, _ in sides):
        return False
    if changes > 2 and (_is_table_cut(*rows) or _is_table_cut(*reversed(rows))):
        return False
    if all(any(not piece.words for piece in side) for side in (left, right)):
        return True  # they stand for tables and pictures, of which cells hold none
    fewest = min(map(len, rows))
    by_lines = changes >= 1.9 * fewest and fewest >= TYPOGRAPHY.cell_lines
    if changes > 2 and not by_lines and 2 * fewest < TYPOGRAPHY.cell_lines * (changes + 1):
        return False  # written cell by cell
    if _aligned_share(*rows) < TYPOGRAPHY.aligned_rows:
        return True
    if min(density for _, _, _, density in sides) < TYPOGRAPHY.column_density:
        return False
    full = [min(_measures(column)[2] for column in _inner(side)) for side in rows]
    return min(full) >= TYPOGRAPHY.full_rows / 2 and max(full) >= TYPOGRAPHY.full_rows


def _blocks_beside(
    left: Sequence[Piece], right: Sequence[Piece]
) -> tuple[list[Piece], list[Piece], list[Piece]] | None:
    """The blocks on both sides of a gutter, written one after the other and on other baselines, and what is below them.

    In letterheads the sender is beside a date, a number and a title.
    """
    blocks: list[list[Piece]] = []
    below: list[Piece] = []
    for side in (left, right):
        rows = rows_of_pieces(side)
        end = next((at for at, (above, row) in enumerate(pairwise(rows), 1) if _is_set_off(row, above)), len(rows))
        blocks.append([piece for row in rows[:end] for piece in row.pieces])
        below += [piece for row in rows[end:] for piece in row.pieces]
    if not all(blocks) or _changes(*blocks) != 1:
        return None
    size = median(piece.size for block in blocks for piece in block)
    gap = min(piece.x1 for piece in blocks[1]) - max(piece.x2 for piece in blocks[0])
    first, second = map(rows_of_pieces, blocks)
    starts, ends = zip(*((rows[0].box[1], rows[-1].box[3]) for rows in (first, second)), strict=True)
    if gap < TYPOGRAPHY.other_gap * size or min(len(first), len(second)) < 2 or max(starts) > min(ends):
        return None
    # The head of a table with cells of several lines is above rows that are on both sides.
    is_head = any(len(row.pieces) > 1 for row in rows_of_pieces(below)[:1])
    return None if is_head or _aligned(first, second) else (blocks[0], blocks[1], below)


def _is_set_off(row: PageRow, above: PageRow) -> bool:
    return row.box[1] - above.box[3] > TYPOGRAPHY.block_gap * max(row.size, above.size)


def _are_labels(side: Sequence[PageRow], other: Sequence[PageRow]) -> bool:
    """Whether the rows of a side are numbers beside rows of the other one: no column of text is that."""
    if any(not any(map(str.isdecimal, row.text)) or any(map(str.isalpha, row.text)) for row in side):
        return False
    return _aligned(side, other) >= TYPOGRAPHY.aligned_rows * len(side)


def _is_prose(rows: Sequence[PageRow]) -> bool:
    """Whether rows are those of a paragraph: most have the words of a sentence and fill the column."""
    _, _, full, _ = _measures(rows)
    words = sum(len(row.words) >= TYPOGRAPHY.sentence_words for row in rows)
    return len(rows) >= TYPOGRAPHY.column_rows and full >= 0.5 and 2 * words > len(rows)


def _changes(left: Sequence[Piece], right: Sequence[Piece]) -> int:
    """How often the order of writing changes the side: once between columns, twice for each row of a table."""
    sides = sorted((piece.order, side) for side, own in enumerate((left, right)) for piece in own if piece.words)
    return sum(one[1] != other[1] for one, other in pairwise(sides))


def _aligned_share(left: Sequence[PageRow], right: Sequence[PageRow]) -> float:
    """Share of the rows of the side with fewer of them that have a row on the other side, on the same baseline."""
    few, many = sorted((left, right), key=len)
    return _aligned(few, many) / len(few)


def _aligned(rows: Sequence[PageRow], others: Sequence[PageRow]) -> int:
    """How many rows have another one on the same baseline."""
    others = sorted(others, key=lambda row: row.baseline)
    aligned = 0
    for row in rows:
        place = bisect(others, row.baseline, key=lambda other: other.baseline)
        near = others[max(0, place - 1) : place + 1]
        aligned += any(is_level(row, other) for other in near)
    return aligned


def is_level(row: PageRow, other: PageRow) -> bool:
    """Whether two rows stand on one baseline, or in the middle of one row of a table."""
    most = TYPOGRAPHY.common_baseline * row.size + TYPOGRAPHY.lowered * abs(row.size - other.size)
    return abs(row.baseline - other.baseline) < most


def _is_table_cut(side: Sequence[PageRow], other: Sequence[PageRow]) -> bool:
    """Whether a gutter would cut a table: most rows of a side are in pieces, and go on on the other side."""
    if _aligned(_in_pieces(side), other) < TYPOGRAPHY.column_rows:
        return False
    return len(_inner(side)) < 2 or _begin_together(side, other)


def _in_pieces(side: Sequence[PageRow]) -> list[PageRow]:
    """The rows in several pieces, if most are."""
    pieces = [row for row in side if len(row.pieces) > 1]
    return pieces if 2 * len(pieces) > len(side) else []


def _inner(side: Sequence[PageRow]) -> list[list[PageRow]]:
    """The columns that a side consists of: of three columns two are on one side of a gutter."""
    if not _in_pieces(side):
        return [list(side)]
    return [rows_of_pieces(flow) for flow in flows_of([p for row in side for p in row.pieces], _MOST_DEPTH - 1)]


def _is_beside(prose: Sequence[PageRow], wide: Measures, note: Sequence[PageRow], narrow: Measures) -> bool:
    """Whether a side is running text, and the other one stands beside it: notes in a margin, a table in a corner."""
    if wide[1] < TYPOGRAPHY.prose_width or wide[2] < TYPOGRAPHY.prose_rows or len(prose) < TYPOGRAPHY.prose_lines:
        return False
    if len(note) < TYPOGRAPHY.column_rows:
        return False
    if narrow[1] < TYPOGRAPHY.note_width or _begin_together(prose, note):
        return False
    if len(_first_rows(prose)) > (1 - TYPOGRAPHY.prose_rows) * len(prose):
        return False
    return 2 * len(_first_rows(note)) <= len(note) or narrow[3] > TYPOGRAPHY.note_density


def _begin_together(left: Sequence[PageRow], right: Sequence[PageRow]) -> bool:
    """Whether the paragraphs of both sides begin on the same baselines, as cells of a table do."""
    few, many = sorted((_first_rows(left), _first_rows(right)), key=len)
    return len(few) > 2 and _aligned(few, many) >= TYPOGRAPHY.fills * len(few)


def _first_rows(rows: Sequence[PageRow]) -> list[PageRow]:
    leading, right = leading_of(rows), max(row.x2 for row in rows)
    return [row for row in rows if begins(row, leading, right)]


Measures = tuple[int, float, float, float]
"""Rows, width in em, share of rows that fill it, and share of its height that the rows take up."""


def _measures(rows: Sequence[PageRow]) -> Measures:
    size = median(row.size for row in rows)
    left, right = min(row.x1 for row in rows), max(row.x2 for row in rows)
    # Rows of a table are wide as well, but in several pieces.
    full = sum(len(row.pieces) == 1 and row.x2 - row.x1 >= TYPOGRAPHY.fills * (right - left) for row in rows)
    pitches = sorted(row.pitch for row in rows if row.above is not None and row.pitch > 0)
    usual = min(pitches[len(pitches) // 4], 1.8 * size) if pitches else 1.2 * size
    height = rows[-1].baseline - rows[0].baseline + usual
    return len(rows), (right - left) / size, full / len(rows), len(rows) * usual / max(height, 1.0)
