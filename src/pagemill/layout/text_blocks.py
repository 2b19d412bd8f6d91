"""Text lines clustered into paragraph-like blocks, column by column, without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pagemill.document.geometry import components, frame_of
from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.layout.thresholds import LAYOUT


def group_lines(lines: Floats, free: Flags | None = None, *, press: bool = False) -> list[Indices]:
    """Cluster lines into blocks: lines of one column with the leading and size of a paragraph.

    Args:
        lines: Boxes of shape (n, 4), each with an area.
        free: Which lines to cluster, shape (n,); the others only keep free lines apart. None for all.
        press: The page is one of the press, in narrow columns: words of a justified line stand far apart there, and
            text over several columns is no part of the column below it.

    Returns:
        Indices of every block's lines from top to bottom; every free line is in exactly one block.
    """
    count = len(lines)
    if not count:
        return []
    free = np.ones(count, dtype=bool) if free is None else free
    pieces = components(count, _row_links(lines, free, press))
    frames = np.array([frame_of(lines[piece]) for piece in pieces])
    piece_free = np.array([free[piece].all() for piece in pieces])
    blocks = []
    for members in components(
        len(pieces),
        np.argwhere(_column_links(frames, piece_free, LAYOUT.press_same_size if press else LAYOUT.same_size)).tolist(),
    ):
        if piece_free[members].all():
            rows = members[np.argsort(frames[members, 1], kind="stable")]
            cuts = [*_narrowings(frames[rows]), *_captions(frames, rows)] if press else []
            for part in np.split(rows, sorted(set(cuts))):
                block = np.concatenate([pieces[i] for i in part])
                blocks.append(block[np.lexsort((lines[block, 0], lines[block, 1]))])
    return blocks


def _narrowings(rows: Floats) -> list[int]:
    """Before which rows of a block, from the top, it becomes much narrower or wider: a deck over a column of text."""
    widths = rows[:, 2] - rows[:, 0]
    few = LAYOUT.press_lines
    places = []
    for place in range(1, len(rows)):
        above, below = widths[max(0, place - few) : place], widths[place : place + few]
        narrower = len(rows) - place >= few and above[-1] > LAYOUT.press_wide * below.max()
        if narrower or (place >= few and below[0] > LAYOUT.press_wide * above.max()):
            places.append(place)
    return places


def _captions(frames: Floats, rows: Indices) -> list[int]:
    """Where the first or the last row of a block is cut off, as it reaches over or under what is beside the others."""
    places = []
    for row, rest, place in ((rows[0], rows[1:], 1), (rows[-1], rows[:-1], len(rows) - 1)):
        if not len(rest):
            continue
        left, top, right, bottom = frame_of(frames[rest])
        slack = (frames[row, 3] - frames[row, 1]) / 2
        beside = (frames[:, 1] + slack < bottom) & (frames[:, 3] - slack > top)
        after = (frames[:, 0] > right - slack) & (frames[:, 0] < frames[row, 2] - slack)
        before = (frames[:, 2] < left + slack) & (frames[:, 2] > frames[row, 0] + slack)
        if (beside & (after | before)).any():
            places.append(place)
    return places


def line_height(lines: Floats) -> float:
    """Usual height of lines, shape (n, 4), n > 0."""
    return float(np.median(lines[:, 3] - lines[:, 1]))


def text_columns(lines: Floats) -> list[Indices]:
    """The blocks of lines, shape (n, 4), that are columns of running text: wider than cells, and filled.

    None where most lines are too long for three columns.
    """
    if _usual_width(lines) > LAYOUT.press_line * np.ptp(lines[:, ::2]):
        return []  # most pages: grouping their lines would take 15 ms
    unit = line_height(lines)
    columns = []
    for block in group_lines(lines, press=True):
        rows = np.array([frame_of(lines[block[row]]) for row in rows_of(lines[block])])
        width = np.ptp(rows[:, ::2])
        filled = _usual_width(rows) >= LAYOUT.full_line * width
        if len(rows) >= LAYOUT.press_lines and width >= LAYOUT.press_width * unit and filled:
            columns.append(block)
    return columns


def is_press(lines: Floats, columns: Sequence[Indices]) -> bool:
    """Whether most lines are in columns of text, three of which or more stand side by side."""
    if 2 * sum(map(len, columns)) < len(lines):
        return False  # three captions side by side make no newspaper
    frames = np.array([frame_of(lines[column]) for column in columns]).reshape(-1, 4)
    return stand_side_by_side(frames, line_height(lines)) >= LAYOUT.press_columns


def are_plain_columns(frames: Floats, unit: float) -> bool:
    """Whether blocks of text, shape (n, 4), are three columns or more: below their top none is across a gutter."""
    tall = frames[frames[:, 3] - frames[:, 1] > LAYOUT.press_lines * unit]
    if not tall.size:
        return False
    below = frames[frames[:, 3] > tall[:, 1].min() + unit / 2]
    ends = np.maximum.accumulate(below[np.argsort(below[:, 0]), 2])
    columns = 1 + int((np.sort(below[:, 0])[1:] > ends[:-1] - unit / 2).sum())
    return columns >= LAYOUT.press_columns and columns == stand_side_by_side(below, unit)


def stand_side_by_side(frames: Floats, unit: float) -> int:
    """How many frames of columns, shape (n, 4), stand side by side where most do, with lines so high."""
    most = 0
    for y in (frames[:, 1] + frames[:, 3]) / 2:
        beside = frames[(frames[:, 1] < y) & (frames[:, 3] > y)]
        # Half a line: the frames of columns whose lines are bent overlap a little.
        ends = np.maximum.accumulate(beside[np.argsort(beside[:, 0]), 2])
        most = max(most, 1 + int((np.sort(beside[:, 0])[1:] > ends[:-1] - unit / 2).sum()))
    return most


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


def _row_links(lines: Floats, free: Flags, press: bool) -> list[tuple[int, int]]:
    """Pairs of neighbours that are pieces of one line."""
    x1, y1, x2, y2 = lines.T
    height = y2 - y1
    low = np.minimum.outer(height, height)
    same_row = np.minimum.outer(y2, y2) - np.maximum.outer(y1, y1) > LAYOUT.same_row * low
    # A line that runs down beside several rows, a headline of vertical text that lies on its side, is no piece of one.
    stands = height > LAYOUT.standing * (x2 - x1)
    high = np.maximum.outer(height, height) > LAYOUT.standing * low
    same_row &= ~(high & (stands[:, None] | stands))
    to_the_right = (x1[:, None] < x1) & (x1 - x2[:, None] > (-1.0 if press else -LAYOUT.same_row) * low)
    gap = np.where(same_row & to_the_right, x1 - x2[:, None], np.inf)
    nearest = gap.argmin(axis=1)
    usual = line_height(lines)
    links = []
    for i, j in enumerate(nearest.tolist()):
        distance, unit = gap[i, j], low[i, j]
        if not (free[i] and free[j] and np.isfinite(distance)):
            continue
        if press:
            if _are_of_one_row(lines, i, j, unit, usual):
                links.append((i, j))
            continue
        marker = x2[i] - x1[i] < LAYOUT.marker_width * unit
        if distance >= (LAYOUT.marker_width if marker else LAYOUT.word_gap) * unit:
            continue
        if not _is_gutter(lines, i, j, unit, LAYOUT.marker_width if marker else 0.0):
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


def _are_of_one_row(lines: Floats, left: int, right: int, unit: float, usual: float) -> bool:
    """Whether two neighbours in a row on a page of the press are words of one line, with lines usually so high.

    Words of a justified line may stand farther apart than columns do: lines above or below that reach across tell that
    both are of one column, where there is no gutter. Headings have few lines: one across is enough.
    """
    start, end = lines[left, 2], lines[right, 0]
    height = lines[:, 3] - lines[:, 1]
    title = unit > LAYOUT.title_size * usual
    near = np.abs(lines[:, 1] - lines[left, 1]) < LAYOUT.press_reach[0 if title else 1] * unit
    near &= np.minimum(height, unit) > LAYOUT.press_same_size * np.maximum(height, unit)
    ends = (start, end) if title else ((start + end - unit) / 2, (start + end + unit) / 2)
    across = bool((near & (lines[:, 0] < ends[0]) & (lines[:, 2] > ends[1])).any())
    most = (LAYOUT.press_title_gap if title else LAYOUT.press_word_gap) if across else LAYOUT.word_gap
    if end - start >= most * (unit if across else min(unit, usual)):
        return False
    widths = lines[[left, right], 2] - lines[[left, right], 0]
    touch = end <= start and widths.min() >= LAYOUT.press_width * usual  # two columns: detection pads its boxes
    if not across and (touch or _is_gutter(lines, left, right, unit, 0.0)):
        return False
    return not _is_long_gutter(lines, end if title and across else start, end, (lines[left, 1], unit), usual)


def _is_long_gutter(lines: Floats, start: float, end: float, row: tuple[float, float], unit: float) -> bool:
    """Whether lines of a column begin, or end flush, from ``start`` to ``end`` above or below; few reach across.

    Args:
        lines: Shape (n, 4).
        start: Where it may begin.
        end: Where it may end.
        row: Top and height of the row that it is in.
        unit: Usual height of lines.
    """
    below = (lines[:, 1] - row[0]) / max(row[1], unit)
    slack, reach = np.array(LAYOUT.long_gutter_slack) * unit, LAYOUT.long_gutter
    for first, last in ((-0.5, reach), (-reach, 0.5), (-reach / 2, reach / 2)):
        near = lines[(below > first) & (below < last)]
        for edge, near_by in ((0, slack[0]), (2, slack[1])):
            edges = near[:, edge]
            places = edges[(edges > start - slack[0]) & (edges < end + slack[0])]
            aligned = (np.abs(edges - places[:, None]) < near_by).sum(axis=1)
            over = ((near[:, 0] < places[:, None] - unit) & (near[:, 2] > places[:, None] + unit)).sum(axis=1)
            found = (aligned >= LAYOUT.long_gutter_lines) & (over <= LAYOUT.long_gutter_crossed * aligned)
            for place, count in zip(places[found], aligned[found], strict=True):
                rivals = edges[np.abs(edges - place) < LAYOUT.press_width * unit]
                if (np.abs(rivals - rivals[:, None]) < near_by).sum(axis=1).max() <= count:
                    return True  # gaps between words may stand below each other, but fewer than lines begin
    return False


def _column_links(pieces: Floats, free: Flags, same_size: float) -> Flags:
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
    # Boxes around the few letters of a last line are tall.
    short = np.minimum.outer(width / height, width / height) < LAYOUT.short_line
    alike = low >= np.where(short, LAYOUT.same_size, same_size) * np.maximum.outer(height, height)
    linked: Flags = neighbours & single & alike & (gap < limit) & free[:, None] & free
    return linked
