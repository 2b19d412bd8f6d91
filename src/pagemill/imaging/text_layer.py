"""The text that a PDF page carries: read from PDFium, in pixels of the rendered page.

Runs inside a decoding process, like everything that touches PDFium.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray
from pypdfium2 import PdfPage

from pagemill.document.geometry import Box, area, clip, frame_of
from pagemill.document.page import ANNOTATION, TextLine
from pagemill.document.symbols import Symbol
from pagemill.imaging.annotations import FlattenedPage, Mark
from pagemill.imaging.glyph_lines import lines_of_glyphs
from pagemill.imaging.glyphs import STYLE, Glyphs, valid_unicode, with_accents, with_spans_spread
from pagemill.imaging.math_fonts import PIECES, is_extension, is_math, meaning, plain_name, style_of
from pagemill.imaging.page import TextLayer
from pagemill.imaging.right_to_left import in_reading_order
from pagemill.imaging.types import Flags, Floats

_MAX_CHARACTERS = 200_000
"""A page of small print has under 20,000; more than ten times that is an attack or an accident."""
_MAX_OBJECTS = 100_000
_MAX_FORM_DEPTH = 6
_DEVICE = 1 << 20
"""Side of the virtual device whose whole-number pixels give the page transform to about a thousandth of a point."""
_PAGE_FILLING = 0.85
_UNIT_SQUARE = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
_SAME_PLACE = 0.001
"""Greatest distance of one place from itself by rounding, in points."""
_UNMAPPED = 0xFFFD
"""Stands for every glyph without a usable Unicode value."""
_NOTHING = (0.0, 0.0, 0.0, 0.0)
_EMPTY = 0.01
"""Share of its box that is drawn of a glyph, up to which it is white space; of full stops it is twice that."""
_HYPHENS = {0x02, 0xAD, 0xFFFE}
"""Marks PDFium or the producer puts for a hyphen at a line's end."""
_INVISIBLE_MODES = {pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP}
_MAX_VALUE_LINES = 500
_MARK_EM = 0.7
"""Font size of a value without an appearance over the height of its line, about that of viewers in one-line fields."""
_MAX_RULES = 5_000
_RULE_HEIGHT, _RULE_SHAPE = 0.25, 3.0
"""Greatest height of a fraction bar in units of the largest type of its page (TeX draws 0.04, others up to 0.1; a rule
drawn as a box of its own height and width is a frame), and its least width in heights."""
_MATH_SIGNS = frozenset(map(ord, "∑∏∫∮√∂∇∞≤≥≠≈≡∈∉⊂⊆∪∩∀∃→⇒⇔∝⟨⟩⊗⊕±"))
"""Signs that make a page one with formulas, whatever font they are set in, when there are several of them."""
_FEW_SIGNS, _GREEK_TEXT = 2, 0.1
"""Greek letters are signs, too, where they are few."""
_AROUND_SIGNS = 5.0
"""Distance from the height of such a sign, in em, up to which symbols matter to its formula."""
_AXIS = 0.25
"""Height of the middle of a large sign above the baseline of its line, in em."""
_DRAWN = "^ˆ~˜¯˙¨ˇ˘´`˚"
_COMBINING = "\u0302\u0302\u0303\u0303\u0304\u0307\u0308\u030c\u0306\u0301\u0300\u030a"
_SYMBOL_ACCENTS = {ord(drawn): ord(combining) for drawn, combining in zip(_DRAWN, _COMBINING, strict=True)}
"""Accents that TeX sets as glyphs of their own, and the combining characters that stand for them."""
_BOLD_NAMES = ("bold", "black", "heavy", "demi")


def extract_text_layer(flat: FlattenedPage, width: int, height: int) -> tuple[TextLayer, tuple[Box, ...]]:
    """Read the text of a page and of its annotations, with boxes in pixels of its rendering.

    Rotation, crop box and user unit are undone by PDFium's own page-to-device transform.

    Args:
        flat: An open page, from :func:`pagemill.imaging.annotations.flattened`.
        width: Width of the rendering in pixels.
        height: Height of the rendering in pixels.

    Returns:
        Lines in content-stream order, split at column and table-cell gaps; and the boxes of the page's own raster
        images in drawing order. Glyphs drawn twice count once; glyphs outside the page are left out; invisible ones
        make lines of their own.
    """
    page = flat.page
    affine = page_to_pixels(page, width, height)
    own_images: list[Box] = []
    drawn: dict[int, tuple[int, bool, Floats]] = {}
    texts: list[tuple[Any, Floats]] = []
    paths: list[tuple[Any, Floats]] = []
    images: list[Floats] = []
    cover = -1
    for rank, (handle, kind, matrix, root) in enumerate(islice(_objects(page.raw, affine), _MAX_OBJECTS)):
        is_own = flat.own_objects is None or root < flat.own_objects
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            drawn[_address(handle)] = rank, not is_own, matrix
            texts.append((handle, matrix))
        elif kind == pdfium.FPDF_PAGEOBJ_PATH:
            if len(paths) < _MAX_RULES:
                paths.append((handle, matrix))
        elif kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            points = _UNIT_SQUARE @ _compose(matrix, handle).T
            images += [frame_of(np.concatenate([points, points], axis=1))] if is_own else []
            box = clip((*points.min(axis=0).tolist(), *points.max(axis=0).tolist()), width, height)
            if area(box) > 0:
                own_images += [box] if is_own else []
                fills = area(box) >= _PAGE_FILLING * width * height
                cover = rank if fills and not pdfium.FPDFPageObj_HasTransparency(handle) else cover
    with closing(page.get_textpage()) as text_page:
        glyphs, symbols = _glyphs(text_page.raw, affine, drawn, cover)
        symbols += tuple(_silent(text_page.raw, texts)) if symbols else ()
        left_out = max(0, pdfium.FPDFText_CountChars(text_page.raw) - _MAX_CHARACTERS)
    on_page = ((glyphs.boxes[:, 2:] > 0) & (glyphs.boxes[:, :2] < (width, height))).all(axis=1)
    placed = np.concatenate([np.reshape(images, (-1, 4)), glyphs.boxes[~glyphs.is_space]])
    sheet = _read_box(pdfium.FPDFPage_GetMediaBox, page.raw, affine) or (0.0, 0.0, width, height)
    on_sheet = ((placed[:, 2:] > sheet[:2]) & (placed[:, :2] < sheet[2:])).all(axis=1)
    hidden = on_page & glyphs.look["invisible"]
    shown = on_page & ~hidden
    # Apart: an invisible layer repeats what is printed above it, and either may be the first.
    hidden[hidden] = ~glyphs.select(hidden).repeated()
    shown[shown] = ~glyphs.select(shown).repeated()
    printing = shown & ~glyphs.is_space
    layer = TextLayer(
        lines=_lines(glyphs.select(shown), width, height),
        hidden_lines=_lines(glyphs.select(hidden), width, height),
        marks=tuple(_marks(flat.marks, glyphs.boxes[printing], affine, width, height)),
        characters=int(printing.sum()),
        unmapped=int((printing & (glyphs.codes == _UNMAPPED)).sum()),
        symbols=symbols,
        rules=tuple(_rules(paths, max(symbol.size for symbol in symbols))) if symbols else (),
        is_beside=len(placed) > 0 and not on_sheet.any(),
        left_out=left_out,
    )
    return layer, tuple(own_images)


def _lines(glyphs: Glyphs, width: int, height: int) -> tuple[TextLine, ...]:
    return tuple(lines_of_glyphs(in_reading_order(with_accents(glyphs)), width, height))


def _marks(marks: Sequence[Mark], glyphs: Floats, affine: Floats, width: int, height: int) -> Iterator[TextLine]:
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


def page_to_pixels(page: PdfPage, width: int, height: int) -> Floats:
    """The affine map from page space (points, y upwards) to rendered pixels, shape (2, 3)."""
    device = []
    for x, y in ((0.0, 0.0), (1000.0, 0.0), (0.0, 1000.0)):
        column, row = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, _DEVICE, _DEVICE, 0, x, y, column, row)
        device.append((column.value * width / _DEVICE, row.value * height / _DEVICE))
    origin, along_x, along_y = np.array(device)
    return np.stack([(along_x - origin) / 1000.0, (along_y - origin) / 1000.0, origin], axis=1)


def _objects(page: Any, affine: Floats) -> Iterator[tuple[Any, int, Floats, int]]:
    """All drawing objects, form contents included, with the map from their parent's space to pixels.

    The last item is the index of the top-level object that an object is, or is part of.
    """
    for root in range(pdfium.FPDFPage_CountObjects(page)):
        yield from _inside(pdfium.FPDFPage_GetObject(page, root), affine, root, 0)


def _inside(handle: Any, matrix: Floats, root: int, depth: int) -> Iterator[tuple[Any, int, Floats, int]]:
    kind = pdfium.FPDFPageObj_GetType(handle)
    if kind != pdfium.FPDF_PAGEOBJ_FORM or depth == _MAX_FORM_DEPTH:
        yield handle, kind, matrix, root
        return
    inner = _compose(matrix, handle)
    for index in range(pdfium.FPDFFormObj_CountObjects(handle)):
        yield from _inside(pdfium.FPDFFormObj_GetObject(handle, index), inner, root, depth + 1)


def _compose(outer: Floats, handle: Any) -> Floats:
    """The map from an object's own space to pixels."""
    m = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(handle, m):
        return outer
    inner = np.array([[m.a, m.c, m.e], [m.b, m.d, m.f], [0.0, 0.0, 1.0]])
    composed: Floats = outer @ inner
    return composed


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _rules(paths: Sequence[tuple[Any, Floats]], size: float) -> Iterator[Box]:
    """Paths that are thin level lines, in pixels."""
    for handle, matrix in paths:
        if (box := _bounds(handle, matrix)) is None:
            continue
        width, height = box[2] - box[0], box[3] - box[1]
        if height < _RULE_HEIGHT * size and width > max(_RULE_SHAPE * height, 1.0):
            yield box


def _silent(text_page: Any, texts: Sequence[tuple[Any, Floats]]) -> Iterator[Symbol]:
    """Text objects that say nothing: the pieces of a large delimiter but the first, which says what all are."""
    count = min(max(0, pdfium.FPDFText_CountChars(text_page)), _MAX_CHARACTERS)
    speaking = {_address(pdfium.FPDFText_GetTextObject(text_page, i)) for i in range(count)}
    size = ctypes.c_float()
    for handle, matrix in texts[:_MAX_RULES]:
        if _address(handle) in speaking or not pdfium.FPDFTextObj_GetFontSize(handle, size):
            continue
        if (box := _bounds(handle, matrix)) is not None and box[3] - box[1] > box[2] - box[0] > 0:
            own = pdfium.FS_MATRIX()
            pdfium.FPDFPageObj_GetMatrix(handle, own)
            em = size.value * math.hypot(own.c, own.d) * math.hypot(*matrix[:, 1])
            yield Symbol("⎪", box, box[3], round(em, 2))


def _bounds(handle: Any, matrix: Floats) -> Box | None:
    """The box of an object in pixels."""
    return _read_box(pdfium.FPDFPageObj_GetBounds, handle, matrix)


def _read_box(read: Callable[..., int], of: Any, matrix: Floats) -> Box | None:
    """The box that a function of PDFium tells of something, in pixels; None where it has none."""
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not read(of, left, bottom, right, top):
        return None
    corners = matrix @ np.array([[left.value, right.value], [bottom.value, top.value], [1.0, 1.0]])
    (x1, y1), (x2, y2) = corners.min(axis=1).tolist(), corners.max(axis=1).tolist()
    return x1, y1, x2, y2


def _glyphs(
    text_page: Any, affine: Floats, drawn: dict[int, tuple[int, bool, Floats]], cover: int
) -> tuple[Glyphs, tuple[Symbol, ...]]:
    """All glyphs of a text page in content-stream order, and the symbols of a page with formulas.

    Args:
        text_page: The page.
        affine: From page space to pixels.
        drawn: By the address of a text object its place in the drawing order, whether it is of an annotation, and the
            map from its parent's space to pixels.
        cover: Place of the last image that hides what was drawn before it.
    """
    count = min(max(0, pdfium.FPDFText_CountChars(text_page)), _MAX_CHARACTERS)
    codes = np.zeros(count, dtype=np.uint32)
    unmapped = np.zeros(count, dtype=bool)
    rectangles = np.zeros((count, 4), dtype=np.float32)  # left, top, right, bottom in page space
    origins = np.zeros((count, 2), dtype=np.float64)
    style = np.zeros(count, dtype=np.int32)
    styles: list[tuple[float, int, bool, bool, bool, bool]] = []
    maps: list[Floats] = []
    fonts: list[str] = []
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
            rank, annotation, own = drawn.get(address, (cover, False, affine))
            misplaced = own is not affine and _is_in_own_space(text_page, i, handle, origins[i])
            maps.append(own if misplaced else affine)
            fonts.append(_font_name(handle))
            size, angle, bold, invisible = _style(text_page, i, handle, affine, fonts[-1])
            styles.append((size, angle, bold, invisible or rank < cover, annotation, False))
        style[i] = index
    for i in np.flatnonzero(codes == 0).tolist():  # some producers give it to spaces, some to all that they do not know
        unmapped[i] |= area(_drawn_box(text_page, i) or _NOTHING) > _EMPTY * area(rectangles[i, [0, 3, 2, 1]])
    _decode(codes, unmapped, style, fonts)
    unmapped |= _unusable(codes)
    codes[np.isin(codes, list(_HYPHENS))] = ord("-")
    codes[unmapped] = _UNMAPPED  # or a control code would pass for white space
    points = np.concatenate([rectangles.reshape(count, 2, 2), origins[:, None]], axis=1)
    to_pixels = np.array(maps).reshape(-1, 2, 3)[style]
    points = points @ to_pixels[:, :, :2].transpose(0, 2, 1) + to_pixels[:, None, :, 2]
    corners = points[:, :2]
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    glyphs = Glyphs(codes, boxes, points[:, 2], style, np.array(styles, dtype=STYLE))
    _stand_large_signs(text_page, glyphs, fonts, to_pixels)
    symbols = tuple(_symbols(text_page, glyphs, fonts, to_pixels))
    return with_spans_spread(glyphs, rectangles[:, 0]), symbols


def _stand_large_signs(text_page: Any, glyphs: Glyphs, fonts: Sequence[str], to_pixels: Floats) -> None:
    """Give the large signs of TeX, which hang below their baseline, one below their middle and boxes around it."""
    large = np.array([is_extension(name) for name in fonts], dtype=bool)
    look = glyphs.look
    hanging = large[glyphs.style] | (glyphs.codes == ord("√"))
    for i in np.flatnonzero(hanging & (look["angle"] == 0) & ~glyphs.is_space).tolist():
        if (ink := _ink(text_page, i, to_pixels[i])) is not None:
            size = look["size"][i]
            glyphs.origins[i, 1] = baseline = (ink[1] + ink[3]) / 2 + _AXIS * size
            glyphs.boxes[i, 1::2] = baseline - size, baseline + 0.3 * size


def _drawn_box(text_page: Any, index: int) -> Box | None:
    """The box of what is drawn of a glyph, in page space; None where PDFium does not know."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    if not pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top):
        return None
    return left.value, bottom.value, right.value, top.value


def _ink(text_page: Any, index: int, matrix: Floats) -> Box | None:
    """The same in pixels, to a hundredth."""
    if (box := _drawn_box(text_page, index)) is None:
        return None
    (a, b, c), (d, e, f) = matrix.tolist()  # as floats: twice as fast as arrays of two points
    xs = [a * x + b * y + c for x in box[::2] for y in box[1::2]]
    ys = [d * x + e * y + f for x in box[::2] for y in box[1::2]]
    return round(min(xs), 2), round(min(ys), 2), round(max(xs), 2), round(max(ys), 2)


def _decode(codes: NDArray[np.uint32], unmapped: Flags, style: NDArray[np.int32], fonts: Sequence[str]) -> None:
    """Give the glyphs of TeX's symbol fonts the characters that they show, and pieces of delimiters theirs."""
    for code, piece in PIECES.items():
        codes[codes == code] = piece
    math = np.array([is_math(name) for name in fonts], dtype=bool)
    for i in np.flatnonzero(math[style] & (unmapped | (codes < 0x20))).tolist():
        if (text := meaning(fonts[style[i]], int(codes[i]))) is not None:
            codes[i], unmapped[i] = ord(text), False


def _symbols(text_page: Any, glyphs: Glyphs, fonts: Sequence[str], to_pixels: Floats) -> Iterator[Symbol]:
    """The visible level glyphs about the formulas of a page, each once."""
    math_font = np.array([is_math(name) for name in fonts], dtype=bool)
    look = glyphs.look
    visible = ~glyphs.is_space & ~look["invisible"] & ~look["annotation"] & (look["angle"] == 0)
    codes = glyphs.codes[visible]
    greek = (codes >= 0x391) & (codes <= 0x3F5)
    signs = int(np.isin(codes, list(_MATH_SIGNS)).sum())
    signs += int(greek.sum()) if greek.sum() < _GREEK_TEXT * len(codes) else 0
    if signs < _FEW_SIGNS and not math_font[glyphs.style[visible]].any():
        return
    looks = [style_of(name) for name in fonts]
    sizes = glyphs.sizes
    says = visible & (math_font[glyphs.style] | np.isin(glyphs.codes, list(_MATH_SIGNS)))
    says |= visible & (glyphs.codes >= 0x391) & (glyphs.codes <= 0x3F5)
    says |= visible & (glyphs.codes >= 0xD800) & (glyphs.codes < 0xE000)  # halves of mathematical letters
    heights = np.sort(glyphs.origins[says, 1])
    nearest = np.searchsorted(heights, glyphs.origins[:, 1])
    above = np.abs(heights[np.maximum(nearest - 1, 0)] - glyphs.origins[:, 1])
    below = np.abs(heights[np.minimum(nearest, len(heights) - 1)] - glyphs.origins[:, 1])
    visible &= np.minimum(above, below) < _AROUND_SIGNS * float(np.median(sizes[visible]))
    seen: set[tuple[int, int, int]] = set()
    halves: set[int] = set()
    for i in np.flatnonzero(visible).tolist():
        code, font = int(glyphs.codes[i]), int(glyphs.style[i])
        x, baseline = glyphs.origins[i].tolist()
        place = (code, round(4 * x), round(4 * baseline))
        if place in seen or (box := _ink(text_page, i, to_pixels[i])) is None:
            continue
        seen.add(place)
        if i in halves:
            continue
        text, units = character_at(glyphs.codes, i)
        halves.update(range(i + 1, i + units))
        stated = float(look["size"][i])
        size = stated if stated > (box[3] - box[1]) / 4 else float(sizes[i])
        yield Symbol(text, box, round(baseline, 2), round(size, 2), looks[font], bool(math_font[font]))


def character_at(codes: NDArray[np.uint32], index: int) -> tuple[str, int]:
    """The character that begins at a code unit, and its units: PDFium speaks UTF-16.

    In right-to-left lines it turns the halves of a character round. A half on its own is U+FFFD.
    """
    code = int(codes[index])
    if not 0xD800 <= code < 0xE000:
        return chr(_SYMBOL_ACCENTS.get(code, code)), 1
    after = int(codes[index + 1]) if index + 1 < len(codes) else 0
    high, low = (code, after) if code < 0xDC00 else (after, code)
    if 0xD800 <= high < 0xDC00 <= low < 0xE000:
        return valid_unicode(chr(high) + chr(low)), 2
    return "\ufffd", 1


def _font_name(handle: Any) -> str:
    """The name of a text object's font without that of its subset; empty where there is none."""
    font = pdfium.FPDFTextObj_GetFont(handle) if handle else None
    if not font:
        return ""
    buffer = ctypes.create_string_buffer(128)
    pdfium.FPDFFont_GetBaseFontName(font, buffer, len(buffer))
    return plain_name(buffer.value.decode("utf-8", "replace"))


def _is_in_own_space(text_page: Any, index: int, handle: Any, origin: Floats) -> bool:
    """Whether PDFium places a glyph in the space of the form it is part of: so it does with replacement texts."""
    own, on_page = pdfium.FS_MATRIX(), pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(handle, own)
    pdfium.FPDFText_GetMatrix(text_page, index, on_page)
    pen = own.e, own.f
    return math.dist(origin, pen) < _SAME_PLACE < math.dist(pen, (on_page.e, on_page.f))


def _unusable(codes: NDArray[np.uint32]) -> Flags:
    """Which code points say nothing: replacement, private use, noncharacters, controls that are no white space."""
    control = (codes < 0x20) & ~np.isin(codes, [0x00, 0x02, 0x09, 0x0A, 0x0D])
    private = ((codes >= 0xE000) & (codes < 0xF900)) | (codes >= 0xF0000)
    result: Flags = control | private | (codes == 0xFFFD) | ((codes >= 0x80) & (codes < 0xA0))
    return result


def _style(text_page: Any, index: int, handle: Any, affine: Floats, font: str) -> tuple[float, int, bool, bool]:
    """Size, direction, weight and invisibility of the glyphs of one text object; generated glyphs have no object."""
    matrix = pdfium.FS_MATRIX()
    if not handle or not pdfium.FPDFText_GetMatrix(text_page, index, matrix):
        return 0.0, 0, False, False
    font_size = pdfium.FPDFText_GetFontSize(text_page, index)
    along = affine[:, :2] @ np.array([matrix.a, matrix.b]) * math.copysign(1, font_size)  # one below 0 turns the glyphs
    up = affine[:, :2] @ np.array([matrix.c, matrix.d])
    size = abs(font_size) * float(np.hypot(*up))
    mode = pdfium.FPDFTextObj_GetTextRenderMode(handle)
    bold = mode == pdfium.FPDF_TEXTRENDERMODE_FILL_STROKE or _is_bold(pdfium.FPDFTextObj_GetFont(handle), font)
    angle = round(math.degrees(math.atan2(along[1], along[0]))) % 360
    return size, angle, bold, mode in _INVISIBLE_MODES or _is_transparent(handle, mode)


def _is_transparent(handle: Any, mode: int) -> bool:
    """Whether filled text has an alpha of zero (how note-taking programs lay recognized text over handwriting)."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    known = pdfium.FPDFPageObj_GetFillColor(handle, red, green, blue, alpha)
    return bool(mode == pdfium.FPDF_TEXTRENDERMODE_FILL and known and alpha.value == 0)


def _is_bold(font: Any, name: str) -> bool:
    """Whether a font is bold by its name or by the weight it states."""
    if not font:
        return False
    return any(part in name.lower() for part in _BOLD_NAMES) or pdfium.FPDFFont_GetWeight(font) >= 600
