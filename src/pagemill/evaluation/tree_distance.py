"""Edit distance of ordered labelled trees, computed with whole rows of the dynamic programme at a time.

The recurrence is that of Zhang and Shasha, "Simple fast algorithms for the editing distance between trees and related
problems" (SIAM J. Comput. 18(6), 1989), insertion and deletion at cost 1. Three things make it fast in numpy:

- A cell of a row depends on its left neighbour only by "+ 1" (an insertion), so that a row is a running minimum.
- The forests of one tree against *all* key subtrees of the other are rows of one array, and key subtrees of the same
  height are computed together: the rows of a table, for instance.
- A leaf against a subtree has a closed form: the subtree is inserted but for the node that the leaf is renamed to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MAX_CELLS = 2**22
"""Cells of the array of one batch of key subtrees (32 MB); more of them make more batches. Not measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Shape of an ordered tree; nodes are called by their place in document order, the root 0."""

    parents: tuple[int, ...]
    """Of each node, before it in document order; -1 for the root."""

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.parents)


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
    """Of the keys: one over the highest that is nested in it."""

    @property
    def cells(self) -> int:
        """Cost: nodes of all key subtrees."""
        return int((self.keys - self.left[self.keys] + 2).sum())


def tree_distance(first: Tree, second: Tree, rename: NDArray[np.float64]) -> float:
    """Least cost of turning one tree into the other.

    Args:
        first: A tree of at least one node.
        second: Another one.
        rename: Cost of renaming node i of the first to node j of the second, 0 to 1: shape (nodes, nodes). Insertion
            and deletion cost 1.
    """
    # Mirroring both trees changes nothing but the work: a table whose body follows its head is cheaper from the right.
    choices = [(_decomposed(first, mirrored), _decomposed(second, mirrored)) for mirrored in (False, True)]
    one, two = min(choices, key=lambda pair: pair[0].cells * pair[1].cells)
    return float(_distances(one, two, np.asarray(rename, dtype=np.float64)[np.ix_(one.nodes, two.nodes)])[-1, -2])


def _decomposed(tree: Tree, mirrored: bool) -> _Decomposition:
    size = tree.size
    if mirrored:  # the reverse of the document order is the postorder of the mirrored tree
        nodes = np.arange(size - 1, -1, -1)
        place = nodes
    else:
        nodes = np.array(_postorder(tree.parents), dtype=np.int64)
        place = np.empty(size, dtype=np.int64)
        place[nodes] = np.arange(size)
    left = np.arange(size)
    for index, node in enumerate(nodes.tolist()):
        parent = tree.parents[node]
        if parent >= 0:
            above = place[parent]
            left[above] = min(left[above], left[index])
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
    distances[leaves_one, :size_two] = below_two + _least_in_subtrees(rename[leaves_one], two.left)
    distances[:, leaves_two] = below_one[:, None] + _least_in_subtrees(rename[:, leaves_two].T, one.left).T
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


def _least_in_subtrees(costs: NDArray[np.float64], left: NDArray[np.int64]) -> NDArray[np.float64]:
    """Least cost of each row in the columns of each subtree."""
    padded = np.concatenate([costs, np.full((len(costs), 1), np.inf)], axis=1)
    bounds = np.stack([left, np.arange(len(left)) + 1], axis=1).ravel()
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
        # Each key subtree's values are far below those of the one before, so that one running minimum serves all.
        far = float(distances.shape[0] + 2 * distances.shape[1] + 1)
        self._offset = self._count + far * np.repeat(np.arange(len(keys)), lengths)
        self._levels: list[tuple[slice, NDArray[np.int64], NDArray[np.int64]]] = []
        for level in range(int(levels.max()) + 1):
            cells = slice(int(ends[levels < level][-1]) if level else 0, int(ends[levels == level][-1]))
            trees = np.flatnonzero(whole[cells]) + cells.start
            self._levels.append((cells, trees, self._node[trees]))

    def compute(self, left: NDArray[np.int64], keys: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Fill in the distances of the subtrees on the paths of first children below some keys.

        Args:
            left: Of all nodes of the first tree.
            keys: None nested in another; those nested in them have been computed.
            sizes: Of the keys' subtrees, falling.
        """
        table = np.empty((len(keys), int(sizes[0]) + 1, self.cells))
        table[:, 0] = self._count
        starts = left[keys]
        for step in range(1, int(sizes[0]) + 1):
            active = int((sizes >= step).sum())
            nodes = starts[:active] + step - 1
            rests = left[nodes] - starts[:active]
            on_path = rests == 0
            if not on_path.any():
                self._row(table, step, np.arange(active), nodes, rests)
            elif on_path.all():
                self._row_on_path(table, step, np.arange(active), nodes)
            else:
                off = np.flatnonzero(~on_path)
                self._row(table, step, off, nodes[off], rests[off])
                self._row_on_path(table, step, np.flatnonzero(on_path), nodes[on_path])

    def _row(
        self, table: NDArray[np.float64], step: int, members: NDArray[np.int64], nodes: NDArray[np.int64], rests: Any
    ) -> None:
        if len(members) == 1:  # the usual case of long trees: views in place of copies
            member, node, rest = int(members[0]), int(nodes[0]), int(rests[0])
            values = table[member, rest].take(self._rest)
            values += self._distances[node].take(self._node)
            np.minimum(values, table[member, step - 1] + 1.0, out=values)
            values -= self._offset
            np.minimum.accumulate(values, out=values)
            np.add(values, self._offset, out=table[member, step])
            return
        values = table[members, rests].take(self._rest, axis=1)
        values += self._distances[nodes].take(self._node, axis=1)
        np.minimum(values, table[members, step - 1] + 1.0, out=values)
        values -= self._offset
        np.minimum.accumulate(values, axis=1, out=values)
        table[members, step] = values + self._offset

    def _row_on_path(
        self, table: NDArray[np.float64], step: int, members: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> None:
        """A forest that is a tree: where the other is one as well, their roots are matched."""
        before = table[members, step - 1]
        for cells, trees, tree_nodes in self._levels:
            # The other tree's nested keys are of earlier levels: their distances to these nodes are there by now.
            values = self._count[self._rest[cells]] + self._distances[nodes].take(self._node[cells], axis=1)
            values[:, trees - cells.start] = before[:, trees - 1] + self._rename[nodes[:, None], tree_nodes]
            np.minimum(values, before[:, cells] + 1.0, out=values)
            values -= self._offset[cells]
            np.minimum.accumulate(values, axis=1, out=values)
            values += self._offset[cells]
            table[members, step, cells] = values
            self._distances[nodes[:, None], tree_nodes] = values[:, trees - cells.start]
