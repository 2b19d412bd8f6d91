"""Text lines clustered into paragraph-like blocks, column by column, without a model."""

from __future__ import annotations

import numpy as np

from pagemill.document.geometry import components, frame_of
from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.layout.thresholds import LAYOUT


def group_lines(lines: Floats, free: Flags | None = None) -> list[Indices]:
    """Cluster lines into blocks: lines of one column with the leading and size of a paragraph.

    Args:
        lines: Boxes of shape (n, 4), each with an area.
        free: Which lines to cluster, shape (n,); the others only keep free lines apart. None for all.

    Returns:
        Indices of every block's lines from top to bottom; every free line is in exactly one block.
    """
    count = len(lines)
    if not count:
        return []
    free = np.ones(count, dtype=bool) if free is None else free
    pieces = components(count, _row_links(lines, free))
    frames = np.array([frame_of(lines[piece]) for piece in pieces])
    piece_free = np.array([free[piece].all() for piece in pieces])
    blocks = []
    for members in components(len(pieces), np.argwhere(_column_links(frames, piece_free)).tolist()):
        if piece_free[members].all():
            block = np.concatenate([pieces[i] for i in members])
            blocks.append(block[np.lexsort((lines[block, 0], lines[block, 1]))])
    return blocks


def line_height(lines: Floats) -> float:
    """Usual height of lines, shape (n, 4), n > 0."""
    return float(np.median(lines[:, 3] - lines[:, 1]))


def split_lines(lines: Floats, members: Indices) -> list[Indices]:
    """Cut some lines, those of one region, at gutters between columns and at paragraph gaps (recursive XY-cut).

    More careful than ``group_lines``: the region is known to belong together, so only clear gaps cut.

    Args:
        lines: Boxes of shape (n, 4).
        members: Indices of the region's lines.

    Returns:
        Indices of every part's lines; parts from top to bottom, columns from left to right.
    """
    parts = []
    waiting = [members]  # no recursion: a long page in one region may have a thousand parts
    while waiting:
        part = waiting.pop()
        first = _first_part(lines[part]) if len(part) > 1 else None
        if first is None:
            parts.append(part)
        else:
            waiting += [part[~first], part[first]]
    return parts


def _first_part(lines: Floats) -> Flags | None:
    """Which lines are before the first gap that cuts them; None where none does."""
    unit = line_height(lines)
    gaps, edges = _projection_gaps(lines[:, 0], lines[:, 2])
    for place in np.argsort(-gaps, kind="stable"):
        left: Flags = lines[:, 2] <= edges[place]
        least = LAYOUT.narrow_gutter if _is_running_text(lines[left], lines[~left]) else LAYOUT.gutter
        if gaps[place] >= least * unit and _are_columns(lines[left], lines[~left], unit):
            return left
    slack = LAYOUT.paragraph_box_slack * unit
    bottoms = lines[:, 3] - slack
    gaps, edges = _projection_gaps(lines[:, 1] + slack, bottoms)
    usual = float(np.median(gaps)) if len(gaps) else 0.0
    limit = min(max(LAYOUT.paragraph_gap * unit, LAYOUT.paragraph_gap_ratio * usual), LAYOUT.clear_gap * unit)
    wide = np.flatnonzero(gaps >= limit)
    return bottoms <= edges[wide[0]] if len(wide) else None


def _projection_gaps(start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Free spans of a projection in rising order: how wide each is, and where it begins."""
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])[:-1]
    free = start[order[1:]] - reach
    return free[free > 0], reach[free > 0]


def _are_columns(left: Floats, right: Floats, unit: float) -> bool:
    """Whether both sides are text of two lines or more, wider than numbers, that stand side by side."""
    if len(left) < 2 or len(right) < 2:
        return False
    a, b = frame_of(left), frame_of(right)
    width = min(a[2] - a[0], b[2] - b[0])
    shared = min(a[3], b[3]) - max(a[1], b[1])
    return bool(width >= LAYOUT.column_width * unit and shared > 0)


def _is_running_text(*columns: Floats) -> bool:
    """Whether lines are many, and fill their columns, so that the gap between these is none between words or cells."""
    fills = all(_usual_width(column) >= LAYOUT.full_line * np.ptp(column[:, ::2]) for column in columns)
    return fills and sum(map(len, columns)) >= LAYOUT.columns_lines


def _usual_width(lines: Floats) -> float:
    return float(np.median(lines[:, 2] - lines[:, 0]))


def rows_of(lines: Floats) -> list[Indices]:
    """Lines of one column set gathered into visual rows, rows from top to bottom, pieces from left to right."""
    rows: list[list[int]] = []
    centre, height = (lines[:, 1] + lines[:, 3]) / 2, lines[:, 3] - lines[:, 1]
    for i in np.argsort(centre, kind="stable").tolist():
        if rows and centre[i] - centre[rows[-1][0]] < LAYOUT.same_row * height[i]:
            rows[-1].append(i)
        else:
            rows.append([i])
    return [np.array(sorted(row, key=lambda i: lines[i, 0]), dtype=np.intp) for row in rows]


def _row_links(lines: Floats, free: Flags) -> list[tuple[int, int]]:
    """Pairs of neighbours that are pieces of one line."""
    x1, y1, x2, y2 = lines.T
    height = y2 - y1
    low = np.minimum.outer(height, height)
    same_row = np.minimum.outer(y2, y2) - np.maximum.outer(y1, y1) > LAYOUT.same_row * low
    to_the_right = (x1[:, None] < x1) & (x1 - x2[:, None] > -LAYOUT.same_row * low)
    gap = np.where(same_row & to_the_right, x1 - x2[:, None], np.inf)
    nearest = gap.argmin(axis=1)
    links = []
    for i, j in enumerate(nearest.tolist()):
        distance, unit = gap[i, j], low[i, j]
        if not (free[i] and free[j]):
            continue
        marker = x2[i] - x1[i] < LAYOUT.marker_width * unit
        reach = LAYOUT.marker_width if marker else LAYOUT.word_gap
        if distance < reach * unit and not _is_gutter(lines, i, j, unit, LAYOUT.marker_width if marker else 0.0):
            links.append((i, j))
    return links


def _is_gutter(lines: Floats, left: int, right: int, unit: float, least_width: float) -> bool:
    """Whether the gap between two pieces goes on above or below them, with text on both sides, so wide on the left."""
    start, end = lines[left, 2], lines[right, 0]
    if end - start < LAYOUT.least_gutter * unit:
        return False
    below = (lines[:, 1] + lines[:, 3] - lines[left, 1] - lines[left, 3]) / 2
    nearest, farthest = LAYOUT.gutter_reach
    slack = LAYOUT.gutter_slack * unit
    crossing = (lines[:, 0] < end - slack) & (lines[:, 2] > start + slack)
    before = (lines[:, 2] <= start + slack) & (lines[:, 2] > lines[left, 0])
    before &= lines[:, 2] - lines[:, 0] >= least_width * unit
    after = (lines[:, 0] >= end - slack) & (lines[:, 0] < lines[right, 2])

    def goes_on(near: Flags, least: int) -> bool:
        return bool(not (near & crossing).any() and min((near & before).sum(), (near & after).sum()) >= least)

    downwards, upwards = ((sign * below > nearest * unit) & (sign * below < farthest * unit) for sign in (1, -1))
    # What stands across it on one side, a caption or a heading, does not end it where it goes on for two rows.
    return goes_on(downwards | upwards, 1) or goes_on(downwards, 2) or goes_on(upwards, 2)


def _column_links(pieces: Floats, free: Flags) -> Flags:
    """Pairs of successive lines of one paragraph. A line over or under several side by side links to none of them."""
    x1, y1, x2, y2 = pieces.T
    width, height, centre = x2 - x1, y2 - y1, (y1 + y2) / 2
    low = np.minimum.outer(height, height)
    shared = np.minimum.outer(x2, x2) - np.maximum.outer(x1, x1)
    over = shared > LAYOUT.over * np.minimum.outer(width, width)
    below = centre > centre[:, None]
    drop = np.where(over & below, centre - centre[:, None], np.inf)  # (i, j): j under i
    first_below = drop <= drop.min(axis=1, keepdims=True) + LAYOUT.first_below * height[:, None]
    first_above = drop <= drop.min(axis=0, keepdims=True) + LAYOUT.first_below * height
    neighbours = np.isfinite(drop) & first_below & first_above
    single = (neighbours.sum(axis=1, keepdims=True) == 1) & (neighbours.sum(axis=0, keepdims=True) == 1)
    gap = np.maximum(y1 - y2[:, None], 0.0) / low
    usual = gap[neighbours & single]
    limit = LAYOUT.leading
    if len(usual):
        limit = min(max(limit, LAYOUT.leading_ratio * float(np.median(usual))), LAYOUT.max_leading)
    alike = low >= LAYOUT.same_size * np.maximum.outer(height, height)
    linked: Flags = neighbours & single & alike & (gap < limit) & free[:, None] & free
    return linked
