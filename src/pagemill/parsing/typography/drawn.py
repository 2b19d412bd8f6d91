"""Rules that a page draws: strokes joined to lines, edges of shades."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from pagemill.document.geometry import Box
from pagemill.parsing.typography.rows import PageRow
from pagemill.tables.rules import Rule

TOUCH = 3.0
"""Pixels between two strokes that meet: borders of neighbouring cells overlap or leave a hair."""
_MOST_STROKES = 4000


class Drawn(msgspec.Struct, frozen=True):
    """Rules of a page that may bound cells, along the reading direction."""

    horizontal: tuple[Rule, ...]
    vertical: tuple[Rule, ...]
    shades: tuple[Rule, ...]
    """Upper and lower edges of shaded areas."""


def drawn_rules(strokes: Iterable[Box], shaded: Iterable[Box], width: float, *, mirrored: bool) -> Drawn:
    """Strokes as rules, pieces of one line joined, and the level edges of shaded areas."""
    level: list[tuple[float, float, float]] = []
    upright: list[tuple[float, float, float]] = []
    for x1, y1, x2, y2 in list(strokes)[:_MOST_STROKES]:
        if mirrored:
            x1, x2 = width - x2, width - x1
        if x2 - x1 >= y2 - y1:
            level.append(((y1 + y2) / 2, x1, x2))
        else:
            upright.append(((x1 + x2) / 2, y1, y2))
    edges = []
    for x1, y1, x2, y2 in list(shaded)[:_MOST_STROKES]:
        start, end = (width - x2, width - x1) if mirrored else (x1, x2)
        edges += [(y1, start, end), (y2, start, end)]
    return Drawn(tuple(_joined(level)), tuple(_joined(upright)), tuple(_joined(edges)))


def _joined(lines: Sequence[tuple[float, float, float]]) -> list[Rule]:
    """Rules of strokes that overlap or touch on one line."""
    joined: list[Rule] = []
    groups: list[list[tuple[float, float, float]]] = []
    for line in sorted(lines):
        if groups and line[0] - groups[-1][-1][0] <= TOUCH:
            groups[-1].append(line)
        else:
            groups.append([line])
    for group in groups:
        position = median(line[0] for line in group)
        for start, end in sorted((start, end) for _, start, end in group):
            if joined and joined[-1].position == position and start <= joined[-1].end + TOUCH:
                joined[-1] = Rule(position, joined[-1].start, max(joined[-1].end, end))
            else:
                joined.append(Rule(position, start, end))
    return joined


def rule_between(above: PageRow, below: PageRow, drawn: Drawn) -> bool:
    """Whether a rule, or the edge of a shade, runs between most of two rows."""
    left, right = min(above.x1, below.x1), max(above.x2, below.x2)
    least = 0.5 * max(above.x2 - above.x1, below.x2 - below.x1)  # links have lines, too
    return any(
        above.baseline < rule.position < below.baseline - 0.4 * below.size
        and min(rule.end, right) - max(rule.start, left) > least
        for rule in (*drawn.horizontal, *drawn.shades)
    )
