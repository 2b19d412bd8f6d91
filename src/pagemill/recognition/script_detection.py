"""The script of a page that no engine could read, from Tesseract's script detection where that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from pagemill.imaging.types import Pixels

LANGUAGE_OF_SCRIPT = {
    "Arabic": "ar", "Armenian": "hy", "Bengali": "bn", "Cyrillic": "ru", "Devanagari": "hi", "Georgian": "ka",
    "Greek": "el", "Gujarati": "gu", "Gurmukhi": "pa", "Hangul": "ko", "Hebrew": "he", "Kannada": "kn", "Khmer": "km",
    "Korean": "ko", "Lao": "lo", "Malayalam": "ml", "Myanmar": "my", "Tamil": "ta", "Telugu": "te", "Thai": "th",
}  # fmt: skip
"""Scripts by the names of Tesseract's script detection, each with a common language of it. Scripts that the embedded
engine reads are left out: on those it is wrong more often than the engine."""

_LONG_SIDE = 2400
_SURE, _SURE_ORIENTATION = 1.0, 5.0
"""Least confidence in the script, and in the orientation found with it. Pages of five scripts have 1.6 to 61 and 11 to
33, of handwriting 0.3 to 2.2 and 0.4 to 4.4."""
_SECONDS = 30.0
_MOST_OUTPUT = 10_000


def detect_script(page: Pixels) -> str | None:
    """The name of a page's script, a key of ``LANGUAGE_OF_SCRIPT``.

    Args:
        page: Upright, shape (height, width, 3), uint8 RGB.

    Returns:
        None where it is another script, the detection is unsure or fails, or Tesseract with its ``osd`` data is not
        installed: it only makes messages better, and decides where reading has failed already.
    """
    program = shutil.which("tesseract")
    if program is None or min(page.shape[:2]) < 1:
        return None
    grey = cv2.cvtColor(page, cv2.COLOR_RGB2GRAY)
    scale = _LONG_SIDE / max(grey.shape)
    if scale < 1:
        size = (max(1, round(grey.shape[1] * scale)), max(1, round(grey.shape[0] * scale)))
        grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
    image = b"P5 %d %d 255\n" % (grey.shape[1], grey.shape[0]) + np.ascontiguousarray(grey).tobytes()
    try:
        done = subprocess.run(
            [program, "stdin", "stdout", "--psm", "0", "-l", "osd", "--dpi", "200"],
            input=image,
            env=os.environ | {"OMP_THREAD_LIMIT": "1"},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    return script_of_output(done.stdout[:_MOST_OUTPUT].decode("utf-8", "replace"))


def script_of_output(output: str) -> str | None:
    """What the output of ``tesseract --psm 0`` says of the script; None where it is unsure or says nothing."""
    fields = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
    try:
        sure = (
            float(fields["Script confidence"]) >= _SURE and float(fields["Orientation confidence"]) >= _SURE_ORIENTATION
        )
    except (KeyError, ValueError):
        return None
    script = fields.get("Script")
    return script if sure and script in LANGUAGE_OF_SCRIPT else None
