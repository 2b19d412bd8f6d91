"""Words that narrow cells cut without a hyphen, where no line has room for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pagemill.document.joining import HyphenatedWords, KoreanWords
from pagemill.parsing.korean import korean_goes_on
from pagemill.parsing.lines import is_hangul
from pagemill.parsing.thresholds import PARSING
from pagemill.parsing.typography.rows import Piece
from pagemill.parsing.typography.thresholds import TYPOGRAPHY


def mark_cut_words(pieces: Sequence[Piece], words: HyphenatedWords, korean: KoreanWords) -> None:
    """Find out which pieces end inside a word that the piece written next goes on with.

    Args:
        pieces: Of the page.
        words: Of the page.
        korean: Of the page.
    """
    pieces = sorted(pieces, key=lambda piece: piece.order)
    drawn = sum(piece.line.text.endswith(" ") for piece in pieces) >= PARSING.drawn_spaces * len(pieces)
    ends: dict[int, float] = {}  # of what begins at one edge and is no running text
    for piece in pieces:
        if piece.x2 - piece.x1 < TYPOGRAPHY.column_width * piece.size:
            ends[round(piece.x1)] = max(ends.get(round(piece.x1), 0.0), piece.x2)
    for above, below in pairwise(pieces):
        near = abs(above.x1 - below.x1) < TYPOGRAPHY.aligned * above.size
        pitch = (below.baseline - above.baseline) / above.size
        if below.order != above.order + 1 or not near or not 0.8 < pitch < TYPOGRAPHY.written_on:
            continue
        end, start = above.text[-1:], below.text[:1]
        room = max(ends.get(round(above.x1) + step, 0.0) for step in (-1, 0, 1)) - above.x2
        if room > above.size * (1.0 if is_hangul(start) else TYPOGRAPHY.word_fits):
            continue
        spaced = above.line.text.endswith(" ")
        if is_hangul(end) and is_hangul(start):
            above.cut = not spaced if drawn else korean_goes_on(above.text, below.text, korean)
        elif len(above.words) == 1 and end.isalnum() and (start.isalnum() or start == "_"):
            first, second = above.text, below.words[0][0]
            is_name = "_" in first + second and not (first + second).islower() and first.isupper() == second.isupper()
            alike = start.islower() or start == "_" or end.isdecimal() == start.isdecimal() is True or is_name
            above.cut = not spaced and ((drawn and alike) or is_name or words.has(first + second))
