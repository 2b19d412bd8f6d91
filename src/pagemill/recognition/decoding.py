"""The networks' answers decoded: a map of text probabilities to lines, class probabilities of steps to text.

Lines: Differentiable Binarization predicts text kernels that are shrunk against the real lines; a kernel's rectangle is
grown by ``area * ratio / perimeter`` on every side (Liao et al., "Real-time Scene Text Detection with Differentiable
Binarization", AAAI 2020, equation 10). Text: connectionist temporal classification (CTC).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagemill.document.direction import is_right_to_left
from pagemill.late import cv2, re
from pagemill.recognition.base import DetectedLine, Quad, RecognizedText

BLANK = 0
_PIXEL_THRESHOLD, _BOX_THRESHOLD, _UNCLIP_RATIO = 0.3, 0.5, 1.6
"""Those PP-OCR models are published with."""
_MIN_SIDE = 3.0
"""Kernels narrower than this many map pixels are noise."""
_BENT_LENGTH, _BENT_FILL = 12.0, 0.7
"""Length over height of a kernel's rectangle, and share of it that the kernel fills, from and below which it is a bent
line. The lines that photographs lost are 25 to 45 times as long as high and fill 0.55 to 0.61."""
_MIDDLES = 4
"""Least points along the middle of a line."""
_MAX_LINES = 3000
"""Most lines kept of a page, the surest first; a dense newspaper page has about 1,500."""


def lines_from_map(
    probability: NDArray[np.float32], scale: tuple[float, float], origin: tuple[float, float] = (0.0, 0.0)
) -> list[DetectedLine]:
    """Turn a (height, width) map of text probabilities into lines in page pixels.

    ``scale`` is page pixels per map pixel in x and y, and ``origin`` where the map begins on the page.
    """
    mask = cv2.dilate((probability > _PIXEL_THRESHOLD).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    factor = np.asarray(scale, dtype=np.float64)
    found: list[DetectedLine] = []
    for contour in contours:
        center, size, angle = cv2.minAreaRect(contour)
        if min(size) < _MIN_SIDE:
            continue
        # A bent line leaves half of its rectangle empty.
        bent = max(size) > _BENT_LENGTH * min(size) and cv2.contourArea(contour) < _BENT_FILL * size[0] * size[1]
        score = _mean_inside(probability, contour[:, 0] if bent else cv2.boxPoints((center, size, angle)))
        if score < _BOX_THRESHOLD:
            continue
        grow = size[0] * size[1] * _UNCLIP_RATIO / (2 * (size[0] + size[1]))
        grown = cv2.boxPoints((center, (size[0] + 2 * grow, size[1] + 2 * grow), angle))
        points, thick = _middle(contour)
        middle = tuple((x, y) for x, y in (points * factor + origin).tolist())
        height = thick * (1 + _UNCLIP_RATIO) * scale[1]
        found.append(DetectedLine(polygon=_corners(grown * factor + origin), score=score, middle=middle, height=height))
    found.sort(key=lambda line: -line.score)
    return found[:_MAX_LINES]


def _middle(contour: NDArray[Any]) -> tuple[NDArray[np.float64], float]:
    """Points, shape (n, 2), along the middle of a kernel, and its thickness; none of one that is not long and level.

    The ends are round and tell nothing.
    """
    left, top, width, height = cv2.boundingRect(contour)
    if width < _BENT_LENGTH * height / 2:
        return np.empty((0, 2)), 0.0
    kernel = np.zeros((height, width), np.uint8)
    cv2.fillPoly(kernel, [contour[:, 0] - (left, top)], (1.0,))
    thick = kernel.sum(axis=0)
    rows = np.arange(height) + top + 0.5
    usual = float(np.median(thick))
    steps = max(_MIDDLES, round(width / (2 * usual)))
    borders = np.linspace(usual / 2, width - usual / 2, steps + 1).astype(int)
    sums = np.add.reduceat(kernel[:, : borders[-1]], borders[:-1], axis=1, dtype=np.float64)
    return np.column_stack([left + (borders[:-1] + borders[1:]) / 2, rows @ sums / sums.sum(axis=0)]), usual


def _mean_inside(probability: NDArray[np.float32], outline: NDArray[Any]) -> float:
    height, width = probability.shape
    low = np.clip(np.floor(outline.min(axis=0)).astype(int), 0, (width - 1, height - 1))
    high = np.clip(np.ceil(outline.max(axis=0)).astype(int), 0, (width - 1, height - 1))
    mask = np.zeros((high[1] - low[1] + 1, high[0] - low[0] + 1), np.uint8)
    cv2.fillPoly(mask, [(outline - low).astype(np.int32)], (1.0,))
    return float(cv2.mean(probability[low[1] : high[1] + 1, low[0] : high[0] + 1], mask)[0])


def _corners(quad: NDArray[np.float64]) -> Quad:
    """Order a rectangle's corners clockwise from its top-left, supposing it is turned by less than 45 degrees."""
    # cv2.boxPoints goes round clockwise (y down), so only the start has to be found.
    start = int(np.argmin(quad.sum(axis=1)))
    a, b, c, d = ((x, y) for x, y in np.roll(quad, -start, axis=0).tolist())
    return (a, b, c, d)


def decode_greedy(probabilities: NDArray[np.float32], alphabet: Sequence[str], width: float) -> RecognizedText:
    """Take the best class of every step, merge repeats, drop blanks.

    Args:
        probabilities: Of a line: shape (steps, classes), softmaxed; class 0 is the blank.
        alphabet: The text of each class.
        width: Steps that the line's image really spans (the rest is padding); may be fractional.
    """
    best = probabilities.argmax(axis=1)
    keep = best != BLANK
    keep[1:] &= best[1:] != best[:-1]
    steps = np.flatnonzero(keep)
    text = "".join(alphabet[index] for index in best[steps])
    sure = probabilities[steps, best[steps]]
    confidence = float(sure.mean()) if text else 0.0
    inside = slice(len(text) - len(text.lstrip()), len(text.rstrip()))
    steps, sure = steps[inside], sure[inside]
    centers = np.clip((steps + 0.5) / width, 0.0, 1.0)
    return RecognizedText(
        text=text.strip(), confidence=confidence, centers=tuple(centers.tolist()), confidences=tuple(sure.tolist())
    )


def in_logical_order(read: RecognizedText, line: str | None = None) -> RecognizedText:
    """Text whose characters come as they stand on the paper, from left to right, in the order in which it is read.

    Differs from it only for lines of mostly Arabic or Hebrew letters: those are turned round, runs of digits and Latin
    letters are not.

    Args:
        read: The text.
        line: The line that it is a part of, where it is not the whole line.
    """
    if not is_right_to_left(read.text if line is None else line):
        return read
    order: list[int] = []
    text = ""
    for rightwards, start, end in reversed(_runs(read.text)):
        places = range(start, end) if rightwards else range(end - 1, start - 1, -1)
        order += places
        text += "".join(read.text[i] if rightwards else _MIRRORED.get(read.text[i], read.text[i]) for i in places)
    centers, sure = ([each[index] for index in order] if each else () for each in (read.centers, read.confidences))
    return replace(read, text=text, centers=tuple(centers), confidences=tuple(sure))


def _runs(text: str) -> list[tuple[bool, int, int]]:
    """The stretches of a line that run one way: whether from left to right, first character, and one past the last."""
    found: list[tuple[bool, int, int]] = []
    last = 0
    for match in _RIGHTWARDS.finditer(text):
        found += [(False, last, match.start()), (True, match.start(), match.end())]
        last = match.end()
    return [*found, (False, last, len(text))]


_LEFTWARDS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_RIGHTWARDS = re.compile(
    rf"[$€£₪]?[^\W{_LEFTWARDS}]+(?:[^{_LEFTWARDS}]*?[^\W{_LEFTWARDS}]+)*%?|[\u0660-\u0669\u06f0-\u06f9]+"
)
"""Latin words and figures with their units, and with what stands between them."""
_MIRRORED = dict(zip("()[]{}<>«»", ")(][}{><»«", strict=True))
