"""Ruling lines in a page image.

Own code because the base install has no alternative: img2table requires opencv-contrib-python, and the ONNX table
models come in packages that require opencv-python and download at run time; both overwrite the headless OpenCV.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.late import cv2
from pagemill.tables.thresholds import TABLES


class Rule(msgspec.Struct, frozen=True):
    """A straight line along an axis, in pixels of the image it was found in."""

    position: float
    """y of a horizontal rule, x of a vertical one."""
    start: float
    end: float

    @property
    def length(self) -> float:
        """Length in pixels."""
        return self.end - self.start


class Rules(msgspec.Struct, frozen=True):
    """Rules of one image, sorted by position. Double lines are one rule."""

    horizontal: tuple[Rule, ...]
    vertical: tuple[Rule, ...]


def find_rules(
    gray: NDArray[np.uint8], text_height: float, words: NDArray[np.float64], *, whole_page: bool = False
) -> Rules:
    """Find horizontal and vertical rules in a level image.

    Args:
        gray: Shape (height, width), uint8.
        text_height: Usual height of a line of text in pixels: the yardstick for what is longer than a letter.
        words: Boxes of words or lines, shape (n, 4): strokes inside them are letters that run together.
        whole_page: There may be pictures, which hold many a white line: only dark rules count.
    """
    flat = _outside(_strokes(_dark(gray, text_height), text_height), words)
    # Boxes of words may begin a little after the first letter's stem.
    wider = words + np.array([-2.0, 0.0, 2.0, 0.0])
    turned = np.ascontiguousarray(gray.T)
    masks = (_dark,) if whole_page else (_dark, _light)
    drawn = [_strokes(mask(turned, text_height), TABLES.stroke_upright * text_height) for mask in masks]
    strokes = np.concatenate(drawn)
    # No stem is as long as two lines: a stroke that is, close to the words of narrow cells, is a rule.
    long = strokes[:, 2] - strokes[:, 1] > 2.0 * text_height
    upright = np.concatenate(
        [
            _outside(strokes[~long], wider[:, [1, 0, 3, 2]]),
            _outside(strokes[long], words[:, [1, 0, 3, 2]]),
        ]
    )
    horizontal, vertical = _link(flat, text_height), _link(upright, text_height)
    horizontal = [rule for rule in horizontal if rule.length >= TABLES.rule_length * text_height]
    reach = TABLES.same_line * text_height
    vertical = [
        rule
        for rule in vertical
        if rule.length >= TABLES.rule_length * text_height
        or sum(
            other.start - reach <= rule.position <= other.end + reach
            and rule.start - reach <= other.position <= rule.end + reach
            for other in horizontal
        )
        >= 2
    ]
    return Rules(tuple(horizontal), tuple(vertical))


def has_rules(gray: NDArray[np.uint8], text_height: float) -> bool:
    """Whether there is a long horizontal stroke at all: a quick look that spares most pages the full search."""
    return bool(_open(_dark(gray, text_height), TABLES.rule_length * text_height).any())


def _dark(gray: NDArray[np.uint8], text_height: float) -> NDArray[np.uint8]:
    """255 where a pixel is darker than its neighbourhood, which evens out shading and shaded rows."""
    window = max(15, 2 * round(text_height) + 1)
    mean, inverted = cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV
    return np.asarray(cv2.adaptiveThreshold(gray, 255, mean, inverted, window, TABLES.rule_contrast), np.uint8)


def _light(gray: NDArray[np.uint8], text_height: float) -> NDArray[np.uint8]:
    """255 where a pixel is lighter than what is above and below it: lines left white in a shaded row.

    Looked for upright, to part cells: lines of text have white between them as well.
    """
    window = np.ones((max(5, round(TABLES.light_window * text_height)), 1), np.uint8)
    ground = cv2.morphologyEx(gray, cv2.MORPH_OPEN, window)
    return np.where(cv2.subtract(gray, ground) > TABLES.rule_contrast, 255, 0).astype(np.uint8)


def _open(dark: NDArray[np.uint8], length: float) -> NDArray[np.uint8]:
    """Keep horizontal runs of at least ``length``; speckle holes in a stroke are closed first."""
    closed = cv2.morphologyEx(dark, cv2.MORPH_CLOSE, np.ones((1, 3), np.uint8))
    kernel = np.ones((1, max(8, round(length))), np.uint8)
    return np.asarray(cv2.morphologyEx(closed, cv2.MORPH_OPEN, kernel), np.uint8)


def _strokes(dark: NDArray[np.uint8], length: float) -> NDArray[np.float64]:
    """Horizontal strokes, shape (n, 3): y, first and last x."""
    opened = _open(dark, length)
    # A rule that ends at a shaded row is one component with it: without what is too thick it stands alone.
    thick = np.ones((int(max(4, TABLES.shaded_area * length)) + 1, 1), np.uint8)
    opened = cv2.subtract(opened, cv2.morphologyEx(opened, cv2.MORPH_OPEN, thick)).astype(np.uint8)
    _, _, stats, centroids = cv2.connectedComponentsWithStats(opened, connectivity=8)
    stats, centroids = stats[1:], centroids[1:]
    thickness = stats[:, cv2.CC_STAT_AREA] / np.maximum(stats[:, cv2.CC_STAT_WIDTH], 1)
    left, width = stats[:, cv2.CC_STAT_LEFT], stats[:, cv2.CC_STAT_WIDTH]
    thin = (thickness <= max(3.0, TABLES.stroke_thickness * length)) & (
        stats[:, cv2.CC_STAT_HEIGHT] <= np.maximum(4, TABLES.stroke_height * length)
    )
    strokes: NDArray[np.float64] = np.column_stack((centroids[:, 1], left, left + width))[thin]
    return strokes


def _outside(strokes: NDArray[np.float64], words: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop strokes of which most runs through words."""
    at = (strokes[:, None, 0] > words[:, 1]) & (strokes[:, None, 0] < words[:, 3])
    shared = np.minimum(strokes[:, None, 2], words[:, 2]) - np.maximum(strokes[:, None, 1], words[:, 0])
    inside = np.where(at, np.clip(shared, 0.0, None), 0.0).sum(axis=1)
    kept: NDArray[np.float64] = strokes[inside < TABLES.letters_in_stroke * (strokes[:, 2] - strokes[:, 1])]
    return kept


def _link(strokes: NDArray[np.float64], text_height: float) -> list[Rule]:
    """Join strokes at about the same height (broken and double lines) where the gap between them is short."""
    rules: list[Rule] = []
    tolerance, gap = max(2.0, TABLES.link_offset * text_height), TABLES.link_gap * text_height
    strokes = strokes[np.argsort(strokes[:, 0])]
    for group in np.split(strokes, np.flatnonzero(np.diff(strokes[:, 0]) > tolerance) + 1):
        joined: list[list[float]] = []  # start, end, length, length-weighted position
        for position, start, end in group[np.argsort(group[:, 1])]:
            if not joined or start > joined[-1][1] + gap:
                joined.append([start, end, 0.0, 0.0])
            last = joined[-1]
            last[1] = max(last[1], end)
            last[2] += end - start
            last[3] += (end - start) * position
        rules += [Rule(total / length, start, end) for start, end, length, total in joined]
    return sorted(rules, key=lambda rule: (rule.position, rule.start))
