"""What both ways to find a grid hand over: cells with their words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.document.geometry import Box
    from pagemill.tables.words import TableWord
_SHADE = 16
"""Grey levels between two shades of ground."""


@dataclass(slots=True)
class GridCell:
    """A cell of a grid, with its words."""

    row: int
    column: int
    row_span: int = 1
    column_span: int = 1
    words: list[TableWord] = field(default_factory=list)
    box: Box | None = None
    """Box on the table's plane where rules tell; None for the words' own."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table's cells and how many rows at its top are header rows."""

    cells: Sequence[GridCell]
    header_rows: int


def text_rows(words: Sequence[TableWord], text_height: float) -> list[list[TableWord]]:
    """Group words into lines of text that run across the table, from top to bottom."""
    rows: list[list[TableWord]] = []
    middle = 0.0
    for word in sorted(words, key=lambda word: word.y):
        if rows and word.y - middle < 0.5 * text_height:
            rows[-1].append(word)
            middle += (word.y - middle) / len(rows[-1])
        else:
            rows.append([word])
            middle = word.y
    return rows


def shaded_header_rows(
    gray: NDArray[np.uint8], across: tuple[float, float], rows: Sequence[tuple[float, float]]
) -> int:
    """How many rows at the top stand on a ground of their own shade; 0 where the shade tells nothing.

    Args:
        gray: The table, shape (height, width), uint8.
        across: Left and right end of the rows, in pixels.
        rows: Upper and lower end of each row.
    """
    left, right = (max(0, round(x)) for x in across)
    strips = [gray[max(0, round(top)) : max(0, round(bottom)), left:right] for top, bottom in rows]
    if len(strips) < 2 or not all(strip.size for strip in strips):
        return 0
    # Even dense print covers less than the darkest or lightest third of its line.
    shades = np.array([np.percentile(strip, 67) for strip in strips])
    same = np.abs(shades - shades[0]) < _SHADE / 2
    count = int(np.argmin(same)) if not same.all() else 0
    # In striped tables the shade comes back.
    own = count > 0 and abs(shades[count] - shades[0]) >= _SHADE and same[count:].mean() <= 0.1
    return count if own and count <= max(1, len(rows) // 2) else 0


def shade_edges(gray: NDArray[np.uint8], across: tuple[float, float], least: float) -> list[float]:
    """Where the ground changes its shade from one row to the next, as y: the edges of shaded rows.

    Args:
        gray: The table, shape (height, width), uint8.
        across: Left and right end of the rows, in pixels.
        least: Least height of a row in pixels.
    """
    left, right = (max(0, round(x)) for x in across)
    height = max(3, int(least))
    if right - left < 2 or len(gray) < 2 * height:
        return []
    # Even dense print covers less than the darkest or lightest third of its line.
    ground = np.percentile(gray[:, left:right], 67, axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(ground, height)
    shade, even = np.median(windows, axis=1), np.ptp(np.sort(windows, axis=1)[:, 1:-1], axis=1) < _SHADE
    step = np.abs(shade[height:] - shade[:-height])  # at y: the rows above y + height against those from there on
    step = np.where(even[height:] & even[:-height], step, 0.0)
    edges: list[float] = []
    while step.size and step.max() >= _SHADE:
        most = np.flatnonzero(step == step.max())
        y = int(most[len(most) // 2])
        edges.append(float(y + height))
        step[max(0, y - height) : y + height] = 0.0
    return sorted(edges)


def is_number(text: str) -> bool:
    """Whether a cell's text is mostly figures (amounts, percentages, dates), or a mark that stands for one."""
    letters = sum(character.isalpha() for character in text)
    digits = sum(character.isdigit() for character in text)
    return digits > letters or (not letters and bool(text.strip()))
