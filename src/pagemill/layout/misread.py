"""Telling misread model regions from real ones: "figures" and "tables" that are running text, text that is a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from pagemill.layout.text_blocks import group_lines, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pagemill.imaging.types import Pixels

_PAGE_FILLING = 0.6  # share of the page from which a "figure" with text in it is the page itself
_DENSE = 0.35  # share of a figure that its line boxes cover when it is text; diagrams stay below 0.2
_MIN_INK = 0.01  # share of inked pixels in what is left of a figure
_MIN_REMAINDER = 0.015  # share of the page
_INK_CONTRAST = 40  # grey levels from the background


def running_text(box: NDArray[np.float64], lines: NDArray[np.float64], page_area: float) -> NDArray[np.bool_]:
    """Which of the lines inside a figure are running text rather than labels of the figure.

    Args:
        box: The figure, shape (4,).
        lines: Boxes of the lines inside, shape (n, 4).
        page_area: In the square of the boxes' unit.

    Returns:
        Mask of shape (n,).
    """
    result = np.zeros(len(lines), dtype=bool)
    if not len(lines):
        return result
    width = box[2] - box[0]
    area = width * (box[3] - box[1])
    line_width = lines[:, 2] - lines[:, 0]
    covered = float((line_width * (lines[:, 3] - lines[:, 1])).sum())
    if area >= _PAGE_FILLING * page_area or covered >= _DENSE * area:
        return ~result
    for block in group_lines(lines):
        extent = lines[block, 2].max() - lines[block, 0].min()
        if (len(block) >= 3 and extent >= 0.4 * width) or (len(block) >= 2 and extent >= 0.6 * width):
            result[block] = True
    if result.any():  # headings and single lines between the paragraphs, above or below them
        result |= line_width >= 0.5 * width
    return result


def picture_remainder(
    box: NDArray[np.float64], text: NDArray[np.float64], pixels: Pixels, page_area: float
) -> list[NDArray[np.float64]]:
    """What is left of a figure once running text is taken out: inked strips above, between and below the text.

    Args:
        box: The figure, shape (4,), page pixels.
        text: Boxes of the lines taken out, shape (n, 4).
        pixels: The page.
        page_area: In square pixels.

    Returns:
        Tight boxes, shape (4,) each; none when nothing but background is left.
    """
    left, right = int(box[0]), int(np.ceil(box[2]))
    remainders = []
    for top, bottom in _free_spans(box[1], box[3], text):
        strip = pixels[int(top) : int(bottom), left:right]
        if (bottom - top) * (right - left) < _MIN_REMAINDER * page_area or not strip.size:
            continue
        grey = cv2.cvtColor(np.ascontiguousarray(strip), cv2.COLOR_RGB2GRAY).astype(np.int16)
        ink = np.abs(grey - int(np.median(grey))) > _INK_CONTRAST
        if ink.mean() < _MIN_INK:
            continue
        columns, rows = np.nonzero(ink.any(axis=0))[0], np.nonzero(ink.any(axis=1))[0]
        tight = np.array([left + columns[0], top + rows[0], left + columns[-1] + 1, top + rows[-1] + 1], dtype=float)
        if (tight[2] - tight[0]) * (tight[3] - tight[1]) >= _MIN_REMAINDER * page_area:
            remainders.append(tight)
    return remainders


def _free_spans(top: float, bottom: float, text: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Vertical spans between ``top`` and ``bottom`` that no line reaches into."""
    spans = []
    for line in text[np.argsort(text[:, 1])]:
        if line[1] > top:
            spans.append((top, float(line[1])))
        top = max(top, float(line[3]))
    return [*spans, (top, bottom)] if bottom > top else spans


def is_single_column(lines: NDArray[np.float64]) -> bool:
    """Whether a "table" is running text: four lines or more, none beside another."""
    return len(lines) >= 4 and all(len(row) == 1 for row in rows_of(lines))


def find_table(lines: NDArray[np.float64]) -> NDArray[np.intp] | None:
    """The lines of a borderless table among lines: three rows or more of three cells or more under each other.

    Newspaper columns line up as well, but their lines fill the columns; the cells of a table leave most of it free.

    Args:
        lines: Boxes of shape (n, 4).

    Returns:
        Indices of the table's lines, or None.
    """
    rows = rows_of(lines)
    best: tuple[int, int] | None = None
    start = 0
    while start < len(rows):
        end, misses = start, 0
        for k in range(start, len(rows)):
            misses = 0 if len(rows[k]) >= 3 else misses + 1
            if misses > 1:
                break
            if not misses:
                end = k + 1
        if end - start >= 3 and (best is None or end - start > best[1] - best[0]):
            best = (start, end)
        start = max(end, start + 1)
    if best is None:
        return None
    wide = [row for row in rows[best[0] : best[1]] if len(row) >= 3]
    cells = lines[np.concatenate(wide)]
    unit = float(np.median(cells[:, 3] - cells[:, 1]))
    extent = cells[:, 2].max() - cells[:, 0].min()
    filled = np.median([(lines[row, 2] - lines[row, 0]).sum() for row in wide]) / extent
    if len(wide) < 3 or filled > 0.65 or len(_gutters(cells, unit)) < 2:
        return None
    return np.concatenate(rows[best[0] : best[1]])


def _gutters(cells: NDArray[np.float64], unit: float) -> list[float]:
    """Widths of the vertical gaps, at least 0.8 line heights wide, that no cell reaches into."""
    order = np.argsort(cells[:, 0])
    reach = np.maximum.accumulate(cells[order, 2])
    gaps = cells[order[1:], 0] - reach[:-1]
    return [float(gap) for gap in gaps if gap >= 0.8 * unit]
