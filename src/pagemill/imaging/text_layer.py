"""The text that a PDF page carries: read from PDFium, in pixels of the rendered page.

Runs inside a decoding process, like everything that touches PDFium.
"""

from __future__ import annotations

import ctypes
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray
from pypdfium2 import PdfPage

from pagemill.document.geometry import Box, area, as_boxes, clip, frame_of
from pagemill.document.page import ANNOTATION, Style, TextLine
from pagemill.document.symbols import Symbol
from pagemill.imaging.annotations import FlattenedPage, Mark
from pagemill.imaging.bulk import CHAR_BOX, FONT, LOOSE_BOX, MAP_ERROR, ORIGIN, TEXT_OBJECT, UNICODE, address_of
from pagemill.imaging.drawings import MAX_SHAPES, Drawings, Shape, drawings_of
from pagemill.imaging.glyph_lines import lines_of_glyphs
from pagemill.imaging.glyphs import STYLE, Glyphs, valid_unicode, with_accents, with_spans_spread
from pagemill.imaging.looks import faces_of, looks_of, numbered
from pagemill.imaging.math_fonts import PIECES, is_extension, is_math, meaning, style_of
from pagemill.imaging.page import TextLayer
from pagemill.imaging.right_to_left import as_written, in_reading_order, repeated_marks
from pagemill.imaging.script_forms import SCRIPT_FORM, with_script_forms
from pagemill.imaging.spans import Evidence, Link
from pagemill.imaging.tags import NO_CONTENT, Content, Marks
from pagemill.imaging.thickened import thickened
from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.imaging.visibility import Paint, split_watermarks, unseen

_MAX_CHARACTERS = 200_000
"""A page of small print has under 20,000; more than ten times that is an attack or an accident."""
_MAX_OBJECTS = 100_000
_MAX_FORM_DEPTH = 6
_DEVICE = 1 << 20
"""Side of the virtual device whose whole-number pixels give the page transform to about a thousandth of a point."""
_PAGE_FILLING = 0.85
_UNIT_SQUARE = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
_SAME_SLICE = 0.005
"""Most that equal slices of a box differ by rounding, in units of the page."""
_SAME_PLACE = 0.001
"""Greatest distance of one place from itself by rounding, in points."""
_NONCHARACTER, _UNMAPPED = 0xFFFE, 0xFFFD
"""The latter stands for every glyph without a usable Unicode value."""
_NOTHING = (0.0, 0.0, 0.0, 0.0)
_EMPTY = 0.01
"""Share of its box that is drawn of a glyph, up to which it is white space; of full stops it is twice that."""
_HYPHENS = {0x02, 0xAD, 0xFFFE}
"""Marks PDFium or the producer puts for a hyphen at a line's end."""
_MAX_VALUE_LINES = 500
_MARK_EM = 0.7
"""Font size of a value without an appearance over the height of its line, about that of viewers in one-line fields."""
_MARKED = (pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_FORM)
"""Objects whose marks matter."""
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


class PageFacts(NamedTuple):
    """What the original page says, of which its flattened copy knows nothing."""

    unit: float = 1.0
    """Points of a unit of the page."""
    links: Sequence[tuple[Sequence[tuple[float, float, float, float]], str]] = ()
    """Boxes in page space (left, bottom, right, top) and targets."""
    tags: dict[int, str] = {}  # noqa: RUF012 - read only
    """Standard structure types by the ids of marked content."""


NO_FACTS = PageFacts()


class _Text(NamedTuple):
    """A text object: its place in the drawing order, whose it is, and what is around it."""

    rank: int
    annotation: bool
    matrix: Floats
    """From its parent's space to pixels."""
    content: Content


def extract_text_layer(
    flat: FlattenedPage, width: int, height: int, facts: PageFacts = NO_FACTS
) -> tuple[TextLayer, tuple[Box, ...]]:
    """Read the text of a page and of its annotations, with boxes in pixels of its rendering.

    Rotation, crop box and user unit are undone by PDFium's own page-to-device transform.

    Args:
        flat: An open page, from :func:`pagemill.imaging.annotations.flattened`.
        width: Width of the rendering in pixels.
        height: Height of the rendering in pixels.
        facts: Facts of the original page.

    Returns:
        Lines in content-stream order, split at column and table-cell gaps; and the boxes of the page's own raster
        images in drawing order. Glyphs drawn twice count once; glyphs outside the page are left out; invisible ones
        make lines of their own.
    """
    page = flat.page
    affine = page_to_pixels(page, width, height)
    point = math.hypot(*affine[:, 1].tolist()) / facts.unit
    own_images: list[Box] = []
    drawn: dict[int, _Text] = {}
    texts: list[tuple[Any, Floats]] = []
    shapes: list[Shape] = []
    images: list[Floats] = []
    cover = rank = -1
    is_deep = False
    paints: list[Paint] = []
    for rank, part in enumerate(islice(_objects(page.raw, affine), _MAX_OBJECTS)):
        handle, kind, matrix, root, content, is_veiled = part
        is_own = flat.own_objects is None or root < flat.own_objects
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            drawn[address_of(handle)] = _Text(rank, not is_own, matrix, content if is_own else NO_CONTENT)
            texts.append((handle, matrix))
        elif kind in (pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_SHADING):
            if len(shapes) < MAX_SHAPES:
                shapes.append(Shape(handle, matrix, rank, kind == pdfium.FPDF_PAGEOBJ_PATH, is_veiled))
        elif kind == pdfium.FPDF_PAGEOBJ_FORM:
            is_deep = True
        elif kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            points = _UNIT_SQUARE @ _compose(matrix, handle).T
            images += [frame_of(np.concatenate([points, points], axis=1))] if is_own else []
            box = clip((*points.min(axis=0).tolist(), *points.max(axis=0).tolist()), width, height)
            if area(box) > 0:
                own_images += [box] if is_own else []
                # A scan over the page: text that is drawn before it is its OCR layer.
                fills = area(box) >= _PAGE_FILLING * width * height
                cover = rank if fills and not pdfium.FPDFPageObj_HasTransparency(handle) else cover
                paints.append(Paint(rank, box, None))
    drawings = drawings_of(shapes, point, width, height)
    tags = ["", *dict.fromkeys(facts.tags.values())]
    with closing(page.get_textpage()) as text_page:
        glyphs, symbols, faces, drawing = _glyphs(text_page.raw, affine, drawn, cover, point, facts.tags, tags)
        symbols += tuple(_silent(text_page.raw, texts)) if symbols else ()
        left_out = max(0, pdfium.FPDFText_CountChars(text_page.raw) - _MAX_CHARACTERS)
    on_page = ((glyphs.boxes[:, 2:] > 0) & (glyphs.boxes[:, :2] < (width, height))).all(axis=1)
    placed = np.concatenate([np.reshape(images, (-1, 4)), glyphs.boxes[~glyphs.is_space]])
    sheet = _read_box(pdfium.FPDFPage_GetMediaBox, page.raw, affine) or (0.0, 0.0, width, height)
    on_sheet = ((placed[:, 2:] > sheet[:2]) & (placed[:, :2] < sheet[2:])).all(axis=1)
    hidden = on_page & glyphs.of("invisible")
    shown = on_page & ~hidden
    paints = sorted([*paints, *drawings.paints], key=lambda paint: paint.rank)
    rank_of, colour = drawing[glyphs.style].T
    # Of a page with more shapes nobody knows what is beneath its text.
    not_seen = shown & (len(shapes) < MAX_SHAPES) & unseen(glyphs, rank_of, colour, paints, point)
    shown &= ~not_seen
    # Apart: an invisible layer repeats what is printed above it, and either may be the first.
    hidden[hidden] = ~glyphs.select(hidden).repeated()
    shown[shown] = ~glyphs.select(shown).repeated()
    printing = shown & ~glyphs.is_space
    faces, glyphs = _by_use(faces, glyphs, printing)
    evidence = Evidence(
        strokes=drawings.strokes,
        links=[Link(tuple(_frame(affine, box) for box in boxes), target) for boxes, target in facts.links],
        faces=[(face.bold and not math, face.italic and not math, face.fixed_pitch) for face, math in faces],
        tags=tags,
    )
    styles = tuple(face for face, _ in faces)
    level = printing & (glyphs.of("angle") % 90 == 0)
    lines, watermarks = split_watermarks(
        _lines(glyphs.select(shown), width, height, evidence),
        styles,
        (glyphs.boxes[level, :2] + glyphs.boxes[level, 2:]) / 2,
    )
    layer = TextLayer(
        lines=lines,
        hidden_lines=_lines(glyphs.select(hidden), width, height, evidence),
        marks=tuple(_marks(flat.marks, glyphs.boxes[printing], affine, width, height)),
        characters=int(printing.sum()),
        unmapped=int((printing & (glyphs.codes == _UNMAPPED)).sum()),
        symbols=symbols,
        rules=tuple(_rules(drawings, max(symbol.size for symbol in symbols))) if symbols else (),
        is_beside=len(placed) > 0 and not on_sheet.any(),
        unseen=_lines(glyphs.select(not_seen), width, height, evidence),
        watermarks=watermarks,
        styles=styles,
        strokes=tuple(drawings.strokes),
        fills=tuple(drawings.fills),
        drawings=tuple(drawings.drawings),
        left_out=left_out,
        has_more=len(shapes) == MAX_SHAPES or is_deep or rank == _MAX_OBJECTS - 1,
    )
    return layer, tuple(own_images)


def _by_use(
    faces: Sequence[tuple[Style, bool]], glyphs: Glyphs, printing: Flags
) -> tuple[list[tuple[Style, bool]], Glyphs]:
    """The styles of a page with their characters, the one with the most first."""
    used = glyphs.of("face")
    count = np.bincount(used[printing], minlength=len(faces))
    in_use, first = np.unique(used[~glyphs.is_space], return_index=True)
    # Faces are numbered by addresses in memory: those with as many characters stay in the order of the page.
    order = in_use[np.lexsort((first, -count[in_use]))].tolist()
    place = np.zeros(len(faces), dtype=np.int32)
    place[order] = np.arange(len(order))
    styles = glyphs.styles.copy()
    styles["face"] = place[styles["face"]]
    counted = [(msgspec.structs.replace(faces[i][0], characters=int(count[i])), faces[i][1]) for i in order]
    return counted, Glyphs(glyphs.codes, glyphs.boxes, glyphs.origins, glyphs.style, styles)


def _lines(glyphs: Glyphs, width: int, height: int, evidence: Evidence) -> tuple[TextLine, ...]:
    if glyphs.is_space.all():
        return ()
    return tuple(lines_of_glyphs(in_reading_order(with_accents(glyphs)), width, height, evidence))


def _marks(marks: Sequence[Mark], glyphs: Floats, affine: Floats, width: int, height: int) -> Iterator[TextLine]:
    """Marks of annotations as lines; those that glyphs show already are left out.

    Args:
        marks: In page space.
        glyphs: Boxes of the visible glyphs in pixels, shape (n, 4).
        affine: From page space to pixels.
        width: Width of the page in pixels.
        height: Height of the page in pixels.
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
        # Where a field's value has no glyphs, its lines get strips of one height: nothing better is known.
        texts = [text for text in mark.text.splitlines() if text.strip()][:_MAX_VALUE_LINES]
        pitch = (box[3] - box[1]) / len(texts)
        for row, text in enumerate(texts):
            strip = (box[0], box[1] + row * pitch, box[2], box[1] + (row + 1) * pitch)
            yield TextLine(text=text.strip(), box=strip, engine=ANNOTATION, font_size=round(_MARK_EM * pitch, 2))


def page_to_pixels(page: PdfPage, width: int, height: int) -> Floats:
    """The affine map from page space (points, y upwards) to rendered pixels, shape (2, 3)."""
    # From points far apart: PDFium gives whole device units, whose rounding would tilt the map.
    device = []
    for x, y in ((0.0, 0.0), (1000.0, 0.0), (0.0, 1000.0)):
        column, row = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, _DEVICE, _DEVICE, 0, x, y, column, row)
        device.append((column.value * width / _DEVICE, row.value * height / _DEVICE))
    origin, along_x, along_y = np.array(device)
    return np.stack([(along_x - origin) / 1000.0, (along_y - origin) / 1000.0, origin], axis=1)


class _Part(NamedTuple):
    """A drawing object."""

    handle: Any
    kind: int
    matrix: Floats
    """From its parent's space to pixels."""
    root: int
    """Index of the top-level object that it is, or is part of."""
    content: Content
    is_veiled: bool
    """It is part of a form that can be seen through."""


def _objects(page: Any, affine: Floats) -> Iterator[_Part]:
    """All drawing objects, form contents included."""
    marks = Marks()
    for root in range(pdfium.FPDFPage_CountObjects(page)):
        yield from _inside(pdfium.FPDFPage_GetObject(page, root), affine, root, 0, marks, NO_CONTENT, False)


def _inside(
    handle: Any, matrix: Floats, root: int, depth: int, marks: Marks, around: Content, is_veiled: bool
) -> Iterator[_Part]:
    kind = pdfium.FPDFPageObj_GetType(handle)
    content = marks.of(handle, around) if kind in _MARKED else around
    # Forms may hold each other without end.
    if kind != pdfium.FPDF_PAGEOBJ_FORM or depth == _MAX_FORM_DEPTH:
        yield _Part(handle, kind, matrix, root, content, is_veiled)
        return
    inner = _compose(matrix, handle)
    is_veiled = is_veiled or bool(pdfium.FPDFPageObj_HasTransparency(handle))
    for index in range(pdfium.FPDFFormObj_CountObjects(handle)):
        yield from _inside(
            pdfium.FPDFFormObj_GetObject(handle, index), inner, root, depth + 1, marks, content, is_veiled
        )


def _compose(outer: Floats, handle: Any) -> Floats:
    """The map from an object's own space to pixels."""
    m = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(handle, m):
        return outer
    inner = np.array([[m.a, m.c, m.e], [m.b, m.d, m.f], [0.0, 0.0, 1.0]])
    composed: Floats = outer @ inner
    return composed


def _rules(drawings: Drawings, size: float) -> Iterator[Box]:
    """Level lines that may be bars of fractions and roots."""
    for box in drawings.strokes:
        width, height = box[2] - box[0], box[3] - box[1]
        if height < _RULE_HEIGHT * size and width > max(_RULE_SHAPE * height, 1.0):
            yield box


def _silent(text_page: Any, texts: Sequence[tuple[Any, Floats]]) -> Iterator[Symbol]:
    """Text objects that say nothing: the pieces of a large delimiter but the first, which says what all are."""
    count = min(max(0, pdfium.FPDFText_CountChars(text_page)), _MAX_CHARACTERS)
    speaking = {address_of(pdfium.FPDFText_GetTextObject(text_page, i)) for i in range(count)}
    size = ctypes.c_float()
    for handle, matrix in texts[:_MAX_RULES]:
        if address_of(handle) in speaking or not pdfium.FPDFTextObj_GetFontSize(handle, size):
            continue
        box = _read_box(pdfium.FPDFPageObj_GetBounds, handle, matrix)
        if box is not None and box[3] - box[1] > box[2] - box[0] > 0:
            own = pdfium.FS_MATRIX()
            pdfium.FPDFPageObj_GetMatrix(handle, own)
            em = size.value * math.hypot(own.c, own.d) * math.hypot(*matrix[:, 1])
            yield Symbol("⎪", box, box[3], round(em, 2))


def _read_box(read: Callable[..., int], of: Any, matrix: Floats) -> Box | None:
    """The box that a function of PDFium tells of something, in pixels; None where it has none."""
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not read(of, left, bottom, right, top):
        return None
    return _frame(matrix, (left.value, bottom.value, right.value, top.value))


def _frame(matrix: Floats, box: tuple[float, float, float, float]) -> Box:
    """A box (left, bottom, right, top) in pixels."""
    left, bottom, right, top = box
    corners = matrix @ np.array([[left, right], [bottom, top], [1.0, 1.0]])
    (x1, y1), (x2, y2) = corners.min(axis=1).tolist(), corners.max(axis=1).tolist()
    return x1, y1, x2, y2


def _glyphs(
    text_page: Any,
    affine: Floats,
    drawn: dict[int, _Text],
    cover: int,
    point: float,
    tag_of: dict[int, str],
    tags: Sequence[str],
) -> tuple[Glyphs, tuple[Symbol, ...], list[tuple[Style, bool]], NDArray[np.int64]]:
    """All glyphs of a text page in content-stream order, the symbols of a page with formulas, and the styles.

    The last item is, for each style of the glyphs, its place in the drawing order and its colour, -1 where unknown.

    Args:
        text_page: The page.
        affine: From page space to pixels.
        drawn: By the address of a text object what is known of it.
        cover: Place of the last image that hides what was drawn before it.
        point: Pixels of a point.
        tag_of: Structure types by ids of marked content.
        tags: All of them.
    """
    count = min(max(0, pdfium.FPDFText_CountChars(text_page)), _MAX_CHARACTERS)
    page = repeat(address_of(text_page))
    codes = as_written(_codes(text_page, count))
    objects = np.fromiter(map(TEXT_OBJECT, page, range(count)), dtype=np.uint64, count=count)
    rectangles = np.zeros((count, 4), dtype=np.float32)  # left, top, right, bottom in page space
    place = rectangles.ctypes.data
    deque(map(LOOSE_BOX, page, range(count), range(place, place + 16 * count, 16)), maxlen=0)
    addresses, first, inverse = np.unique(objects, return_index=True, return_inverse=True)
    style: NDArray[np.int32] = inverse.astype(np.int32)
    maps = np.repeat(affine[None], len(addresses), axis=0)
    looks = looks_of(text_page, first.tolist(), addresses.tolist(), affine)
    straight = np.array([look.straight for look in looks], dtype=bool)
    numbers = {tag: number for number, tag in enumerate(tags)}
    unknown = _Text(cover, False, affine, NO_CONTENT)
    places, rows = [], []
    for number, (address, index, look) in enumerate(zip(addresses.tolist(), first.tolist(), looks, strict=True)):
        text = drawn.get(address, unknown)
        is_known = text is not unknown
        places.append((text.rank if is_known else -1, look.colour if is_known and look.is_filled else -1))
        if text.matrix is not affine and _is_in_own_space(text_page, index, address):
            maps[number], straight[number] = text.matrix, False
        invisible = look.invisible or text.rank < cover
        tag = numbers[tag_of.get(text.content.mcid, "")]
        rows.append(
            (look.size, look.angle, look.bold, invisible, text.annotation, False, 0, text.content.artifact, tag)
        )
    styles = np.array(rows, dtype=STYLE)
    drawing = np.array(places, dtype=np.int64).reshape(-1, 2)
    origins = _origins(text_page, rectangles, style, straight)
    names = [look.font.name for look in looks]
    unmapped = _without_unicode(text_page, codes, style, names)
    for i in np.flatnonzero(codes == 0).tolist():  # some producers give it to spaces, some to all that they do not know
        unmapped[i] |= area(_drawn_box(text_page, i) or _NOTHING) > _EMPTY * area(rectangles[i, [0, 3, 2, 1]])
    _decode(codes, unmapped, style, names)
    unmapped |= _unusable(codes)
    codes[np.isin(codes, list(_HYPHENS))] = ord("-")
    codes[unmapped] = _UNMAPPED  # or a control code would pass for white space
    points = np.concatenate([rectangles.reshape(count, 2, 2), origins[:, None]], axis=1)
    to_pixels = maps[style]
    points = points @ to_pixels[:, :, :2].transpose(0, 2, 1) + to_pixels[:, None, :, 2]
    ems = [look.size / point for look in looks]
    fonts = [0 if look.font.name else FONT(address) for look, address in zip(looks, addresses.tolist(), strict=True)]
    if any(fonts):
        for number in thickened(codes.tolist(), inverse.tolist(), fonts, ems, partial(_drawn_box, text_page)):
            looks[number], styles["bold"][number] = looks[number]._replace(bold=True), True
    corners = points[:, :2]
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    glyphs = Glyphs(codes, boxes, points[:, 2], style, styles)
    ink_of = partial(_ink, text_page, to_pixels=to_pixels)
    glyphs, parents = with_script_forms(glyphs, numbered(names)[style], ink_of)
    looks += [looks[parent]._replace(size=SCRIPT_FORM * looks[parent].size) for parent in parents]
    names += [names[parent] for parent in parents]
    drawing = np.concatenate([drawing, drawing[parents]])
    faces = faces_of(glyphs, looks, point)
    _stand_large_signs(text_page, glyphs, names, to_pixels)
    symbols = tuple(_symbols(text_page, glyphs, names, to_pixels))
    once = ~repeated_marks(glyphs, ink_of)
    return with_spans_spread(glyphs.select(once), rectangles[once, 0]), symbols, faces, drawing


def _codes(text_page: Any, count: int) -> NDArray[np.uint32]:
    """The code units of all glyphs, at once where each has one; PDFium leaves out some of those without any."""
    page = repeat(address_of(text_page))
    buffer = np.zeros(count + 1, dtype=np.uint16)
    pointer = ctypes.cast(buffer.ctypes.data, ctypes.POINTER(ctypes.c_ushort))
    if not (
        pdfium.FPDFText_GetText(text_page, 0, count, pointer) == count + 1
        and pdfium.FPDFText_GetTextIndexFromCharIndex(text_page, count - 1) == count - 1
    ):
        return np.fromiter(map(UNICODE, page, range(count)), dtype=np.uint32, count=count)
    codes = buffer[:count].astype(np.uint32)
    # Stands for hyphens at the ends of lines, and for what has no code at all.
    vague = np.flatnonzero(codes == _NONCHARACTER)
    codes[vague] = np.fromiter(map(UNICODE, page, vague.tolist()), dtype=np.uint32, count=len(vague))
    return codes


def _origins(text_page: Any, rectangles: NDArray[np.float32], style: NDArray[np.int32], straight: Flags) -> Floats:
    """Pen positions in page space.

    Glyphs of a level text object share a baseline, and their boxes begin at the pen: one of them is asked for it.
    Others are asked each, and so are those beside one with a box as wide, which may be slices of a replacement text.
    """
    count = len(style)
    origins = np.zeros((count, 2), dtype=np.float64)
    width = rectangles[:, 2] - rectangles[:, 0]
    alike = (np.abs(np.diff(width)) < _SAME_SLICE) & (style[1:] == style[:-1]) & (width[1:] > 0)
    asked = ~straight[style]
    asked[1:] |= alike
    asked[:-1] |= alike
    first = np.unique(style, return_index=True)[1]
    asked[first] = True
    last = count - 1 - np.unique(style[::-1], return_index=True)[1]
    asked[last] = True
    place = origins.ctypes.data
    index = np.flatnonzero(asked)
    xs = (place + 16 * index).tolist()
    deque(map(ORIGIN, repeat(address_of(text_page)), index.tolist(), xs, [x + 8 for x in xs]), maxlen=0)
    uneven = ~asked & (origins[first, 1] != origins[last, 1])[style]
    index = np.flatnonzero(uneven)
    xs = (place + 16 * index).tolist()
    deque(map(ORIGIN, repeat(address_of(text_page)), index.tolist(), xs, [x + 8 for x in xs]), maxlen=0)
    rest = ~(asked | uneven)
    origins[rest, 0] = rectangles[rest, 0]
    origins[rest, 1] = origins[first[style[rest]], 1]
    return origins


def _without_unicode(
    text_page: Any, codes: NDArray[np.uint32], style: NDArray[np.int32], names: Sequence[str]
) -> Flags:
    """Which glyphs have no usable mapping: one glyph of each character of a font is asked, all where one has none."""
    unmapped = np.zeros(len(codes), dtype=bool)
    font = numbered(names)[style]
    _, first = np.unique(font << 32 | codes, return_index=True)
    page = repeat(address_of(text_page))
    wrong = np.fromiter(map(MAP_ERROR, page, first.tolist()), dtype=np.int32, count=len(first)) == 1
    suspects = np.flatnonzero(np.isin(font, np.unique(font[first[wrong]]))) if wrong.any() else first[:0]
    unmapped[suspects] = np.fromiter(map(MAP_ERROR, page, suspects.tolist()), dtype=np.int32, count=len(suspects)) == 1
    return unmapped


def _stand_large_signs(text_page: Any, glyphs: Glyphs, fonts: Sequence[str], to_pixels: Floats) -> None:
    """Give the large signs of TeX, which hang below their baseline, one below their middle and boxes around it."""
    large = np.array([is_extension(name) for name in fonts], dtype=bool)
    hanging = large[glyphs.style] | (glyphs.codes == ord("√"))
    index = np.flatnonzero(hanging & (glyphs.of("angle") == 0) & ~glyphs.is_space)
    ink = _ink(text_page, index, to_pixels)
    for i, (_, top, _, bottom) in zip(index.tolist(), ink.tolist(), strict=True):
        if not math.isnan(top):
            size = glyphs.styles["size"][glyphs.style[i]]
            glyphs.origins[i, 1] = baseline = (top + bottom) / 2 + _AXIS * size
            glyphs.boxes[i, 1::2] = baseline - size, baseline + 0.3 * size


def _drawn_box(text_page: Any, index: int) -> Box | None:
    """The box of what is drawn of a glyph, in page space; None where PDFium does not know."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    if not pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top):
        return None
    return left.value, bottom.value, right.value, top.value


def _ink(text_page: Any, index: Indices, to_pixels: Floats) -> Floats:
    """The boxes of what is drawn of some glyphs, in pixels to a hundredth, shape (n, 4); NaN where it is not known.

    Args:
        text_page: The page.
        index: Indices of the glyphs, shape (n,).
        to_pixels: From page space to pixels, of all glyphs.
    """
    drawn = np.full((len(index), 4), np.nan)  # left, right, bottom, top
    place = drawn.ctypes.data + 32 * np.arange(len(index))
    ends = [(place + 8 * end).tolist() for end in range(4)]
    deque(map(CHAR_BOX, repeat(address_of(text_page)), index.tolist(), *ends), maxlen=0)
    corners = np.stack([drawn[:, [0, 2]], drawn[:, [0, 3]], drawn[:, [1, 2]], drawn[:, [1, 3]]], axis=1)
    maps = to_pixels[index]
    corners = corners @ maps[:, :, :2].transpose(0, 2, 1) + maps[:, None, :, 2]
    ink: Floats = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1).round(2)
    return ink


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
    visible = ~glyphs.is_space & ~glyphs.of("invisible") & ~glyphs.of("annotation") & (glyphs.of("angle") == 0)
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
    index = np.flatnonzero(visible)
    rows = zip(
        *(index.tolist(), glyphs.codes[index].tolist(), glyphs.style[index].tolist(), glyphs.origins[index].tolist()),
        *(as_boxes(_ink(text_page, index, to_pixels)), glyphs.of("size")[index].tolist(), sizes[index].tolist()),
        strict=True,
    )
    for i, code, font, (x, baseline), box, stated, drawn_size in rows:
        place = (code, round(4 * x), round(4 * baseline))
        if place in seen or math.isnan(box[0]):
            continue
        seen.add(place)
        if i in halves:
            continue
        text, units = character_at(glyphs.codes, i)
        halves.update(range(i + 1, i + units))
        size = stated if stated > (box[3] - box[1]) / 4 else drawn_size
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


def _is_in_own_space(text_page: Any, index: int, address: int) -> bool:
    """Whether PDFium places a glyph in the space of the form it is part of: so it does with replacement texts."""
    own, on_page = pdfium.FS_MATRIX(), pdfium.FS_MATRIX()
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFPageObj_GetMatrix(ctypes.cast(address, pdfium.FPDF_PAGEOBJECT), own)
    pdfium.FPDFText_GetMatrix(text_page, index, on_page)
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    pen = own.e, own.f
    return math.dist((x.value, y.value), pen) < _SAME_PLACE < math.dist(pen, (on_page.e, on_page.f))


def _unusable(codes: NDArray[np.uint32]) -> Flags:
    """Which code points say nothing: replacement, private use, noncharacters, controls that are no white space."""
    control = (codes < 0x20) & ~np.isin(codes, [0x00, 0x02, 0x09, 0x0A, 0x0D])
    private = ((codes >= 0xE000) & (codes < 0xF900)) | (codes >= 0xF0000)
    result: Flags = control | private | (codes == 0xFFFD) | ((codes >= 0x80) & (codes < 0xA0))
    return result
