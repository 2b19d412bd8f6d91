"""Roman numerals told by their strokes: recognition of Korean text leaves them out, or reads ``Ⅲ`` as ``1``."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pagemill.imaging.types import Flags

_UPPER, _LOWER = 0.3, 0.62
"""Rows, in heights of the numeral, at which strokes are looked at: clear of serifs, and above where a V ends."""
_BAND = 0.06
"""Heights above and below such a row that are looked at together."""
_TOP = 0.12
"""Heights in which the serifs of a numeral are, and the flag of the figure 1."""
_STEADY, _LEANS = 0.06, 0.04
"""Heights: most that an upright stroke moves from row to row, and least that a stroke of a V does."""
_FLAG = 0.09
"""Heights by which the figure 1 reaches farther beyond its stem to the left than to the right."""
_PITCH, _WIDTH = 0.62, 0.3
"""Heights: most from one stroke to the next, as the figures of 11 are farther apart, and most width of a stroke."""
_NUMERALS = {"I": "Ⅰ", "II": "Ⅱ", "III": "Ⅲ", "IV": "Ⅳ", "V": "Ⅴ", "VI": "Ⅵ", "VII": "Ⅶ", "VIII": "Ⅷ"}


def numeral_of(ink: Flags) -> str | None:
    """The Roman numeral that is drawn, one of Ⅰ to Ⅷ; None for anything else.

    Args:
        ink: Of the numeral alone, without margins.
    """
    height = len(ink)
    upper, lower = _strokes(ink, _UPPER), _strokes(ink, _LOWER)
    if not upper or max(end - start for start, end in upper) > _WIDTH * height:
        return None
    above, below = ([(start + end) / 2 for start, end in strokes] for strokes in (upper, lower))
    if any(right - left > _PITCH * height for left, right in pairwise(above)) or _has_flag(ink, upper):
        return None
    return next((sign for letters, sign in _NUMERALS.items() if _is_drawn(letters, above, below, height)), None)


def _strokes(ink: Flags, row: float) -> list[tuple[int, int]]:
    """Where strokes cross a row."""
    height = len(ink)
    band = ink[round((row - _BAND) * height) : round((row + _BAND) * height) + 1]
    crossed = band.mean(axis=0) >= 0.5 if len(band) else np.zeros(ink.shape[1], bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], crossed, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _has_flag(ink: Flags, strokes: list[tuple[int, int]]) -> bool:
    """Whether the first stroke is that of a figure 1: serifs reach as far to the left as to the right."""
    columns = np.flatnonzero(ink[: max(1, round(_TOP * len(ink)))].any(axis=0))
    if not len(columns):
        return True
    left, right = strokes[0][0] - int(columns[0]), int(columns[-1]) + 1 - strokes[-1][1]
    return abs(left - right) > _FLAG * len(ink)


def _is_drawn(letters: str, above: list[float], below: list[float], height: int) -> bool:
    """Whether strokes at two heights are those of a numeral."""
    if len(above) != len(letters) + letters.count("V"):
        return False
    met = len(above) - len(below)  # the strokes of a V, at the lower row
    if met not in (0, min(1, letters.count("V"))):
        return False
    first = second = 0
    for letter in letters:
        if letter == "I":
            if abs(above[first] - below[second]) > _STEADY * height:
                return False
            first, second = first + 1, second + 1
        else:
            left, right = below[second], below[second + 1 - met]
            if left - above[first] < _LEANS * height or above[first + 1] - right < _LEANS * height:
                return False
            first, second = first + 2, second + 2 - met
    return True
