"""Photographs of pages, distinguished from scans and renderings by their light; and their light evened.

Renderings have paper of one colour, scans nearly so. The paper of a photograph is shaded everywhere: a lamp is nearer
to one side, a sheet bends, somebody's shadow lies on it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Box
from pagemill.imaging.thresholds import IMAGING
from pagemill.imaging.transforms import WHITE, fit
from pagemill.imaging.types import Pixels
from pagemill.late import cv2


def photographed_area(pixels: Pixels) -> Box | None:
    """Where a page image is a photograph of a page; None where it is a scan, a rendering or a screenshot.

    An image that fills a page of a PDF but for a white margin is judged like one without it.

    Args:
        pixels: Shape (height, width, 3), uint8 RGB.

    Returns:
        The image without a margin of pure white, in pixels.
    """
    step = max(1, max(pixels.shape[:2]) // IMAGING.sampled_side)
    sample = np.ascontiguousarray(pixels[::step, ::step, 1])  # green is most of the brightness, and the least noisy
    inked = sample < WHITE
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not rows.size:
        return None
    top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    if not _is_shaded(sample[top:bottom, left:right]):
        return None
    height, width = pixels.shape[:2]
    return (left * step, top * step, min(right * step, width), min(bottom * step, height))


def as_scanned(pixels: Pixels, text: Box) -> Pixels:
    """An evenly lit page for layout detection, which was trained on scans: sharp, its paper and its edges white.

    Args:
        pixels: Shape (height, width, 3), uint8 RGB.
        text: Around its lines, in pixels: no edge of the page is nearer.
    """
    height, width = pixels.shape[:2]
    x, y = width * IMAGING.edge, height * IMAGING.edge
    left, top = (int(max(0.0, min(edge, start - edge))) for edge, start in ((x, text[0]), (y, text[1])))
    right, bottom = (
        math.ceil(max(side - edge, end + edge)) for side, edge, end in ((width, x, text[2]), (height, y, text[3]))
    )
    page = pixels[top:bottom, left:right]
    gain = IMAGING.paper_gain
    scanned = np.full_like(pixels, 255)
    blurred = cv2.GaussianBlur(page, (0, 0), IMAGING.sharpened_over)
    more = IMAGING.sharpened
    scanned[top:bottom, left:right] = cv2.addWeighted(page, gain * (1 + more), blurred, -gain * more, 0)
    return scanned


def _is_shaded(grey: NDArray[np.uint8]) -> bool:
    """Whether the brightness of the paper changes gently, all over it."""
    side = IMAGING.block
    rows, columns = grey.shape[0] // side, grey.shape[1] // side
    if min(rows, columns) < 2 or rows * columns < IMAGING.fewest_blocks:
        return False
    squares = grey[: rows * side, : columns * side].reshape(rows, side, columns, side).transpose(0, 2, 1, 3)
    blocks = squares.reshape(rows, columns, side * side)
    half = side * side // 2
    if np.mean((blocks < WHITE).sum(axis=2) > half) < IMAGING.shaded_share:  # as nearly all renderings
        return False
    level = np.partition(blocks, half, axis=2)[..., half:].sum(axis=2) / half
    brightest = float(np.quantile(level, 0.9))
    paper = (level > IMAGING.paper * brightest) & (level < IMAGING.blown_out)
    level *= WHITE / max(brightest, 1.0)  # photographs may be dark
    beside = np.abs(np.diff(level, axis=1))[paper[:, 1:] & paper[:, :-1]]
    below = np.abs(np.diff(level, axis=0))[paper[1:] & paper[:-1]]
    steps = np.concatenate([beside, below])
    if steps.size < IMAGING.shaded_share * (level[1:].size + level[:, 1:].size):
        return False
    least, median = np.quantile(steps, (0.25, 0.5))
    low, high = np.quantile(level[paper], (0.1, 0.9))
    gently = median >= IMAGING.median_step and least >= IMAGING.least_step
    return bool(gently and high - low >= IMAGING.spread * WHITE)


def evenly_lit(pixels: Pixels) -> Pixels:
    """The page as if its paper were white and lit evenly: without shadows, folds and the colour of the lamp.

    The light is what is left of the page once strokes are filled and the rest is smoothed; the page is divided by it.
    What was taken of a display is grey, without moiré.
    """
    height, width = pixels.shape[:2]
    small = fit(pixels, IMAGING.lamp_side)
    filled = cv2.dilate(small, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (IMAGING.stroke, IMAGING.stroke)))
    light = cv2.resize(cv2.medianBlur(filled, IMAGING.patch), (width, height), interpolation=cv2.INTER_LINEAR)
    lit = np.asarray(cv2.divide(pixels, light, scale=WHITE), dtype=np.uint8)
    return _without_moire(lit) if _shows_moire(lit) else lit


def _shows_moire(lit: Pixels) -> bool:
    """Whether colours ripple nearly everywhere on an evenly lit page: the stripes of a display beat with the sensor's.

    Computes for 10 ms: one in eight rows of blocks is looked at.
    """
    side = IMAGING.block
    rows, columns = lit.shape[0] // side, lit.shape[1] // side
    bands = lit[: rows * side, : columns * side].reshape(rows, side, columns, side, 3)[:: IMAGING.moire_rows]
    if not bands.size:
        return False
    red, green, blue = (bands[..., channel].astype(np.float32) for channel in range(3))
    ripples = np.maximum((red - blue).std(axis=(1, 3)), (2 * green - red - blue).std(axis=(1, 3)) / 2)
    return bool(np.quantile(ripples, IMAGING.moire_share) >= IMAGING.moire)


def _without_moire(lit: Pixels) -> Pixels:
    """The page of a display in grey: its red, green and blue stripes lie side by side, and together are white.

    Weighted by brightness, as grey usually is, they are not.
    """
    third = np.full((1, 3), IMAGING.paper_gain / 3, np.float32)  # rows of pixels beat, too, but less
    return np.asarray(cv2.cvtColor(cv2.transform(lit, third), cv2.COLOR_GRAY2RGB), dtype=np.uint8)


def thin_strokes(lit: Pixels, text_height: float) -> Pixels:
    """What is drawn on a page in strokes as thin as rules, on white: the edge of a shadow passes for one.

    Args:
        lit: Shape (height, width, 3), uint8 RGB, evenly lit.
        text_height: Usual height of a line of text in pixels.
    """
    side = max(3, round(IMAGING.thickest_rule * text_height)) | 1
    strokes = cv2.morphologyEx(lit, cv2.MORPH_BLACKHAT, np.ones((side, side), np.uint8))
    return np.asarray(cv2.bitwise_not(strokes), dtype=np.uint8)


def line_evenly_lit(line: Pixels) -> Pixels:
    """A line as if its paper were evenly lit: the edge of a shadow, or a fold, passes for strokes otherwise.

    The light of a page is estimated too coarsely for either. 0.7 ms a line.

    Args:
        line: Shape (height, width, 3), uint8 RGB.

    Returns:
        The line itself where its light differs little from end to end, and where its letters are lighter than its
        paper: their own light would pass for that on it.
    """
    side = line.shape[0] | 1  # no letter is larger
    square = np.ones((side, side), np.uint8)
    lightest, darkest = (cv2.morphologyEx(line, how, square) for how in (cv2.MORPH_CLOSE, cv2.MORPH_OPEN))
    # Most of a line is paper, which is like the lightest that is near, or like the darkest.
    if cv2.norm(lightest, line, cv2.NORM_L1) > cv2.norm(line, darkest, cv2.NORM_L1):
        return line
    light = cv2.blur(lightest, (side, side))
    if light.min() >= IMAGING.even_line * light.max():
        return line
    return np.asarray(cv2.divide(line, light, scale=WHITE), dtype=np.uint8)
