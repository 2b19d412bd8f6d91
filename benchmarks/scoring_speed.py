"""Scoring speed beside apted, the library of the official TEDS scorers, in one run.

Three comparisons, each of the same scores: TEDS of drawn tables; TEDS of PubTabNet's scored pairs; and all metrics of
DP-Bench documents. What differs is the tree edit distance alone: parsing and Levenshtein distances are the same code,
so that the ratios are those of the whole scorers. One core, processor time, best of several rounds; apted once.

With LaTeX, also CDM of drawn formulas by ``--jobs`` processes, beside the same metric with a run of LaTeX for every
formula, in formulas a second of the clock.

DATA holds ``pubtabnet/`` (``sample_gt.json``, ``sample_pred.json``) and ``dp-bench/``; without it the tables are drawn.
"""

from __future__ import annotations

import argparse
import random
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apted import APTED
from rapidfuzz.distance import Levenshtein

from pagemill_eval.benchmarks import create
from pagemill_eval.cdm import UNIMERNET, cdm, drawing
from pagemill_eval.teds import LabelledTree, reference_teds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WORDS = ["alpha", "beta", "gamma", "delta", "12.5", "77", "(n=3)", "mean", "±", "SD", "Total", "1,204"]
_ROUNDS = 5


class _Costs:
    """The cost model of the official scorer, in the shape that apted asks for; a node is a tree and its number."""

    valuecls = float

    def rename(self, a: tuple[LabelledTree, int], b: tuple[LabelledTree, int]) -> float:
        if a[0].labels[a[1]] != b[0].labels[b[1]]:
            return 1.0
        return float(Levenshtein.normalized_distance(a[0].contents[a[1]], b[0].contents[b[1]]))

    def delete(self, node: object) -> float:
        return 1.0

    def insert(self, node: object) -> float:
        return 1.0

    def children(self, node: tuple[LabelledTree, int]) -> list[tuple[LabelledTree, int]]:
        tree, number = node
        return [(tree, child) for child, parent in enumerate(tree.parents) if parent == number]


def apted_distance(self: LabelledTree, other: LabelledTree) -> float:
    """Tree edit distance by apted."""
    return float(APTED((self, 0), (other, 0), _Costs()).compute_edit_distance())


def drawn_table(rows: int, columns: int, random_numbers: random.Random) -> str:
    """A table of one to three words a cell."""

    def cell() -> str:
        return " ".join(random_numbers.choice(_WORDS) for _ in range(random_numbers.randint(1, 3)))

    body = "".join(f"<tr>{''.join(f'<td>{cell()}</td>' for _ in range(columns))}</tr>" for _ in range(rows))
    return f"<html><body><table>{body}</table></body></html>"


def seconds(call: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Least processor time of some rounds, and what the call gives."""
    best, result = float("inf"), None
    for _ in range(rounds):
        start = time.process_time()
        result = call()
        best = min(best, time.process_time() - start)
    return best, result


def compare(what: str, count: int, call: Callable[[], list[float | None]]) -> None:
    """Print how fast a call is with our distance and with apted's, and how far the scores are apart."""
    ours, scores = seconds(call, _ROUNDS)
    own = LabelledTree.distance
    LabelledTree.distance = apted_distance  # type: ignore[method-assign]
    try:
        theirs, expected = seconds(call, 1)
    finally:
        LabelledTree.distance = own  # type: ignore[method-assign]
    apart = max(abs((a or 0.0) - (b or 0.0)) for a, b in zip(scores, expected, strict=True))
    speeds = f"{count / ours:12,.1f}/s{count / theirs:12,.2f}/s{theirs / ours:9,.0f} x"
    print(f"{what:34}{speeds}   differ by at most {apart:.0e}", flush=True)


def drawn_formula(random_numbers: random.Random, depth: int = 2) -> str:
    """A formula of some 20 symbols."""

    def part() -> str:
        if depth and random_numbers.random() < 0.5:
            return drawn_formula(random_numbers, depth - 1)
        return random_numbers.choice("abcxyz") + random_numbers.choice(
            ["", "_{i}", "^{2}", str(random_numbers.randint(1, 9))]
        )

    pattern = random_numbers.choice(["{}+{}", "\\frac{{{}}}{{{}}}", "\\sum_{{{}}}{}", "\\left({}-{}\\right)", "{}={}"])
    return pattern.format(part(), part())


def cdm_batch(pairs: Sequence[tuple[str, str]], together: bool) -> None:
    """CDM of some pairs, in one run of LaTeX or in a run a formula, without what was drawn before."""
    drawing.RUN_FORMULAS = 10**6 if together else 1
    drawing._drawn.clear()
    cdm(pairs, UNIMERNET)


def compare_cdm(jobs: int, random_numbers: random.Random) -> None:
    """Print how many formulas a second are drawn and scored."""
    pairs = [(drawn_formula(random_numbers), drawn_formula(random_numbers)) for _ in range(1024)]
    rates = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("forkserver")) as pool:
        list(pool.map(cdm_batch, [pairs[:1]] * jobs, [True] * jobs))  # what is loaded once
        for together, size, count in ((True, 32, len(pairs)), (False, 4, 64)):
            start = time.perf_counter()
            batches = [pairs[place : place + size] for place in range(0, count, size)]
            list(pool.map(cdm_batch, batches, [together] * len(batches)))
            rates.append(2 * count / (time.perf_counter() - start))
    print(f"{'CDM, pdflatex once a formula':34}{rates[0]:12,.1f}/s{rates[1]:12,.2f}/s{rates[0] / rates[1]:9,.0f} x")


def _scores(one: str, two: str) -> list[float | None]:
    return [reference_teds(one, two)]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, metavar="DATA", help="folder with pubtabnet/ and dp-bench/")
    parser.add_argument("--engine", default="docling", help="whose DP-Bench predictions (default: docling)")
    parser.add_argument("--jobs", type=int, default=2, help="processes that draw formulas (default: 2)")
    arguments = parser.parse_args()
    random_numbers = random.Random(0)
    print(f"{'':34}{'pagemill':>14}{'apted':>14}{'ratio':>11}")
    for rows, columns in ((20, 8), (40, 12)):
        one, two = (drawn_table(rows, columns, random_numbers) for _ in range(2))
        compare(f"TEDS, {rows} x {columns} cells", 1, partial(_scores, one, two))
    if why := drawing.unavailable():
        print(f"CDM is {why}")
    else:
        compare_cdm(arguments.jobs, random_numbers)
    if arguments.data is None:
        return
    tables = create("pubtabnet")
    pairs = tables.load(arguments.data / "pubtabnet" / "sample_gt.json")
    read = tables.predictions(arguments.data / "pubtabnet" / "sample_pred.json", pairs)
    compare("PubTabNet, TEDS and TEDS-S", len(pairs), lambda: [tables.score(s, read(s)).metrics["teds"] for s in pairs])
    documents = create("dp-bench")
    pages = documents.load(arguments.data / "dp-bench")
    find = documents.predictions(arguments.data / "dp-bench" / "prediction" / arguments.engine / "markdown", pages)
    compare(
        "DP-Bench documents, all metrics",
        len(pages),
        lambda: [documents.score(s, find(s)).metrics["overall"] for s in pages],
    )


if __name__ == "__main__":
    main()
