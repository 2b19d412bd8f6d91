import math

import ir_measures
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.errors import InputError
from pagemill_eval.retrieval import (
    MEASURES,
    Query,
    RetrievalResult,
    collapsed,
    compare,
    evaluate,
    randomisation_test,
    scores_by_query,
)

PAGES = [f"p{n}" for n in range(30)]


def query(name, *relevant, **fields):
    return Query(id=name, query=f"what is {name}?", relevant=dict.fromkeys(relevant, 1), **fields)


def evaluated(queries, rankings, *, duplicates=None, known=PAGES):
    return evaluate(
        queries,
        lambda each: {"fused": rankings.get(each.id, []), "full-text": []},
        index={"pages": len(known)},
        known_pages=known,
        duplicates_of=lambda page: (duplicates or {}).get(page, []),
    )


def test_measures_are_those_computed_by_hand():
    # The first query finds its two pages at ranks 1 and 4; the second its one at rank 7; the third finds nothing.
    queries = [query("a", "p0", "p3"), query("b", "p6"), query("c", "p9")]
    found = scores_by_query(queries, {"a": ["p0", "p1", "p2", "p3"], "b": PAGES[:7], "c": []})
    dcg, ideal = 1 + 1 / math.log2(5), 1 + 1 / math.log2(3)
    assert found["a"] == pytest.approx(
        {"Success@1": 1, "R@1": 0.5, "R@3": 0.5, "R@5": 1, "R@10": 1, "R@20": 1, "nDCG@10": dcg / ideal, "RR": 1}
    )
    assert found["b"] == pytest.approx(
        {"Success@1": 0, "R@1": 0, "R@3": 0, "R@5": 0, "R@10": 1, "R@20": 1, "nDCG@10": 1 / math.log2(8), "RR": 1 / 7}
    )
    assert found["c"] == dict.fromkeys(MEASURES, 0.0)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.permutations(PAGES), max_size=4),
    st.lists(st.sets(st.sampled_from(PAGES), min_size=1, max_size=4), min_size=4, max_size=4),
)
def test_means_are_those_of_ir_measures(rankings, relevant):
    queries = [query(name, *pages) for name, pages in zip("abcd", relevant, strict=True)]
    result = evaluated(queries, rankings)
    judged = {each.id: each.relevant for each in queries}
    run = {name: {page: 1 / (rank + 1) for rank, page in enumerate(pages)} for name, pages in rankings.items()}
    run["a"] = run.get("a", {})  # ir-measures wants one query at least
    wanted = [ir_measures.parse_measure(name) for name in MEASURES]
    expected = {str(name): value for name, value in ir_measures.calc_aggregate(wanted, judged, run).items()}
    if rankings:
        assert result.parts["fused"].overall.means == pytest.approx(expected)
    else:
        assert result.parts["fused"].overall.means == dict.fromkeys(MEASURES, 0.0)


def test_a_query_without_an_answer_counts_nothing_and_is_counted():
    result = evaluated([query("a", "p0"), query("b", "p1")], {"a": ["p0"]})
    assert result.parts["fused"].overall.means["R@1"] == 0.5
    assert result.parts["fused"].overall.queries == 2
    assert result.parts["full-text"].overall.means["R@20"] == 0


def test_groups_by_type_and_domain():
    queries = [query("a", "p0", type="table", domain="law"), query("b", "p1", type="text"), query("c", "p2")]
    found = evaluated(queries, {"a": ["p0"], "b": ["p9"]}).parts["fused"]
    assert {name: scores.means["R@1"] for name, scores in found.by_type.items()} == {"table": 1, "text": 0}
    assert {name: scores.queries for name, scores in found.by_domain.items()} == {"law": 1}


def test_a_result_names_its_scorer_and_its_counts():
    result = evaluated([query("a", "p0")], {"a": ["p0"]})
    assert result.scorer.startswith("ir-measures 0.")
    assert (result.queries, result.depth) == (1, 100)


def test_near_duplicates_are_reported_and_scored_apart():
    queries = [query("a", "p0"), query("b", "p5")]
    rankings = {"a": ["p1", "p2", "p0"], "b": ["p5"]}
    result = evaluated(queries, rankings, duplicates={"p0": ["p1", "p2"]})
    found = result.parts["fused"]
    assert found.overall.means["R@1"] == 0.5
    assert found.duplicates_counted.means["R@1"] == 1
    assert [(each.page_id, each.duplicates) for each in result.near_duplicates] == [("p0", ["p1", "p2"])]


def test_a_page_that_answers_is_never_taken_for_another_one():
    assert collapsed(["b", "a", "c", "x"], ["a", "b"], {"a": ["b", "c"]}) == ["b", "a", "x"]


def test_pages_that_nothing_can_find_are_named():
    result = evaluated([query("a", "p0"), query("b", "gone")], {"a": ["p0"]})
    assert result.unknown_pages == ["gone"]
    with pytest.raises(InputError, match="none of the pages"):
        evaluated([query("b", "gone")], {})
    with pytest.raises(InputError, match="no page in the index"):
        evaluated([query("b", "gone")], {}, known=[])


def test_randomisation_test_by_hand():
    # All of 5 queries better by the same: 2 of 2^5 choices of signs are as extreme.
    assert randomisation_test(np.full(5, 0.25)) == 2 / 32
    assert randomisation_test(np.array([0.5, -0.5])) == 1
    assert randomisation_test(np.zeros(9)) == 1


def test_the_drawn_test_agrees_with_the_exact_one():
    random = np.random.default_rng(0)
    differences = random.normal(0.3, 1, size=16)
    exact = randomisation_test(differences)
    drawn = randomisation_test(np.concatenate([differences, [1e-12]]))  # one more: too many for the exact one
    assert drawn == pytest.approx(exact, abs=0.01)


def test_comparison_is_query_by_query():
    queries = [query(name, f"p{n}") for n, name in enumerate("abcdef")]
    good = evaluated(queries, {each.id: [f"p{n}"] for n, each in enumerate(queries)})
    bad = evaluated(queries, {"a": ["p0"]})
    by_measure = {each.measure: each for each in compare(good, bad) if each.part == "fused"}
    assert by_measure["R@1"].difference == pytest.approx(5 / 6)
    assert (by_measure["R@1"].better, by_measure["R@1"].worse) == (5, 0)
    assert by_measure["R@1"].p_value == 2 / 32
    with pytest.raises(InputError, match="have different queries"):
        compare(good, evaluated(queries[:3], {}))
    others = [query(name, f"p{n + 1}") for n, name in enumerate("abcdef")]  # named alike, answered by other pages
    with pytest.raises(InputError, match="have different queries"):
        compare(good, evaluated(others, {"a": ["p0"]}))
    assert {each.difference for each in compare(good, evaluated(queries[::-1], {}))} >= {0.0, 1.0}


def test_a_result_that_lacks_scores_is_refused():
    result = evaluated([query("a", "p0")], {"a": ["p0"]})
    other = msgspec.json.decode(msgspec.json.encode(result), type=RetrievalResult)
    del other.parts["fused"].by_query["a"]["RR"]
    with pytest.raises(InputError, match="lacks"):
        compare(result, other)
