"""Columns of a table without vertical rules: gutters, the blanks that run down through its rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pagemill.tables.thresholds import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.tables.words import TableWord


@dataclass(frozen=True, slots=True)
class Chunk:
    """Words of one row with no wide gap between them."""

    words: tuple[TableWord, ...]
    x1: float
    x2: float


def chunks_of_row(row: Sequence[TableWord], gap: float) -> list[Chunk]:
    """Cut a row of words where the gap is at least ``gap`` pixels."""
    chunks: list[list[TableWord]] = []
    end = -np.inf
    for word in sorted(row, key=lambda word: word.x1):
        if not chunks or word.x1 - end >= gap:
            chunks.append([])
            end = -np.inf
        chunks[-1].append(word)
        end = max(end, word.x2)
    return [Chunk(tuple(c), c[0].x1, max(word.x2 for word in c)) for c in chunks]


def find_separators(
    rows: Sequence[Sequence[TableWord]], text_height: float, ruled: Sequence[float] = ()
) -> list[float]:
    """Find the x of the borders between columns, ascending.

    Args:
        rows: Words of each line of the table.
        text_height: Usual height of a line in pixels.
        ruled: x of vertical rules, which are borders in any case.
    """
    cut = [chunks_of_row(row, TABLES.wide_gap * text_height) for row in rows]
    several = [index for index, chunks in enumerate(cut) if len(chunks) > 1]
    found = list(ruled)
    if several:
        left = min(chunk.x1 for index in several for chunk in cut[index])
        right = max(chunk.x2 for index in several for chunk in cut[index])
        ink = _ink([rows[index] for index in several], left, right, text_height)
        lone = [chunk for index in several for chunk in cut[index]]
        neighbours = [cut[index] for index in several for _ in cut[index]]
        for start, end in _gutters(ink, text_height):
            pieces = _split_at_lone_cells(left + start, left + end, lone, neighbours, (left, right), text_height)
            for x1, x2 in pieces:
                if x1 <= left or x2 >= right:
                    continue
                column = ink[:, int(x1 - left) : max(int(x1 - left) + 1, int(x2 - left))].sum(axis=0)
                found.append(x1 + _middle_of_longest(column == column.min()))
    found = _thin(sorted(found), set(ruled), text_height)
    edges = [-np.inf, *found, np.inf]
    inner = [x for low, high in pairwise(edges) for x in _inner_border(rows, low, high, text_height)]
    return sorted(found + inner)


def _inner_border(rows: Sequence[Sequence[TableWord]], low: float, high: float, text_height: float) -> list[float]:
    """The border that splits a column in most of its rows, although titles and totals cross it; empty without one."""
    inside = [[word for word in row if low < word.x < high] for row in rows]
    parted = [chunks for row in inside if len(chunks := chunks_of_row(row, TABLES.inner_gap * text_height)) == 2]
    filled = sum(bool(row) for row in inside)
    if len(parted) < 4 or 2 * len(parted) < filled:
        return []
    # Where most of the gaps overlap.
    starts = np.array([chunks[0].x2 for chunks in parted])
    ends = np.array([chunks[1].x1 for chunks in parted])
    middle = float(np.median((starts + ends) / 2))
    agreed = (starts < middle) & (ends > middle)
    return [middle] if agreed.mean() > TABLES.inner_agreement else []


def _ink(rows: Sequence[Sequence[TableWord]], left: float, right: float, text_height: float) -> NDArray[np.bool_]:
    """Where each row has text, shape (rows, pixels from left to right)."""
    ink = np.zeros((len(rows), max(1, int(np.ceil(right - left)))), dtype=np.bool_)
    for index, row in enumerate(rows):
        for chunk in chunks_of_row(row, TABLES.word_space * text_height):
            ink[index, int(max(0, chunk.x1 - left)) : int(np.ceil(chunk.x2 - left))] = True
    return ink


def _gutters(ink: NDArray[np.bool_], text_height: float) -> list[tuple[int, int]]:
    """Pixel ranges that hardly any row crosses, including those at both ends."""
    count = len(ink)
    allowed = max(1, int(TABLES.gutter_crossed * count)) if count >= 4 else 0
    low = ink.sum(axis=0) <= allowed
    edges = np.flatnonzero(np.diff(np.concatenate(([False], low, [False])).astype(np.int8))).reshape(-1, 2)
    result = []
    for start, end in edges.tolist():
        if start == 0 or end == ink.shape[1]:
            result.append((start, end))
            continue
        both = int((ink[:, :start].any(axis=1) & ink[:, end:].any(axis=1)).sum())
        needed = next((width for rows, width in TABLES.gutters if both >= rows), np.inf)
        if end - start >= needed * text_height:
            result.append((start, end))
    return result


def _split_at_lone_cells(
    x1: float,
    x2: float,
    chunks: Sequence[Chunk],
    rows: Sequence[Sequence[Chunk]],
    extent: tuple[float, float],
    text_height: float,
) -> list[tuple[float, float]]:
    """Cut a gutter around a sparse column inside it: cells that have neighbours on each side where there is text."""
    clear = TABLES.lone_cell_clearance * text_height
    at_left, at_right = x1 <= extent[0], x2 >= extent[1]
    inside = []
    for chunk, row in zip(chunks, rows, strict=True):
        if (at_left or chunk.x1 >= x1 + clear) and (at_right or chunk.x2 <= x2 - clear):
            before = any(other.x2 <= x1 + clear for other in row)
            after = any(other.x1 >= x2 - clear for other in row)
            if (before or at_left) and (after or at_right):
                inside.append((chunk.x1, chunk.x2))
    pieces, start = [], x1
    for low, high in sorted(inside):
        if low > start:
            pieces.append((start, low))
        start = max(start, high)
    if start < x2:
        pieces.append((start, x2))
    return [piece for piece in pieces if piece[1] - piece[0] >= clear] if inside else [(x1, x2)]


def _middle_of_longest(mask: NDArray[np.bool_]) -> float:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))).reshape(-1, 2)
    start, end = edges[int(np.argmax(edges[:, 1] - edges[:, 0]))]
    return float(start + end) / 2


def _thin(found: list[float], ruled: set[float], text_height: float) -> list[float]:
    """Drop borders next to another one; a rule stays."""
    kept: list[float] = []
    for x in found:
        if kept and x - kept[-1] < TABLES.border_distance * text_height:
            if x in ruled:
                kept[-1] = x
            continue
        kept.append(x)
    return kept
