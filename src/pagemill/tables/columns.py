"""Columns of a table without vertical rules: gutters, the blanks that run down through its rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, extent, runs

_CURRENCIES = frozenset("$€£¥₩₹₽")

if TYPE_CHECKING:
    from pagemill.tables.rules import Rule


def chunks_of_row(row: Sequence[TableWord], gap: float, walls: Sequence[Rule] = ()) -> list[list[TableWord]]:
    """Cut a row of words where the gap is at least ``gap`` pixels, or a wall stands: a vertical rule."""
    chunks: list[list[TableWord]] = []
    end = -np.inf
    for word in sorted(row, key=lambda word: word.x1):
        if not chunks or word.x1 - end >= gap or any(parts(wall, chunks[-1][-1], word) for wall in walls):
            chunks.append([])
            end = -np.inf
        chunks[-1].append(word)
        end = max(end, word.x2)
    return chunks


def parts(wall: Rule, left: TableWord, right: TableWord) -> bool:
    """Whether a vertical rule stands between two words of one line."""
    return left.x < wall.position < right.x and wall.start < left.y < wall.end


def find_separators(rows: Sequence[Sequence[TableWord]], text_height: float, ruled: Sequence[float]) -> list[float]:
    """Find the x of the borders between columns, ascending.

    Args:
        rows: Words of each line of the table.
        text_height: Usual height of a line in pixels.
        ruled: x of vertical rules, which are borders in any case.
    """
    cut = [[extent(chunk) for chunk in chunks_of_row(row, TABLES.wide_gap * text_height)] for row in rows]
    several = [index for index, chunks in enumerate(cut) if len(chunks) > 1]
    found = list(ruled)
    if several:
        left = min(x1 for index in several for x1, _ in cut[index])
        right = max(x2 for index in several for _, x2 in cut[index])
        ink = _ink([rows[index] for index in several], left, right, text_height)
        every = _ink(rows, left, right, text_height)  # a cell that nearly touches the next is in a row of one chunk
        for start, end in _gutters(ink, text_height):
            column = every[:, start:end].sum(axis=0)
            widest = max(runs(column == column.min()), key=lambda run: run[1] - run[0])
            found.append(left + start + sum(widest) / 2)
    found = _thin(sorted(found), ruled, text_height)
    edges = [-np.inf, *found, np.inf]
    inner = [x for low, high in pairwise(edges) for x in _inner_border(rows, low, high, text_height)]
    return sorted(found + inner)


def _inner_border(rows: Sequence[Sequence[TableWord]], low: float, high: float, text_height: float) -> list[float]:
    """The border that splits a column in most of its rows, although titles and totals cross it; empty without one."""
    inside = [[word for word in row if low < word.x < high] for row in rows]
    parted = [chunks for row in inside if len(chunks := chunks_of_row(row, TABLES.inner_gap * text_height)) == 2]
    if len(parted) < 4:
        return []
    # Where most of the gaps overlap.
    starts = np.array([extent(left)[1] for left, _ in parted])
    ends = np.array([extent(right)[0] for _, right in parted])
    middle = float(np.median((starts + ends) / 2))
    agreed = (starts < middle) & (ends > middle)
    # Lines of a wrapped cell are on one side of the border, and are no evidence.
    spans = [extent(row) for row in inside if row]
    over = sum(x1 < middle < x2 for x1, x2 in spans)
    return [middle] if agreed.mean() > TABLES.inner_agreement and 2 * len(parted) >= over else []


def _ink(rows: Sequence[Sequence[TableWord]], left: float, right: float, text_height: float) -> NDArray[np.bool_]:
    """Where each row has text, shape (rows, pixels from left to right)."""
    ink = np.zeros((len(rows), max(1, int(np.ceil(right - left)))), dtype=np.bool_)
    for index, row in enumerate(rows):
        for chunk in chunks_of_row(row, TABLES.word_space * text_height):
            start, end = extent(chunk)
            ink[index, int(max(0, start - left)) : int(max(0, np.ceil(end - left)))] = True
    return ink


def _gutters(ink: NDArray[np.bool_], text_height: float) -> list[tuple[int, int]]:
    """Pixel ranges that hardly any row crosses, with text on both sides."""
    count = len(ink)
    allowed = max(1, int(TABLES.gutter_crossed * count)) if count >= 4 else 0
    result = []
    for start, end in runs(ink.sum(axis=0) <= allowed):
        both = int((ink[:, :start].any(axis=1) & ink[:, end:].any(axis=1)).sum())
        needed = next((width for rows, width in TABLES.gutters if both >= rows), np.inf)
        if end - start >= needed * text_height:
            result.append((start, end))
    return result


def _thin(found: Sequence[float], ruled: Sequence[float], text_height: float) -> list[float]:
    """Drop borders next to another one; a rule stays."""
    kept: list[float] = []
    for x in found:
        if not kept or x - kept[-1] >= TABLES.border_distance * text_height:
            kept.append(x)
        elif x in ruled:
            kept[-1] = x
    return kept


def without_currency_columns(separators: Sequence[float], words: Sequence[TableWord]) -> list[float]:
    """Join columns that hold nothing but currency signs with the amounts on their right.

    Reports align the signs in a column of their own; to a reader they belong to the amounts. Some are misread: ``s``.
    """
    texts: list[list[str]] = [[] for _ in range(len(separators) + 1)]
    for column, word in zip(np.searchsorted(separators, [word.x for word in words]), words, strict=True):
        texts[column].append(word.text)
    return [x for x, own in zip(separators, texts, strict=False) if own and not _are_signs(own)]


def _are_signs(texts: Sequence[str]) -> bool:
    return all(len(text) == 1 for text in texts) and 2 * sum(text in _CURRENCIES for text in texts) > len(texts)
