"""Program listings: found by their fixed-width letters, given line by line with their indents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import split_when
from pagemill.document.labels import RUNNING_TEXT, TITLES, Label
from pagemill.document.page import TextLine
from pagemill.late import re
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.blocks import Block, merge_neighbours
from pagemill.parsing.lines import Row
from pagemill.parsing.thresholds import PARSING

_CANDIDATES = RUNNING_TEXT | TITLES | {Label.TABLE, Label.CONTENT, Label.DISPLAY_FORMULA}
_SYMBOLS = frozenset("_=(){}[];<>|&#$@\\/*+\"':")
_ADDRESS = re.compile(r"https?://|\bwww\.|\S@\S+\.\w")
"""Addresses are set in letters of one width and are no program."""
_FIGURE = re.compile("[0-9]")
_MARKUP = re.compile(r"\s*</?[A-Za-z][\w.:-]*(?:\s[^<>]*)?/?>|\s*<!--")


def mark_listings(regions: Sequence[DetectedRegion], members: defaultdict[int, list[TextLine]]) -> list[DetectedRegion]:
    """Label regions of fixed-width text as listings; only a text layer tells word widths well enough.

    On a page that is all of fixed width, only what is full of a program's signs is a listing.

    Args:
        regions: Of the page.
        members: The lines of each region, with words (:func:`pagemill.parsing.lines.lines_of_regions`).
    """
    fixed = _is_fixed([line for own in members.values() for line in own])
    result = list(regions)
    for index, region in enumerate(regions):
        own = members[index]
        if region.label not in _CANDIDATES or not own or not _is_fixed(own):
            continue
        if sum(bool(_ADDRESS.search(line.text)) for line in own) * 2 >= len(own):
            continue
        doubtful = fixed or region.label in TITLES or len(own) < 2
        if not doubtful or _symbols(_printed(own)) >= PARSING.code_symbols:
            result[index] = replace(region, label=Label.ALGORITHM)
    _mark_short_rests(result, members)
    return result


def _mark_short_rests(regions: list[DetectedRegion], members: defaultdict[int, list[TextLine]]) -> None:
    """Label single short lines right below a listing, in its letters, that say too little by themselves."""
    for index, region in enumerate(regions):
        own = members[index]
        if region.label not in _CANDIDATES or len(own) != 1 or len(own[0].text) >= 2 * PARSING.code_characters:
            continue
        x1, y1, x2, y2 = region.box
        nearest, farthest = PARSING.code_near
        for other, listing in enumerate(regions):
            if listing.label is not Label.ALGORITHM or not nearest < (y1 - listing.box[3]) / (y2 - y1) < farthest:
                continue
            over = min(x2, listing.box[2]) > max(x1, listing.box[0])
            if over and members[other] and _is_fixed(own + members[other]):
                regions[index] = replace(region, label=Label.ALGORITHM)


def _is_fixed(lines: Sequence[TextLine]) -> bool:
    """Whether most text is set in letters of one width.

    Text of other scripts with a few ASCII words tells nothing, nor do figures: they are of one width in most fonts.
    """
    pitch, length = _pitches(lines)
    printed = _printed(lines)
    if (
        len(pitch) < 3  # one word is of one width, two may be by chance
        or length.sum() < PARSING.code_characters
        or sum(char.isascii() for char in printed) < PARSING.code_ascii * len(printed)
        or sum(char.isdecimal() for char in printed) > 0.5 * len(printed)
    ):
        return False
    middle = float(np.median(pitch))
    near = np.abs(pitch - middle) < PARSING.code_spread * middle
    return bool(length[near].sum() > PARSING.code_fixed * length.sum())


def _pitches(lines: Sequence[TextLine]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Width per character and length of the longer ASCII words; full-width scripts are of one width always.

    A word that is said again (a table's ``Item 1``, ``Item 2``) is as wide as it was and tells nothing more.
    """
    words = {
        _FIGURE.sub("0", word.text): word
        for line in lines
        if line.font_size
        for word in line.words
        if len(word.text) >= PARSING.code_word and word.text.isascii()
    }.values()
    length = np.array([len(word.text) for word in words], dtype=np.float64)
    width = np.array([word.box[2] - word.box[0] for word in words], dtype=np.float64)
    return width / np.maximum(length, 1.0), length


def _symbols(printed: str) -> float:
    """Share of a program's signs."""
    return sum(char in _SYMBOLS for char in printed) / max(1, len(printed))


def _printed(lines: Iterable[TextLine]) -> str:
    """What the lines say, without blanks."""
    return "".join("".join(line.text.split()) for line in lines)


def code_runs(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Where rows of running text are a program: three unmistakable rows and more.

    Returns:
        First row and the one after the last of every run.
    """
    code = [index for index, row in enumerate(rows) if _is_code(row.text)]
    runs = split_when(code, lambda above, below: below - above > PARSING.code_run_gap)
    ends = [(run[0], run[-1] + 1, len(run)) for run in runs]
    return [(start, end) for start, end, certain in ends if certain >= PARSING.code_run_gap]


def _is_code(text: str) -> bool:
    """Whether a row is markup, or full of a program's signs and ends like a statement."""
    if _MARKUP.match(text):
        return True
    printed = "".join(text.split())
    return printed.endswith(("{", "}", ";")) and _symbols(printed) >= PARSING.code_line_symbols


def listing_text(rows: Sequence[Row]) -> str:
    """Rows line by line, with indents in spaces and an empty line where there is one."""
    if not rows:
        return ""
    pitch, _ = _pitches([line for row in rows for line in row.lines])
    unit = float(np.median(pitch)) if len(pitch) else 0.5 * float(np.median([row.size for row in rows]))
    left = min(row.box[0] for row in rows)
    steps = [below.box[1] - above.box[1] for above, below in pairwise(rows)]
    usual = float(np.median(steps)) if steps else 0.0
    text = ""
    for row, step in zip(rows, [0.0, *steps], strict=True):
        indent = min(PARSING.code_indent, round((row.box[0] - left) / max(unit, 1.0)))
        text += ("\n\n" if step > PARSING.code_blank * usual else "\n") + " " * indent + row.text
    return text.lstrip("\n")


def merge_listings(blocks: Sequence[Block]) -> list[Block]:
    """Join pieces of one listing that layout cut apart: one right below the other."""
    return merge_neighbours(blocks, _goes_on, lambda whole, _: listing_text(whole.rows))


def _goes_on(above: Block, below: Block) -> bool:
    aligned = min(above.box[2], below.box[2]) > max(above.box[0], below.box[0])
    return (
        above.label is below.label is Label.ALGORITHM
        and aligned
        and -below.size < below.box[1] - above.box[3] < 2 * below.size
    )
