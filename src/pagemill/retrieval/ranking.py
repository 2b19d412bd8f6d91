"""Rankings: exact similarities of one vector to all vectors of a file, and the fusion of several rankings into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

K = 60
"""Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods"
(SIGIR 2009), who fixed it in a pilot and found that it hardly matters.
"""
DEPTH = 1000
"""Pages of each part that enter the fusion."""
_ROWS = 4096
"""Rows converted to float32 at a time."""


def similarities(vectors: NDArray[Any], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Inner products of a vector with every row: the cosines, as all have length 1.

    Half-precision rows are read directly by numkong if it is installed; numpy has to widen them block by block, which
    takes about fifteen times as long.

    Args:
        vectors: Shape (rows, dimension), float32 or float16, C-contiguous, perhaps memory-mapped.
        query: Shape (dimension,).

    Returns:
        Shape (rows,).
    """
    if vectors.dtype == np.float32:
        return np.asarray(vectors @ query, dtype=np.float32)
    # It computes in half precision, without the copy in float32 that NumPy needs.
    if len(vectors) and (exact := _by_numkong(vectors, query)) is not None:
        return exact
    found = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        block = vectors[start : start + _ROWS].astype(np.float32)
        found[start : start + len(block)] = block @ query
    return found


def _by_numkong(vectors: NDArray[Any], query: NDArray[np.float32]) -> NDArray[np.float32] | None:
    try:
        import numkong
    except ImportError:
        return None
    found = numkong.cdist(query.astype(np.float16)[np.newaxis], vectors, "dot")
    return np.asarray(found, dtype=np.float32).reshape(-1)


def best_first(scores: NDArray[np.float32], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows with scores above zero, best first; equal ones by position.

    Scores of zero and below mean no similarity: their order would be meaningless.

    Args:
        scores: Shape (rows,).
        wanted: Shape (rows,): rows that may be taken.
    """
    rows = np.flatnonzero((scores > 0) & wanted)
    return rows[np.argsort(-scores[rows], kind="stable")]


def reciprocal_rank_fusion(rankings: Iterable[Sequence[int]]) -> list[tuple[int, float]]:
    """Reciprocal rank fusion: rank by the sum of ``1 / (K + rank)`` over the rankings, ranks from 1.

    Only ranks count, so scores need not be comparable.

    Args:
        rankings: Best first, each item at most once.

    Returns:
        Items with their scores, best first; of equal scores the smaller item first.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, thing in enumerate(ranking, start=1):
            scores[thing] += 1 / (K + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
