"""Measures of the ink of a line or page: how much was not read, and how small the letters are.

PP-OCR's recognizer answers a script that is not in its dictionary with blanks, so the text alone looks like an empty or
short line. What gives it away is ink without characters: columns of the line image that hold strokes but lie far from
any character that was read. The detector, likewise, sees whole columns of type that was shrunk too far as one line, or
nothing at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.transforms import fit
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.recognition.base import Quad, RecognizedText
from pagemill.recognition.languages import script_of

_REACH = 0.42  # line heights, a little over half of the widest character: it explains the ink this far from its middle
_INK = 0.4  # of the line's strongest contrast
_LEAST_CONTRAST = 32  # grey levels between ink and paper
# Share of ink columns crossed twice: at least 0.09 of Armenian and 0.18 of other scripts in bold print of 12 pixels and
# blurred; 0.04 of a zigzag, 0 of dashes, rules and scribbles.
_WRITTEN = 0.06
_INCOMPLETE_SCRIPTS = frozenset({"GREEK", "CYRILLIC"})  # dictionaries hold some of their letters, as symbols

_LONG_SIDE = 2560
"""Larger pages are shrunk to this before measuring: 20 ms for A4, at most 100 ms for the largest pages. Letters of
6.5 point type on a newspaper page are 8 pixels high then. The following are pixels of that image."""
_LEAST_PIXELS = 4_000_000
"""Pixels that a longer page, such as a receipt of 600 by 12,000, keeps at least: by its long side alone it would be
shrunk until no letter is left. Sheets of paper have more after shrinking."""
_WINDOW, _CONTRAST = 31, 20
"""Side of the square whose mean a stroke must be darker than, and the grey levels by which; grain of a scan has a
standard deviation of 5 to 10."""
_LEAST_HEIGHT, _MOST_HEIGHT = 5, 200
"""Smaller blobs are dots, commas and the texture of photographs."""
_LEAST_FILL = 0.15
"""Share of its box that a letter fills; less is a frame or a curve."""
_WIDEST = 12
"""Times its height: words whose letters touch count, rules do not."""
_MARGIN = 2
"""Heights of a letter that are left around it."""
MOST_GROUPS = 8
"""Groups of letters on a page that is nearly empty. Not measured."""
_LEAST_LETTERS = 200
_QUANTILE = 0.4
"""Quantile of the heights: on 70 pages of all kinds within a fifth of the height of a lower-case letter."""


def unread_share(line: Pixels, read: RecognizedText) -> float:
    """Share of a line's ink columns that no character explains, 0-1; a line without ink, or of strokes alone, has none.

    Letters of scripts that the engine knows only as symbols count as unread when they make up most of the text.
    """
    height, width = line.shape[:2]
    if height < 4 or width < 4:
        return 0.0
    letters = [script_of(character) for character in read.text if character.isalpha()]
    if len(letters) >= 4 and sum(script in _INCOMPLETE_SCRIPTS for script in letters) > len(letters) / 2:
        return 1.0
    ink = ink_of(line)
    if ink is None or (not read.centers and read.text):
        return 0.0
    inked = np.flatnonzero(ink.any(axis=0))
    if not read.centers:
        return 1.0 if _is_writing(ink) else 0.0
    centers = np.asarray(read.centers) * width
    unexplained = np.abs(inked[:, None] - centers).min(axis=1) > _REACH * height
    ink[:, inked[~unexplained]] = False
    return float(unexplained.mean()) if _is_writing(ink) else 0.0


def holds_writing(line: Pixels) -> bool:
    """Whether a line image may hold writing in any script: not where all its ink is rules, dashes or strokes."""
    ink = ink_of(line)
    return ink is None or _is_writing(ink)


def ink_of(line: Pixels) -> NDArray[np.bool_] | None:
    """Where the middle rows of a line have ink, shape (rows, width); None without any contrast."""
    height = line.shape[0]
    rows = line[height // 8 : height - height // 8, :, 1].astype(np.int16)
    contrast = np.abs(rows - np.int16(np.median(rows)))  # against the paper, dark or light
    strongest = np.percentile(contrast.max(axis=0), 95)
    ink: NDArray[np.bool_] = contrast > _INK * strongest
    return ink if strongest >= _LEAST_CONTRAST else None


def _is_writing(ink: NDArray[np.bool_]) -> bool:
    """Whether enough columns cross the ink twice, as letters of all scripts do; a stroke is crossed once."""
    mask = ink.astype(np.uint8)
    height, width = mask.shape
    if width > 2 * height:  # staves and ruled paper are many strokes one below the other
        rules = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((1, 2 * height), np.uint8))
        mask = cv2.subtract(mask, rules).astype(np.uint8)
    crossed = (np.diff(np.pad(mask, ((1, 0), (0, 0))).astype(np.int8), axis=0) == 1).sum(axis=0)
    inked = int((crossed > 0).sum())
    return inked > 0 and int((crossed > 1).sum()) >= _WRITTEN * inked


def letters_of(page: Pixels) -> NDArray[np.float64]:
    """The letters of a page, shape (n, 4): left, top, width and height in its pixels; words whose letters touch count.

    Args:
        page: Shape (height, width, 3), uint8 RGB. Dark letters on light ground are found.
    """
    return _letters(page)[:, :4] / _measured_at(page)


def letter_height(letters: NDArray[np.float64]) -> float | None:
    """Height of a page's lower-case letters; None if it has too few of them."""
    return float(np.quantile(letters[:, 3], _QUANTILE)) if len(letters) >= _LEAST_LETTERS else None


def share_inside(letters: NDArray[np.float64], quads: Sequence[Quad], size: tuple[int, int]) -> float:
    """Share of a page's letters whose middle is in a line; 1 where it has too few letters to tell.

    Args:
        letters: Of the page.
        quads: Corners of the lines.
        size: Width and height of the page.
    """
    if len(letters) < _LEAST_LETTERS:
        return 1.0
    mask = np.zeros(size[::-1], np.uint8)
    for quad in quads:
        cv2.fillConvexPoly(mask, np.asarray(quad).round().astype(np.int32), 1)
    x, y = (letters[:, :2] + letters[:, 2:] / 2).astype(np.intp).T
    return float(mask[y.clip(max=size[1] - 1), x.clip(max=size[0] - 1)].mean())


def letter_groups(page: Pixels) -> list[tuple[int, int, int, int]]:
    """The boxes around groups of letters that stand close to each other, with a margin, in whole pixels.

    None at all where there are more than ``MOST_GROUPS``, as in drawings and photographs. Boxes that overlap are one.

    Args:
        page: As for :func:`letters_of`.
    """
    height, width = page.shape[:2]
    scale = _measured_at(page)
    mask = np.zeros((max(1, round(height * scale)), max(1, round(width * scale))), np.uint8)
    for left, top, wide, high in _letters(page)[:, :4].tolist():
        margin = _MARGIN * high
        cv2.rectangle(mask, (left - margin, top - margin), (left + wide + margin, top + high + margin), 1, -1)
    groups = _components(mask)
    if len(groups) > MOST_GROUPS:
        return []
    joined = 0
    while joined != len(groups):
        joined = len(groups)
        for x, y, w, h in groups.tolist():
            mask[y : y + h, x : x + w] = 1
        groups = _components(mask)
    found = (groups / scale).tolist()
    return [(int(x), int(y), min(width, round(x + w)), min(height, round(y + h))) for x, y, w, h in found]


def _components(mask: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Left, top, width and height of each connected part, shape (n, 4)."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask, ltype=cv2.CV_32S)
    return np.asarray(stats[1:, :4], np.int32)


def _measured_at(page: Pixels) -> float:
    height, width = map(int, page.shape[:2])
    return min(1.0, max(_LONG_SIDE / max(height, width), math.sqrt(_LEAST_PIXELS / (height * width))))


def _letters(page: Pixels) -> NDArray[np.int32]:
    """What has the shape of a letter, in pixels of the page as it is measured: rows of OpenCV's ``CC_STAT``."""
    grey = cv2.cvtColor(fit(page, round(_measured_at(page) * max(page.shape))), cv2.COLOR_RGB2GRAY)
    ink = cv2.adaptiveThreshold(grey, 1, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, _WINDOW, _CONTRAST)
    _, _, blobs, _ = cv2.connectedComponentsWithStats(ink, connectivity=8, ltype=cv2.CV_32S)
    blobs = blobs[1:]
    widths, heights, areas = blobs[:, cv2.CC_STAT_WIDTH], blobs[:, cv2.CC_STAT_HEIGHT], blobs[:, cv2.CC_STAT_AREA]
    is_letter = (
        (heights >= _LEAST_HEIGHT)
        & (heights <= _MOST_HEIGHT)
        & (widths <= _WIDEST * heights)
        & (areas >= _LEAST_FILL * widths * heights)
    )
    return np.asarray(blobs[is_letter], np.int32)
