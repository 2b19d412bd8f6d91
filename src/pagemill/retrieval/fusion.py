"""Fusion of several rankings into one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

K = 60
"""Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods"
(SIGIR 2009), who fixed it in a pilot and found that it hardly matters.
"""


def reciprocal_rank_fusion(rankings: Iterable[Sequence[int]], *, k: int = K) -> list[tuple[int, float]]:
    """Reciprocal rank fusion: rank by the sum of ``1 / (k + rank)`` over the rankings, ranks from 1.

    Only ranks count, so scores need not be comparable.

    Args:
        rankings: Best first, each item at most once.
        k: Dampens the weight of the first ranks.

    Returns:
        Items with their scores, best first; of equal scores the smaller item first.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, thing in enumerate(ranking, start=1):
            scores[thing] += 1 / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
