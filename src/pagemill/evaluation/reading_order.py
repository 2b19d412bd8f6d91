"""Reading order: where each true element stands in the text that was read, whatever the regions' boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz import fuzz

from pagemill.evaluation.character_error_rate import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

FOUND = 80.0
"""Least similarity, 0-100, of an element to its place in the predicted text (`rapidfuzz.fuzz.partial_ratio`)."""


@dataclass(frozen=True, slots=True)
class ReadingOrderScore:
    """How well the order of the elements was kept."""

    exact: bool
    """Every element was found, each one after the one before it."""
    kendall_tau: float
    """Kendall's tau over the elements found: 1 same order, -1 reversed; 1 for fewer than two."""
    missing: tuple[int, ...]
    """Indices of true elements that stand nowhere in the prediction, or stand there cut in two."""
    positions: tuple[int | None, ...]
    """Start of each true element in the prediction without its white space, in characters; None where missing."""


def reading_order(predicted: Sequence[str], truth: Sequence[str]) -> ReadingOrderScore:
    """Compare the order of predicted blocks with that of true elements by their text.

    Blocks are joined, so that one block may hold several elements or an element be spread over neighbouring blocks
    without harm. Elements are placed from the longest to the shortest, each at the most similar stretch that no
    longer one has taken, so that a short text is not found inside of a long one. White space is left out: spacing
    errors are no errors of order.

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
    for index in sorted(range(len(elements)), key=lambda i: (-len(elements[i]), i)):
        place = _locate(elements[index], text)
        if place is not None:
            start, end = place
            positions[index] = start
            text = text[:start] + "\0" * (end - start) + text[end:]

    found = np.array([position for position in positions if position is not None], dtype=np.int64)
    missing = tuple(index for index, position in enumerate(positions) if position is None)
    ordered = bool(np.all(np.diff(found) > 0))
    return ReadingOrderScore(ordered and not missing, _kendall_tau(found), missing, tuple(positions))


def _compact(text: str) -> str:
    return normalise(text).replace(" ", "")


def _locate(element: str, text: str) -> tuple[int, int] | None:
    """The most similar stretch of the text; None when nothing is similar enough."""
    exact = text.find(element)
    if exact >= 0:
        return exact, exact + len(element)
    if len(text) < len(element):  # partial_ratio would look for the text in the element
        return (0, len(text)) if fuzz.ratio(element, text) >= FOUND else None
    alignment = fuzz.partial_ratio_alignment(element, text, score_cutoff=FOUND)
    if alignment is None:
        return None
    return alignment.dest_start, alignment.dest_end


def _kendall_tau(positions: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    count = len(positions)
    if count < 2:
        return 1.0
    signs = np.sign(positions[None, :] - positions[:, None])
    return float(np.triu(signs, 1).sum() / (count * (count - 1) / 2))
