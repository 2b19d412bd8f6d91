"""Rows of a label and, at the other end, its number: goods and prices, dishes, titles and page numbers.

Layout models take labels and numbers for columns of text. What tells the rows is that the numbers end below each other,
and that nothing but a leader of dots is between a number and the label on its level.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median

import numpy as np

from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import Box, union_box
from pagemill.document.joining import join_pair
from pagemill.document.labels import FIGURES, FORMULAS, Label
from pagemill.document.page import TextLine, Word
from pagemill.imaging.types import Pixels
from pagemill.late import re
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.lines import is_vertical, lines_of_regions
from pagemill.parsing.thresholds import PARSING
from pagemill.tables.prose import prose_share
from pagemill.tables.recognize import mirrored
from pagemill.tables.table import Cell, Table, build_table
from pagemill.tables.thresholds import TABLES

SOURCE = "pairs"
"""``DetectedRegion.source`` of the regions found here."""
_LEADER = re.compile(r"(?:[.·․‥…]\s?){2,}|…")
_DOTS = " ·․‥…"
_NUMBER = re.compile(r"[-−(]?\D{0,4}\d[\d.,:'’ ]*\D{0,4}")
"""A number with its currency, a mark of its tax; times and dates, too."""
_ROMAN = re.compile(r"[ivxlc]{1,6}", re.IGNORECASE)
_COLONS = ":："
_ITEM = re.compile(r"[(\[]?(?:\d{1,3}|[a-z]|[ivxlc]{1,6})[.)\]]{0,2}", re.IGNORECASE)
"""The number of a list item, a reference or a line."""
_ENTRY = re.compile(r",\s*\d{1,4}$")
"""An entry of an index ends in the number of its page."""
_EQUATION = re.compile(r"\(\d{1,3}(?:\.\d{1,2})?[a-z]?\)")


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A line of text, or a part of one that a wide gap or a leader divides."""

    text: str
    box: Box
    line: int
    led: bool = False
    """A leader comes before it."""

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2


@dataclass(frozen=True, slots=True)
class _Pair:
    label: tuple[_Chunk, ...]
    value: _Chunk
    led: bool

    @property
    def chunks(self) -> tuple[_Chunk, ...]:
        return (*self.label, self.value) if self.value.text else self.label

    @property
    def box(self) -> Box:
        return union_box(chunk.box for chunk in self.chunks)


def with_pairs(
    regions: Sequence[DetectedRegion],
    tables: Mapping[int, Table],
    lines: Sequence[TextLine],
    pixels: Pixels,
    *,
    with_fields: bool = False,
) -> tuple[list[DetectedRegion], dict[int, Table]]:
    """Regions and tables with those of the rows of labels and numbers, whose lines leave the regions that had them.

    Args:
        regions: All regions of the page.
        tables: Recognised tables by the index of their region.
        lines: All lines of the page.
        pixels: The page.
        with_fields: Whether values may be words, too: where typography does not tell forms from columns.

    Returns:
        The regions, and the tables by the index of their region. Rows with leaders are regions of contents, and single
        rows text: the cells of their tables are their text.
    """
    members = lines_of_regions(regions, lines)
    kept_apart = {i for i, region in enumerate(regions) if region.label in FORMULAS}
    pictures = {id(line): i for i, region in enumerate(regions) if region.label in FIGURES for line in members[i]}
    of_tables = {line: index for index, table in tables.items() for line in table.line_indices}
    apart = {id(line) for index in kept_apart for line in members[index]}
    free = [i for i, line in enumerate(lines) if id(line) not in apart and line.text.strip() and not is_vertical(line)]
    if len(free) < PARSING.least_pairs or len(free) > PARSING.max_lines:
        return list(regions), dict(tables)
    height = median(lines[i].box[3] - lines[i].box[1] for i in free)
    rtl = is_right_to_left("".join(lines[i].text for i in free))
    width = float(pixels.shape[1])
    if rtl:  # seen in a mirror, labels are on the left
        pixels = pixels[:, ::-1]
    chunks = [chunk for i in free for chunk in _chunks(mirrored(lines[i], width) if rtl else lines[i], i, height)]
    numbered = _pairs(chunks, pixels, height)
    columns = list(_columns(numbered, chunks, height))
    fields = [
        own
        for own in (_fields(chunks, height) if with_fields else [])
        if not _are_of(own, columns) and not _is_running(own, width if rtl else None)
    ]
    if fields:
        known = _parts_of(fields)
        columns = [*fields, *_columns([p for p in numbered if known.isdisjoint(_parts_of([[p]]))], chunks, height)]
    # A table that was found has its rows, but where it took a leader for a column.
    given = {of_tables[chunk.line] for column in columns if not _is_led(column)
             for pair in column for chunk in pair.chunks if chunk.line in of_tables}  # fmt: skip
    # A picture that is mostly such rows is a receipt; a few of them are a legend.
    paired = Counter(
        pictures.get(id(lines[i]), -1) for i in {c.line for column in columns for p in column for c in p.chunks}
    )
    shown = {i for i in set(pictures.values()) if paired[i] < PARSING.pairs_of_picture * len(members[i])}
    candidates = [
        [
            pair
            for pair in column
            if not any(of_tables.get(chunk.line, -1) in given for chunk in pair.chunks)
            and not any(pictures.get(id(lines[chunk.line]), -1) in shown for chunk in pair.chunks)
        ]
        for column in columns
    ]
    runs = [run for column in _whole_lines(candidates, chunks) for run in _runs(column, chunks, height)]
    if not runs:
        return list(regions), dict(tables)
    replaced = {of_tables[chunk.line] for run in runs for pair in run for chunk in pair.chunks
                if chunk.line in of_tables}  # fmt: skip
    replaced |= set(pictures.values()) - shown
    kept_apart |= shown
    taken = {chunk.line for run in runs for pair in run for chunk in pair.chunks}
    boxes = [union_box(pair.box for pair in run) for run in runs]
    if rtl:
        boxes = [(width - x2, y1, width - x1, y2) for x1, y1, x2, y2 in boxes]
    index_of = {id(line): i for i, line in enumerate(lines)}
    kept: list[DetectedRegion] = []
    found: dict[int, Table] = {}
    for index, region in enumerate(regions):
        own_lines = [index_of[id(line)] for line in members[index]]
        if index in replaced or (index not in tables and index not in kept_apart and taken.intersection(own_lines)):
            label = Label.TEXT if index in replaced else region.label
            rest = [lines[i] for i in own_lines if i not in taken]
            kept += [replace(region, label=label, box=box, polygon=None) for box in _parts(rest, boxes)]
        else:
            if index in tables:
                found[len(kept)] = tables[index]
            kept.append(region)
    for run, box in zip(runs, boxes, strict=True):
        table = found[len(kept)] = _table(run)
        led, single = _is_led(run), table.rows == 1
        label = Label.CONTENT if led else Label.TEXT if single else Label.TABLE
        kept.append(DetectedRegion(box=box, label=label, score=None, source=SOURCE))
    return kept, found


def text_of(table: Table, label: Label) -> str:
    """The rows of a table that stands for contents, or for a line of text."""
    between = " … " if label is Label.CONTENT else " "
    return "\n".join(between.join(text for text in row if text) for row in table.grid())


def _are_of(fields: Sequence[_Pair], columns: Iterable[Sequence[_Pair]]) -> bool:
    """Whether fields are mostly rows of a column of numbers: these have indented labels, too, and are more."""
    values = _parts_of([fields])
    return any(
        len(column) >= len(fields) < 2 * sum((pair.value.line, pair.value.text) in values for pair in column)
        for column in columns
    )


def _is_running(fields: Sequence[_Pair], width: float | None) -> bool:
    """Whether fields are columns of text, items with their numbers, what persons say, or an index.

    Args:
        fields: The rows.
        width: Of the page, if it is seen in a mirror.
    """
    labels, values = [pair.label[0] for pair in fields], [pair.value for pair in fields if pair.value.text]
    for side in (labels, values):
        lines = [TextLine(text=chunk.text, box=chunk.box) for chunk in side]
        if prose_share(lines if width is None else [mirrored(line, width) for line in lines]) >= TABLES.prose:
            return True
    if _most(_ITEM.fullmatch(chunk.text) for chunk in labels):
        return True
    if all(_most(_ENTRY.search(chunk.text) for chunk in side) for side in (labels, values)):
        return True
    names = 2 * len({chunk.text for chunk in labels}) < len(labels)  # of persons, who speak again
    words = PARSING.words_of_text[0 if names else 1]
    has_colons = _most(pair.label[-1].text[-1] in _COLONS for pair in fields)
    return (names or not has_colons) and _most(len(chunk.text.split()) >= words for chunk in values)


def _most(answers: Iterable[object]) -> bool:
    known = [bool(answer) for answer in answers]
    return 2 * sum(known) > len(known)


def _parts_of(columns: Iterable[Iterable[_Pair]]) -> set[tuple[int, str]]:
    """What stands in rows of columns: lines, or parts of them."""
    return {(chunk.line, chunk.text) for column in columns for pair in column for chunk in pair.chunks}


def _are_enough(column: Sequence[_Pair]) -> bool:
    """Whether rows tell each other; those with leaders count twice."""
    return len(column) + sum(pair.led for pair in column) >= PARSING.least_pairs


def _is_led(run: Sequence[_Pair]) -> bool:
    return _most(pair.led for pair in run)


def _parts(lines: Sequence[TextLine], boxes: Sequence[Box]) -> list[Box]:
    """The boxes of what is left of a region, above, between and below the rows that left it."""

    def above(line: TextLine) -> int:
        return sum(box[3] < (line.box[1] + line.box[3]) / 2 for box in boxes)

    ordered = sorted(lines, key=above)
    return [union_box(line.box for line in part) for _, part in groupby(ordered, key=above)]


def _table(run: Sequence[_Pair]) -> Table:
    """Rows of a label and its value, or of several on a level; the first row is the head, as of all tables of text."""
    rows: list[list[_Pair]] = []
    for pair in run:
        low = pair.value.box[3] - pair.value.box[1]
        if (
            rows
            and pair.value.middle - rows[-1][-1].value.middle < 0.5 * low
            and all(abs(_start(pair) - _start(other)) > low for other in rows[-1])
        ):
            rows[-1].append(pair)
        else:
            rows.append([pair])
    starts = [_start(pair) for pair in max(rows, key=len)]
    for pairs in rows:  # the longest row may lack a column that another one has
        while len({_nearest(starts, _start(pair)) for pair in pairs}) < len(pairs):
            starts.append(max(map(_start, pairs), key=lambda x: min(abs(x - start) for start in starts)))
    starts.sort()
    cells = [
        Cell(row=row, column=2 * _nearest(starts, _start(pair)) + side, text=text, header=not row)
        for row, pairs in enumerate(rows)
        for pair in pairs
        for side, text in enumerate((_text(pair.label), pair.value.text))
    ]
    lines = {chunk.line for pair in run for chunk in pair.chunks}
    return replace(build_table(cells, lines), method="text")


def _start(pair: _Pair) -> float:
    return pair.label[0].box[0]


def _nearest(starts: Sequence[float], x: float) -> int:
    return min(range(len(starts)), key=lambda place: abs(starts[place] - x))


def _text(label: Sequence[_Chunk]) -> str:
    text = label[0].text
    for above, chunk in pairwise(label):
        text = join_pair(text, chunk.text) if chunk.box[1] > above.middle else f"{text} {chunk.text}"
    return text


def _chunks(line: TextLine, index: int, height: float) -> list[_Chunk]:
    """A line cut at leaders and at wide gaps between its words."""
    if not line.words or len(line.words) == 1:
        return _at_leaders(line.text.strip(), line.box, index)
    words = sorted(line.words, key=lambda word: word.box[0])
    groups = [words[:1]]
    for left, word in pairwise(words):
        if word.box[0] - left.box[2] > PARSING.pair_gap * height:
            groups.append([])
        groups[-1].append(word)
    groups = _with_signs(groups)
    if len(groups) == 1:
        return _at_leaders(line.text.strip(), line.box, index)
    boxes = [union_box(word.box for word in group) for group in groups]
    place = {id(word): i for i, word in enumerate(line.words)}  # words that run from right to left keep their order
    texts = [" ".join(word.text for word in sorted(group, key=lambda one: place[id(one)])) for group in groups]
    return [chunk for text, box in zip(texts, boxes, strict=True) for chunk in _at_leaders(text, box, index)]


def _with_signs(groups: Sequence[list[Word]]) -> list[list[Word]]:
    """Groups of words, those of signs alone joined with what they stand before: a currency and its amount."""
    joined: list[list[Word]] = []
    signs: list[Word] = []
    for group in groups:
        text = " ".join(word.text for word in group)
        if any(map(str.isalnum, text)) or _LEADER.search(text):
            joined.append([*signs, *group])
            signs = []
        else:
            signs += group
    if joined:
        joined[-1] += signs
    return joined or [signs]


def _at_leaders(text: str, box: Box, index: int) -> list[_Chunk]:
    """Text before and behind leaders, as wide as its share of the characters."""
    chunks: list[_Chunk] = []
    x1, y1, x2, y2 = box
    width, start, led = (x2 - x1) / max(1, len(text)), 0, False
    for match in [*_LEADER.finditer(text), None]:
        end = match.start() if match else len(text)
        part = text[start:end].strip().lstrip(_DOTS)  # one or two of a leader may be left
        if any(map(str.isalnum, part)):
            right = x2 if match is None else x1 + end * width
            left = max(x1, x2 - 0.6 * (y2 - y1) * len(part)) if led and match is None else x1 + start * width
            chunks.append(_Chunk(part, (left, y1, right, y2), index, led))
        led = led or match is not None
        start = match.end() if match else len(text)
    if not chunks and led:
        chunks.append(_Chunk("", box, index, True))
    return chunks


def _pairs(chunks: Sequence[_Chunk], pixels: Pixels, height: float) -> list[_Pair]:
    """What may be labels with their numbers: rows of nothing else."""
    pairs: list[_Pair] = []
    doubtful: list[tuple[float, list[_Pair]]] = []
    for row in _rows(chunks):
        label: list[_Chunk] = []
        own: list[_Pair] = []
        led = False
        for chunk in row:
            led = led or chunk.led
            if not chunk.text:
                continue
            gap = chunk.box[0] - label[-1].box[2] if label else 0.0
            if label and gap > PARSING.pair_gap * height and not led:
                led = _has_leader(pixels, (label[-1].box[2], chunk.box[0]), (label[-1].box, chunk.box))
            if label and (led or gap > PARSING.pair_gap * height):
                if not _is_value(chunk.text, led=led):
                    own, label = [], []
                    break
                own.append(_Pair(tuple(label), chunk, led))
                label, led = [], False
            else:
                label.append(chunk)
        if not label:
            pairs += own
        elif own:
            doubtful.append((label[0].box[0], own))
    # What stands behind a number is a remark, or in a second column of such rows where their labels begin.
    begins = [pair.label[0].box[0] for pair in pairs]
    for start, own in doubtful:
        if sum(abs(start - other) < PARSING.pair_edge * height for other in begins) > 1:
            pairs += own
    return pairs


def _rows(chunks: Iterable[_Chunk]) -> list[list[_Chunk]]:
    """Chunks on one level, from the left."""
    rows: list[list[_Chunk]] = []
    for chunk in sorted(chunks, key=lambda chunk: chunk.middle):
        last = rows[-1] if rows else []
        low = min(other.box[3] - other.box[1] for other in (*last, chunk))
        level = bool(last) and abs(chunk.middle - float(np.mean([other.middle for other in last]))) < 0.5 * low
        if level and not any(min(chunk.box[2], o.box[2]) - max(chunk.box[0], o.box[0]) > 0.5 * low for o in last):
            last.append(chunk)
        else:
            rows.append([chunk])
    return [sorted(row, key=lambda chunk: chunk.box[0]) for row in rows]


def _is_value(text: str, *, led: bool) -> bool:
    if _EQUATION.fullmatch(text):
        return False
    return bool(_NUMBER.fullmatch(text)) or (led and bool(_ROMAN.fullmatch(text)))


def _has_leader(pixels: Pixels, ends: tuple[float, float], boxes: tuple[Box, Box]) -> bool:
    """Whether what is drawn between a label and its number is dots on the baseline alone."""
    x1, x2 = (int(x) for x in ends)
    y1, y2 = int(min(box[1] for box in boxes)), int(max(box[3] for box in boxes))
    shown = pixels[max(0, y1) : y2, max(0, x1) : x2].min(axis=2)
    if not shown.size:
        return False
    ink = shown < np.median(shown) - PARSING.leader_contrast
    rows = np.flatnonzero(ink.sum(axis=1) > 1)
    columns = np.flatnonzero(np.diff(ink.any(axis=0).astype(np.int8)) == 1)
    if not len(rows) or len(columns) < PARSING.leader_dots:
        return False
    # A skewed leader is as high as its slope lets it be; letters are higher.
    return bool(rows[-1] - rows[0] < PARSING.leader_height * (y2 - y1))


def _columns(pairs: Sequence[_Pair], chunks: Sequence[_Chunk], height: float) -> Iterable[list[_Pair]]:
    """Pairs whose numbers end below each other, where few other lines reach between labels and numbers."""
    grouped: defaultdict[int, list[_Pair]] = defaultdict(list)
    ends: list[float] = []
    for pair in sorted(pairs, key=lambda pair: pair.value.box[2]):
        if not ends or pair.value.box[2] - ends[-1] > PARSING.pair_edge * height:
            ends.append(pair.value.box[2])
        grouped[len(ends)].append(pair)
        ends[-1] = pair.value.box[2]
    for column in grouped.values():
        if not _are_enough(column):
            continue
        column.sort(key=lambda pair: pair.value.middle)
        own = {(chunk.line, chunk.text) for pair in column for chunk in pair.chunks}
        left, right = (float(np.median([pair.value.box[side] for pair in column])) for side in (0, 2))
        top, bottom = column[0].box[1], column[-1].box[3]
        crossing = sum(
            top < chunk.middle < bottom and chunk.box[0] < left < right - height < chunk.box[2]
            for chunk in chunks
            if (chunk.line, chunk.text) not in own
        )
        if crossing <= PARSING.pairs_crossed * len(column):
            yield column


def _fields(chunks: Sequence[_Chunk], height: float) -> Iterable[list[_Pair]]:
    """Labels with values of any kind, as on forms: both begin below each other, in rows of nothing else.

    Two columns of text look alike, but their lines end close to the next column.
    """
    grouped: defaultdict[int, list[_Pair]] = defaultdict(list)
    pairs: list[_Pair] = []
    rows = [row for row in _rows([chunk for chunk in chunks if chunk.text]) if not any(chunk.led for chunk in row)]
    begins = sorted(part[0].box[0] for row in rows for part in _row_parts(row, height))
    parted = [_row_parts(row, height, begins) for row in rows]
    for parts in parted:
        if len(parts) % 2 == 0 and all(len(part) == 1 for part in parts[1::2]):
            pairs += [
                _Pair(tuple(label), value[0], False) for label, value in zip(parts[::2], parts[1::2], strict=True)
            ]
    last = -float("inf")
    for pair in sorted(pairs, key=lambda pair: pair.value.box[0]):
        key = len(grouped) if pair.value.box[0] - last <= PARSING.pair_edge * height else len(grouped) + 1
        grouped[key].append(pair)
        last = pair.value.box[0]
    columns: list[list[_Pair]] = []
    for column in grouped.values():
        start = float(np.median([pair.label[0].box[0] for pair in column]))
        column = [pair for pair in column if abs(pair.label[0].box[0] - start) < PARSING.pair_edge * height]
        if len(column) >= PARSING.paired_fields:
            columns.append(column)
    known = _parts_of(columns)
    for parts in parted:
        if len(parts) > 1 and known.isdisjoint((chunk.line, chunk.text) for part in parts for chunk in part):
            for place, pair in _incomplete(parts, columns, height):
                columns[place].append(pair)
    forms: list[tuple[list[_Pair], bool]] = []
    for column in columns:
        beside = [form for form in forms if _share_rows(form[0], column, height)]
        told = _is_form(column, chunks, height) or any(is_form for _, is_form in beside)
        forms = [form for form in forms if form not in beside]
        forms.append((column + [pair for form, _ in beside for pair in form], told))
    for column, is_form in forms:
        if is_form:
            known = _parts_of([column])
            yield _with_second_lines(column, [c for c in chunks if c.text and (c.line, c.text) not in known], height)


def _row_parts(row: Sequence[_Chunk], height: float, begins: Sequence[float] = ()) -> list[list[_Chunk]]:
    """A row cut at wide gaps, and before what begins below others, from the left: some labels leave little room."""
    parts = [[row[0]]]
    for left, chunk in pairwise(row):
        gap = chunk.box[0] - left.box[2]
        x, edge = chunk.box[0], 0.5 * PARSING.pair_edge * height
        below = bisect_left(begins, x + edge) - bisect_right(begins, x - edge)
        known = below >= PARSING.least_pairs and (gap > PARSING.known_gap * height or left.text[-1] in _COLONS)
        if known or gap > PARSING.pair_gap * height:
            parts.append([])
        parts[-1].append(chunk)
    return parts


def _incomplete(
    parts: Sequence[list[_Chunk]], columns: Sequence[Sequence[_Pair]], height: float
) -> Iterable[tuple[int, _Pair]]:
    """Fields of a row where a value is missing, or in one line with its label, by their columns.

    None where anything of the row is at another place, or it has no value: these are the second lines of labels.
    """
    places = [(i, column[0].label[0].box[0], column[0].value.box[0]) for i, column in enumerate(columns)]
    found: dict[int, _Pair] = {}
    for part in parts:
        x, edge = part[0].box[0], PARSING.pair_edge * height
        for place, label, value in places:
            if abs(x - label) < edge and place not in found:
                _, y1, x2, y2 = part[-1].box
                found[place] = _Pair(tuple(part), _Chunk("", (value, y1, max(x2, value), y2), part[-1].line), False)
                break
            if abs(x - value) < edge and place in found and len(part) == 1:
                found[place] = replace(found[place], value=part[0])
                break
        else:
            return []
    return found.items() if any(pair.value.text for pair in found.values()) else []


def _share_rows(column: Sequence[_Pair], other: Sequence[_Pair], height: float) -> bool:
    """Whether most rows of two columns of fields are on one level."""
    shared = sum(any(abs(a.value.middle - b.value.middle) < 0.5 * height for b in other) for a in column)
    return 2 * shared > min(len(column), len(other))


def _is_form(column: Sequence[_Pair], chunks: Sequence[_Chunk], height: float) -> bool:
    """Whether labels end in colons, or are far from their values and no column of text beside another one.

    Notes in the margin of a text stand beside a few of its lines: between rows of a form there is little else.
    """
    left, top, right, bottom = union_box(pair.box for pair in column)
    known = _parts_of([column])
    if len(column) < sum(
        top < chunk.middle < bottom and chunk.box[0] < right and left < chunk.box[2]
        for chunk in chunks
        if chunk.text and (chunk.line, chunk.text) not in known
    ):
        return False
    start, end, value = (
        float(np.median(places))
        for places in zip(*((p.label[0].box[0], p.label[-1].box[2], p.value.box[0]) for p in column), strict=True)
    )
    if _most(pair.label[-1].text[-1] in _COLONS for pair in column):
        return True
    narrow = end - start < min(PARSING.label_filled * (value - start), PARSING.label_width * height)
    return narrow and not (_is_text([p.label[-1] for p in column]) and _is_text([p.value for p in column]))


def _is_text(chunks: Sequence[_Chunk]) -> bool:
    """Whether chunks below each other look like lines of a paragraph: most are about as wide as the widest."""
    widths = [chunk.box[2] - chunk.box[0] for chunk in chunks]
    return sum(width > 0.75 * max(widths) for width in widths) > 0.7 * len(widths)


def _with_second_lines(column: Sequence[_Pair], others: Iterable[_Chunk], height: float) -> list[_Pair]:
    """Fields by level, with the second lines of labels: they are closer to the first ones than any two rows."""
    column = sorted(column, key=lambda pair: pair.value.middle)
    levels = sorted(pair.label[0].middle for pair in column)
    pitch = min((below - above for above, below in pairwise(levels) if below - above > 0.5 * height), default=0.0)
    farthest = min(PARSING.second_line[0] * height, PARSING.second_line[1] * pitch)
    for chunk in others:
        for place, pair in enumerate(column):
            first = pair.label[0]
            if (
                abs(chunk.box[0] - first.box[0]) < PARSING.pair_edge * height
                and chunk.box[2] < pair.value.box[0]
                and 0.5 * height < chunk.middle - first.middle < farthest
            ):
                column[place] = replace(pair, label=(*pair.label, chunk))
    return column


def _whole_lines(columns: Sequence[list[_Pair]], chunks: Sequence[_Chunk]) -> list[list[_Pair]]:
    """Columns of enough pairs that take lines as a whole: what else a line says would be lost with it."""
    said = Counter(chunk.line for chunk in chunks if chunk.text)
    while True:
        columns = [column for column in columns if _are_enough(column)]
        taken = Counter(chunk.line for column in columns for pair in column for chunk in pair.chunks)
        whole = [[p for p in column if all(taken[c.line] == said[c.line] for c in p.chunks)] for column in columns]
        if whole == columns:
            return whole
        columns = whole


def _runs(column: Sequence[_Pair], chunks: Sequence[_Chunk], height: float) -> list[list[_Pair]]:
    """A column cut where something else stands between two rows."""
    own = {(chunk.line, chunk.text) for pair in column for chunk in pair.chunks}
    left = min(pair.box[0] for pair in column)
    right = max(pair.box[2] for pair in column)
    others = [chunk for chunk in chunks if chunk.text and (chunk.line, chunk.text) not in own
              and chunk.box[0] < right and chunk.box[2] > left]  # fmt: skip
    runs = [[column[0]]]
    for above, below in pairwise(column):
        if any(above.value.middle < chunk.middle < below.value.middle for chunk in others):
            runs.append([])
        runs[-1].append(below)
    return runs
