"""Outlines of regions from the model's masks.

The result is that of drawing every mask at the size of its box and tracing it, as the published processor does. Most
boxes are much larger than their masks, so that a pixel of the mask becomes a block of page pixels; tracing the mask
with two pixels a block and moving the corners to the ends of their blocks gives the same corners at a small part of the
cost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.types import Floats
from pagemill.late import cv2
from pagemill.layout.pp_doclayout.preprocess import INPUT_SIDE

_SIMPLIFY = 0.004  # of an outline's length: the distance to which it is simplified
_SHARP, _SHARP_SLACK = 45.0, 1.0  # degrees; corners this sharp are moved
_ABSURD = 4  # times the page's longer side; no model in order answers with a box that far out (not measured)
_MASK_STRIDE = np.float32(4)  # model input pixels to a mask pixel


def outline(mask: NDArray[np.uint8], box: NDArray[np.float32], page_size: tuple[int, int]) -> Floats | None:
    """The outline of a region in page pixels, shape (n, 2), n >= 4; None where its mask shows no more than its box.

    Args:
        mask: Over the whole page, shape (h, w / 8), eight pixels a byte.
        box: Shape (4,), page pixels, as the model gave it.
        page_size: Width and height in pixels.
    """
    if np.abs(box).max() > _ABSURD * max(page_size):  # its mask would be drawn at its size: gigabytes
        return None
    x1, y1, x2, y2 = (int(v) for v in box)
    width, height = x2 - x1, y2 - y1
    if width <= 0 or height <= 0:
        return None
    columns = _mask_span(x1, x2, page_size[0], 8 * mask.shape[1])
    part = np.unpackbits(mask[_mask_span(y1, y2, page_size[1], mask.shape[0])], axis=1)[:, columns]
    if not part.any() or part.all():
        return None
    corners = _convex_corners(_trace(part, width, height))
    return corners + np.array([x1, y1], dtype=np.float64) if len(corners) >= 4 else None


def _mask_span(start: int, stop: int, extent: int, mask_extent: int) -> slice:
    """The mask pixels under page pixels ``start`` to ``stop``; float32, as in the published processor."""
    scale = np.float32(INPUT_SIDE) / np.float32(extent) / _MASK_STRIDE
    with np.errstate(over="ignore"):  # an absurd edge becomes infinite, and is clipped like any other
        low, high = np.clip(np.rint(np.array([start, stop], dtype=np.float32) * scale), 0, mask_extent)
    return slice(int(low), int(high))


def _trace(mask: NDArray[np.uint8], width: int, height: int) -> NDArray[np.int32]:
    """Simplified outline, shape (n, 2), of the largest part of a mask drawn at ``width`` x ``height`` pixels."""
    rows, columns = mask.shape
    is_drawn_by_blocks = width >= 2 * columns and height >= 2 * rows
    if is_drawn_by_blocks:
        drawn = np.repeat(np.repeat(mask, 2, axis=0), 2, axis=1)
    else:
        drawn = np.asarray(cv2.resize(mask, (width, height), interpolation=cv2.INTER_NEAREST), dtype=np.uint8)
    contours = [contour[:, 0] for contour in cv2.findContours(drawn, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[0]]
    if is_drawn_by_blocks:
        x, y = _block_ends(columns, width), _block_ends(rows, height)
        contours = [np.stack([x[contour[:, 0]], y[contour[:, 1]]], axis=1) for contour in contours]
    if not contours:  # all that was set fell between the pixels of a smaller drawing
        return np.empty((0, 2), dtype=np.int32)
    largest = max(contours, key=cv2.contourArea)
    simplified = cv2.approxPolyDP(largest, _SIMPLIFY * cv2.arcLength(largest, True), True)
    return np.asarray(simplified, dtype=np.int32).reshape(-1, 2)


def _block_ends(pixels: int, extent: int) -> NDArray[np.int32]:
    """First and last place of every pixel when ``pixels`` are drawn over ``extent``, shape (2 * pixels,)."""
    # OpenCV's own choice of neighbours, whatever its rounding.
    source = cv2.resize(np.arange(pixels, dtype=np.float32)[None], (extent, 1), interpolation=cv2.INTER_NEAREST)[0]
    starts = np.searchsorted(source, np.arange(pixels + 1))
    ends = np.empty(2 * pixels, dtype=np.int32)
    ends[::2], ends[1::2] = starts[:-1], starts[1:] - 1
    return ends


def _convex_corners(corners: NDArray[np.int32]) -> Floats:
    """The corners at which an outline turns outwards; those of 45 degrees move along their bisector.

    A corner that moves does so by the mean length of its two sides, across the outline, as in the published processor.
    """
    points = corners.astype(np.float64)
    if len(points) < 2:
        return points[:0]
    ring = np.concatenate([points[-1:], points, points[:1]])
    back, ahead = ring[:-2] - points, ring[2:] - points
    turns_out = back[:, 1] * ahead[:, 0] - back[:, 0] * ahead[:, 1] < 0
    points, back, ahead = points[turns_out], back[turns_out], ahead[turns_out]
    lengths = np.hypot(*back.T), np.hypot(*ahead.T)
    cosine = np.clip((back * ahead).sum(axis=1) / (lengths[0] * lengths[1]), -1.0, 1.0)
    sharp = np.abs(np.degrees(np.arccos(cosine)) - _SHARP) < _SHARP_SLACK
    if sharp.any():
        bisector = back / lengths[0][:, None] + ahead / lengths[1][:, None]
        bisector /= np.hypot(*bisector.T)[:, None]
        moved = points + bisector * ((lengths[0] + lengths[1]) / 2)[:, None]
        points = np.where(sharp[:, None], moved, points)
    return points
