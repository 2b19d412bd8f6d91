"""Reading order: the position of each true element in the recognized text, independent of region boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from pagemill_eval.text import normalise

FOUND = 80.0
"""Minimum similarity, 0-100, of an element to its place in the predicted text (`rapidfuzz.fuzz.partial_ratio`)."""

_TAKEN = "\0"


@dataclass(frozen=True, slots=True)
class ReadingOrderScore:
    """Agreement of the order of elements."""

    exact: bool
    """Every element was found, each one after the one before it."""
    kendall_tau: float
    """Kendall's tau over the elements found: 1 same order, -1 reversed; 1 for fewer than two."""
    missing: tuple[int, ...]
    """Indices of true elements that are missing in the prediction, or cut in two there."""
    positions: tuple[int | None, ...]
    """Start of each true element in the prediction without its white space, in characters; None where missing."""


def reading_order(predicted: Sequence[str], truth: Sequence[str]) -> ReadingOrderScore:
    """Compare the order of predicted blocks with that of true elements by their text.

    Blocks are joined, so that one block may hold several elements or an element be spread over neighbouring blocks
    without harm. First the elements that stand there letter by letter are placed, then the others at the most similar
    stretch, from the longest to the shortest: what is taken is not found again inside of something else. White space
    is left out: spacing errors are not errors of order.

    Args:
        predicted: Text of each predicted block, in predicted order; blocks without text are ignored.
        truth: Text of each true element, in reading order. None may be blank.

    Raises:
        ValueError: A true element is blank: it cannot be found by its text.
    """
    elements = [_compact(text) for text in truth]
    if not all(elements):
        raise ValueError("a true element is blank")
    text = _compact(" ".join(predicted))
    positions: list[int | None] = [None] * len(elements)
    by_length = sorted(range(len(elements)), key=lambda i: (-len(elements[i]), i))
    for locate in (_locate_exactly, _locate_roughly):
        for index in by_length:
            if positions[index] is None and (place := locate(elements[index], text)) is not None:
                start, end = place
                positions[index] = start
                text = text[:start] + _TAKEN * (end - start) + text[end:]

    found = np.array([position for position in positions if position is not None], dtype=np.int64)
    missing = tuple(index for index, position in enumerate(positions) if position is None)
    ordered = bool(np.all(np.diff(found) > 0))
    return ReadingOrderScore(ordered and not missing, _kendall_tau(found), missing, tuple(positions))


def _compact(text: str) -> str:
    return normalise(text).replace(" ", "")


def _locate_exactly(element: str, text: str) -> tuple[int, int] | None:
    start = text.find(element)
    return (start, start + len(element)) if start >= 0 else None


def _locate_roughly(element: str, text: str) -> tuple[int, int] | None:
    """The most similar stretch of the text, from its first to its last character that matches."""
    if len(text) < len(element):  # partial_ratio would look for the text in the element
        start, end = (0, len(text)) if fuzz.ratio(element, text) >= FOUND else (0, 0)
    elif alignment := fuzz.partial_ratio_alignment(element, text, score_cutoff=FOUND):
        start, end = alignment.dest_start, alignment.dest_end
    else:
        return None
    # The stretch is as long as the element; where characters were not read it holds some of its neighbours.
    same = [step for step in Levenshtein.opcodes(element, text[start:end]) if step.tag == "equal"]
    return (start + same[0].dest_start, start + same[-1].dest_end) if same else None


def _kendall_tau(positions: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    count = len(positions)
    if count < 2:
        return 1.0
    signs = np.sign(positions[None, :] - positions[:, None])
    return float(np.triu(signs, 1).sum() / (count * (count - 1) / 2))


def order_edit_distance(predicted: Sequence[float], truth: Sequence[float]) -> float:
    """Levenshtein distance of two orders over the length of the longer one, 0 to 1; two empty ones are equal."""
    return float(Levenshtein.normalized_distance(predicted, truth))
