import sys

import numpy as np
import pytest

from pagemill.retrieval.ranking import best_first, reciprocal_rank_fusion, similarities


def unit_rows(rows, dimension, dtype):
    random = np.random.default_rng(0)
    vectors = random.standard_normal((rows, dimension)).astype(np.float32)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(dtype)


@pytest.mark.parametrize("library", ["numkong", "numpy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("rows", [1, 5000])
def test_similarities_are_inner_products(monkeypatch, tmp_path, library, dtype, rows):
    if library == "numpy":
        monkeypatch.setitem(sys.modules, "numkong", None)
    else:
        pytest.importorskip("numkong")
    np.save(tmp_path / "vectors.npy", unit_rows(rows, 65, dtype))
    vectors = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    query = unit_rows(1, 65, np.float32)[0]
    found = similarities(np.asarray(vectors), query)
    assert found.dtype == np.float32
    assert found.shape == (rows,)
    np.testing.assert_allclose(found, vectors.astype(np.float64) @ query, atol=1e-3 if dtype == np.float16 else 1e-6)


def test_no_rows_give_no_similarities():
    assert similarities(np.empty((0, 4), np.float16), np.ones(4, np.float32)).shape == (0,)


def test_best_first_orders_by_score_then_place():
    scores = np.array([0.5, 0.9, 0.5, -0.1, 0.0, 0.7], np.float32)
    assert best_first(scores, np.ones(6, dtype=bool)).tolist() == [1, 5, 0, 2]


def test_best_first_takes_what_is_wanted_alone():
    scores = np.array([0.5, 0.9, 0.5], np.float32)
    assert best_first(scores, np.array([True, False, True])).tolist() == [0, 2]
    assert best_first(scores, np.zeros(3, dtype=bool)).tolist() == []


def test_scores_are_sums_of_reciprocal_ranks():
    fused = dict(reciprocal_rank_fusion([[1, 2, 3], [3, 1]]))
    assert fused == pytest.approx({1: 1 / 61 + 1 / 62, 2: 1 / 62, 3: 1 / 63 + 1 / 61})


def test_best_first_and_equal_ones_by_number():
    assert [thing for thing, _ in reciprocal_rank_fusion([[9, 4], [4, 9], [7], [5]])] == [4, 9, 5, 7]


def test_nothing_is_fused_to_nothing():
    assert reciprocal_rank_fusion([]) == []
