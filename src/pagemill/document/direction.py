"""Direction of text: Hebrew, Arabic and related scripts run from right to left."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

import msgspec

from pagemill.document.geometry import mirrored_box
from pagemill.document.page import TextLine

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


def mirrored(line: TextLine, width: float) -> TextLine:
    """The line in the mirror image of its page.

    There, right-to-left text is set from the left, with the first column of a table on the left.

    Args:
        line: With its words.
        width: Of the page.
    """
    words = tuple(msgspec.structs.replace(word, box=mirrored_box(word.box, width)) for word in line.words)
    corners = line.polygon and tuple((width - line.polygon[i][0], line.polygon[i][1]) for i in (1, 0, 3, 2))
    return msgspec.structs.replace(line, box=mirrored_box(line.box, width), polygon=corners, words=words)
