"""Connectionist temporal classification: from per-step class probabilities to text with word positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pagemill.recognition.base import RecognizedText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BLANK = 0


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
    if not len(steps):
        return RecognizedText(text="", confidence=0.0)
    classes = best[steps]
    characters = [alphabet[index] for index in classes]
    confidence = float(probabilities[steps, classes].mean())
    first, last = _trim(characters)
    characters, steps = characters[first:last], steps[first:last]
    spans = _word_spans(characters, steps, width) if characters else ()
    centers = tuple(float(center) for center in np.clip((steps + 0.5) / width, 0.0, 1.0))
    return RecognizedText(text="".join(characters), confidence=confidence, word_spans=spans, centers=centers)


def _trim(characters: list[str]) -> tuple[int, int]:
    """First and one past the last character that is no white space."""
    solid = [index for index, character in enumerate(characters) if not character.isspace()]
    return (solid[0], solid[-1] + 1) if solid else (0, 0)


def _word_spans(characters: list[str], steps: NDArray[np.int64], width: float) -> tuple[tuple[str, float, float], ...]:
    """Words with their extent as fractions of the line's width.

    A character's step lies about at its middle; it reaches half-way to its neighbours, the first and last
    characters of the line half a mean pitch outwards.
    """
    middles = steps + 0.5
    pitch = float(np.diff(middles).mean()) if len(middles) > 1 else 2.0
    between = (middles[1:] + middles[:-1]) / 2
    borders = np.concatenate(([middles[0] - pitch / 2], between, [middles[-1] + pitch / 2]))
    borders = np.clip(borders / width, 0.0, 1.0)
    words: list[tuple[str, float, float]] = []
    start = 0
    for index in range(len(characters) + 1):
        if index == len(characters) or characters[index].isspace():
            if index > start:
                words.append(("".join(characters[start:index]), float(borders[start]), float(borders[index])))
            start = index + 1
    return tuple(words)
