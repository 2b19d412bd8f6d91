"""What a PDF page draws beside text and images: lines, filled rectangles, all else; in page pixels."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pypdfium2.raw as pdfium

from pagemill.document.geometry import Box, clip, union_box
from pagemill.imaging.types import Floats
from pagemill.imaging.visibility import Paint

_MAX_SEGMENTS, _MAX_PATH_SEGMENTS = 20_000, 2_000
"""Segments of a page, and of one path, that are looked at: a table of 1,000 cells has 4,000; a map has more, and is a
drawing. 20,000 take 60 ms."""
MAX_SHAPES = 5_000
"""Lines, filled rectangles and other drawings of a page that are kept of each."""
# All in points.
_THIN, _SHAPE = 3.0, 3.0
"""Greatest width of a line, and its least length in widths (not measured)."""
_SHORTEST = 2.0
"""Shortest line: the fraction bar below a digit has 3."""
_LEVEL = 0.5
"""Most that the ends of a level line differ in height: producers round to a tenth."""
_CORNER = 9.0
"""Greatest side of the box of a rounded corner: style sheets round boxes by 3 to 8 (not measured)."""
_MOST_HOLES = 16
"""Rectangles after one of a path among which a hole in it is looked for: writers draw it next."""
_MAX_CLIPS, _MAX_CLIP_SEGMENTS = 16, 16
"""Clipping paths of one object, and segments of one: rectangles have 5."""
_EVERYWHERE = (-math.inf, -math.inf, math.inf, math.inf)
_WHITE = 0xFFFFFF
_LINE, _CURVE, _MOVE = pdfium.FPDF_SEGMENT_LINETO, pdfium.FPDF_SEGMENT_BEZIERTO, pdfium.FPDF_SEGMENT_MOVETO


class Shape(NamedTuple):
    """A path or shading with the map from its parent's space to pixels."""

    handle: Any
    matrix: Floats
    rank: int
    """In the order of drawing."""
    is_path: bool = True
    is_veiled: bool = False
    """It is part of something that can be seen through."""


class Drawings(msgspec.Struct):
    """See the fields of the same names of :class:`pagemill.imaging.page.TextLayer`."""

    strokes: list[Box] = []
    fills: list[tuple[Box, int]] = []
    drawings: list[Box] = []
    paints: list[Paint] = []
    """Filled areas, white ones among them, and drawings, in the order of drawing."""


def drawings_of(shapes: Sequence[Shape], unit: float, width: int, height: int) -> Drawings:
    """Sort the paths of a page into lines, filled rectangles and other drawings.

    Args:
        shapes: In drawing order.
        unit: Pixels of a point.
        width: Width of the page in pixels; all boxes are cut to it.
        height: Height of the page in pixels.
    """
    found = Drawings()
    left = _MAX_SEGMENTS
    for shape in shapes:
        path = _Path(shape, unit)
        if not path.fills and not path.strokes:
            continue
        count = pdfium.FPDFPath_CountSegments(shape.handle) if shape.is_path else 0
        if not shape.is_path or count > min(left, _MAX_PATH_SEGMENTS):
            path.draw(found)
            continue
        # Of a page: thousands of small paths take as long as one large one.
        left -= max(count, 0)
        path.sort_into(found, max(count, 0))
    page = width, height
    found.strokes = [_on_page(box, *page) for box in found.strokes[:MAX_SHAPES] if _is_on(box, *page)]
    found.fills = [(_on_page(box, *page), colour) for box, colour in found.fills[:MAX_SHAPES] if _is_on(box, *page)]
    found.drawings = [_on_page(box, *page) for box in found.drawings[:MAX_SHAPES] if _is_on(box, *page)]
    return found


def _is_on(box: Box, width: int, height: int) -> bool:
    return all(map(math.isfinite, box)) and box[0] < width and box[1] < height and box[2] > 0 and box[3] > 0


def _on_page(box: Box, width: int, height: int) -> Box:
    x1, y1, x2, y2 = clip(box, width, height)
    return round(x1, 2), round(y1, 2), round(x2, 2), round(y2, 2)


def colour_of(handle: Any, read: Any = pdfium.FPDFPageObj_GetFillColor) -> tuple[int, int]:
    """Colour (0xRRGGBB) and alpha (0-255) in which an object is filled; black where it is not known."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not read(handle, red, green, blue, alpha):
        return 0, 255
    return red.value << 16 | green.value << 8 | blue.value, alpha.value


def on_white(colour: int, alpha: int) -> int:
    """A colour that is seen through, as it looks on white."""
    if alpha >= 255:
        return colour
    channels = (255 - (255 - (colour >> shift & 255)) * alpha // 255 for shift in (16, 8, 0))
    red, green, blue = channels
    return red << 16 | green << 8 | blue


class _Path:
    """A path that is drawn: its subpaths, one after the other."""

    def __init__(self, shape: Shape, unit: float) -> None:
        self.shape, self.unit = shape, unit
        mode, stroke = ctypes.c_int(), ctypes.c_int()
        self.fills = not shape.is_path
        self.strokes = False
        self.pen = 0.0
        self.colour = 0
        if not shape.is_path or not pdfium.FPDFPath_GetDrawMode(shape.handle, mode, stroke):
            return
        self.colour, alpha = colour_of(shape.handle)
        self.fills = mode.value != pdfium.FPDF_FILLMODE_NONE and alpha > 0
        if stroke.value:
            line, alpha = colour_of(shape.handle, pdfium.FPDFPageObj_GetStrokeColor)
            self.strokes = alpha > 0 and line != _WHITE
            pen = ctypes.c_float()
            pdfium.FPDFPageObj_GetStrokeWidth(shape.handle, pen)
            self.pen = pen.value * _scale(shape.matrix)

    def bounds(self) -> list[Box]:
        """The box around all of it, where there is one."""
        edges = [ctypes.c_float() for _ in range(4)]
        if not pdfium.FPDFPageObj_GetBounds(self.shape.handle, *edges):
            return []
        left, bottom, right, top = (edge.value for edge in edges)
        corners = [_mapped(self.shape.matrix, x, y) for x in (left, right) for y in (bottom, top)]
        return [union_box((x, y, x, y) for x, y in corners)]

    def sort_into(self, found: Drawings, count: int) -> None:
        """Add its parts to those found."""
        other = False
        areas: list[Box] = []
        for points, kinds in self._subpaths(count):
            xs, ys = [x for x, _ in points], [y for _, y in points]
            box = min(xs), min(ys), max(xs), max(ys)
            # Many writers draw a rule as a thin filled shape, whose ends need not be square.
            is_boxy = self._is_boxy(points, kinds) or (self.fills and self._is_line(box, 0.0))
            other |= not is_boxy
            areas += [box] if self.fills and is_boxy else []
            if self.strokes and not (self.fills and self._is_line(box, 0.0)):
                found.strokes += self._edges(points, kinds)
        clipping, is_whole = self._clipping() if areas else (_EVERYWHERE, True)
        paint = self.colour if areas and is_whole and self.is_opaque() else None
        for area in _without_holes(areas):
            box = _shared(area, clipping)
            if self._is_line(area, 0.0):
                found.strokes += [area] if self.colour != _WHITE else []
            elif box[2] > box[0] and box[3] > box[1]:
                found.paints.append(Paint(self.shape.rank, box, paint))
                found.fills += [(box, self.colour)] if self.colour != _WHITE else []
        if other:
            self.draw(found)

    def draw(self, found: Drawings) -> None:
        """Add it as something that is neither a line nor a rectangle; a white shape is seen on other paint alone."""
        for box in self.bounds():
            found.paints.append(Paint(self.shape.rank, box, None))
            found.drawings += [box] if self.strokes or self.colour != _WHITE else []

    def is_opaque(self) -> bool:
        """Whether nothing is seen through what it fills."""
        return not self.shape.is_veiled and not pdfium.FPDFPageObj_HasTransparency(self.shape.handle)

    def _clipping(self) -> tuple[Box, bool]:
        """The box that drawing is clipped to, and whether all of it is drawn."""
        clip_path = pdfium.FPDFPageObj_GetClipPath(self.shape.handle)
        box, is_whole = _EVERYWHERE, True
        x, y = ctypes.c_float(), ctypes.c_float()
        for number in range(min(pdfium.FPDFClipPath_CountPaths(clip_path), _MAX_CLIPS)):
            count = pdfium.FPDFClipPath_CountPathSegments(clip_path, number)
            points = []
            for index in range(min(count, _MAX_CLIP_SEGMENTS)):
                segment = pdfium.FPDFClipPath_GetPathSegment(clip_path, number, index)
                if pdfium.FPDFPathSegment_GetPoint(segment, x, y):
                    points.append(_mapped(self.shape.matrix, x.value, y.value))
            if not points:
                continue
            kinds = [_MOVE, *[_LINE] * (len(points) - 1)]
            is_whole &= count <= _MAX_CLIP_SEGMENTS and self._is_boxy(points, kinds)
            box = _shared(box, union_box((u, v, u, v) for u, v in points))
        return box, is_whole

    def _subpaths(self, count: int) -> Iterator[tuple[list[tuple[float, float]], list[int]]]:
        """The points of each subpath in pixels with the kinds of the segments that lead to them."""
        own = pdfium.FS_MATRIX()
        known = pdfium.FPDFPageObj_GetMatrix(self.shape.handle, own)
        inner = (own.a, own.b, own.c, own.d, own.e, own.f) if known else (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
        # The matrix of a path also scales the pen that it is drawn with.
        self.pen *= math.sqrt(abs(inner[0] * inner[3] - inner[1] * inner[2]))
        (a, c, e), (b, d, f) = self.shape.matrix.tolist()
        x, y = ctypes.c_float(), ctypes.c_float()
        points: list[tuple[float, float]] = []
        kinds: list[int] = []
        for index in range(count):
            segment = pdfium.FPDFPath_GetPathSegment(self.shape.handle, index)
            kind = pdfium.FPDFPathSegment_GetType(segment)
            if not pdfium.FPDFPathSegment_GetPoint(segment, x, y):
                continue
            if kind == _MOVE and points:
                yield from [(points, kinds)] if len(points) > 1 else []
                points, kinds = [], []
            u = inner[0] * x.value + inner[2] * y.value + inner[4]
            v = inner[1] * x.value + inner[3] * y.value + inner[5]
            points.append((a * u + c * v + e, b * u + d * v + f))
            kinds.append(kind)
            # Closing draws a line back to the start, for which there is no segment.
            if pdfium.FPDFPathSegment_GetClose(segment) and math.dist(points[0], points[-1]) > 0:
                points.append(points[0])
                kinds.append(_LINE)
        if len(points) > 1:
            yield points, kinds

    def _is_line(self, box: Box, pen: float) -> bool:
        across, along = sorted((box[2] - box[0], box[3] - box[1]))
        across += pen
        return across <= _THIN * self.unit and along >= max(_SHAPE * across, _SHORTEST * self.unit)

    def _is_boxy(self, points: Sequence[tuple[float, float]], kinds: Sequence[int]) -> bool:
        """Whether a subpath is made of level and upright lines, but for rounded corners."""
        corner = _CORNER * self.unit
        level = _LEVEL * self.unit
        before = points[0]
        straight = 0
        for point, kind in zip(points[1:], kinds[1:], strict=True):
            dx, dy = abs(point[0] - before[0]), abs(point[1] - before[1])
            before = point
            if kind == _LINE and min(dx, dy) <= level:
                straight += 1
            elif max(dx, dy) > corner:
                return False
        # Of corners alone a circle or a letter is made.
        return straight > 0

    def _edges(self, points: Sequence[tuple[float, float]], kinds: Sequence[int]) -> Iterator[Box]:
        """The level and upright lines of a stroked subpath, as wide as its pen."""
        if self.pen > _THIN * self.unit:
            return
        level, half = _LEVEL * self.unit, self.pen / 2
        before = points[0]
        for point, kind in zip(points[1:], kinds[1:], strict=True):
            (x1, x2), (y1, y2) = sorted((before[0], point[0])), sorted((before[1], point[1]))
            before = point
            if kind != _LINE or min(x2 - x1, y2 - y1) > level:
                continue
            if self._is_line((x1, y1, x2, y2), self.pen):
                is_level = x2 - x1 >= y2 - y1
                yield (x1, y1 - half, x2, y2 + half) if is_level else (x1 - half, y1, x2 + half, y2)


def _shared(a: Box, b: Box) -> Box:
    return max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])


def _without_holes(areas: Sequence[Box]) -> Iterator[Box]:
    """The rectangles that a path fills: one inside of another leaves a frame of four, as borders are drawn."""
    left = list(areas)
    while left:
        box, *left = left
        x1, y1, x2, y2 = box
        # By the even-odd rule, or by direction, the inner rectangle is not filled; either way it is how borders are
        # drawn.
        hole = next((one for one in left[:_MOST_HOLES] if _holds(box, one) or _holds(one, box)), None)
        if hole is None:
            yield box
            continue
        left.remove(hole)
        (x1, y1, x2, y2), (a, b, c, d) = (box, hole) if _holds(box, hole) else (hole, box)
        frame = ((x1, y1, x2, b), (x1, d, x2, y2), (x1, y1, a, y2), (c, y1, x2, y2))
        yield from (strip for strip in frame if strip[2] > strip[0] and strip[3] > strip[1])


def _holds(outer: Box, inner: Box) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and outer[2] >= inner[2]
        and outer[3] >= inner[3]
        and outer != inner
    )


def _scale(matrix: Floats) -> float:
    return math.sqrt(abs(float(matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0])))


def _mapped(matrix: Floats, x: float, y: float) -> tuple[float, float]:
    (a, c, e), (b, d, f) = matrix.tolist()
    return a * x + c * y + e, b * x + d * y + f
