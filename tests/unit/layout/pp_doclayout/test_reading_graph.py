"""The reading order of V4 against its definition, step by step."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pagemill.layout.pp_doclayout.reading_graph import _acyclic, decode_order


def without_cycles_step_by_step(successor: np.ndarray) -> set[tuple[int, int]]:
    """Delete the weakest arrow that lies on a cycle until there is none."""
    count = len(successor)
    arrows = {(i, j): successor[i, j] for i in range(count) for j in range(count) if i != j and successor[i, j] > 0}

    def leads_to(start: int, end: int) -> bool:
        seen, waiting = set(), [start]
        while waiting:
            node = waiting.pop()
            if node == end:
                return True
            if node not in seen:
                seen.add(node)
                waiting += [j for i, j in arrows if i == node]
        return False

    while on_cycles := [arrow for arrow in arrows if leads_to(arrow[1], arrow[0])]:
        del arrows[min(on_cycles, key=lambda arrow: arrows[arrow])]
    return set(arrows)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.floats(-2, 1), st.booleans())
def test_the_weakest_arrow_of_every_cycle_goes(seed, count, shift, with_ties):
    successor = np.random.default_rng(seed).normal(shift, 1, size=(count, count))
    if with_ties:
        successor = np.round(successor)
    assert {(int(i), int(j)) for i, j in np.argwhere(_acyclic(successor))} == without_cycles_step_by_step(successor)


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_ranks_are_a_permutation_that_follows_the_arrows(seed, count):
    random = np.random.default_rng(seed)
    successor = random.normal(-1, 1, size=(count, count))
    ranks = decode_order(random.normal(size=(count, count)), successor)
    assert sorted(ranks) == list(range(count))
    assert all(ranks[i] < ranks[j] for i, j in np.argwhere(_acyclic(successor)))


def test_a_chain_is_read_along_and_columns_one_after_the_other():
    successor = np.full((4, 4), -5.0)
    successor[2, 0] = successor[1, 3] = 4.0  # 2 then 0; 1 then 3
    before = np.full((4, 4), -5.0)
    for i, j in ((2, 0), (2, 1), (2, 3), (0, 1), (0, 3), (1, 3)):
        before[i, j] = 5.0
    assert decode_order(before, successor).tolist() == [1, 2, 0, 3]


def test_arrows_between_all_boxes_take_no_time():
    random = np.random.default_rng(0)
    ranks = decode_order(random.normal(size=(300, 300)), random.normal(size=(300, 300)))
    assert sorted(ranks) == list(range(300))
