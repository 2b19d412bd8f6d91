"""Which way up a page is, from the shape of its lines and from how well samples of them read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pagemill.recognition.languages import script_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.recognition.base import DetectedLine, Quad, RecognizedText

SAMPLES = 6
"""Lines read to decide."""

_TALL = 1.8  # height over width of a line that may run vertically
_SURELY_TALL = 2.5  # a single upright character ("1", "l") reaches about 2.5


def size_of(quad: Quad) -> tuple[float, float]:
    """Length of the top edge and of the left edge, in pixels."""
    return math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])


def runs_vertically(lines: Sequence[DetectedLine]) -> bool:
    """Whether most of the text, by length, stands on its side."""
    flat = tall = 0.0
    for line in lines:
        width, height = size_of(line.polygon)
        if width > _TALL * height:
            flat += width
        elif height > _TALL * width:
            tall += height
    return tall > 2 * flat


def reading_quad(quad: Quad) -> Quad:
    """Start a line that stands on its side at its bottom left: most such text (axis labels, margins) runs upwards."""
    width, height = size_of(quad)
    return (quad[3], quad[0], quad[1], quad[2]) if height > _SURELY_TALL * width else quad


def turned(quad: Quad, degrees: int) -> Quad:
    """The corners named as they lie once the page is turned clockwise by a multiple of 90 degrees."""
    steps = degrees // 90 % 4
    a, b, c, d = quad[-steps:] + quad[:-steps] if steps else quad
    return (a, b, c, d)


def longest(quads: Sequence[Quad], count: int = SAMPLES) -> list[int]:
    """Indices of the longest lines, the middle half of them skipped over evenly when there are many."""
    order = sorted(range(len(quads)), key=lambda index: -max(size_of(quads[index])))
    pool = order[: 4 * count]
    step = max(1, len(pool) // count)
    return pool[::step][:count]


def evidence(texts: Sequence[RecognizedText]) -> float:
    """How much legible text a sample holds: letters and digits weighted by the square of their line's confidence."""
    return sum(
        text.confidence**2 * sum(character.isdigit() or script_of(character) is not None for character in text.text)
        for text in texts
    )
