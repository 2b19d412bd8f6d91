"""Superscripts and subscripts that a font has as glyphs of their own, of the size and on the baseline of all others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.glyphs import Glyphs
from pagemill.imaging.types import Floats, Indices

SCRIPT_FORM, _SCRIPT_RISE = 0.65, 0.3
"""Size and distance from the baseline, in em, of figures that a font itself draws as superscripts (most fonts)."""
_NARROW_FIGURE = 0.85
"""Greatest width of such a figure over that of the font's others: Libertinus has 0.68."""
_RAISED_FOOT, _LOWERED_FOOT, _LOWERED_HEAD = 0.2, -0.05, 0.42
"""Heights above the baseline of the feet and heads of such figures and letters, in em: other letters begin at 0, and
figures that hang below it reach up to 0.45."""
_RAISED_SIGN = 0.38
"""The same of signs: a minus has its foot at 0.25."""


def with_script_forms(glyphs: Glyphs, font: Indices, ink_of: Callable[[Indices], Floats]) -> tuple[Glyphs, list[int]]:
    """The glyphs, those that the font itself draws raised or lowered (``sups``, ``subs``) with size and baseline so.

    They have the size and the baseline of the others by what the file says, and figures that are narrower. Letters are
    looked at in fonts with such figures alone.

    Args:
        glyphs: n of them.
        font: Numbers of their fonts, shape (n,).
        ink_of: Gives the boxes of what is drawn of the glyphs with these indices.

    Returns:
        The glyphs, and for each style that was added for them the one it was made from.
    """
    size, baseline = glyphs.of("size"), glyphs.origins[:, 1]
    level = (glyphs.of("angle") == 0) & (size > 0)
    figures = level & (glyphs.codes >= 0x30) & (glyphs.codes <= 0x39)
    width = np.round((glyphs.boxes[:, 2] - glyphs.boxes[:, 0]) / np.maximum(size, 1e-9), 2)
    usual = np.zeros(len(size))
    for number in np.unique(font[figures]).tolist():
        usual[font == number] = float(np.max(width[figures & (font == number)]))
    narrow = figures & (width < _NARROW_FIGURE * usual)
    off = _side(ink_of, glyphs, np.flatnonzero(narrow))
    if not off.any():
        return glyphs, []
    lower = glyphs.codes | 0x20
    letters = ((lower >= 0x61) & (lower <= 0x7A)) | ((glyphs.codes >= 0xC0) & (glyphs.codes < 0x250))
    others = level & letters & np.isin(font, np.unique(font[off != 0]))
    off += _side(ink_of, glyphs, np.flatnonzero(others))
    # Signs between two of them are of them, and signs behind one that stand higher than signs do.
    signs = level & ~letters & ~figures & ~glyphs.is_space
    between = np.flatnonzero((off[:-2] == off[2:]) & (off[:-2] != 0) & signs[1:-1]) + 1
    off[between] = off[between - 1]
    behind = np.flatnonzero((off[:-1] == 1) & signs[1:] & (off[1:] == 0)) + 1
    off += _side(ink_of, glyphs, behind, _RAISED_SIGN)
    moved = np.flatnonzero(off)
    parents, place = np.unique(glyphs.style[moved], return_inverse=True)
    added = glyphs.styles[parents].copy()
    added["size"] *= SCRIPT_FORM
    style, origins = glyphs.style.copy(), glyphs.origins.copy()
    style[moved] = len(glyphs.styles) + place
    origins[moved, 1] = baseline[moved] - _SCRIPT_RISE * off[moved] * size[moved]
    return Glyphs(glyphs.codes, glyphs.boxes, origins, style, np.concatenate([glyphs.styles, added])), parents.tolist()


def _side(
    ink_of: Callable[[Indices], Floats], glyphs: Glyphs, index: Indices, raised: float = _RAISED_FOOT
) -> NDArray[np.int64]:
    """Whether the ink of each glyph is raised (1) or lowered (-1), shape of all glyphs."""
    side = np.zeros(len(glyphs.codes), dtype=np.int64)
    ink = ink_of(index)
    size, baseline = glyphs.of("size")[index], glyphs.origins[index, 1]
    foot, head = (baseline - ink[:, 3]) / size, (baseline - ink[:, 1]) / size
    side[index[foot > raised]] = 1
    side[index[(foot < _LOWERED_FOOT) & (head < _LOWERED_HEAD)]] = -1
    return side
