"""Korean words that a line's end cuts: justified Korean breaks between any two syllables, without a hyphen."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from pagemill.document.geometry import Box
from pagemill.document.joining import KoreanWords
from pagemill.parsing.lines import is_hangul
from pagemill.parsing.thresholds import PARSING

_LOCK = threading.Lock()
_CONTEXT = 40
"""Characters on either side of a break that Kiwi is shown."""


class _Row(Protocol):
    """A row of text that may end inside a word."""

    word_goes_on: bool | None

    @property
    def text(self) -> str: ...
    @property
    def box(self) -> Box: ...
    @property
    def size(self) -> float: ...
    @property
    def trailing_space(self) -> bool: ...


def korean_words(rows: Iterable[str]) -> KoreanWords:
    """The Korean words of rows, but for their first and last ones, which may be halves."""
    words = KoreanWords()
    for text in rows:
        words.add(" ".join(text.split()[1:-1]))
    return words


def mark_broken_words(blocks: Sequence[Sequence[_Row]], words: KoreanWords | None) -> None:
    """Find out which rows end inside a Korean word.

    A text layer that draws the spaces at line ends tells; else the words of the page do, and where they do not, Kiwi,
    a morphological analyser, if it is installed. Without it the parts of a word do on born-digital pages, if other
    lines end inside words. Scans mix both kinds of breaks, and misread syllables look like parts that are no words.

    Args:
        blocks: The rows of each block of running text.
        words: Of a born-digital page; None for a scan, whose words are those of the rows.
    """
    if _mark_by_drawn_spaces(blocks):
        return
    breaks = [
        (above, below)
        for rows in blocks
        for above, below in pairwise(rows)
        if is_hangul(above.text[-1:]) and is_hangul(below.text[:1])
    ]
    if not breaks:
        return
    if words is None:
        words = korean_words(row.text for rows in blocks for row in rows)
    else:
        words.cut |= any(words.goes_on(above.text, below.text) for above, below in breaks)
    for above, below in breaks:
        above.word_goes_on = korean_goes_on(above.text, below.text, words)


def korean_goes_on(before: str, after: str, words: KoreanWords) -> bool:
    """Whether a line ends inside a Korean word, by the words of the page, by Kiwi, or by the parts of the word."""
    known = words.goes_on(before, after)
    if known is not None:
        return known
    if (kiwi := _kiwi()) is not None:
        return _is_one_word(kiwi, before[-_CONTEXT:], after[:_CONTEXT])
    return words.cut and words.looks_broken(before, after)


def _mark_by_drawn_spaces(blocks: Sequence[Sequence[_Row]]) -> bool:
    """Use that some producers draw the space of a break between words: a full row without one ends inside a word."""
    ends = [row for rows in blocks for row in rows[:-1] if is_hangul(row.text[-1:])]
    drawn = sum(row.trailing_space for row in ends)
    if not drawn or drawn < PARSING.drawn_spaces * len(ends):
        return False
    for rows in blocks:
        right = float(np.quantile([row.box[2] for row in rows], PARSING.right_edge)) if rows else 0.0
        for row in rows[:-1]:
            full = row.box[2] > right - PARSING.row_full * row.size
            if is_hangul(row.text[-1:]):
                row.word_goes_on = full and not row.trailing_space
    return True


@functools.cache
def _kiwi() -> Any | None:
    """Kiwi with its model, loaded once; None where the extra ``korean`` is not installed."""
    try:
        import kiwipiepy
    except ImportError:
        return None
    return kiwipiepy.Kiwi(num_workers=1)


def _is_one_word(kiwi: Any, before: str, after: str) -> bool:
    with _LOCK:
        _, spaces = kiwi.glue([before, after], return_space_insertions=True)
    return not spaces[0]
