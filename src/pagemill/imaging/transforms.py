"""Cutting, resizing and turning page images. Pure functions: the input is never changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Box, Point, clip
from pagemill.imaging.types import Flags, Pixels
from pagemill.late import cv2

WHITE = 255


def resize(pixels: Pixels, width: int, height: int) -> Pixels:
    """Resize to ``width`` x ``height`` pixels: area averaging when shrinking, bilinear when growing.

    Raises:
        ValueError: A side of the result is below 1, or the image has no pixels.
    """
    if width < 1 or height < 1 or not pixels.size:
        raise ValueError(f"cannot resize {pixels.shape[1]}x{pixels.shape[0]} to {width}x{height}")
    if pixels.shape[:2] == (height, width):
        return pixels
    shrinks = width <= pixels.shape[1] and height <= pixels.shape[0]
    resized = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return np.asarray(resized, dtype=np.uint8)


def fit(pixels: Pixels, longest_side: int) -> Pixels:
    """Shrink so that the longer side is at most ``longest_side`` pixels; smaller images come back as they are."""
    height, width = pixels.shape[:2]
    factor = longest_side / max(height, width)
    if factor >= 1:
        return pixels
    return resize(pixels, max(1, round(width * factor)), max(1, round(height * factor)))


def at_least(pixels: Pixels, side: int) -> Pixels:
    """Pad an image by repeating its edge until no side is shorter than ``side`` pixels."""
    height, width = pixels.shape[:2]
    rows, columns = max(0, side - height), max(0, side - width)
    if not rows and not columns:
        return pixels
    around = rows // 2, rows - rows // 2, columns // 2, columns - columns // 2
    return np.asarray(cv2.copyMakeBorder(pixels, *around, cv2.BORDER_REPLICATE), dtype=np.uint8)


def side_of_width(pixels: Pixels, width: int) -> int:
    """The longer side to :func:`fit` an image to so that it is at most so many pixels wide."""
    height, own_width = map(int, pixels.shape[:2])
    return max(1, round(max(height, own_width) * min(1.0, width / own_width)))


def crop(pixels: Pixels, box: Box, polygon: Sequence[Point] | None = None) -> Pixels:
    """Cut a box out of a page, clipped to the page, grown to whole pixels and never below 1 x 1.

    Args:
        pixels: The page.
        box: In pixels of the page.
        polygon: Three or more points in pixels of the page; pixels that lie wholly outside of it become white.

    Returns:
        Shape (height, width, 3): a view of the page, or a copy where a polygon cuts something off.

    Raises:
        ValueError: The page has no pixels.
    """
    page_height, page_width = pixels.shape[:2]
    if not page_height or not page_width:
        raise ValueError("crop of a page without pixels")
    x1, y1, x2, y2 = clip(box, page_width, page_height)
    left, top = min(math.floor(x1), page_width - 1), min(math.floor(y1), page_height - 1)
    right, bottom = max(math.ceil(x2), left + 1), max(math.ceil(y2), top + 1)
    cut = pixels[top:bottom, left:right]
    if polygon is None or len(polygon) < 3:
        return cut
    # The pixels that hold the corners; fillPoly takes those on the outline too, so no pixel of the polygon is lost.
    corners = np.floor(np.asarray(polygon, dtype=np.float64) - (left, top)).astype(np.int32)
    inside = np.zeros(cut.shape[:2], dtype=np.uint8)
    cv2.fillPoly(inside, [corners], 1)
    if inside.all():  # the polygon is the box
        return cut
    return np.asarray(cv2.copyTo(cut, inside, np.full(cut.shape, WHITE, dtype=np.uint8)), dtype=np.uint8)


def crop_quad(pixels: Pixels, polygon: Sequence[Point]) -> Pixels:
    """Cut a quadrilateral out of a page and straighten it by a perspective transform.

    Args:
        pixels: The page.
        polygon: Four corners, clockwise from the top-left of the upright result, in pixels of the page. They may lie
            outside of the page: edge pixels are repeated there.

    Returns:
        An image of shape (height, width, 3) with the longer of each pair of opposite sides as its width and height,
        at least 1 x 1 and at most twice the page's longer side.

    Raises:
        ValueError: The polygon does not have four finite corners, or the page has no pixels.
    """
    corners = np.asarray(polygon, dtype=np.float32)
    if corners.shape != (4, 2) or not np.isfinite(corners).all():
        raise ValueError("crop_quad needs four finite corners")
    if not pixels.size:
        raise ValueError("crop of a page without pixels")
    (left, top), (right, bottom) = corners[0], corners[2]
    is_upright = right > left and bottom > top and np.array_equal(corners[1::2], [(right, top), (left, bottom)])
    if is_upright:  # an axis-aligned line needs no resampling, which would blur it
        return crop(pixels, (float(left), float(top), float(right), float(bottom))).copy()
    limit = 2 * max(pixels.shape[:2])
    sides = np.linalg.norm(corners - np.roll(corners, -1, axis=0), axis=1)
    width = min(max(1, round(float(max(sides[0], sides[2])))), limit)
    height = min(max(1, round(float(max(sides[1], sides[3])))), limit)
    target = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float32)
    # Boxes count from pixel corners, OpenCV from pixel centres: shift by half a pixel on both sides.
    matrix = cv2.getPerspectiveTransform(corners - 0.5, target - 0.5)
    straight = cv2.warpPerspective(
        pixels, matrix, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(straight, dtype=np.uint8)


def ink_mask(grey: NDArray[Any]) -> Flags:
    """Pixels of the ink in a piece of a page, dark on light or light on dark; by Otsu's threshold.

    Args:
        grey: Shape (height, width), uint8. Check that it has contrast: Otsu's threshold splits noise, too.
    """
    level, _ = cv2.threshold(np.ascontiguousarray(grey), 0, 255, cv2.THRESH_OTSU)
    ink: Flags = grey <= level
    # Even bold print covers less than half of its ground.
    return ~ink if ink.mean() > 0.5 else ink


def crop_along(pixels: Pixels, middle: Sequence[Point], left: float, right: float, height: float) -> Pixels:
    """Cut a bent band out of a page and straighten it.

    Args:
        pixels: The page.
        middle: Points along the middle of the band, from left to right.
        left: Where it begins, in pixels of the page.
        right: Where it ends.
        height: Height of the band.
    """
    columns, rows = max(1, round(right - left)), max(1, round(height))
    x = np.linspace(left, right, columns, endpoint=False, dtype=np.float32)
    y = np.interp(x, *np.asarray(middle).T).astype(np.float32)
    y = cv2.blur(y[None], (2 * (rows // 2) + 1, 1), borderType=cv2.BORDER_REPLICATE)
    down = np.arange(rows, dtype=np.float32)[:, None] - np.float32(rows / 2)
    across = np.broadcast_to(x, (rows, columns))
    straight = cv2.remap(pixels, across, y + down, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(straight, dtype=np.uint8)


def rotate_quarter(pixels: Pixels, degrees: int) -> Pixels:
    """Turn an image clockwise by a multiple of 90 degrees; the result is C-contiguous.

    Raises:
        ValueError: ``degrees`` is not a multiple of 90.
    """
    if degrees % 90:
        raise ValueError(f"{degrees} is not a multiple of 90 degrees")
    turns = degrees // 90 % 4
    return np.ascontiguousarray(np.rot90(pixels, -turns)) if turns else pixels
