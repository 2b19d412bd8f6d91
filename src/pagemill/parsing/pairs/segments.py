"""Lines cut at wide gaps and leaders into segments, and pairs of these: a label and its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pagemill.document.geometry import Box, union_box
from pagemill.document.page import TextLine, Word
from pagemill.late import re
from pagemill.parsing.thresholds import PARSING

_LEADER = re.compile(r"(?:[.·․‥…]\s?){2,}|…")
_DOTS = " ·․‥…"


@dataclass(frozen=True, slots=True)
class Segment:
    """A line of text, or a part of one between wide gaps or leaders."""

    text: str
    """Empty for a leader alone and for a missing value."""
    box: Box
    line: int
    """Index of its line."""
    led: bool = False
    """A leader comes before it in its line."""

    @property
    def middle(self) -> float:
        """Middle of its height."""
        return (self.box[1] + self.box[3]) / 2


@dataclass(frozen=True, slots=True)
class Pair:
    """A label and its value."""

    label: tuple[Segment, ...]
    value: Segment
    led: bool = False
    """A leader is between them."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Label and value; a missing value is left out."""
        return (*self.label, self.value) if self.value.text else self.label

    @property
    def box(self) -> Box:
        """Bounding box."""
        return union_box(segment.box for segment in self.segments)

    @property
    def start(self) -> float:
        """Left edge of the label."""
        return self.label[0].box[0]


def segments_of(pairs: Iterable[Pair]) -> set[Segment]:
    """All segments of some pairs."""
    return {segment for pair in pairs for segment in pair.segments}


def are_enough(column: Sequence[Pair]) -> bool:
    """Whether pairs below each other are enough to be rows and no coincidence; those with leaders count twice."""
    return len(column) + sum(pair.led for pair in column) >= PARSING.least_pairs


def are_led(pairs: Sequence[Pair]) -> bool:
    """Whether most pairs have a leader between label and value."""
    return most(pair.led for pair in pairs)


def most(answers: Iterable[object]) -> bool:
    """Whether more than half are true."""
    known = [bool(answer) for answer in answers]
    return 2 * sum(known) > len(known)


def aligned(pairs: Iterable[Pair], edge: Callable[[Pair], float], height: float) -> list[list[Pair]]:
    """Pairs in groups by an edge of theirs, from the left: each is near the one before it."""
    groups: list[list[Pair]] = []
    for pair in sorted(pairs, key=edge):
        if not groups or edge(pair) - edge(groups[-1][-1]) > PARSING.pair_edge * height:
            groups.append([])
        groups[-1].append(pair)
    return groups


def rows_of(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Segments on one level, from the left."""
    rows: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda segment: segment.middle):
        last = rows[-1] if rows else []
        low = min(other.box[3] - other.box[1] for other in (*last, segment))
        level = bool(last) and abs(segment.middle - float(np.mean([other.middle for other in last]))) < 0.5 * low
        if level and not any(min(segment.box[2], o.box[2]) - max(segment.box[0], o.box[0]) > 0.5 * low for o in last):
            last.append(segment)
        else:
            rows.append([segment])
    return [sorted(row, key=lambda segment: segment.box[0]) for row in rows]


def cut(line: TextLine, index: int, height: float) -> list[Segment]:
    """Cut a line at leaders and at wide gaps between its words.

    Args:
        line: The line.
        index: Of the line.
        height: Usual height of the page's lines.
    """
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
    return [segment for text, box in zip(texts, boxes, strict=True) for segment in _at_leaders(text, box, index)]


def _with_signs(groups: Sequence[list[Word]]) -> list[list[Word]]:
    """Groups of words; those of signs alone are joined with the next one, as a currency with its amount."""
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


def _at_leaders(text: str, box: Box, index: int) -> list[Segment]:
    """Text before and after leaders; its share of the characters is its share of the width."""
    segments: list[Segment] = []
    x1, y1, x2, y2 = box
    width, start, led = (x2 - x1) / max(1, len(text)), 0, False
    for match in [*_LEADER.finditer(text), None]:
        end = match.start() if match else len(text)
        part = text[start:end].strip().lstrip(_DOTS)  # one or two dots of a leader may be left
        if any(map(str.isalnum, part)):
            right = x2 if match is None else x1 + end * width
            left = max(x1, x2 - 0.6 * (y2 - y1) * len(part)) if led and match is None else x1 + start * width
            segments.append(Segment(part, (left, y1, right, y2), index, led))
        led = led or match is not None
        start = match.end() if match else len(text)
    if not segments and led:
        segments.append(Segment("", box, index, True))
    return segments
