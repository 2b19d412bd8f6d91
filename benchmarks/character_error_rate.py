"""Character error rate (CER) that keeps spaces, since Korean word spacing is part of what is read."""

from __future__ import annotations

import unicodedata

from rapidfuzz.distance import Levenshtein


def normalise(text: str) -> str:
    """Compose to NFC, fold every run of white space to one space, strip both ends. Case and punctuation stay."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def character_error_rate(predicted: str, truth: str) -> float:
    """Levenshtein distance in code points over the length of the truth, both normalised first.

    Insertions, deletions and substitutions cost 1; spaces count as characters.

    Returns:
        0 for equal texts; above 1 where far too much was read. With an empty truth: 0 if the prediction is empty
        too, else infinity.
    """
    predicted, truth = normalise(predicted), normalise(truth)
    if not truth:
        return float("inf") if predicted else 0.0
    return Levenshtein.distance(predicted, truth) / len(truth)
