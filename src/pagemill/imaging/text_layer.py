"""The text that a PDF page carries: read from PDFium, in pixels of the rendered page.

Runs inside a decoding process, like everything that touches PDFium.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pypdfium2.raw as pdfium

from pagemill.document.geometry import area, clip
from pagemill.document.page import ANNOTATION, TextLine
from pagemill.imaging.glyph_lines import lines_of_glyphs
from pagemill.imaging.glyphs import Glyphs, GlyphStyle, in_logical_order, with_accents
from pagemill.imaging.page import TextLayer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from pypdfium2 import PdfPage

    from pagemill.document.geometry import Box
    from pagemill.imaging.annotations import FlattenedPage, Mark

    Affine = NDArray[np.float64]

_MAX_CHARACTERS = 200_000
"""A page of small print has under 20,000; more than ten times that is an attack or an accident."""
_MAX_OBJECTS = 100_000
_MAX_FORM_DEPTH = 6
_DEVICE = 1 << 20
"""Side of the virtual device whose whole-number pixels give the page transform to about a thousandth of a point."""
_PAGE_FILLING = 0.85
_HYPHENS = {0x02, 0xAD, 0xFFFE}
"""Marks PDFium or the producer puts for a hyphen at a line's end."""
_INVISIBLE_MODES = {pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP}
_MAX_VALUE_LINES = 500
_MARK_EM = 0.7
"""Font size of a value without an appearance over the height of its line, about that of viewers in one-line fields."""
_BOLD_NAMES = ("bold", "black", "heavy", "demi")


@dataclass(frozen=True, slots=True)
class _PlacedImage:
    box: Box
    opaque: bool
    rank: int
    """Place in the drawing order."""


@dataclass(frozen=True, slots=True)
class _PlacedText:
    rank: int
    """Place in the drawing order."""
    annotation: bool


def extract_text_layer(flat: FlattenedPage, width: int, height: int) -> TextLayer:
    """Read the text of a page and of its annotations, with boxes in pixels of its rendering.

    Rotation, crop box and user unit are undone by PDFium's own page-to-device transform.

    Args:
        flat: An open page, from :func:`pagemill.imaging.annotations.flattened`.
        width: Width of the rendering in pixels.
        height: Height of the rendering in pixels.

    Returns:
        Lines in content-stream order, split at column and table-cell gaps. Glyphs drawn twice count once; glyphs
        outside the page are left out; invisible ones make lines of their own.
    """
    page = flat.page
    affine = page_to_pixels(page, width, height)
    images, texts = _objects(page, affine, width, height, flat.own_objects)
    coverage = image_coverage([image.box for image in images], width, height)
    cover = max((image.rank for image in images if image.opaque and _fills(image.box, width, height)), default=-1)
    text_page = pdfium.FPDFText_LoadPage(page.raw)
    if not text_page:
        return TextLayer(lines=(), characters=0, unmapped=0, invisible=0, image_coverage=coverage)
    try:
        glyphs, unmapped = _glyphs(text_page, affine, texts, cover)
    finally:
        pdfium.FPDFText_ClosePage(text_page)
    on_page = (
        (glyphs.boxes[:, 2] > 0)
        & (glyphs.boxes[:, 3] > 0)
        & (glyphs.boxes[:, 0] < width)
        & (glyphs.boxes[:, 1] < height)
    )
    invisible = np.array([style.invisible for style in glyphs.styles], dtype=bool)
    hidden = on_page & (invisible[glyphs.style] if len(invisible) else False)
    shown = on_page & ~hidden
    # Apart: an invisible layer repeats what is printed above it, and either may be the first.
    hidden[hidden] = ~glyphs.select(hidden).repeated()
    shown[shown] = ~glyphs.select(shown).repeated()
    printing = shown & ~glyphs.is_space
    return TextLayer(
        lines=_lines(glyphs.select(shown), width, height),
        hidden_lines=_lines(glyphs.select(hidden), width, height),
        marks=tuple(_marks(flat.marks, glyphs.boxes[printing], affine, width, height)),
        characters=int(printing.sum()),
        unmapped=int((printing & unmapped).sum()),
        invisible=int((hidden & ~glyphs.is_space).sum()),
        image_coverage=coverage,
    )


def _lines(glyphs: Glyphs, width: int, height: int) -> tuple[TextLine, ...]:
    return tuple(lines_of_glyphs(in_logical_order(with_accents(glyphs)), width, height))


def _marks(
    marks: Sequence[Mark], glyphs: NDArray[np.float64], affine: Affine, width: int, height: int
) -> Iterator[TextLine]:
    """Marks of annotations as lines; those that glyphs show already are left out.

    Args:
        marks: In page space.
        glyphs: Boxes of the visible glyphs in pixels, shape (n, 4).
        affine: From page space to pixels.
        width: Of the page in pixels.
        height: Of the page in pixels.
    """
    middle = (glyphs[:, :2] + glyphs[:, 2:]) / 2
    for mark in marks:
        left, top, right, bottom = mark.rectangle
        corners = np.array([[left, top, 1.0], [right, bottom, 1.0]]) @ affine.T
        low, high = corners.min(axis=0), corners.max(axis=0)
        box = clip((*low.tolist(), *high.tolist()), width, height)
        inside = ((middle >= low) & (middle <= high)).all(axis=1)
        if area(box) <= 0 or (mark.fallback and inside.any()):
            continue
        texts = [text for text in mark.text.splitlines() if text.strip()][:_MAX_VALUE_LINES]
        pitch = (box[3] - box[1]) / len(texts)
        for row, text in enumerate(texts):
            strip = (box[0], box[1] + row * pitch, box[2], box[1] + (row + 1) * pitch)
            yield TextLine(text=text.strip(), box=strip, engine=ANNOTATION, font_size=round(_MARK_EM * pitch, 2))


def placed_images(page: PdfPage, width: int, height: int) -> tuple[Box, ...]:
    """Boxes of the raster images that a page places, in pixels of its rendering, in drawing order."""
    images, _ = _objects(page, page_to_pixels(page, width, height), width, height, None)
    return tuple(image.box for image in images)


def page_to_pixels(page: PdfPage, width: int, height: int) -> Affine:
    """The affine map from page space (points, y upwards) to rendered pixels, shape (2, 3)."""
    device = []
    for x, y in ((0.0, 0.0), (1000.0, 0.0), (0.0, 1000.0)):
        column, row = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, _DEVICE, _DEVICE, 0, x, y, column, row)
        device.append((column.value * width / _DEVICE, row.value * height / _DEVICE))
    origin, along_x, along_y = np.array(device)
    return np.stack([(along_x - origin) / 1000.0, (along_y - origin) / 1000.0, origin], axis=1)


def image_coverage(boxes: list[Box], width: int, height: int) -> float:
    """Share of the page below at least one box, 0-1, on a grid of 100 by 100 cells."""
    grid = np.zeros((100, 100), dtype=bool)
    for x1, y1, x2, y2 in boxes:
        rows = slice(round(y1 / height * 100), round(y2 / height * 100))
        grid[rows, round(x1 / width * 100) : round(x2 / width * 100)] = True
    return float(grid.mean())


def _fills(box: Box, width: int, height: int) -> bool:
    return area(box) >= _PAGE_FILLING * width * height


def _objects(
    page: PdfPage, affine: Affine, width: int, height: int, own_objects: int | None
) -> tuple[list[_PlacedImage], dict[int, _PlacedText]]:
    """Images and texts that the page places; texts by the address of their object."""
    images: list[_PlacedImage] = []
    texts: dict[int, _PlacedText] = {}
    for rank, (handle, kind, matrix, root) in enumerate(_walk(page.raw, affine)):
        if rank >= _MAX_OBJECTS:
            break
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            texts[_address(handle)] = _PlacedText(rank, own_objects is not None and root >= own_objects)
        elif kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            corners = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
            points = corners @ _compose(matrix, handle).T
            box = clip((*points.min(axis=0).tolist(), *points.max(axis=0).tolist()), width, height)
            if area(box) > 0:
                images.append(_PlacedImage(box, not pdfium.FPDFPageObj_HasTransparency(handle), rank))
    return images, texts


def _walk(page: Any, affine: Affine) -> Iterator[tuple[Any, int, Affine, int]]:
    """All drawing objects, form contents included, with the map from their parent's space to pixels.

    The last item is the index of the top-level object that an object is, or is part of.
    """
    roots = (pdfium.FPDFPage_GetObject(page, i) for i in range(pdfium.FPDFPage_CountObjects(page)))
    stack: list[tuple[Iterator[Any], Affine]] = [(roots, affine)]
    root = -1
    while stack:
        handles, matrix = stack[-1]
        root += len(stack) == 1
        handle = next(handles, None)
        if handle is None:
            stack.pop()
            continue
        kind = pdfium.FPDFPageObj_GetType(handle)
        if kind == pdfium.FPDF_PAGEOBJ_FORM and len(stack) <= _MAX_FORM_DEPTH:
            count = pdfium.FPDFFormObj_CountObjects(handle)
            inner = (pdfium.FPDFFormObj_GetObject(form, i) for form in [handle] for i in range(count))
            stack.append((inner, _compose(matrix, handle)))
        else:
            yield handle, kind, matrix, root


def _compose(outer: Affine, handle: Any) -> Affine:
    """The map from an object's own space to pixels."""
    m = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(handle, m):
        return outer
    inner = np.array([[m.a, m.c, m.e], [m.b, m.d, m.f], [0.0, 0.0, 1.0]])
    composed: Affine = outer @ inner
    return composed


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _glyphs(
    text_page: Any, affine: Affine, texts: dict[int, _PlacedText], cover: int
) -> tuple[Glyphs, NDArray[np.bool_]]:
    """All glyphs of a text page in content-stream order, and which of them have no usable Unicode value."""
    count = min(max(0, pdfium.FPDFText_CountChars(text_page)), _MAX_CHARACTERS)
    codes = np.zeros(count, dtype=np.uint32)
    unmapped = np.zeros(count, dtype=bool)
    rectangles = np.zeros((count, 4), dtype=np.float32)  # left, top, right, bottom in page space
    origins = np.zeros((count, 2), dtype=np.float64)
    style = np.zeros(count, dtype=np.int32)
    styles: list[GlyphStyle] = []
    style_of_object: dict[int, int] = {}
    if count:
        # One buffer, written by PDFium through moving references: no Python object a glyph.
        rectangle, origin = pdfium.FS_RECTF.from_buffer(rectangles.data), ctypes.c_double.from_buffer(origins.data)
    for i in range(count):
        codes[i] = pdfium.FPDFText_GetUnicode(text_page, i)
        unmapped[i] = pdfium.FPDFText_HasUnicodeMapError(text_page, i) == 1
        pdfium.FPDFText_GetLooseCharBox(text_page, i, ctypes.byref(rectangle, 16 * i))
        pdfium.FPDFText_GetCharOrigin(text_page, i, ctypes.byref(origin, 16 * i), ctypes.byref(origin, 16 * i + 8))
        handle = pdfium.FPDFText_GetTextObject(text_page, i)
        address = _address(handle)
        index = style_of_object.get(address)
        if index is None:
            index = style_of_object[address] = len(styles)
            placed = texts.get(address, _PlacedText(cover, False))
            styles.append(_style(text_page, i, handle, affine, placed, hidden=placed.rank < cover))
        style[i] = index
    unmapped |= _unusable(codes)
    codes[np.isin(codes, list(_HYPHENS))] = ord("-")
    codes[unmapped] = 0xFFFD  # or a control code would pass for white space
    return Glyphs.from_page_space(codes, rectangles.astype(np.float64), origins, style, styles, affine), unmapped


def _unusable(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which code points say nothing: replacement, private use, noncharacters, controls that are no white space."""
    control = (codes < 0x20) & ~np.isin(codes, [0x00, 0x02, 0x09, 0x0A, 0x0D])
    private = ((codes >= 0xE000) & (codes < 0xF900)) | (codes >= 0xF0000)
    result: NDArray[np.bool_] = control | private | (codes == 0xFFFD) | ((codes >= 0x80) & (codes < 0xA0))
    return result


def _style(text_page: Any, index: int, handle: Any, affine: Affine, placed: _PlacedText, *, hidden: bool) -> GlyphStyle:
    """Direction, size and weight of the glyphs of one text object; generated glyphs have no object."""
    matrix = pdfium.FS_MATRIX()
    if not handle or not pdfium.FPDFText_GetMatrix(text_page, index, matrix):
        return GlyphStyle(size=0.0, angle=0, bold=False, invisible=hidden, annotation=placed.annotation)
    along = affine[:, :2] @ np.array([matrix.a, matrix.b])
    up = affine[:, :2] @ np.array([matrix.c, matrix.d])
    size = pdfium.FPDFText_GetFontSize(text_page, index) * float(np.hypot(*up))
    mode = pdfium.FPDFTextObj_GetTextRenderMode(handle)
    bold = mode == pdfium.FPDF_TEXTRENDERMODE_FILL_STROKE or _is_bold(pdfium.FPDFTextObj_GetFont(handle))
    angle = round(math.degrees(math.atan2(along[1], along[0]))) % 360
    invisible = hidden or mode in _INVISIBLE_MODES or _is_transparent(handle, mode)
    return GlyphStyle(size=size, angle=angle, bold=bold, invisible=invisible, annotation=placed.annotation)


def _is_transparent(handle: Any, mode: int) -> bool:
    """Whether filled text has an alpha of zero (how note-taking programs lay recognized text over handwriting)."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    known = pdfium.FPDFPageObj_GetFillColor(handle, red, green, blue, alpha)
    return bool(mode == pdfium.FPDF_TEXTRENDERMODE_FILL and known and alpha.value == 0)


def _is_bold(font: Any) -> bool:
    """Whether a font is bold by its name or by the weight it states."""
    if not font:
        return False
    buffer = ctypes.create_string_buffer(128)
    length = pdfium.FPDFFont_GetBaseFontName(font, buffer, 128)
    name = buffer.raw[: max(0, min(length, 128) - 1)].decode("utf-8", "replace").lower()
    return any(part in name for part in _BOLD_NAMES) or pdfium.FPDFFont_GetWeight(font) >= 600
