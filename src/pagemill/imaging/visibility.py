"""Text of a PDF page that nobody sees, by the order in which it is drawn; and watermarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Box
from pagemill.document.page import Style, TextLine
from pagemill.imaging.glyphs import Glyphs
from pagemill.imaging.types import Flags, Floats

_SAME_COLOUR = 8
"""Most that the channels of two colours differ which nobody can tell apart, of 255 (not measured)."""
_SMALLEST, _SMALL_BESIDE = 1.5, 0.25
"""Points under which type cannot be read, and its share of the page's usual size: a page may be drawn at any scale."""
_INSIDE = 0.25
"""Half the side, in em, of the part of a glyph that has to be covered."""
_PALE = 170
"""Luminance (of 255) from which type is pale: its contrast with white is under 2.4 to 1."""
_LEVEL = 2.0
"""Degrees from a quarter turn up to which text is level or upright."""
_CROSSED = 3
"""Glyphs of other lines inside a watermark."""
_PAPER, _ANY = 0xFFFFFF, -1


class Paint(NamedTuple):
    """What covers a part of the page."""

    rank: int
    """In the order of drawing."""
    box: Box
    colour: int | None
    """None where it is of many colours, or can be seen through."""


def unseen(
    glyphs: Glyphs, ranks: NDArray[np.int64], colours: NDArray[np.int64], paints: Sequence[Paint], point: float
) -> Flags:
    """Which glyphs nobody sees: too small, of the colour of what is beneath, or covered by what is drawn later.

    Args:
        glyphs: n of them.
        ranks: Ranks of their text objects in the order of drawing, shape (n,); -1 for those drawn by nobody.
        colours: Shape (n,); -1 where nobody knows.
        paints: In the order of drawing.
        point: Pixels of a point.
    """
    size = glyphs.sizes
    printing = ~glyphs.is_space
    flags = np.zeros(len(size), dtype=bool)
    if not printing.any():
        return flags
    usual = float(np.median(size[printing]))
    size = np.maximum(size, glyphs.of("size"))  # a full stop has little height
    flags |= (size < _SMALLEST * point) & (size < _SMALL_BESIDE * usual)
    middle = (glyphs.boxes[:, :2] + glyphs.boxes[:, 2:]) / 2
    order = np.argsort(middle[:, 1], kind="stable")
    heights = middle[order, 1]
    beneath = np.full(len(size), _PAPER)
    for paint in paints:
        x1, y1, x2, y2 = paint.box
        # Only glyphs at the height of the paint: pages have thousands of both, and millions of pairs.
        near = order[np.searchsorted(heights, y1) : np.searchsorted(heights, y2, side="right")]
        half = _INSIDE * size[near]
        across, down = middle[near, 0], middle[near, 1]
        inside = (across - half > x1) & (across + half < x2)
        whole = near[inside & (down - half > y1) & (down + half < y2)]
        touched = near[(across + half > x1) & (across - half < x2)]
        later = touched[ranks[touched] > paint.rank]
        # Partly over it, or on paint of many colours: nobody can tell the contrast.
        beneath[later] = _ANY
        if paint.colour is not None:
            beneath[whole[ranks[whole] > paint.rank]] = paint.colour
            flags[whole[(ranks[whole] < paint.rank) & (ranks[whole] >= 0)]] = True
    known = (beneath >= 0) & (colours >= 0)
    channels = [np.abs((beneath >> shift & 255) - (colours >> shift & 255)) for shift in (0, 8, 16)]
    flags |= known & (np.maximum.reduce(channels) <= _SAME_COLOUR)
    return flags & printing


def split_watermarks(
    lines: Sequence[TextLine], styles: Sequence[Style], level: Floats
) -> tuple[tuple[TextLine, ...], tuple[TextLine, ...]]:
    """The lines without those of watermarks, and these: slanted and pale, or slanted across other text.

    Args:
        lines: Lines of a page.
        styles: Styles of the page.
        level: Middles of the printing glyphs of lines that do not slant, shape (n, 2).
    """
    marks = {id(line) for line in lines if _slants(line) and (_is_pale(line, styles) or _crosses(line, level))}
    return (
        tuple(line for line in lines if id(line) not in marks),
        tuple(line for line in lines if id(line) in marks),
    )


def _slants(line: TextLine) -> bool:
    if line.polygon is None:
        return False
    (x1, y1), (x2, y2) = line.polygon[:2]
    turned = math.degrees(math.atan2(y2 - y1, x2 - x1)) % 90
    return min(turned, 90 - turned) > _LEVEL


def _is_pale(line: TextLine, styles: Sequence[Style]) -> bool:
    if line.style is None:
        return False
    colour = styles[line.style].colour
    return 0.3 * (colour >> 16) + 0.59 * (colour >> 8 & 255) + 0.11 * (colour & 255) >= _PALE


def _crosses(line: TextLine, level: Floats) -> bool:
    corners = np.array(line.polygon)
    along, down = corners[1] - corners[0], corners[3] - corners[0]
    place = level - corners[0]
    inside = np.ones(len(level), dtype=bool)
    for axis in (along, down):
        share = place @ axis / max(float(axis @ axis), 1e-9)
        inside &= (share > 0) & (share < 1)
    return int(inside.sum()) >= _CROSSED
