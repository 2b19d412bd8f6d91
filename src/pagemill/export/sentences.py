"""Where the sentences of a text end, in the scripts that pagemill reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(
    r"(?P<stop>[.!?…]+)[\"'”’)\]»]*(?=\s)\s*"
    r"|[。！？｡]+[」』”’）)]*\s*"
    r"|[\u0589\u061f\u06d4\u0964\u0965\u1362\u17d4\u104b]+\s*"  # Armenian, Arabic, Devanagari, Ethiopic, Khmer, Burmese
    r"|\n\s*"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:[^\W\d_]|fig|figs|no|nos|eq|eqs|dr|mr|mrs|ms|prof|st|vs|cf|al|pp|vol|ed|eds|approx|ca|inc|ltd|co|jr"
    r"|sec|ch|tab|nr|abb|bzw|z\.b|d\.h|u\.a|p\.ej|art|e\.g|i\.e)|\d\.\s?\d{1,2}|^\W*\d{1,3}(?:\.\d{1,3})*)\.$",
    re.IGNORECASE,
)
"""What a full stop does not end a sentence after: an initial, a usual short form, the number of an item, a date."""
_LOOK_BACK = 12


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence, with the white space after it: together the whole text."""
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if match["stop"] == ".":
            before = text[max(start, match.start() - _LOOK_BACK) : match.start() + 1]
            after = text[end : end + 1]
            # In German and elsewhere a full stop follows ordinals (`am 3. 4. 2020`), and short forms of any kind.
            if after.islower() or (after.isdigit() and before[-2:-1].isdigit()) or _ABBREVIATION.search(before):
                continue
        if end > start:
            yield start, end
            start = end
    if start < len(text):
        yield start, len(text)
