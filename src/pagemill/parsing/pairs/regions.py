"""Regions and tables of rows of labels and values, in place of the columns that a layout model takes them for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import median

from pagemill.document.direction import is_right_to_left, mirrored
from pagemill.document.geometry import Box, mirrored_box, union_box
from pagemill.document.labels import FIGURES, FORMULAS, Label
from pagemill.document.page import TextLine
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.lines import is_vertical, lines_of_regions
from pagemill.parsing.pairs.fields import form_fields, is_running_text
from pagemill.parsing.pairs.numbers import numbered_columns, numbered_pairs
from pagemill.parsing.pairs.segments import Pair, Segment, are_enough, are_led, cut, segments_of
from pagemill.parsing.pairs.tables import table_of
from pagemill.parsing.thresholds import PARSING
from pagemill.tables.table import Table

SOURCE = "pairs"
"""``DetectedRegion.source`` of the regions found here."""


def with_pairs(
    regions: Sequence[DetectedRegion],
    tables: Mapping[int, Table],
    lines: Sequence[TextLine],
    pixels: Pixels,
    *,
    with_fields: bool = False,
) -> tuple[list[DetectedRegion], dict[int, Table]]:
    """Add the rows of labels and values to the regions and tables; their lines leave the regions that had them.

    Args:
        regions: All regions of the page.
        tables: Recognised tables by the index of their region.
        lines: All lines of the page.
        pixels: The page.
        with_fields: Whether values may be words, too: on pages where nothing else finds the rows of forms.

    Returns:
        The regions, and the tables by the index of their region. Rows with leaders are regions of contents, and single
        rows text: the cells of their tables are their text.
    """
    place = {id(line): i for i, line in enumerate(lines)}
    members = {i: [place[id(line)] for line in own] for i, own in lines_of_regions(regions, lines).items()}
    owned = [members.get(i, []) for i in range(len(regions))]
    of_formulas = {line for i, region in enumerate(regions) if region.label in FORMULAS for line in owned[i]}
    free = [i for i, line in enumerate(lines) if i not in of_formulas and line.text.strip() and not is_vertical(line)]
    if not PARSING.least_pairs <= len(free) <= PARSING.max_lines:
        return list(regions), dict(tables)
    height = median(lines[i].box[3] - lines[i].box[1] for i in free)
    # In the mirror image of a right-to-left page, labels are on the left.
    mirror = float(pixels.shape[1]) if is_right_to_left("".join(lines[i].text for i in free)) else None
    read = {i: lines[i] if mirror is None else mirrored(lines[i], mirror) for i in free}
    segments = [segment for i, line in read.items() for segment in cut(line, i, height)]
    shown = pixels if mirror is None else pixels[:, ::-1]
    columns = _columns(segments, shown, height, mirror, with_fields=with_fields)

    of_tables = {line: index for index, table in tables.items() for line in table.line_indices}
    of_pictures = {line: i for i, region in enumerate(regions) if region.label in FIGURES for line in owned[i]}
    kept_tables = {of_tables[i] for i in _lines_of(c for c in columns if not are_led(c)) if i in of_tables}
    pictures = set(of_pictures.values())
    kept_pictures = pictures - _receipts(columns, of_pictures)
    held = {line for line, index in of_tables.items() if index in kept_tables}
    held |= {line for line, index in of_pictures.items() if index in kept_pictures}
    columns = [[pair for pair in column if held.isdisjoint(_lines_of([[pair]]))] for column in columns]
    runs = [run for column in _whole_lines(columns, segments) for run in _runs(column, segments)]
    if not runs:
        return list(regions), dict(tables)

    taken = _lines_of(runs)
    replaced = {of_tables[i] for i in taken if i in of_tables} | (pictures - kept_pictures)
    boxes = [union_box(pair.box for pair in run) for run in runs]
    if mirror is not None:
        boxes = [mirrored_box(box, mirror) for box in boxes]
    kept: list[DetectedRegion] = []
    found: dict[int, Table] = {}
    for index, region in enumerate(regions):
        if index in replaced or (index not in tables and not taken.isdisjoint(owned[index])):
            label = Label.TEXT if index in replaced else region.label
            rest = [lines[i] for i in owned[index] if i not in taken]
            kept += [replace(region, label=label, box=box, polygon=None) for box in _parts(rest, boxes)]
        else:
            if index in tables:
                found[len(kept)] = tables[index]
            kept.append(region)
    for run, box in zip(runs, boxes, strict=True):
        table = found[len(kept)] = table_of(run)
        label = Label.CONTENT if are_led(run) else Label.TEXT if table.rows == 1 else Label.TABLE
        kept.append(DetectedRegion(box=box, label=label, score=None, source=SOURCE))
    return kept, found


def _columns(
    segments: Sequence[Segment], pixels: Pixels, height: float, mirror: float | None, *, with_fields: bool
) -> list[list[Pair]]:
    """Labels with numbers, and fields of forms: a number of a form is one of its values."""
    pairs = numbered_pairs(segments, pixels, height)
    columns = list(numbered_columns(pairs, segments, height))
    fields = [
        form
        for form in (form_fields(segments, height) if with_fields else [])
        if not _are_of(form, columns) and not is_running_text(form, mirror)
    ]
    if not fields:
        return columns
    known = segments_of(pair for form in fields for pair in form)
    return [*fields, *numbered_columns([p for p in pairs if known.isdisjoint(p.segments)], segments, height)]


def _are_of(fields: Sequence[Pair], columns: Iterable[Sequence[Pair]]) -> bool:
    """Whether fields are mostly rows of a column of numbers: these have indented labels, too, and are more."""
    known = segments_of(fields)
    return any(len(column) >= len(fields) < 2 * sum(pair.value in known for pair in column) for column in columns)


def _lines_of(columns: Iterable[Iterable[Pair]]) -> set[int]:
    return {segment.line for column in columns for pair in column for segment in pair.segments}


def _receipts(columns: Iterable[Iterable[Pair]], of_pictures: Mapping[int, int]) -> set[int]:
    """Pictures of which most lines are rows of labels and values; a few such rows are a legend."""
    paired = Counter(of_pictures[i] for i in _lines_of(columns) if i in of_pictures)
    lines = Counter(of_pictures.values())
    return {index for index in lines if paired[index] >= PARSING.pairs_of_picture * lines[index]}


def _whole_lines(columns: Sequence[list[Pair]], segments: Iterable[Segment]) -> list[list[Pair]]:
    """Columns of enough pairs whose lines have no other text: it would be lost with them."""
    said = Counter(segment.line for segment in segments if segment.text)
    while True:
        columns = [column for column in columns if are_enough(column)]
        taken = Counter(segment.line for column in columns for pair in column for segment in pair.segments)
        whole = [[p for p in column if all(taken[s.line] == said[s.line] for s in p.segments)] for column in columns]
        if whole == columns:
            return whole
        columns = whole


def _runs(column: Sequence[Pair], segments: Iterable[Segment]) -> list[list[Pair]]:
    """A column cut where other text is between two rows."""
    own = segments_of(column)
    left, _, right, _ = union_box(pair.box for pair in column)
    others = [
        segment
        for segment in segments
        if segment.text and segment not in own and segment.box[0] < right and segment.box[2] > left
    ]
    runs = [[column[0]]]
    for above, below in pairwise(column):
        if any(above.value.middle < segment.middle < below.value.middle for segment in others):
            runs.append([])
        runs[-1].append(below)
    return runs


def _parts(lines: Sequence[TextLine], boxes: Sequence[Box]) -> list[Box]:
    """The boxes of what is left of a region above, between and below the rows that left it."""

    def above(line: TextLine) -> int:
        return sum(box[3] < (line.box[1] + line.box[3]) / 2 for box in boxes)

    ordered = sorted(lines, key=above)
    return [union_box(line.box for line in part) for _, part in groupby(ordered, key=above)]
