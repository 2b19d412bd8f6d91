"""Retrieval: recall, nDCG and reciprocal rank of rankings against the pages that answer, computed by ir-measures.

A query without an answer counts with 0 and is never left out. Rankings of two systems are compared query by query.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import msgspec
import numpy as np

from pagemill.errors import InputError
from pagemill.retrieval.query_sets import Query

FUSED = "fused"
"""Name of the ranking made of all parts."""
DEPTH = 100
"""Pages of a ranking that are examined."""
MEASURES = ("Success@1", "R@1", "R@3", "R@5", "R@10", "R@20", "nDCG@10", "RR")
"""Names as in ir-measures: a right page first, recall, nDCG, and the reciprocal rank within :data:`DEPTH`. Where one
page answers, Success@1 and R@1 are the same.
"""
_PERMUTATIONS = 100_000
_BLOCK = 1000
_SEED = 20_070


class NearDuplicate(msgspec.Struct, frozen=True, kw_only=True):
    """A relevant page, and others with the same look or text."""

    page_id: str
    duplicates: list[str]


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Means over queries."""

    queries: int
    means: dict[str, float]


class PartResult(msgspec.Struct, frozen=True, kw_only=True):
    """One ranking's scores."""

    overall: Scores
    by_type: dict[str, Scores]
    by_domain: dict[str, Scores]
    duplicates_counted: Scores
    """Score a ranking as if a near-duplicate of a page that answers were that page."""
    by_query: dict[str, dict[str, float]]


class RetrievalResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an evaluation: the content of its JSON file."""

    scorer: str
    """Package and version that computed the measures."""
    queries: int
    queries_digest: str
    """SHA-256 of the queries and the pages that answer them: evaluations are compared where it is the same."""
    depth: int
    aggregation: str = "mean over queries; a query without an answer counts 0"
    index: dict[str, Any]
    """The index: pages, and the engines of the vectors."""
    parts: dict[str, PartResult]
    unknown_pages: list[str]
    """Pages that answer according to the queries and are not in the index: nothing can find them."""
    near_duplicates: list[NearDuplicate]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of one ranking in two evaluations of the same queries."""

    part: str
    measure: str
    mean: float
    other: float
    difference: float
    p_value: float
    """Two-sided, of the paired randomisation test."""
    better: int
    """Queries in which the first one is better."""
    worse: int


def evaluate(
    queries: Sequence[Query],
    rank: Callable[[Query], Mapping[str, Sequence[str]]],
    *,
    index: Mapping[str, Any],
    known_pages: Iterable[str],
    duplicates_of: Callable[[str], list[str]],
    report: Callable[[int], None] | None = None,
) -> RetrievalResult:
    """Run all queries and score the results.

    Args:
        queries: At least one, ids once each.
        rank: Gives the page ids that a query finds, the best first, by part; :data:`FUSED` among the parts.
        index: The index, for the record.
        known_pages: Ids of all pages that can be found.
        duplicates_of: Gives the near-duplicates of a page.
        report: Called with the number of queries that are done, after each.

    Raises:
        InputError: None of the pages that answer is in the index.
    """
    known = set(known_pages)
    # Grades of 0 are judged and irrelevant: to count them would make every ranking better.
    gold = {page for query in queries for page, grade in query.relevant.items() if grade > 0}
    if not known:
        raise InputError("there is no page in the index", remedy="Parse something, then index it.")
    if not gold & known:
        raise InputError(
            "none of the pages that the queries name is in the index",
            remedy=f"Queries say {', '.join(sorted(gold)[:3])}; the index has {', '.join(sorted(known)[:3])}, ...",
        )
    rankings: dict[str, dict[str, list[str]]] = {}
    for done, query in enumerate(queries, start=1):
        for part, pages in rank(query).items():
            # Cut off: measures look no deeper, and a run of millions of pages would not fit into the result.
            rankings.setdefault(part, {})[query.id] = list(pages)[:DEPTH]
        if report:
            report(done)
    # Of relevant pages alone: these are the ones whose duplicates may unfairly outrank them.
    duplicates = {page: others for page in sorted(gold & known) if (others := duplicates_of(page))}
    return RetrievalResult(
        scorer=scorer(),
        queries=len(queries),
        queries_digest=_digest(queries),
        depth=DEPTH,
        index=dict(index),
        parts={part: _part_result(queries, found, duplicates) for part, found in rankings.items()},
        unknown_pages=sorted(gold - known),
        near_duplicates=[NearDuplicate(page_id=page, duplicates=others) for page, others in duplicates.items()],
    )


def scores_by_query(queries: Sequence[Query], rankings: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
    """Each query's value of each of :data:`MEASURES`.

    Args:
        queries: With the pages that answer.
        rankings: Page ids by query id, the best first; a query that is missing found nothing.

    """
    import ir_measures as measures  # takes half a second

    asked = [measures.parse_measure(name) for name in MEASURES]
    judged = {query.id: query.relevant for query in queries}
    # Scores that fall with the rank: nothing is left to the way in which a scorer breaks ties.
    run = {
        query: {page: float(len(pages) - rank) for rank, page in enumerate(pages)}
        for query, pages in rankings.items()
        if pages
    }
    found: dict[str, dict[str, float]] = {query.id: dict.fromkeys(MEASURES, 0.0) for query in queries}
    if run:
        for metric in measures.iter_calc(asked, judged, run):
            if metric.query_id in found:
                found[metric.query_id][str(metric.measure)] = float(metric.value)
    return found


def collapsed(pages: Sequence[str], relevant: Iterable[str], duplicates: Mapping[str, Sequence[str]]) -> list[str]:
    """A ranking in which the near-duplicates of pages that answer are those pages; each page once, where it is best."""
    stands_for = {other: page for page in relevant for other in duplicates.get(page, ())}
    answers = set(relevant)
    return list(dict.fromkeys(page if page in answers else stands_for.get(page, page) for page in pages))


def compare(result: RetrievalResult, other: RetrievalResult) -> list[Comparison]:
    """Compare two evaluations of the same queries, by the parts and measures that both have.

    Raises:
        InputError: They do not cover the same queries.
    """
    if result.queries_digest != other.queries_digest:
        raise InputError(
            f"the two evaluations have different queries or relevant pages: {result.queries:,} queries now,"
            f" {other.queries:,} then",
            remedy="Compare evaluations of the same query file.",
        )
    shared = [part for part in result.parts if part in other.parts]
    found = []
    for part in shared:
        mine, theirs = result.parts[part].by_query, other.parts[part].by_query
        if any(set(mine[query]) - set(theirs.get(query, ())) for query in mine):
            raise InputError("the other evaluation lacks the scores of some queries", remedy="Run it again.")
        for measure in MEASURES:
            ours = np.array([mine[query][measure] for query in mine])
            others = np.array([theirs[query][measure] for query in mine])
            found.append(
                Comparison(
                    part=part,
                    measure=measure,
                    mean=float(ours.mean()),
                    other=float(others.mean()),
                    difference=float((ours - others).mean()),
                    p_value=randomisation_test(ours - others),
                    better=int((ours > others).sum()),
                    worse=int((ours < others).sum()),
                )
            )
    return found


def randomisation_test(differences: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Two-sided p-value of paired differences: how often random signs make a mean as far from 0 as theirs.

    The test that Smucker, Allan and Carterette recommend ("A comparison of statistical significance tests for
    information retrieval evaluation", CIKM 2007). Exact for up to 16 differences that are not 0, else by 100,000 random
    draws (of a fixed seed), the observed one counted among them.

    Args:
        differences: Shape (queries,).
    """
    values = differences[differences != 0]
    if not len(values):
        return 1.0
    least = abs(values.sum()) - 1e-9 * np.abs(values).sum()
    if len(values) <= 16:
        choices = np.arange(2 ** len(values))[:, np.newaxis] >> np.arange(len(values)) & 1
        return float((np.abs((1 - 2 * choices) @ values) >= least).mean())
    random = np.random.default_rng(_SEED)
    extreme = 1
    for start in range(0, _PERMUTATIONS, _BLOCK):
        signs = random.integers(0, 2, size=(min(_BLOCK, _PERMUTATIONS - start), len(values)), dtype=np.int8)
        extreme += int((np.abs((1 - 2 * signs) @ values) >= least).sum())
    return extreme / (_PERMUTATIONS + 1)


def scorer() -> str:
    """Name and version of the library that computes the measures."""
    return (
        f"ir-measures {metadata.version('ir-measures')} (pytrec-eval-terrier {metadata.version('pytrec-eval-terrier')})"
    )


def _part_result(
    queries: Sequence[Query], rankings: Mapping[str, list[str]], duplicates: Mapping[str, Sequence[str]]
) -> PartResult:
    by_query = scores_by_query(queries, rankings)
    generous = scores_by_query(
        queries,
        {
            query.id: collapsed(rankings.get(query.id, ()), [p for p, g in query.relevant.items() if g > 0], duplicates)
            for query in queries
        },
    )
    return PartResult(
        overall=_means(by_query.values()),
        by_type=_grouped(queries, by_query, lambda query: query.type),
        by_domain=_grouped(queries, by_query, lambda query: query.domain),
        duplicates_counted=_means(generous.values()),
        by_query=by_query,
    )


def _grouped(
    queries: Sequence[Query], by_query: Mapping[str, dict[str, float]], key: Callable[[Query], str]
) -> dict[str, Scores]:
    groups: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for query in queries:
        if key(query):
            groups[key(query)].append(by_query[query.id])
    return {name: _means(groups[name]) for name in sorted(groups)}


def _digest(queries: Sequence[Query]) -> str:
    judged = [
        (query.id, query.query, sorted(query.relevant.items())) for query in sorted(queries, key=lambda each: each.id)
    ]
    return hashlib.sha256(msgspec.json.encode(judged)).hexdigest()


def _means(values: Iterable[Mapping[str, float]]) -> Scores:
    rows = list(values)
    means = {measure: math.fsum(row[measure] for row in rows) / len(rows) for measure in MEASURES}
    return Scores(queries=len(rows), means=means)
