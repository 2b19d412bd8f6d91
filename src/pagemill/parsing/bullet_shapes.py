"""What a glyph before a line is drawn as: the shapes of bullets."""

from __future__ import annotations

import numpy as np

from pagemill.imaging.types import Flags
from pagemill.late import cv2
from pagemill.parsing.thresholds import PARSING

TICKED = "☑"
RING = "ring"
"""A circle with something in it: a circled number or letter."""


def shape_of(glyph: Flags, size: float) -> str | None:
    """The bullet that a glyph is drawn as.

    Args:
        glyph: Its ink, shape (height, width), without margins.
        size: Font size in pixels.

    Returns:
        A bullet, ``"ring"`` for a circle with something in it, or None for any other glyph.
    """
    height, width = glyph.shape
    if min(height, width) < 3:
        return None
    ink = glyph.astype(np.uint8)
    outline, _ = cv2.findContours(np.pad(ink, 1), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros((height + 2, width + 2), np.uint8)
    cv2.drawContours(filled, outline, -1, (1.0,), cv2.FILLED)
    solid = filled[1:-1, 1:-1].astype(bool)
    if not PARSING.bullet_aspect <= width / height <= 1 / PARSING.bullet_aspect:
        return None
    largest = max(cv2.contourArea(contour) for contour in outline)
    if len(outline) > 1 and largest < 0.8 * solid.sum():
        return "※" if _is_reference_mark(glyph) else None
    form = _form(solid)
    hole = 1 - glyph.sum() / solid.sum()
    extent = max(height, width) / size
    if form is None:
        return "※" if _is_reference_mark(glyph) else None
    if hole < PARSING.bullet_solid:
        return _solid(form, extent)
    _, _, stats, _ = cv2.connectedComponentsWithStats((solid & ~glyph).astype(np.uint8), connectivity=4)
    largest_hole = float(stats[1:, cv2.CC_STAT_AREA].max(initial=0)) / solid.sum()
    may_hold = form in ("circle", "square") and extent >= PARSING.bullet_large
    core = glyph[height // 4 : -(height // 4), width // 4 : -(width // 4)].mean() if may_hold else 0.0
    inner = _inner(glyph)
    if largest_hole >= PARSING.bullet_hole and core < PARSING.bullet_empty:
        if form != "circle":
            return {"square": "□", "diamond": "◇", "up": "△", "down": "▽", "right": "▷"}[form]
        return "○" if extent >= PARSING.bullet_large else "◦"
    if form == "square" and inner is not None and inner.mean() > PARSING.bullet_core:
        return "▣"
    if form == "square" and inner is not None and core >= PARSING.bullet_empty:
        return TICKED
    if form == "circle" and core >= PARSING.bullet_empty:
        return RING if inner is None or not _is_target(inner) else "◎"
    return None


def _form(solid: Flags) -> str | None:
    """What a silhouette without holes is: a square, circle, diamond or triangle."""
    height, width = solid.shape
    share = float(solid.mean())
    across = solid.sum(axis=1) / width
    down = solid.sum(axis=0) / height
    ends = [float(part.mean()) for side in (across, down) for part in np.array_split(side, 3)]
    top, middle, bottom, left, centre, right = ends
    if share > PARSING.square_share and min(ends) > PARSING.square_share:
        return "square"
    outer, inner = (top, bottom, left, right), min(middle, centre)
    uneven = max(PARSING.uneven, PARSING.uneven_pixels / min(height, width))
    if PARSING.circle_share[0] < share < PARSING.circle_share[1] and max(outer) < inner:
        return "circle" if max(outer) - min(outer) < uneven else None
    if not PARSING.triangle_share[0] < share < PARSING.triangle_share[1]:
        return None
    if min(middle, centre) > PARSING.diamond_middle and max(top, bottom, left, right) < PARSING.diamond_ends:
        return "diamond"
    rise = PARSING.triangle_rise
    for name, first, second, third, one, other in (
        ("up", top, middle, bottom, left, right),
        ("down", bottom, middle, top, left, right),
        ("right", right, centre, left, top, bottom),
    ):
        if second - first > rise and third - second > rise and abs(one - other) < uneven:
            return name
    return None


def _solid(form: str, extent: float) -> str | None:
    """The filled bullet of a form and size."""
    if form == "circle":
        return "●" if extent >= PARSING.bullet_large else "•" if extent >= PARSING.bullet_small else "·"
    if form == "square":
        if extent < PARSING.bullet_small:
            return "·"
        return "■" if extent >= PARSING.bullet_large else "▪"
    return {"diamond": "◆", "up": "▲", "down": "▼", "right": "▶"}[form]


def _inner(glyph: Flags) -> Flags | None:
    """What is inside of an outline and does not touch it, cut out; None for nothing."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(glyph.astype(np.uint8), connectivity=8)
    if count < 3:
        return None
    outer = 1 + int(stats[1:, cv2.CC_STAT_WIDTH].argmax())
    rest = (labels > 0) & (labels != outer)
    rows, columns = np.flatnonzero(rest.any(axis=1)), np.flatnonzero(rest.any(axis=0))
    inner: Flags = rest[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return inner


def _is_target(inner: Flags) -> bool:
    """Whether what is in a circle is another circle."""
    height, width = inner.shape
    solid = inner | (cv2.GaussianBlur(inner.astype(np.float32), (0, 0), max(1.0, width / 6)) > 0.3)
    return 0.8 < width / height < 1.25 and height > 4 and _form(solid) == "circle"


def _is_reference_mark(glyph: Flags) -> bool:
    """Whether a glyph is ※: two diagonals, and a dot in each of the four fields between them."""
    side = 24
    drawn = cv2.resize(glyph.astype(np.float32), (side, side), interpolation=cv2.INTER_AREA)
    x, y = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side))
    diagonals = np.minimum(np.abs(x - y), np.abs(x + y)) < 0.2
    dots = np.zeros_like(diagonals)
    for place in ((0.0, 0.72), (0.0, -0.72), (0.72, 0.0), (-0.72, 0.0)):
        dots |= np.hypot(x - place[0], y - place[1]) < 0.22
    free = ~diagonals & ~dots & (np.hypot(x, y) > 0.3)
    parts = [float(drawn[dots & side_mask].max(initial=0.0)) for side_mask in (x > 0.4, x < -0.4, y > 0.4, y < -0.4)]
    return bool(
        drawn[diagonals].mean() > PARSING.mark_diagonals
        and min(parts) > PARSING.mark_dots
        and drawn[free].mean() < PARSING.mark_free
    )
