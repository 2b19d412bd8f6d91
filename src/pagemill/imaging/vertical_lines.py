"""Vertical lines: East Asian characters that stand one below the other, found by where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.types import Flags, Floats, Indices

if TYPE_CHECKING:
    from pagemill.document.geometry import Box
    from pagemill.imaging.glyphs import Glyphs

# All in units of the font size (em).
_SAME_COLUMN = 0.2
"""Farthest that the pens of two characters of a column stand apart across it."""
_STEP = (0.6, 1.6)
"""From one character of a column to the next."""
_CLOSER = 0.85
"""The step down over that to the side: lines stand farther apart than the characters of a line."""
_CELL = 0.6
"""Half the width of a column, which holds figures and words of other letters, too; ruby stands at 0.75."""
_GAP_IN_COLUMN = 0.9
_LEAST_CHARACTERS = 4
_IN_STREAM_ORDER = 0.5
"""Share of a column's characters that follow one another in the content; the cells of a table's column do not."""
_SIZES = (0.4, 1.25)
"""Size of what is between the characters of a column, relative to theirs."""
_DESCENT = 0.12
"""Descent of an East Asian character, whose box in the font may be that of its ink."""


class Column(msgspec.Struct, frozen=True):
    """A vertical line of glyphs."""

    members: Indices
    """From the top, drawn spaces between words of other letters among them."""
    box: Box
    size: float


def columns_of_glyphs(glyphs: Glyphs) -> list[Column]:
    """The vertical lines of a page with those figures and words of other letters that are in them.

    Args:
        glyphs: In content-stream order.

    Returns:
        In content-stream order of the first glyph; empty for horizontal writing.
    """
    level = (glyphs.of("angle") == 0) & ~glyphs.is_space
    index = np.flatnonzero(level & _is_east_asian(glyphs.codes))
    below = _below(glyphs, index, level)
    if np.count_nonzero(below >= 0) < _LEAST_CHARACTERS - 1:
        return []
    taken = np.zeros(len(glyphs.codes), dtype=bool)
    columns = []
    for stack in _stacks(index, below):
        if not taken[stack].any():
            columns.append(_column(glyphs, stack, taken))
            taken[columns[-1].members] = True
    return sorted(columns, key=lambda column: int(column.members.min()))


def _is_east_asian(codes: NDArray[np.uint32]) -> Flags:
    """Which characters are Han, kana or their punctuation."""
    flags = (codes >= 0x2E80) & (codes < 0xA4D0)
    for first, last in ((0xF900, 0xFAFF), (0xFE10, 0xFE4F), (0xFF01, 0xFF60)):
        flags |= (codes >= first) & (codes <= last)
    return flags


def _sizes(glyphs: Glyphs) -> Floats:
    """Font sizes as stated: the ink of a dash or of the Han numeral one is flat."""
    sizes: Floats = np.where(glyphs.of("size") > 0, glyphs.of("size"), glyphs.sizes)
    return sizes


def _below(glyphs: Glyphs, index: Indices, level: Flags) -> NDArray[np.int64]:
    """For each of the characters ``index`` the place in it of the one that follows below, or -1."""
    (x, y), em = glyphs.origins[index].T, _sizes(glyphs)[index]
    result = np.full(len(index), -1)
    step = np.diff(y) / em[:-1]
    # A quick look at neighbours in the stream, which spares pages of horizontal writing the search for each character.
    follows = (np.abs(np.diff(x)) < _SAME_COLUMN * em[:-1]) & (step > _STEP[0]) & (step < _STEP[1])
    if np.count_nonzero(follows) < _LEAST_CHARACTERS - 1:
        return result
    aside = _distance_aside(glyphs, index, np.flatnonzero(level))
    order = np.argsort(x, kind="stable")
    for i in range(len(index)):
        reach = _SAME_COLUMN * em[i]
        near = order[np.searchsorted(x, x[i] - reach, sorter=order) : np.searchsorted(x, x[i] + reach, sorter=order)]
        down = y[near] - y[i]
        near = near[(down > _STEP[0] * em[i]) & (down < min(_STEP[1] * em[i], _CLOSER * aside[i]))]
        if len(near):
            result[i] = near[np.argmin(y[near])]
    return result


def _distance_aside(glyphs: Glyphs, index: Indices, level: Indices) -> Floats:
    """How far from each of the characters ``index`` the nearest glyph of its row stands, from pen to pen."""
    x, y = glyphs.origins[level].T
    em = _sizes(glyphs)[level]
    order = np.argsort(y, kind="stable")
    result = np.full(len(glyphs.codes), np.inf)
    for i in np.flatnonzero(np.isin(level, index)).tolist():
        reach = _SAME_COLUMN * em[i]
        row = order[np.searchsorted(y, y[i] - reach, sorter=order) : np.searchsorted(y, y[i] + reach, sorter=order)]
        off = np.abs(x[row] - x[i])
        result[level[i]] = off[off > reach].min(initial=np.inf)
    nearest: Floats = result[index]
    return nearest


def _stacks(index: Indices, below: NDArray[np.int64]) -> list[Indices]:
    """Characters that follow one another down the page, the longest stack first."""
    tops = np.setdiff1d(np.flatnonzero(below >= 0), below)
    seen: set[int] = set()
    stacks = []
    for top in tops.tolist():
        stack = [top]
        while (after := int(below[stack[-1]])) >= 0 and after not in seen:
            stack.append(after)
        seen.update(stack)
        if len(stack) >= _LEAST_CHARACTERS and np.mean(np.diff(stack) == 1) >= _IN_STREAM_ORDER:
            stacks.append(index[stack])
    return sorted(stacks, key=len, reverse=True)


def _column(glyphs: Glyphs, stack: Indices, taken: Flags) -> Column:
    """A stack of characters with all that stands in its column above, between and below them."""
    size = _sizes(glyphs)
    em = float(np.median(size[stack]))
    centre = float(np.median(glyphs.origins[stack, 0])) + em / 2
    # East Asian characters fill a square from their pen on; the boxes that fonts state for them may be those of the
    # ink.
    asian = _is_east_asian(glyphs.codes) & (glyphs.of("angle") == 0)
    boxes = glyphs.boxes
    middle = np.where(asian, glyphs.origins[:, 0] + size / 2, (boxes[:, 0] + boxes[:, 2]) / 2)
    bottom = np.where(asian, glyphs.origins[:, 1] + _DESCENT * size, boxes[:, 3])
    top = np.where(asian, bottom - size, boxes[:, 1])
    drawn = ~glyphs.is_space | (bottom - top > 0)
    fits = (size > _SIZES[0] * em) & (size < _SIZES[1] * em) & np.isin(glyphs.of("angle"), (0, 90))
    inside = np.flatnonzero(drawn & fits & ~taken & (np.abs(middle - centre) < _CELL * em))
    inside = inside[np.lexsort((boxes[inside, 0], np.round((top + bottom)[inside] / (0.2 * em))))]
    own = np.flatnonzero(np.isin(inside, stack))
    first, last = int(own[0]), int(own[-1])
    gap = top[inside[1:]] - np.maximum.accumulate(bottom[inside])[:-1]
    while first > 0 and gap[first - 1] < _GAP_IN_COLUMN * em:
        first -= 1
    while last < len(gap) and gap[last] < _GAP_IN_COLUMN * em:
        last += 1
    members = inside[first : last + 1]
    box = centre - em / 2, float(top[members].min()), centre + em / 2, float(bottom[members].max())
    return Column(members, box, em)
