"""How much of a line an engine has really read.

PP-OCR's recognizer answers a script that is not in its dictionary with blanks, so the text alone looks like an empty or
short line. What gives it away is ink without characters: columns of the line image that hold strokes but lie far from
any character that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from pagemill.recognition.languages import script_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pagemill.imaging.types import Pixels
    from pagemill.recognition.base import RecognizedText

_REACH = 0.42  # line heights, a little over half of the widest character: it explains the ink this far from its middle
_INK = 0.4  # of the line's strongest contrast
_LEAST_CONTRAST = 32  # grey levels between ink and paper
# Share of ink columns crossed twice: at least 0.09 of Armenian and 0.18 of other scripts in bold print of 12 pixels and
# blurred; 0.04 of a zigzag, 0 of dashes, rules and scribbles.
_WRITTEN = 0.06
_INCOMPLETE_SCRIPTS = frozenset({"GREEK", "CYRILLIC"})  # dictionaries hold some of their letters, as symbols


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
    ink = _ink(line)
    if ink is None or (not read.centers and read.text):
        return 0.0
    inked = np.flatnonzero(ink.any(axis=0))
    if not read.centers:
        return 1.0 if _is_writing(ink) else 0.0
    centers = np.asarray(read.centers) * width
    right = np.searchsorted(centers, inked).clip(0, len(centers) - 1)
    nearest = np.minimum(np.abs(centers[right] - inked), np.abs(centers[(right - 1).clip(0)] - inked))
    unexplained = nearest > _REACH * height
    ink[:, inked[~unexplained]] = False
    return float(unexplained.mean()) if _is_writing(ink) else 0.0


def holds_writing(line: Pixels) -> bool:
    """Whether a line image may hold writing in any script: not where all its ink is rules, dashes or strokes."""
    ink = _ink(line)
    return ink is None or _is_writing(ink)


def _ink(line: Pixels) -> NDArray[np.bool_] | None:
    """Where the middle rows of a line have ink, shape (rows, width); None without any contrast to tell it by."""
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
