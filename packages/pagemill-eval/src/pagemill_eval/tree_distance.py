"""Edit distance of ordered labelled trees, computed with whole rows of the dynamic programme at a time.

The recurrence is that of Zhang and Shasha, "Simple fast algorithms for the editing distance between trees and related
problems" (SIAM J. Comput. 18(6), 1989), insertion and deletion at cost 1. Three things make it fast in numpy:

- A cell of a row depends on its left neighbour only by "+ 1" (an insertion), so that a row is a running minimum.
- The forests of one tree against *all* key subtrees of the other are rows of one array, and key subtrees of the same
  height are computed together: the rows of a table, for instance.
- A leaf against a subtree has a closed form: the subtree is inserted but for the node that the leaf is renamed to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_MAX_CELLS = 2**22
"""Cells of the array of one batch of key subtrees (32 MB); more of them make more batches. Not measured."""


Tree = tuple[int, ...]
"""Shape of an ordered tree: the parent of each node, which is before it in document order; -1 for the root."""


@dataclass(frozen=True, slots=True, eq=False)
class _Decomposition:
    """Nodes in the order in which they are computed: children before parents."""

    nodes: NDArray[np.int64]
    """Node of the tree by place in this order."""
    left: NDArray[np.int64]
    """Place of the first leaf of each node's subtree."""
    keys: NDArray[np.int64]
    """The highest node of each path of first children, if it has a child, ascending."""
    levels: NDArray[np.int64]
    """Levels of the keys: one over the highest that is nested in it."""

    @property
    def cells(self) -> int:
        """Cost: nodes of all key subtrees."""
        return int((self.keys - self.left[self.keys] + 2).sum())


def tree_distance(first: Tree, second: Tree, rename: NDArray[np.float64]) -> float:
    """Minimum cost of turning one tree into the other.

    Args:
        first: A tree of at least one node.
        second: Another one.
        rename: Cost of renaming node i of the first to node j of the second, 0 to 1: shape (nodes, nodes). Insertion
            and deletion cost 1.
    """
    # Mirroring both trees changes nothing but the work: a table whose body follows its head is cheaper from the right.
    choices = [(_decomposed(first, mirrored), _decomposed(second, mirrored)) for mirrored in (False, True)]
    one, two = min(choices, key=lambda pair: pair[0].cells * pair[1].cells)
    return float(_distances(one, two, rename.take(one.nodes, axis=0).take(two.nodes, axis=1))[-1, -2])


@lru_cache(maxsize=16)  # a table is scored twice, with its content and without
def _decomposed(parents: tuple[int, ...], mirrored: bool) -> _Decomposition:
    size = len(parents)
    # The reverse of the document order is the postorder of the mirrored tree.
    order = list(range(size - 1, -1, -1)) if mirrored else _postorder(parents)
    place = [0] * size
    for index, node in enumerate(order):
        place[node] = index
    first = list(range(size))
    for index, node in enumerate(order):
        if (parent := parents[node]) >= 0 and first[index] < first[place[parent]]:
            first[place[parent]] = first[index]
    nodes, left = np.array(order, dtype=np.int64), np.array(first, dtype=np.int64)
    _, last = np.unique(left[::-1], return_index=True)
    keys = np.sort(size - 1 - last)
    keys = keys[left[keys] < keys]
    levels = np.zeros(len(keys), dtype=np.int64)
    for index, key in enumerate(keys.tolist()):
        nested = (keys < key) & (keys >= left[key])
        if nested.any():
            levels[index] = levels[nested].max() + 1
    return _Decomposition(nodes, left, keys, levels)


def _postorder(parents: Sequence[int]) -> list[int]:
    order: list[int] = []
    path: list[int] = []
    for node, parent in enumerate(parents):
        while path and path[-1] != parent:
            order.append(path.pop())
        path.append(node)
    return order + path[::-1]


def _distances(one: _Decomposition, two: _Decomposition, rename: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of each subtree of one to each of two, and a last column of infinity."""
    size_one, size_two = rename.shape
    distances = np.full((size_one, size_two + 1), np.inf)
    below_one, below_two = np.arange(size_one) - one.left, np.arange(size_two) - two.left
    leaves_one, leaves_two = np.flatnonzero(below_one == 0), np.flatnonzero(below_two == 0)
    distances[leaves_one[:, None], leaves_two] = rename[leaves_one[:, None], leaves_two]
    for costs, leaves, other, below, cells in (
        (rename, leaves_one, two, below_two, distances),
        (rename.T, leaves_two, one, below_one, distances.T),
    ):
        # All nodes of the subtree are inserted but one, which the leaf becomes.
        trees = np.flatnonzero(below)
        if len(trees):
            cells[leaves[:, None], trees] = below[trees] + _least(costs[leaves], other.left[trees], trees)
    if not len(one.keys) or not len(two.keys):
        return distances

    forests = _Forests(two, distances, rename)
    for level in range(int(one.levels.max()) + 1):
        keys = one.keys[one.levels == level]
        sizes = keys - one.left[keys] + 1
        order = np.argsort(-sizes, kind="stable")  # those that take part in a step are the first of their batch
        keys, sizes = keys[order], sizes[order]
        start = 0
        while start < len(keys):
            count = max(1, _MAX_CELLS // ((int(sizes[start]) + 1) * forests.cells))
            forests.compute(one.left, keys[start : start + count], sizes[start : start + count])
            start += count
    return distances


def _least(costs: NDArray[np.float64], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Minimum cost of each row in some ranges of columns, whose last one counts."""
    padded = np.concatenate([costs, np.full((len(costs), 1), np.inf)], axis=1)
    bounds = np.stack([starts, ends + 1], axis=1).ravel()
    return np.asarray(np.minimum.reduceat(padded, bounds, axis=1)[:, ::2])


class _Forests:
    """Rows of the dynamic programme: a forest of the first tree against the forests of all key subtrees of the second.

    A key subtree of n nodes takes n + 1 cells: its forests are the first 0, 1, ... n of its nodes.
    """

    def __init__(self, two: _Decomposition, distances: NDArray[np.float64], rename: NDArray[np.float64]) -> None:
        self._distances = distances
        self._rename = rename
        keys = two.keys[np.argsort(two.levels, kind="stable")]
        levels = np.sort(two.levels)
        starts = two.left[keys]
        lengths = keys - starts + 2
        ends = np.cumsum(lengths)
        self.cells = int(ends[-1])
        origin = np.repeat(ends - lengths, lengths)
        self._count = np.arange(self.cells) - origin
        """Nodes of the forest."""
        nowhere = distances.shape[1] - 1
        self._node = np.where(self._count > 0, np.repeat(starts, lengths) + self._count - 1, nowhere)
        """Its last node."""
        left = np.append(two.left, 0)[self._node]
        self._rest = np.where(self._count > 0, origin + left - np.repeat(starts, lengths), np.arange(self.cells))
        """Cell of the forest without the last node's subtree."""
        whole = (self._rest == origin) & (self._count > 0)
        # Less the number of its nodes, a forest's value is a running minimum; and each key subtree's values are far
        # below those of the one before, so that one running minimum serves all. Values are kept like that.
        far = float(distances.shape[0] + 2 * distances.shape[1] + 1)
        self._offset = self._count + far * np.repeat(np.arange(len(keys)), lengths)
        self._shift = self._offset[self._rest] - self._offset
        self._levels: list[tuple[slice, NDArray[np.int64], NDArray[np.int64]]] = []
        for level in range(int(levels.max()) + 1):
            cells = slice(int(ends[levels < level][-1]) if level else 0, int(ends[levels == level][-1]))
            trees = np.flatnonzero(whole[cells]) + cells.start
            self._levels.append((cells, trees, self._node[trees]))

    def compute(self, left: NDArray[np.int64], keys: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Fill in the distances of the subtrees on the paths of first children below some keys.

        Args:
            left: Leftmost leaves of all nodes of the first tree.
            keys: None nested in another; those nested in them have been computed.
            sizes: Sizes of the keys' subtrees, falling.
        """
        table = np.empty((len(keys), int(sizes[0]) + 1, self.cells))
        table[:, 0] = self._count - self._offset
        starts = left[keys]
        if len(keys) == 1:
            self._compute_one(table, left, int(starts[0]))
            return
        for step in range(1, int(sizes[0]) + 1):
            active = int((sizes >= step).sum())
            nodes = starts[:active] + step - 1
            rests = left[nodes] - starts[:active]
            on_path = rests == 0
            if (~on_path).any():
                members = np.flatnonzero(~on_path)
                values = table[members, rests[members]].take(self._rest, axis=1)
                values += self._distances[nodes[members]].take(self._node, axis=1) + self._shift
                np.minimum(values, table[members, step - 1] + 1.0, out=values)
                table[members, step] = np.minimum.accumulate(values, axis=1)
            if on_path.any():
                self._row_on_path(table, step, np.flatnonzero(on_path), nodes[on_path])

    def _compute_one(self, table: NDArray[np.float64], left: NDArray[np.int64], start: int) -> None:
        """Like :meth:`compute`, with as few calls a row as can be: most rows are those of the whole table."""
        values_of = table[0]
        rows = len(values_of)
        known = self._distances[start : start + rows - 1].take(self._node, axis=1) + self._shift
        rests = (left[start : start + rows - 1] - start).tolist()
        buffer = np.empty(self.cells)
        for step in range(1, rows):
            rest = rests[step - 1]
            if not rest:
                self._row_on_path(table, step, np.zeros(1, dtype=np.int64), np.array([start + step - 1]))
                continue
            values = values_of[rest].take(self._rest)
            values += known[step - 1]
            np.add(values_of[step - 1], 1.0, out=buffer)
            np.minimum(values, buffer, out=values)
            np.minimum.accumulate(values, out=values_of[step])

    def _row_on_path(
        self, table: NDArray[np.float64], step: int, members: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> None:
        """A forest that is a tree: where the other is one as well, their roots are matched."""
        before = table[members, step - 1]
        for cells, trees, tree_nodes in self._levels:
            # The other tree's nested keys belong to earlier levels: their distances to these nodes are there already.
            values = self._distances[nodes].take(self._node[cells], axis=1)
            values += self._count[self._rest[cells]] - self._offset[cells]
            values[:, trees - cells.start] = before[:, trees - 1] - 1.0 + self._rename[nodes[:, None], tree_nodes]
            np.minimum(values, before[:, cells] + 1.0, out=values)
            np.minimum.accumulate(values, axis=1, out=values)
            table[members, step, cells] = values
            self._distances[nodes[:, None], tree_nodes] = values[:, trees - cells.start] + self._offset[trees]
