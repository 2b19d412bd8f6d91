import pytest

from pagemill.retrieval.fusion import reciprocal_rank_fusion


def test_scores_are_sums_of_reciprocal_ranks():
    fused = dict(reciprocal_rank_fusion([[1, 2, 3], [3, 1]]))
    assert fused == pytest.approx({1: 1 / 61 + 1 / 62, 2: 1 / 62, 3: 1 / 63 + 1 / 61})


def test_best_first_and_equal_ones_by_number():
    assert [thing for thing, _ in reciprocal_rank_fusion([[9, 4], [4, 9], [7], [5]])] == [4, 9, 5, 7]


def test_nothing_is_fused_to_nothing():
    assert reciprocal_rank_fusion([]) == []
