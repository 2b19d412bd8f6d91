"""Functions of PDFium that are called for each glyph or object of a page, without the cost of the usual way."""

from __future__ import annotations

import ctypes
from typing import Any

import pypdfium2.raw as pdfium


def address_of(handle: Any) -> int:
    """The address that a handle or a function of PDFium stands for; 0 for none."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _bulk(name: str, result: Any, *arguments: Any) -> Any:
    """A function of PDFium with whole numbers for pointers, which keeps the GIL: its release takes as long as a call.

    ``map`` calls it for all glyphs in a third of the time of a loop over the functions of pypdfium2.
    """
    return ctypes.PYFUNCTYPE(result, *arguments)(address_of(getattr(pdfium, name)))


_GLYPH = ctypes.c_size_t, ctypes.c_int
"""A text page and the index of a glyph."""
_OBJECT = ctypes.c_size_t
_PLACE = ctypes.c_size_t
"""Where a result goes."""

UNICODE = _bulk("FPDFText_GetUnicode", ctypes.c_uint, *_GLYPH)
TEXT_OBJECT = _bulk("FPDFText_GetTextObject", ctypes.c_size_t, *_GLYPH)
LOOSE_BOX = _bulk("FPDFText_GetLooseCharBox", ctypes.c_int, *_GLYPH, _PLACE)
ORIGIN = _bulk("FPDFText_GetCharOrigin", ctypes.c_int, *_GLYPH, _PLACE, _PLACE)
CHAR_BOX = _bulk("FPDFText_GetCharBox", ctypes.c_int, *_GLYPH, *[_PLACE] * 4)
MAP_ERROR = _bulk("FPDFText_HasUnicodeMapError", ctypes.c_int, *_GLYPH)
MATRIX = _bulk("FPDFText_GetMatrix", ctypes.c_int, *_GLYPH, _PLACE)
FONT_SIZE = _bulk("FPDFText_GetFontSize", ctypes.c_double, *_GLYPH)
FONT = _bulk("FPDFTextObj_GetFont", ctypes.c_size_t, _OBJECT)
RENDER_MODE = _bulk("FPDFTextObj_GetTextRenderMode", ctypes.c_int, _OBJECT)
FILL_COLOUR = _bulk("FPDFPageObj_GetFillColor", ctypes.c_int, _OBJECT, *[_PLACE] * 4)
