"""CDM: the share of a formula's symbols at their position, when truth and prediction are drawn by LaTeX.

Defined by Wang et al., "CDM: A Reliable Metric for Fair and Accurate Formula Recognition Evaluation"; its numbers
differ between benchmarks. How a formula is cut into tokens, and which are synonyms, is pagemill's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill_eval.cdm.drawing import Drawing, draw

_BOX_WEIGHT, _ORDER_WEIGHT = 0.05, 0.15


class CdmRules(NamedTuple):
    """What differs between benchmarks."""

    synonym: float
    """Cost of a synonym; another token is 1."""
    order_of_longer: bool
    """Places in the order over the number of tokens of the longer formula, not of their own."""
    rounds: int
    """Rounds of RANSAC, each among the pairs that earlier ones left out."""
    minimum: int
    """Maximum number of pairs that are all used; of more, as many make a trial."""
    pixels: float
    """Minimum distance from its place at which a token is left out."""
    trials: int
    seed: int


OMNIDOCBENCH_V15 = CdmRules(0.05, False, 3, 3, 25.0, 50, 42)
UNIMERNET = CdmRules(0.005, True, 5, 2, 20.0, 50, 42)
OMNIDOCBENCH = CdmRules(0.005, True, 5, 2, 30.0, 500, 2026)


class Cdm(NamedTuple):
    """The score of a prediction."""

    f1: float | None
    """None: the truth cannot be drawn."""
    note: str = ""
    """Why it is None, or 0 for a prediction that cannot be drawn."""


def cdm(pairs: Sequence[tuple[str, str]], rules: CdmRules) -> list[Cdm]:
    """Score predictions, all drawn together, which is faster than one by one.

    Args:
        pairs: Predicted and true LaTeX. An empty prediction is 0.
        rules: Rules of a benchmark. Check :func:`pagemill_eval.cdm.drawing.unavailable` first.

    """
    drawn = draw(latex for pair in pairs for latex in pair)
    scores = []
    for predicted, true in ((drawn[predicted], drawn[true]) for predicted, true in pairs):
        if isinstance(true, str):
            scores.append(Cdm(None, f"the truth is not drawn: {true}"))
        elif isinstance(predicted, str):
            scores.append(Cdm(0.0, f"the prediction is not drawn: {predicted}"))
        else:
            scores.append(Cdm(f1(predicted, true, rules)))
    return scores


def f1(predicted: Drawing, true: Drawing, rules: CdmRules) -> float:
    """Twice the tokens at their place over the tokens of both, to 3 decimals."""
    from scipy.optimize import linear_sum_assignment

    tokens = _token_costs(predicted, true, rules.synonym)
    costs = tokens + _ORDER_WEIGHT * _order_differences(len(predicted.tokens), len(true.tokens), rules)
    for edge in range(4):
        one, two = (each.boxes[:, edge] / each.size[edge % 2] for each in (predicted, true))
        costs += _BOX_WEIGHT / 4 * np.abs(one[:, None] - two[None, :])
    rows, columns = linear_sum_assignment(costs)
    held = _consistent(_centres(predicted)[rows], _centres(true)[columns], rules)
    matched = int((held & (tokens[rows, columns] < 1)).sum())
    return round(2 * matched / (len(predicted.tokens) + len(true.tokens)), 3)


def _token_costs(predicted: Drawing, true: Drawing, synonym: float) -> NDArray[np.float64]:
    def differ(part: int) -> NDArray[np.bool_]:
        codes: dict[str, int] = {}
        one, two = (
            np.array([codes.setdefault(token[part], len(codes)) for token in each.tokens]) for each in (predicted, true)
        )
        found: NDArray[np.bool_] = np.not_equal.outer(one, two)
        return found

    return np.where(differ(1), 1.0, synonym * differ(0))


def _order_differences(predicted: int, true: int, rules: CdmRules) -> NDArray[np.float64]:
    longer = max(predicted, true)
    one, two = (np.arange(count) / (longer if rules.order_of_longer else count) for count in (predicted, true))
    return np.abs(one[:, None] - two[None, :])


def _centres(drawing: Drawing) -> NDArray[np.float64]:
    return (drawing.boxes[:, :2] + drawing.boxes[:, 2:]) / 2.0


def _consistent(moved: NDArray[np.float64], still: NDArray[np.float64], rules: CdmRules) -> NDArray[np.bool_]:
    """Pairs of points that agree in a translation and a scale; each round uses the remaining pairs."""
    held = np.full(len(moved), len(moved) <= rules.minimum)
    for _ in range(rules.rounds):
        left = np.flatnonzero(~held)
        if len(left) <= rules.minimum:
            break
        inside = _ransac(moved[left], still[left], rules)
        if not inside.any():
            break
        held[left[inside]] = True
    return held


def _ransac(moved: NDArray[np.float64], still: NDArray[np.float64], rules: CdmRules) -> NDArray[np.bool_]:
    """Maximum number of pairs that one trial's translation and scale bring together; among as many the nearest."""
    random = np.random.default_rng(rules.seed)
    best, best_score = np.zeros(len(moved), np.bool_), (0, 0.0)
    for _ in range(rules.trials):
        drawn = random.choice(len(moved), rules.minimum, replace=False)
        one, two = moved[drawn], still[drawn]
        middle, goal = one.mean(axis=0), two.mean(axis=0)
        spread, wanted = (
            np.linalg.norm(points - centre, axis=1).mean() for points, centre in ((one, middle), (two, goal))
        )
        scale = wanted / spread if spread else 1.0
        distances = np.linalg.norm((moved - middle) * scale + goal - still, axis=1)
        inside = distances < rules.pixels
        score = (int(inside.sum()), -float(distances @ distances))
        if score > best_score or not best.any():
            best, best_score = inside, score
        if inside.all():
            break
    return best
