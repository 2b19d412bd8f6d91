"""Labels with numbers on their level that end below each other: goods and prices, titles and page numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pagemill.document.geometry import Box
from pagemill.imaging.types import Pixels
from pagemill.late import re
from pagemill.parsing.pairs.segments import Pair, Segment, aligned, are_enough, rows_of, segments_of
from pagemill.parsing.thresholds import PARSING

_NUMBER = re.compile(r"[-−(]?\D{0,4}\d[\d.,:'’ ]*\D{0,4}")
"""A number with its currency or the mark of its tax; times and dates, too."""
_ROMAN = re.compile(r"[ivxlc]{1,6}", re.IGNORECASE)
_EQUATION = re.compile(r"\(\d{1,3}(?:\.\d{1,2})?[a-z]?\)")


def numbered_pairs(segments: Sequence[Segment], pixels: Pixels, height: float) -> list[Pair]:
    """What may be labels with their numbers: rows of nothing else.

    Args:
        segments: All segments of the page.
        pixels: The page.
        height: Usual height of its lines.
    """
    pairs: list[Pair] = []
    doubtful: list[tuple[float, list[Pair]]] = []
    for row in rows_of(segments):
        label: list[Segment] = []
        own: list[Pair] = []
        led = False
        for segment in row:
            led = led or segment.led
            if not segment.text:
                continue
            gap = segment.box[0] - label[-1].box[2] if label else 0.0
            if label and gap > PARSING.pair_gap * height and not led:
                led = _has_leader(pixels, label[-1].box, segment.box)
            if label and (led or gap > PARSING.pair_gap * height):
                if not _is_number(segment.text, led=led):
                    own, label = [], []
                    break
                own.append(Pair(tuple(label), segment, led))
                label, led = [], False
            else:
                label.append(segment)
        if not label:
            pairs += own
        elif own:
            doubtful.append((label[0].box[0], own))
    # Text after a number is a remark, unless it is a heading in a second column of pairs, where their labels begin.
    starts = [pair.start for pair in pairs]
    for start, own in doubtful:
        if sum(abs(start - other) < PARSING.pair_edge * height for other in starts) > 1:
            pairs += own
    return pairs


def numbered_columns(pairs: Iterable[Pair], segments: Sequence[Segment], height: float) -> Iterable[list[Pair]]:
    """Pairs whose numbers end below each other, where few other lines reach from labels into numbers.

    Args:
        pairs: Labels with their numbers.
        segments: All segments of the page.
        height: Usual height of its lines.
    """
    for column in aligned(pairs, lambda pair: pair.value.box[2], height):
        if not are_enough(column):
            continue
        column.sort(key=lambda pair: pair.value.middle)
        own = segments_of(column)
        left, right = (float(np.median([pair.value.box[side] for pair in column])) for side in (0, 2))
        top, bottom = column[0].box[1], column[-1].box[3]
        crossing = sum(
            top < segment.middle < bottom and segment.box[0] < left < right - height < segment.box[2]
            for segment in segments
            if segment not in own
        )
        if crossing <= PARSING.pairs_crossed * len(column):
            yield column


def _is_number(text: str, *, led: bool) -> bool:
    if _EQUATION.fullmatch(text):
        return False
    return bool(_NUMBER.fullmatch(text)) or (led and bool(_ROMAN.fullmatch(text)))


def _has_leader(pixels: Pixels, label: Box, number: Box) -> bool:
    """Whether the page shows dots on the baseline, and nothing else, between a label and its number."""
    x1, x2 = int(label[2]), int(number[0])
    y1, y2 = int(min(label[1], number[1])), int(max(label[3], number[3]))
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
