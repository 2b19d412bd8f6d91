"""A glyph of a page with formulas, as precisely as its text layer gives it."""

from __future__ import annotations

import msgspec

from pagemill.document.geometry import Box


class Symbol(msgspec.Struct, frozen=True, array_like=True):
    """A visible glyph."""

    text: str
    """The character that it shows; accents are combining characters, large delimiters may come in pieces."""
    box: Box
    """Box of its ink, in page pixels."""
    baseline: float
    size: float
    """Size of the font, in page pixels."""
    style: str = "r"
    """``i`` italic, ``r`` upright, ``b`` bold, ``c`` calligraphic, ``d`` double-struck, ``f`` Fraktur, ``s`` sans."""
    math: bool = False
    """Whether its font is only for formulas."""
