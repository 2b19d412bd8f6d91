"""Telling misread model regions from real ones: "figures" and "tables" that are running text, text that is a table."""

from __future__ import annotations

import numpy as np

from pagemill.document.geometry import area, areas
from pagemill.document.labels import Label
from pagemill.imaging.types import Flags, Floats, Indices, Pixels
from pagemill.late import cv2
from pagemill.layout.text_blocks import group_lines, line_height, rows_of
from pagemill.layout.thresholds import LAYOUT


def logo_label(box: Floats, page_height: float) -> Label:
    """Header or footer image for a small picture, box of shape (4,), at the edge of the page; else image."""
    is_small = box[3] - box[1] <= LAYOUT.logo * page_height
    if is_small and box[3] < LAYOUT.head_band * page_height:
        return Label.HEADER_IMAGE
    if is_small and box[1] > (1 - LAYOUT.head_band) * page_height:
        return Label.FOOTER_IMAGE
    return Label.IMAGE


def page_area(pixels: Pixels) -> int:
    """Area of a page in square pixels."""
    return pixels[..., 0].size


def fills_page(box: Floats, pixels: Pixels) -> bool:
    """Whether a "figure" is so large that it may be the page itself."""
    return area(box) >= LAYOUT.page_filling * page_area(pixels)


def is_photograph(box: Floats, lines: Floats) -> bool:
    """Whether a page-filling figure is a picture with some words on it rather than a photographed page."""
    return float(areas(lines).sum()) < LAYOUT.sparse * area(box)


def paragraphs_in_formula(box: Floats, lines: Floats) -> Flags:
    """Which lines, shape (n, 4), inside a formula are paragraphs: neighbours as wide as the region."""
    result = np.zeros(len(lines), dtype=bool)
    for block in group_lines(lines):
        wide = lines[block, 2] - lines[block, 0] >= LAYOUT.formula_line_width * (box[2] - box[0])
        if wide.sum() >= 2:
            result[block] = True
    return result


def running_text(box: Floats, lines: Floats, pixels: Pixels) -> Flags:
    """Which of the lines inside a figure are running text rather than labels of the figure.

    Args:
        box: The figure, shape (4,).
        lines: Boxes of the lines inside, shape (n, 4).
        pixels: The page.

    Returns:
        Mask of shape (n,).
    """
    result = np.zeros(len(lines), dtype=bool)
    if not len(lines):
        return result
    width = box[2] - box[0]
    if fills_page(box, pixels) or areas(lines).sum() >= LAYOUT.dense * area(box):
        return ~result
    of_three, of_two = LAYOUT.paragraph_width
    for block in group_lines(lines):
        extent = lines[block, 2].max() - lines[block, 0].min()
        result[block] = len(block) > 1 and extent >= (of_two if len(block) == 2 else of_three) * width
    result |= _text_only(box, lines, pixels)
    if result.any():  # headings and single lines between the paragraphs, above or below them
        result |= lines[:, 2] - lines[:, 0] >= LAYOUT.stray_width * width
    return result


def is_panel(box: Floats, lines: Floats, pixels: Pixels) -> bool:
    """Whether a figure is lines of text on a coloured panel: a rectangle of one colour on a ground of another one.

    Args:
        box: The figure, shape (4,).
        lines: Boxes of the lines inside, shape (n, 4).
        pixels: The page.
    """
    left, top = max(0, int(box[0])), max(0, int(box[1]))
    shown = np.ascontiguousarray(pixels[top : max(0, int(np.ceil(box[3]))), left : max(0, int(np.ceil(box[2])))])
    if len(lines) < 2 or not shown.size:
        return False
    rest = np.ones(shown.shape[:2], dtype=bool)
    for x1, y1, x2, y2 in lines - np.array([left, top, left, top]):
        margin = LAYOUT.text_margin * (y2 - y1)
        rest[max(0, int(y1 - margin)) : int(y2 + margin) + 1, max(0, int(x1 - margin)) : int(x2 + margin) + 1] = False
    ground = _of_one_colour(shown, rest)
    panel = _of_one_colour(shown, rest & ~ground)
    x, y, width, height = cv2.boundingRect(panel.astype(np.uint8))
    if width * height < LAYOUT.least_panel * rest.size:
        return False  # a drawing in one colour, or a logo
    filled = (panel | ~rest)[y : y + height, x : x + width].mean()
    return bool(min(filled, (ground | panel)[rest].mean()) >= LAYOUT.panel_filled)


def _of_one_colour(shown: Pixels, where: Flags) -> Flags:
    """Which pixels have the usual colour of some of them, and are among these."""
    if not where.any():
        return where
    step = max(1, int(np.sqrt(where.size / LAYOUT.colour_sample)))
    sample = shown[::step, ::step][where[::step, ::step]]
    usual = np.median(sample if len(sample) else shown[where], axis=0)
    low, high = np.ceil(usual - LAYOUT.ink_contrast), np.floor(usual + LAYOUT.ink_contrast)
    alike: Flags = np.asarray(cv2.inRange(shown, tuple(low.tolist()), tuple(high.tolist()))) > 0
    return alike & where


def _text_only(box: Floats, lines: Floats, pixels: Pixels) -> Flags:
    """Lines in a band of the figure, three rows or more, that shows nothing but text."""
    left, top = int(box[0]), int(box[1])
    ink = _ink(pixels[top : int(np.ceil(box[3])), left : int(np.ceil(box[2]))])
    for x1, y1, x2, y2 in lines - np.array([left, top, left, top]):
        margin = LAYOUT.text_margin * (y2 - y1)
        ink[max(0, int(y1 - margin)) : int(y2 + margin) + 1, max(0, int(x1 - margin)) : int(x2 + margin) + 1] = False
    clear = np.concatenate([[0], np.cumsum(ink.sum(axis=1) > 2)])  # specks do not count
    result = np.zeros(len(lines), dtype=bool)
    rows = rows_of(lines)
    start = 0
    while start < len(rows):
        end = start + 1
        first = max(0, int(lines[rows[start], 1].min()) - top)
        while end < len(rows) and clear[min(len(clear) - 1, int(lines[rows[end], 3].max()) - top)] == clear[first]:
            end += 1
        if end - start >= 3:
            result[np.concatenate(rows[start:end])] = True
        start = end
    return result


def _ink(pixels: Pixels) -> Flags:
    """Pixels of a cut-out that differ from the shade along its edge, shape (height, width)."""
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY).astype(np.int16)
    edge = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    return np.abs(grey - int(np.median(edge))) > LAYOUT.ink_contrast


def picture_remainder(box: Floats, text: Floats, pixels: Pixels) -> list[Floats]:
    """What is left of a figure once running text is taken out: inked strips above, between and below the text.

    Args:
        box: The figure, shape (4,), page pixels.
        text: Boxes of the lines taken out, shape (n, 4).
        pixels: The page.

    Returns:
        Tight boxes, shape (4,) each; none when nothing but background is left.
    """
    left, right = int(box[0]), int(np.ceil(box[2]))
    least = LAYOUT.min_remainder * page_area(pixels)
    remainders = []
    for top, bottom in free_spans(box[1], box[3], text):
        strip = pixels[int(top) : int(bottom), left:right]
        if (bottom - top) * (right - left) < least or not strip.size:
            continue
        x, y, width, height = cv2.boundingRect(_ink(strip).astype(np.uint8))
        tight = np.array([left + x, top + y, left + x + width, top + y + height], dtype=float)
        if area(tight) >= least:
            remainders.append(tight)
    return remainders


def free_spans(top: float, bottom: float, text: Floats) -> list[tuple[float, float]]:
    """Vertical spans between ``top`` and ``bottom`` that no line of ``text``, shape (n, 4), reaches into."""
    spans = []
    for line in text[np.argsort(text[:, 1])]:
        if line[1] > top:
            spans.append((top, float(line[1])))
        top = max(top, float(line[3]))
    return [*spans, (top, bottom)] if bottom > top else spans


def is_no_table(lines: Floats) -> bool:
    """Whether the lines, shape (n, 4), in a "table" are a single line, or four and more with none beside another."""
    return len(lines) == 1 or (len(lines) >= 4 and all(len(row) == 1 for row in rows_of(lines)))


def is_columns_of_text(box: Floats, lines: Floats, pixels: Pixels) -> bool:
    """Whether a large "table" is columns of paragraphs: no gutters but the one or two between the columns.

    Args:
        box: The table, shape (4,).
        lines: Boxes of the lines inside, shape (n, 4).
        pixels: The page.
    """
    if area(box) < LAYOUT.big_table * page_area(pixels) or len(lines) < LAYOUT.big_table_lines:
        return False
    # A gutter of a table is crossed by few rows: headings and wide notes.
    steps = np.linspace(box[0], box[2], 200)
    crossed = ((lines[:, None, 0] < steps) & (lines[:, None, 2] > steps)).sum(axis=0)
    free = crossed <= LAYOUT.gutter_crossed * len(rows_of(lines))
    inner = np.nonzero(~free)[0]
    if not len(inner):
        return False
    runs = np.diff(free[inner[0] : inner[-1] + 1].astype(int))
    return int((runs == 1).sum()) <= 1


def find_table(lines: Floats) -> Indices | None:
    """The lines of a borderless table among lines: three rows or more of three cells or more under each other.

    Newspaper columns line up as well, but their lines fill the columns; the cells of a table leave most of it free.

    Args:
        lines: Boxes of shape (n, 4).

    Returns:
        Indices of the table's lines, or None.
    """
    rows = rows_of(lines)
    wide = np.flatnonzero([len(row) >= 3 for row in rows])
    if len(wide) < 3:
        return None
    # One row of fewer cells may stand before the others, or between two of them.
    runs = [(max(run[0] - 1, 0), run[-1] + 1) for run in np.split(wide, np.flatnonzero(np.diff(wide) > 2) + 1)]
    start, end = max(runs, key=lambda run: run[1] - run[0])
    full = [row for row in rows[start:end] if len(row) >= 3]
    cells = lines[np.concatenate(full)]
    extent = cells[:, 2].max() - cells[:, 0].min()
    filled = np.median([(lines[row, 2] - lines[row, 0]).sum() for row in full]) / extent
    # Columns of newspapers are wider than this, so short cells may fill more of the width and still be a table.
    short = np.median(cells[:, 2] - cells[:, 0]) < LAYOUT.short_cell * line_height(cells)
    most = LAYOUT.table_filled[1 if short else 0]
    if len(full) < 3 or filled > most or _gutters(cells, len(full)) < 2:
        return None
    return np.concatenate(rows[start:end])


def _gutters(cells: Floats, rows: int) -> int:
    """Number of vertical gaps, at least half a line height wide, that no cell reaches into, or those of a few rows.

    Text detectors draw boxes somewhat too wide, so a quarter of a line height at either end does not count.
    """
    unit = line_height(cells)
    margin = LAYOUT.box_slack * np.minimum(unit, cells[:, 2] - cells[:, 0])
    places = np.concatenate([cells[:, 0] + margin, cells[:, 2] - margin])
    order = np.argsort(places)
    crossing = np.cumsum(np.repeat([1, -1], len(cells))[order])
    full = np.flatnonzero(crossing > int(LAYOUT.table_gutter_crossed * rows))
    gaps = places[order[full[1:]]] - places[order[full[:-1] + 1]]
    return int((gaps >= LAYOUT.table_gutter * unit).sum())
