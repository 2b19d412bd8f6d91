"""What the score of a line recognition engine means: the share of the line's characters that is expected to be right.

Scores of engines are no probabilities, and mean something else for each engine. The tables in ``calibration.toml`` were
fitted on drawn pages, scans and photographs, whose truth is known: ``benchmarks/calibration.py``.
"""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files

import numpy as np

OTHER = "other"
"""The table of engines that have none: that of all measured engines together."""


@functools.cache
def tables() -> dict[str, tuple[list[float], list[float]]]:
    """By engine: scores in rising order, and for each the share of right characters."""
    text = (files("pagemill.recognition") / "calibration.toml").read_text(encoding="utf-8")
    return {engine: (table["score"], table["right"]) for engine, table in tomllib.loads(text).items()}


def expected_right(engine: str, score: float) -> float:
    """The share of a line's characters that is expected to be right, 0-1.

    Args:
        engine: Name of the engine, without its language.
        score: Its confidence in the line, times the share of the line's ink that it has read.
    """
    scores, right = tables().get(engine) or tables()[OTHER]
    return round(float(np.interp(score, scores, right)), 4)
