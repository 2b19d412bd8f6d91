from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill_eval import tree_distance as module
from pagemill_eval.tree_distance import Tree, tree_distance


@st.composite
def trees(draw: st.DrawFn, most: int = 12) -> Tree:
    parents = [-1]
    path = [0]
    for node in range(1, draw(st.integers(1, most))):
        path = path[: draw(st.integers(1, len(path)))]
        parents.append(path[-1])
        path.append(node)
    return tuple(parents)


def costs(draw: st.DrawFn, one: Tree, two: Tree) -> np.ndarray:
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).choice([0.0, 0.25, 0.3, 1.0], size=(len(one), len(two)))


def plain_distance(one: Tree, two: Tree, rename: np.ndarray) -> float:
    """The definition: the last roots of two forests are deleted, inserted or matched."""
    children = [
        {node: tuple(other for other in range(len(tree)) if tree[other] == node) for node in range(len(tree))}
        for tree in (one, two)
    ]

    def size(side: int, forest: tuple[int, ...]) -> int:
        return sum(1 + size(side, children[side][node]) for node in forest)

    @cache
    def distance(first: tuple[int, ...], second: tuple[int, ...]) -> float:
        if not first or not second:
            return size(0, first) + size(1, second)
        i, j = first[-1], second[-1]
        return min(
            distance(first[:-1] + children[0][i], second) + 1,
            distance(first, second[:-1] + children[1][j]) + 1,
            distance(children[0][i], children[1][j]) + distance(first[:-1], second[:-1]) + rename[i, j],
        )

    return distance((0,), (0,))


@given(st.data())
def test_it_is_the_least_cost(data: st.DataObject) -> None:
    one, two = data.draw(trees()), data.draw(trees())
    rename = costs(data.draw, one, two)
    assert tree_distance(one, two, rename) == pytest.approx(plain_distance(one, two, rename), abs=1e-9)


@given(st.data())
@settings(deadline=None)
def test_it_is_symmetric(data: st.DataObject) -> None:
    one, two = data.draw(trees(40)), data.draw(trees(40))
    rename = costs(data.draw, one, two)
    assert tree_distance(one, two, rename) == pytest.approx(tree_distance(two, one, rename.T), abs=1e-9)


@given(trees(40), trees(40))
@settings(deadline=None)
def test_bounds(one: Tree, two: Tree) -> None:
    free, dear = np.zeros((len(one), len(two))), np.ones((len(one), len(two)))
    assert tree_distance(one, two, free) >= abs(len(one) - len(two))
    assert tree_distance(one, two, dear) <= max(len(one), len(two)) + min(len(one), len(two))
    assert tree_distance(one, one, 1.0 - np.eye(len(one))) == 0.0


def test_small_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (-1, 0, 1, 1, 1, 0, 5, 5, 0, 8, 8, 8)
    other = (-1, 0, 1, 1, 0, 4, 4, 4, 4)
    rename = np.random.default_rng(0).random((len(rows), len(other)))
    whole = tree_distance(rows, other, rename)
    monkeypatch.setattr(module, "_MAX_CELLS", 1)
    assert tree_distance(rows, other, rename) == whole
