"""Grids without a full set of rules: columns from gutters, rows from lines of text and from what rules there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.tables.columns import chunks_of_row, find_separators, without_currency_columns
from pagemill.tables.grid import Grid, GridCell, shaded_header_rows
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, extent, is_number, join_words, text_rows

if TYPE_CHECKING:
    from pagemill.tables.rules import Rule, Rules


class Piece(msgspec.Struct):
    """Words of one line of text in one column, or across several."""

    first: int
    last: int
    words: list[TableWord]

    @property
    def middle(self) -> float:
        """Where the middle is, as x."""
        return sum(extent(self.words)) / 2


class TextRow(msgspec.Struct):
    """A line of text across the table, or several that make one row."""

    y: float
    end: float
    """Where the last line is, as y."""
    pieces: list[Piece]

    @property
    def columns(self) -> set[int]:
        """Columns with text."""
        return {column for piece in self.pieces for column in range(piece.first, piece.last + 1)}

    def spans(self) -> bool:
        """Whether a piece lies across columns."""
        return any(piece.last > piece.first for piece in self.pieces)

    def absorb(self, pieces: Iterable[Piece], end: float) -> None:
        """Take in pieces of a line: each joins the one that shares a column with it."""
        for piece in pieces:
            mine = next((p for p in self.pieces if p.first <= piece.last and piece.first <= p.last), None)
            if mine is None:
                self.pieces.append(piece)
            else:
                mine.words += piece.words
                mine.first, mine.last = min(mine.first, piece.first), max(mine.last, piece.last)
        self.end = end


def stream_grid(words: Sequence[TableWord], rules: Rules, text_height: float, gray: NDArray[np.uint8]) -> Grid | None:
    """Build a grid from the words' places; None without at least two columns and two rows."""
    lines = text_rows(words, text_height)
    top, bottom = lines[0][0].y, lines[-1][0].y
    left, right = extent(words)
    ruled = [
        rule.position
        for rule in rules.vertical
        if rule.length >= TABLES.rule_is_border * (bottom - top)
        and left + text_height < rule.position < right - text_height
    ]
    separators = find_separators(lines, text_height, ruled)
    separators = without_currency_columns(separators, words)
    if not separators:
        return None
    rows = []
    for line in lines:
        chunks = chunks_of_row(line, TABLES.wide_gap * text_height, rules.vertical)
        pieces = [piece for chunk in chunks for piece in _pieces(chunk, separators, text_height)]
        y = float(np.mean([word.y for word in line]))
        rows.append(TextRow(y, y, []))
        rows[-1].absorb(sorted(pieces, key=lambda piece: piece.first), y)
    across = [rule.position for rule in rules.horizontal if rule.length >= TABLES.rule_divides_rows * (right - left)]
    extents = [(min(word.y1 for word in line), max(word.y2 for word in line)) for line in lines]
    split = shaded_header_rows(gray, (left, right), extents) or _header_end(rows, across)
    head = _header_levels(rows, split, rules, separators, text_height)
    body = _body_rows(rows[split:], across, text_height)
    if len(head) + len(body) < 2:
        return None
    body, labels = _labelled_groups(body)
    cells = [
        GridCell(index, piece.first, 1, piece.last - piece.first + 1, piece.words)
        for index, row in enumerate(head + body)
        for piece in row.pieces
        if not labels or piece.first or index < len(head)
    ]
    cells += [GridCell(len(head) + first, 0, rows, 1, label.words) for label, first, rows in labels]
    return Grid(cells, len(head))


def _labelled_groups(rows: list[TextRow]) -> tuple[list[TextRow], list[tuple[Piece, int, int]]]:
    """Rows, those of a label alone left out, and the labels with their first row and number of rows.

    The label of several rows is in their middle: on the middle row, or between the two. If one row has no such label,
    all rows are returned unchanged, without labels.
    """
    kept: list[TextRow] = []
    labels: list[tuple[Piece, int, int]] = []
    above = below = 0  # rows without label before the next one, and those that the last one still spans
    for row in rows:
        label = next((piece for piece in row.pieces if piece.first == 0), None)
        if label is None:
            below, above = (below - 1, above) if below else (0, above + 1)
            kept.append(row)
            continue
        alone = len(row.pieces) == 1
        if below or label.last or (alone and not above):
            return rows, []
        labels.append((label, len(kept) - above, 2 * above + (not alone)))
        if not alone:
            kept.append(row)
        below, above = above, 0
    return (rows, []) if above or below else (kept, labels)


def _pieces(words: Sequence[TableWord], separators: Sequence[float], text_height: float) -> list[Piece]:
    """Cut a run of words at column borders where there is a gap; else it lies across the border."""
    columns = np.searchsorted(separators, [word.x for word in words]).tolist()
    pieces = [Piece(columns[0], columns[0], [words[0]])]
    for (before, column), (left, word) in zip(pairwise(columns), pairwise(words), strict=True):
        if column > before and word.x1 - left.x2 >= TABLES.gap_at_border * text_height:
            pieces.append(Piece(column, column, [word]))
        else:
            pieces[-1].words.append(word)
            pieces[-1].last = max(pieces[-1].last, column)
    for piece in pieces:
        _pull_back(piece, separators)
    return pieces


def _pull_back(piece: Piece, separators: Sequence[float]) -> None:
    """Keep a piece in one column if it hardly reaches out of it."""
    start, end = extent(piece.words)
    while piece.last > piece.first and end - separators[piece.last - 1] < TABLES.overhang * (end - start):
        piece.last -= 1
    while piece.last > piece.first and separators[piece.first] - start < TABLES.overhang * (end - start):
        piece.first += 1


def _header_end(rows: Sequence[TextRow], across: Sequence[float]) -> int:
    """How many lines at the top are the header: above the first rule across the table, else a first row of titles."""
    if len(rows) < 2:
        return 0
    # A header longer than the body is a misreading, such as a rule above the totals.
    most = len(rows) // 2
    for y in across:
        above = sum(row.y < y for row in rows)
        # A title above the table's top rule is no header.
        if 0 < above <= most and (above > 1 or len(rows[0].columns) > 1):
            return above
    # Without a rule: titles stand over the figures, and the column of labels has none of its own.
    labelled = [0 in row.columns for row in rows]
    count = labelled.index(True) if any(labelled) else 0
    if 0 < count <= most and float(np.mean(labelled[count:])) > TABLES.stub_filled:
        return count
    count = 1
    while count < most and rows[count - 1].spans():
        count += 1
    return count


def _header_levels(
    rows: Sequence[TextRow], split: int, rules: Rules, separators: Sequence[float], text_height: float
) -> list[TextRow]:
    """Join lines of the header that wrap, stretch titles over the columns that they are centred on."""
    levels: list[TextRow] = []
    for index, row in enumerate(rows[:split]):
        above = levels[-1] if levels else None
        if (
            above is not None
            and not (above.spans() or row.spans())
            and row.y - above.end < TABLES.row_distance * text_height
            and not any(above.end < rule.position < row.y for rule in rules.horizontal)
        ):
            above.absorb(row.pieces, row.end)
            continue
        levels.append(row)
        if index + 1 < split:
            _stretch(row, rows[index + 1 :], rules, len(separators), text_height)
    return levels


def _stretch(row: TextRow, below: Sequence[TextRow], rules: Rules, last: int, text_height: float) -> None:
    """Widen pieces over empty columns beside them: as far as the rule below them, else to be centred."""
    next_columns = below[0].columns
    places = _extents(below, last + 1)
    between = [rule for rule in rules.horizontal if row.y < rule.position < below[0].y]

    def spanned(rule: Rule, x: float) -> bool:
        return rule.start - text_height < x < rule.end + text_height

    for piece in row.pieces:
        free = next_columns - row.columns
        low, high = piece.first, piece.last
        while low - 1 in free:
            low -= 1
        while high + 1 in free:
            high += 1
        # A rule under several titles does not show where one ends.
        under = [rule for rule in between if [p for p in row.pieces if spanned(rule, p.middle)] == [piece]]
        if under:
            rule = min(under, key=lambda rule: rule.length)
            inside = [c for c in range(low, high + 1) if c in places and spanned(rule, sum(places[c]) / 2)]
            low, high = min([piece.first, *inside]), max([piece.last, *inside])
        else:
            low, high = _centred(piece, low, high, places)
        piece.first, piece.last = low, high


def _extents(below: Sequence[TextRow], columns: int) -> dict[int, tuple[float, float]]:
    """Where the columns' own text stands in the rows below."""
    extents: dict[int, tuple[float, float]] = {}
    for column in range(columns):
        words = [w for r in below for p in r.pieces if p.first == p.last == column for w in p.words]
        if words:
            extents[column] = extent(words)
    return extents


def _centred(piece: Piece, low: int, high: int, places: dict[int, tuple[float, float]]) -> tuple[int, int]:
    """The span between two columns whose middle is nearest to the piece's, the widest of equals."""
    offs: dict[tuple[int, int], float] = {}
    for first in places.keys() & range(low, piece.first + 1):
        for last in places.keys() & range(piece.last, high + 1):
            start, end = places[first][0], places[last][1]
            offs[first, last] = abs((start + end) / 2 - piece.middle) / max(end - start, 1.0)
    least = min(offs.values(), default=0.0)
    near = [span for span, off in offs.items() if off < least + TABLES.centring_tie]
    return max(near, key=lambda span: span[1] - span[0], default=(piece.first, piece.last))


def _body_rows(rows: Sequence[TextRow], across: Sequence[float], text_height: float) -> list[TextRow]:
    """Join lines that wrap inside a cell."""
    if not rows:
        return []
    bands = [sum(y < row.y for y in across) for row in rows]
    joined = [rows[0]]
    for index in range(1, len(rows)):
        row, above = rows[index], joined[-1]
        after = rows[index + 1].y - row.y if index + 1 < len(rows) else np.inf
        if bands[index] == bands[index - 1] and _continues(above, row, after, text_height):
            above.absorb(row.pieces, row.end)
        else:
            joined.append(row)
    return joined


def _continues(above: TextRow, row: TextRow, after: float, text_height: float) -> bool:
    """Whether a line continues the row above: fewer columns, each under text, nothing that starts a new row."""
    distance = row.y - above.end
    if distance > TABLES.row_distance * text_height or row.spans():
        return False
    if not row.columns < above.columns:
        return False
    tighter = distance < TABLES.continues_tighter * after
    texts = [join_words(piece.words, text_height)[0] for piece in row.pieces]
    if 0 in row.columns:
        # The label of a row wraps; a line of its own that does not start in the middle of a sentence may be a title.
        return len(texts) == 1 and (tighter or texts[0][:1].islower())
    if sum(text[:1] in "([" for text in texts) > len(texts) // 2:
        return True
    few = len(texts) <= max(1, len(above.columns) // 2)
    fresh_start = all(text[:1].isupper() for text in texts) and not tighter
    return few and not fresh_start and after >= TABLES.continues_tighter * distance and not any(map(is_number, texts))
