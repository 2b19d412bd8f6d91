"""Fields of forms: labels with values of any kind, as told from columns of running text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from pagemill.document.direction import mirrored
from pagemill.document.geometry import union_box
from pagemill.document.page import TextLine
from pagemill.late import re
from pagemill.parsing.pairs.segments import Pair, Segment, aligned, most, rows_of, segments_of
from pagemill.parsing.thresholds import PARSING
from pagemill.tables.prose import prose_share
from pagemill.tables.thresholds import TABLES

_COLONS = ":："
_ITEM = re.compile(r"[(\[]?(?:\d{1,3}|[a-z]|[ivxlc]{1,6})[.)\]]{0,2}", re.IGNORECASE)
"""The number alone of a list item, a reference or a line."""
_INDEX_ENTRY = re.compile(r",\s*\d{1,4}$")
"""An entry of an index ends in the number of its page."""


def form_fields(segments: Sequence[Segment], height: float) -> Iterable[list[Pair]]:
    """Labels and values that begin below each other, in rows of nothing else.

    Two columns of text look alike, but their lines end close to the next column.

    Args:
        segments: All segments of the page.
        height: Usual height of its lines.
    """
    segments = [segment for segment in segments if segment.text]
    rows = [row for row in rows_of(segments) if not any(segment.led for segment in row)]
    starts = sorted(part[0].box[0] for row in rows for part in _parts(row, height))
    parted = [_parts(row, height, starts) for row in rows]
    pairs = [
        Pair(tuple(label), value[0])
        for parts in parted
        if len(parts) % 2 == 0 and all(len(part) == 1 for part in parts[1::2])
        for label, value in zip(parts[::2], parts[1::2], strict=True)
    ]
    columns: list[list[Pair]] = []
    for column in aligned(pairs, lambda pair: pair.value.box[0], height):
        start = float(np.median([pair.start for pair in column]))
        column = [pair for pair in column if abs(pair.start - start) < PARSING.pair_edge * height]
        if len(column) >= PARSING.paired_fields:
            columns.append(column)
    known = segments_of(pair for column in columns for pair in column)
    for parts in parted:
        if len(parts) > 1 and known.isdisjoint(segment for part in parts for segment in part):
            for place, pair in _incomplete(parts, columns, height):
                columns[place].append(pair)
    for form in _forms(columns, segments, height):
        known = segments_of(form)
        yield _with_second_lines(form, [segment for segment in segments if segment not in known], height)


def is_running_text(fields: Sequence[Pair], mirror: float | None) -> bool:
    """Whether supposed fields are columns of text, items with their numbers, a script or an index.

    Args:
        fields: The rows.
        mirror: Width of a page whose segments are mirrored; None for others.
    """
    labels, values = [pair.label[0] for pair in fields], [pair.value for pair in fields if pair.value.text]
    for side in (labels, values):
        lines = [TextLine(text=segment.text, box=segment.box) for segment in side]
        if prose_share(lines if mirror is None else [mirrored(line, mirror) for line in lines]) >= TABLES.prose:
            return True
    if most(_ITEM.fullmatch(segment.text) for segment in labels):
        return True
    if all(most(_INDEX_ENTRY.search(segment.text) for segment in side) for side in (labels, values)):
        return True
    is_script = 2 * len({segment.text for segment in labels}) < len(labels)  # its speakers come again and again
    words = PARSING.words_of_text[0 if is_script else 1]
    has_colons = most(pair.label[-1].text[-1] in _COLONS for pair in fields)
    return (is_script or not has_colons) and most(len(segment.text.split()) >= words for segment in values)


def _parts(row: Sequence[Segment], height: float, starts: Sequence[float] = ()) -> list[list[Segment]]:
    """A row cut at wide gaps, and at narrow ones before what begins below others: some labels leave little room."""
    parts = [[row[0]]]
    for left, segment in pairwise(row):
        gap = segment.box[0] - left.box[2]
        x, edge = segment.box[0], 0.5 * PARSING.pair_edge * height
        below = bisect_left(starts, x + edge) - bisect_right(starts, x - edge)
        known = below >= PARSING.least_pairs and (gap > PARSING.known_gap * height or left.text[-1] in _COLONS)
        if known or gap > PARSING.pair_gap * height:
            parts.append([])
        parts[-1].append(segment)
    return parts


def _incomplete(
    parts: Sequence[list[Segment]], columns: Sequence[Sequence[Pair]], height: float
) -> Iterable[tuple[int, Pair]]:
    """Fields of a row where a value is missing, or in one line with its label, by the index of their column.

    None where a part of the row is in no column. None without any value: these are second lines of labels.
    """
    places = [(i, column[0].start, column[0].value.box[0]) for i, column in enumerate(columns)]
    found: dict[int, Pair] = {}
    for part in parts:
        x, edge = part[0].box[0], PARSING.pair_edge * height
        for place, label, value in places:
            if abs(x - label) < edge and place not in found:
                _, y1, x2, y2 = part[-1].box
                found[place] = Pair(tuple(part), Segment("", (value, y1, max(x2, value), y2), part[-1].line))
                break
            if abs(x - value) < edge and place in found and len(part) == 1:
                found[place] = replace(found[place], value=part[0])
                break
        else:
            return []
    return found.items() if any(pair.value.text for pair in found.values()) else []


def _forms(columns: Iterable[list[Pair]], segments: Sequence[Segment], height: float) -> list[list[Pair]]:
    """Columns of fields, those beside each other joined; one that is surely a form makes one of those beside it."""
    forms: list[tuple[list[Pair], bool]] = []
    for column in columns:
        beside = [form for form in forms if _share_rows(form[0], column, height)]
        sure = _is_form(column, segments, height) or any(is_form for _, is_form in beside)
        forms = [form for form in forms if form not in beside]
        forms.append((column + [pair for form, _ in beside for pair in form], sure))
    return [form for form, is_form in forms if is_form]


def _share_rows(column: Sequence[Pair], other: Sequence[Pair], height: float) -> bool:
    """Whether most rows of two columns of fields are on one level."""
    shared = sum(any(abs(a.value.middle - b.value.middle) < 0.5 * height for b in other) for a in column)
    return 2 * shared > min(len(column), len(other))


def _is_form(column: Sequence[Pair], segments: Sequence[Segment], height: float) -> bool:
    """Whether labels end in colons, or are far from their values and no column of text beside another one.

    Notes in the margin of a text are beside a few of its lines: between rows of a form there is little else.
    """
    left, top, right, bottom = union_box(pair.box for pair in column)
    known = segments_of(column)
    if len(column) < sum(
        top < segment.middle < bottom and segment.box[0] < right and left < segment.box[2]
        for segment in segments
        if segment not in known
    ):
        return False
    if most(pair.label[-1].text[-1] in _COLONS for pair in column):
        return True
    start, end, value = (
        float(np.median(places))
        for places in zip(*((p.start, p.label[-1].box[2], p.value.box[0]) for p in column), strict=True)
    )
    narrow = end - start < min(PARSING.label_filled * (value - start), PARSING.label_width * height)
    return narrow and not (_are_full([p.label[-1] for p in column]) and _are_full([p.value for p in column]))


def _are_full(segments: Sequence[Segment]) -> bool:
    """Whether segments look like the lines of a paragraph: most are about as wide as the widest."""
    widths = [segment.box[2] - segment.box[0] for segment in segments]
    return sum(width > 0.75 * max(widths) for width in widths) > 0.7 * len(widths)


def _with_second_lines(column: Sequence[Pair], others: Iterable[Segment], height: float) -> list[Pair]:
    """Fields from the top, with the second lines of labels: they are closer to the first ones than any two rows."""
    column = sorted(column, key=lambda pair: pair.value.middle)
    levels = sorted(pair.label[0].middle for pair in column)
    pitch = min((below - above for above, below in pairwise(levels) if below - above > 0.5 * height), default=0.0)
    farthest = min(PARSING.second_line[0] * height, PARSING.second_line[1] * pitch)
    for segment in others:
        for place, pair in enumerate(column):
            if (
                abs(segment.box[0] - pair.start) < PARSING.pair_edge * height
                and segment.box[2] < pair.value.box[0]
                and 0.5 * height < segment.middle - pair.label[0].middle < farthest
            ):
                column[place] = replace(pair, label=(*pair.label, segment))
    return column
