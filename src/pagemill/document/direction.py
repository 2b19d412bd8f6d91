"""Direction of text: Hebrew, Arabic and related scripts run from right to left."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

_LEAST_LINES, _MORE = 3, 1.5
"""Lines that begin at one place, and how many times more of them than end at one, where text is set from the left."""


def runs_leftwards(character: str) -> bool:
    """Whether a letter belongs to a script that runs from right to left."""
    return unicodedata.bidirectional(character) in ("R", "AL")


def is_right_to_left(text: str) -> bool:
    """Whether most letters of a text run from right to left."""
    if text.isascii():
        return False
    letters = [character for character in text if character.isalpha()]
    return sum(map(runs_leftwards, letters)) * 2 > len(letters)


def is_set_from_left(edges: Sequence[tuple[float, float]], tolerance: float) -> bool:
    """Whether lines begin at the left: also right-to-left letters are set so by programs that know one direction only.

    Args:
        edges: Start and end of each line.
        tolerance: Maximum distance of equal edges, in the same unit.
    """
    left, right = (max(Counter(round(edge[side] / tolerance) for edge in edges).values(), default=0) for side in (0, 1))
    return left >= _LEAST_LINES and left > _MORE * right
