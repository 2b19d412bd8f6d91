"""How the text objects of a PDF page look: font, size, direction, weight, colour; and the styles made of that."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pypdfium2.raw as pdfium

from pagemill.document.page import Style
from pagemill.imaging.bulk import FILL_COLOUR, FONT, FONT_SIZE, MATRIX, RENDER_MODE, address_of
from pagemill.imaging.drawings import on_white
from pagemill.imaging.fonts import Font, family_of, font_of, measured_pitch
from pagemill.imaging.glyphs import Glyphs
from pagemill.imaging.math_fonts import is_math
from pagemill.imaging.types import Floats, Indices

_LEAST_SHEAR, _MOST_SHEAR = 0.1, 0.7
"""Cosines of the angles between the axes of slanted text: producers lean upright letters by 11 to 20 degrees."""
_INVISIBLE_MODES = {pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP}


class Look(NamedTuple):
    """What the glyphs of a text object share."""

    font: Font = Font()
    size: float = 0.0
    """In pixels; 0 where it is not known."""
    angle: int = 0
    bold: bool = False
    slanted: bool = False
    invisible: bool = False
    straight: bool = False
    """Its glyphs stand on one level line of page space, from the left."""
    colour: int = 0
    """Colour of the fill, as it looks on white."""
    is_filled: bool = False
    """It is filled, and nothing else."""


def looks_of(text_page: Any, first: Sequence[int], addresses: Sequence[int], affine: Floats) -> list[Look]:
    """Size, direction, weight, colour and visibility of text objects; generated glyphs have none.

    Args:
        text_page: The page.
        first: Index of a glyph of each object.
        addresses: Addresses of the objects.
        affine: From page space to pixels.
    """
    count, page = len(addresses), repeat(address_of(text_page))
    matrices, colours = np.zeros((count, 6), dtype=np.float32), np.zeros((count, 4), dtype=np.uint32)
    place = matrices.ctypes.data
    has_matrix = list(map(MATRIX, page, first, range(place, place + 24 * count, 24)))
    places = [range(colours.ctypes.data + 4 * i, colours.ctypes.data + 4 * i + 16 * count, 16) for i in range(4)]
    is_known = np.fromiter(map(FILL_COLOUR, addresses, *places), dtype=bool, count=count)
    colours[~is_known] = 0, 0, 0, 255
    signed = np.fromiter(map(FONT_SIZE, page, first), dtype=np.float64, count=count)
    a, b, c, d = matrices[:, :4].T.astype(np.float64)
    # The axes of the glyphs in pixels; a negative size turns the glyphs.
    along = np.where(signed < 0, -1, 1) * (affine[:, :1] * a + affine[:, 1:2] * b)
    up = affine[:, :1] * c + affine[:, 1:2] * d
    height = np.hypot(*up)
    lean = np.abs((along * up).sum(axis=0)) / np.maximum(np.hypot(*along) * height, 1e-9)
    rows = zip(
        map(FONT, addresses),
        map(RENDER_MODE, addresses),
        map(tuple, colours.tolist()),
        (np.abs(signed) * height).tolist(),
        (np.round(np.degrees(np.arctan2(along[1], along[0]))).astype(np.int64) % 360).tolist(),
        ((lean > _LEAST_SHEAR) & (lean < _MOST_SHEAR)).tolist(),
        ((b == 0) & (c == 0) & (a * signed > 0)).tolist(),
        strict=True,
    )
    fonts: dict[int, Font] = {}
    known: dict[Any, Look] = {}
    looks: list[Look] = []
    for address, has, row in zip(addresses, has_matrix, rows, strict=True):
        if not address or not has:
            looks.append(Look())
            continue
        if row not in known:
            font, mode, (red, green, blue, alpha), size, angle, slanted, straight = row
            if font not in fonts:
                fonts[font] = font_of(ctypes.cast(font, pdfium.FPDF_FONT))
            known[row] = Look(
                fonts[font],
                size=size,
                angle=angle,
                bold=fonts[font].bold or mode == pdfium.FPDF_TEXTRENDERMODE_FILL_STROKE,
                slanted=slanted,
                # Filled text with an alpha of 0 is how note-taking programs lay recognized text over handwriting.
                invisible=mode in _INVISIBLE_MODES or (mode == pdfium.FPDF_TEXTRENDERMODE_FILL and alpha == 0),
                straight=straight,
                colour=on_white(red << 16 | green << 8 | blue, alpha),
                is_filled=mode == pdfium.FPDF_TEXTRENDERMODE_FILL,
            )
        looks.append(known[row])
    return looks


def faces_of(glyphs: Glyphs, looks: Sequence[Look], point: float) -> list[tuple[Style, bool]]:
    """The styles of a page, and whether each is of a font for formulas; each glyph gets the index of its own."""
    size, style = glyphs.sizes, glyphs.style
    measured = np.array([look.size for look in looks])
    off = np.flatnonzero(np.bincount(style, weights=np.abs(size - measured[style]) > 0.01 * size, minlength=len(looks)))
    shown = ~glyphs.is_space
    for number in off.tolist():  # fonts of type 3, and generated glyphs
        own = size[(style == number) & shown]
        measured[number] = float(np.median(own)) if len(own) else measured[number]
    fixed = _fixed_pitch(glyphs, looks, size)
    faces: dict[tuple[str, float, bool, bool, bool, int], int] = {}
    result = []
    for number, look in enumerate(looks):
        name = look.font.name
        points = round(float(measured[number]) / point, 1)
        key = (family_of(name), points, look.bold, look.font.italic or look.slanted, fixed[name], look.colour)
        if key not in faces:
            faces[key] = len(faces)
            result.append((Style(*key), is_math(name)))
        glyphs.styles["face"][number] = faces[key]
    return result


def _fixed_pitch(glyphs: Glyphs, looks: Sequence[Look], size: Floats) -> dict[str, bool]:
    """By the name of a font whether its pitch is fixed: as its advances say, else as it says itself."""
    numbers = numbered([look.font.name for look in looks])
    font = numbers[glyphs.style]
    level = glyphs.of("angle") % 180 == 0
    across, down = (glyphs.boxes[:, 2:] - glyphs.boxes[:, :2]).T
    advance = np.where(level, across, down) / size
    usable = (glyphs.of("angle") % 90 == 0) & ~glyphs.is_space
    stated = {look.font.name: look.font.fixed_pitch for look in looks}
    result = {}
    for name, place in {look.font.name: place for look, place in zip(looks, numbers.tolist(), strict=True)}.items():
        own = np.flatnonzero(usable & (font == place))
        pitch = measured_pitch(glyphs.codes[own], advance[own]) if len(own) else None
        result[name] = stated[name] if pitch is None else pitch
    return result


def numbered(names: Sequence[str]) -> Indices:
    """Equal names have equal numbers."""
    number = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.intp)
