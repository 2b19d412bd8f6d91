"""Cells with their words: the result of both ways to find a grid; shading."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import TableWord, runs


class GridCell(msgspec.Struct):
    """A cell of a grid, with its words."""

    row: int
    column: int
    row_span: int = 1
    column_span: int = 1
    words: list[TableWord] = []


class Grid(msgspec.Struct, frozen=True):
    """A table's cells and how many rows at its top are header rows."""

    cells: Sequence[GridCell]
    header_rows: int


def shaded_header_rows(
    gray: NDArray[np.uint8], across: tuple[float, float], rows: Sequence[tuple[float, float]]
) -> int:
    """How many rows at the top have a shade of their own; 0 if the shading is no evidence.

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
    shades = np.array([np.percentile(strip, TABLES.ground_percentile) for strip in strips])
    same = np.abs(shades - shades[0]) < TABLES.shade / 2
    count = int(np.argmin(same))  # 0 where all are
    # In striped tables the shade comes back.
    own = abs(shades[count] - shades[0]) >= TABLES.shade and same[count:].mean() <= TABLES.shade_returns
    return count if own and count <= len(rows) // 2 else 0


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
    ground = np.percentile(gray[:, left:right], TABLES.ground_percentile, axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(ground, height)
    shade, even = np.median(windows, axis=1), np.ptp(np.sort(windows, axis=1)[:, 1:-1], axis=1) < TABLES.shade
    change = np.abs(shade[height:] - shade[:-height])  # at y: the rows above y + height against those from there on
    changes = runs(even[height:] & even[:-height] & (change >= TABLES.shade))
    return [float((start + end) // 2 + height) for start, end in changes]
