"""Reading order of PP-DocLayoutV4 from its two order heads: who follows whom directly, and who comes before whom."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import components
from pagemill.imaging.types import Flags, Indices


def decode_order(before: NDArray[np.floating[Any]], successor: NDArray[np.floating[Any]]) -> Indices:
    """Rank of every region, shape (n,).

    The regions form a graph with an arrow where one is predicted to follow another directly. Of every cycle the
    weakest arrow goes; the connected parts that remain are sorted topologically, ties by how many of the other
    candidates a region is predicted to precede. The parts follow each other by how much is predicted to come before
    them on average.

    Args:
        before: Shape (n, n), logits of "i is read before j".
        successor: Shape (n, n), logits of "j directly follows i"; an arrow where positive.
    """
    count = len(successor)
    with np.errstate(over="ignore"):
        precedes = 1.0 / (1.0 + np.exp(-before))
    np.fill_diagonal(precedes, 0.0)
    arrows = _acyclic(successor)
    parts = [_topological(part, arrows, precedes) for part in components(count, np.argwhere(arrows).tolist())]
    votes = precedes.sum(axis=0)
    parts.sort(key=lambda part: float(np.mean(votes[part])))
    return np.argsort([node for part in parts for node in part])


def _acyclic(successor: NDArray[np.floating[Any]]) -> Flags:
    """The arrows, shape (n, n), without the weakest one of every cycle.

    An arrow is the weakest of a cycle if and only if stronger ones lead back from its head to its tail. Going through
    the arrows from the strongest on, with what reaches what over all of them so far, finds these in one pass. Of equal
    arrows the first in row order is the weaker one.
    """
    count = len(successor)
    candidates = successor > 0
    np.fill_diagonal(candidates, False)
    tails, heads = np.nonzero(candidates)
    arrows = np.zeros((count, count), dtype=np.bool_)
    reaches = np.eye(count, dtype=np.bool_)
    for index in np.argsort(successor[tails, heads], kind="stable")[::-1]:
        tail, head = tails[index], heads[index]
        arrows[tail, head] = not reaches[head, tail]
        if not reaches[tail, head]:
            reaches[reaches[:, tail]] |= reaches[head]
    return arrows


def _topological(part: Indices, arrows: Flags, precedes: NDArray[np.floating[Any]]) -> list[int]:
    """The nodes of a connected part in topological order."""
    arrows, precedes = arrows[np.ix_(part, part)], precedes[np.ix_(part, part)]
    waiting_for = arrows.sum(axis=0)
    ready = waiting_for == 0
    order = []
    while ready.any():
        candidates = np.nonzero(ready)[0]
        scores = precedes[np.ix_(candidates, candidates)].sum(axis=1)
        best = candidates[scores.argmax()]
        order.append(int(part[best]))
        ready[best] = False
        waiting_for = waiting_for - arrows[best]
        ready |= arrows[best] & (waiting_for == 0)
    return order
