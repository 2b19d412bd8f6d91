"""Several rankings of the same things made into one."""

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
    """Rank by the sum of ``1 / (k + rank)`` over the rankings in which something stands, ranks from 1.

    Scores of the rankings play no part, so that they need not be comparable.

    Args:
        rankings: The best first, each thing at most once.
        k: How much the first ranks stand out: the less, the more.

    Returns:
        Things with their scores, the best first; at equal scores the smaller one.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, thing in enumerate(ranking, start=1):
            scores[thing] += 1 / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
