"""Which way text runs: Hebrew, Arabic and their neighbours from right to left."""

from __future__ import annotations

import unicodedata


def runs_leftwards(character: str) -> bool:
    """Whether a letter is of a script that runs from right to left."""
    return unicodedata.bidirectional(character) in ("R", "AL")


def is_right_to_left(text: str) -> bool:
    """Whether most letters of a text run from right to left."""
    letters = [character for character in text if character.isalpha()]
    return sum(map(runs_leftwards, letters)) * 2 > len(letters)
