"""The script of line images, and whether they are upside down, recognized by the shapes of strokes.

PP-OCR reads what it was trained on, and answers other scripts with blanks or with Latin look-alikes, so neither its
text nor its confidence shows them. This small network knows no characters and needs no engine for the script. It costs
about a millisecond a line. Drawn lines taught it: ``scripts/train-script-detector``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.checkpoints.onnx_session import cpu_session
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.model_cache import cached

if TYPE_CHECKING:
    import onnxruntime

HEIGHT = 32
"""Rows that a line image is scaled to."""
FLIPPED = "~"
"""Before the name of a script: upside down."""
FIGURES = "FIGURES"
"""The class of lines without letters."""
_MODEL = Path(__file__).with_name("scripts.onnx")
_LEAST_COLUMNS, _MOST_COLUMNS = 64, 1024
_LEAST_CONTRAST = 24  # grey levels between ink and paper
_INK, _LEAST_IN_ROW = 0.4, 0.005  # of the strongest contrast; of a row's pixels
_MARGIN = 0.08  # of the height of the ink, left above and below it


class _Model(NamedTuple):
    session: onnxruntime.InferenceSession
    names: list[str]
    """The outputs: a script as in :func:`pagemill.recognition.languages.script_of`, ``VIETNAMESE``, ``FIGURES``, or
    one of them after ``FLIPPED``."""


def _model() -> _Model:
    return cached(_Model, _load)


def _load() -> _Model:
    session = cpu_session(_MODEL)
    return _Model(session, session.get_modelmeta().custom_metadata_map["classes"].split("\n"))


def ink_of(line: Pixels) -> NDArray[np.float32] | None:
    """A line's ink, shape (``HEIGHT``, columns), 0-1, whether it is dark on light or light on dark; None for paper.

    Args:
        line: Shape (height, width, 3), uint8 RGB.
    """
    grey = np.asarray(cv2.cvtColor(line, cv2.COLOR_RGB2GRAY), np.uint8)
    rows = _inked_rows(grey)
    if rows is None:
        return None
    grey = grey[rows]
    height, width = grey.shape
    columns = int(np.clip(round(width * HEIGHT / height), _LEAST_COLUMNS, _MOST_COLUMNS))
    scaled = cv2.resize(grey, (columns, HEIGHT), interpolation=cv2.INTER_AREA if height > HEIGHT else cv2.INTER_LINEAR)
    contrast = np.abs(scaled.astype(np.float32) - np.float32(np.median(scaled)))
    strongest = float(np.percentile(contrast, 98))
    return None if strongest < _LEAST_CONTRAST else np.minimum(contrast / np.float32(strongest), np.float32(1.0))


def _inked_rows(grey: NDArray[np.uint8]) -> slice | None:
    """The rows of a line that hold ink, and a little paper: detectors leave more around some lines than others."""
    height, width = grey.shape
    contrast = np.abs(grey.astype(np.int16) - np.int16(np.median(grey)))
    strongest = float(np.percentile(contrast, 98))
    if strongest < _LEAST_CONTRAST:
        return None
    inked = np.flatnonzero((contrast > _INK * strongest).sum(axis=1) >= max(1.0, _LEAST_IN_ROW * width))
    if not len(inked):
        return None
    margin = round(_MARGIN * (inked[-1] + 1 - inked[0]))
    return slice(max(0, int(inked[0]) - margin), min(height, int(inked[-1]) + 1 + margin))


def script_shares(lines: Iterable[Pixels]) -> dict[str, float]:
    """Mean over line images of the probability of each script, upright or upside down (``FLIPPED`` before its name).

    Empty where there is no ink.
    """
    session, names = _model()
    inks = [ink for ink in map(ink_of, lines) if ink is not None]
    if not inks:
        return {}
    found = [session.run(None, {"ink": ink[None, None]})[0][0] for ink in inks]
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))
