"""How much of a line an engine has really read.

PP-OCR's recognizer answers a script that is not in its dictionary with blanks, so the text alone looks like an empty or
short line. What gives it away is ink without characters: columns of the line image that hold strokes but lie far from
any character that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pagemill.recognition.languages import script_of

if TYPE_CHECKING:
    from pagemill.imaging.types import Pixels
    from pagemill.recognition.base import RecognizedText

_REACH = 0.42  # line heights, a little over half of the widest character: it explains the ink this far from its middle
_INK = 0.4  # of the line's strongest contrast
_INCOMPLETE_SCRIPTS = frozenset({"GREEK", "CYRILLIC"})  # dictionaries hold some of their letters, as symbols


def unread_share(line: Pixels, read: RecognizedText) -> float:
    """Share of a line's ink columns that no character explains, 0-1; a line without ink has none.

    Letters of scripts that the engine knows only as symbols count as unread when they make up most of the text.
    """
    height, width = line.shape[:2]
    if height < 4 or width < 4:
        return 0.0
    letters = [script_of(character) for character in read.text if character.isalpha()]
    if len(letters) >= 4 and sum(script in _INCOMPLETE_SCRIPTS for script in letters) > len(letters) / 2:
        return 1.0
    rows = line[height // 8 : height - height // 8, :, 1].astype(np.int16)
    contrast = np.abs(rows - np.int16(np.median(rows))).max(axis=0)  # against the paper, dark or light
    strongest = np.percentile(contrast, 95)
    if strongest < 32:
        return 0.0
    inked = np.flatnonzero(contrast > _INK * strongest)
    if not read.centers:
        return 0.0 if read.text else 1.0
    centers = np.asarray(read.centers) * width
    right = np.searchsorted(centers, inked).clip(0, len(centers) - 1)
    nearest = np.minimum(np.abs(centers[right] - inked), np.abs(centers[(right - 1).clip(0)] - inked))
    return float((nearest > _REACH * height).mean())
