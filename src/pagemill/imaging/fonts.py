"""Fonts of a PDF page: what their names, descriptors and advances say about family, weight, slant and pitch."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from pagemill.imaging.math_fonts import plain_name
from pagemill.imaging.types import Floats
from pagemill.late import re

_FIXED_PITCH, _ITALIC = 1 << 0, 1 << 6
"""Bits of ``/Flags`` of a font descriptor."""
_BOLD_WEIGHT = 600
_LEAST_SLANT, _MOST_SLANT = 3, 45
"""Degrees of ``/ItalicAngle`` that are a slant; some producers write sizes or -1 there."""
_NAME_BYTES = 128
_FONTS = 1024
"""Names whose family is kept: each text object asks."""
_BOLD_NAME = re.compile(r"bold|black|heavy|demi|^(?:CM|SF|EC)B(?:X|SR)|^CMB\d", re.IGNORECASE)
_ITALIC_NAME = re.compile(r"ital|obli|slant|^(?:CM|SF|EC)(?:TI|SL|BXTI|BXSL)|(?-i:[-a-z]It$)", re.IGNORECASE)
_FIXED_NAME = re.compile(r"mono(?!type)|courier|consol|menlo|typewriter|teletype|^(?:CM|SF|EC)TT|^LMTT", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"regular|roman$|book|light|thin", re.IGNORECASE)
_STYLE_WORDS = re.compile(
    r"(?:[-, ]*(?:bold|italic|ital|oblique|obli|slanted|regular|(?-i:Ita|It|PSMT|PS|MT))"
    r"|[-, ]+(?:roman|book|medium|light|thin|semi|demi|extra|ultra|black|heavy))+$",
    re.IGNORECASE,
)
_BRACKETS = list(b"()<>[]{}")
_NARROW, _WIDE = frozenset(b"il.,:;'|!jtIf"), frozenset(b"mwMWOQGD@%N")
_LEAST_SIGNS = 8
"""Different printing ASCII signs of a font on a page from which its pitch is measured (not measured)."""
_MOSTLY = 2 / 3
"""Share of East Asian characters on a page from which a font is that of its text: drawn pages have 0.77 and more."""
_SAME_ADVANCE, _OTHER_ADVANCE = 0.04, 0.15
"""Spread of advances in em, up to which a font has a fixed pitch, and from which it has none: those of fixed-pitch
fonts differ by rounding, ``i`` and ``m`` of others by 0.4 and more."""


class Font(NamedTuple):
    """A font as a PDF describes it."""

    name: str = ""
    """The base font's without the tag of its subset."""
    bold: bool = False
    italic: bool = False
    fixed_pitch: bool = False


def font_of(handle: Any) -> Font:
    """Read a font of PDFium; an empty one where there is none."""
    if not handle:
        return Font()
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    pdfium.FPDFFont_GetBaseFontName(handle, buffer, len(buffer))
    name = plain_name(buffer.value.decode("utf-8", "replace"))
    flags = pdfium.FPDFFont_GetFlags(handle)
    flags = flags if flags > 0 else 0
    angle = ctypes.c_int()
    known = pdfium.FPDFFont_GetItalicAngle(handle, angle)
    slanted = bool(known) and _LEAST_SLANT <= abs(angle.value) <= _MOST_SLANT
    fixed_pitch = _FIXED_NAME.search(name) is not None or bool(flags & _FIXED_PITCH)
    # PDFium takes the weight from /StemV, which some writers compute from advances: of fixed pitch, all are wide.
    is_heavy = not fixed_pitch and pdfium.FPDFFont_GetWeight(handle) >= _BOLD_WEIGHT
    return Font(
        name,
        bold=_BOLD_NAME.search(name) is not None or (is_heavy and not _PLAIN_NAME.search(name)),
        italic=_ITALIC_NAME.search(name) is not None or bool(flags & _ITALIC) or slanted,
        fixed_pitch=fixed_pitch,
    )


@lru_cache(_FONTS)
def family_of(name: str) -> str:
    """The family of a base font: its name without words for weight and slant."""
    return _STYLE_WORDS.sub("", name) or name


def measured_pitch(codes: NDArray[np.uint32], advances: Floats) -> bool | None:
    """Whether the glyphs of a font all advance by the same width; None where too few of them tell.

    Args:
        codes: Characters of one font, shape (n,).
        advances: How far each moves the pen, in em.
    """
    # Brackets in right-to-left lines often have a replacement text, whose box is that of the ink; so have other signs.
    printing = (codes > 0x20) & (codes < 0x7F) & ~np.isin(codes, _BRACKETS)
    # Han characters and kana share a width in every font, and in many all Latin letters have half of it.
    east_asian = int((codes >= 0x2E80).sum())
    if east_asian and (not printing.any() or east_asian > _MOSTLY * len(codes)):
        return False
    signs, place = np.unique(codes[printing], return_inverse=True)
    found = set(signs.tolist())
    if len(found) < _LEAST_SIGNS or not (found & _NARROW and found & _WIDE):
        return None
    widest = np.zeros(len(signs))
    np.maximum.at(widest, place, advances[printing])
    spread = float(np.ptp(widest))
    return True if spread < _SAME_ADVANCE else False if spread > _OTHER_ADVANCE else None
