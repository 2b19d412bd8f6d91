"""Second matching of titles and texts that were matched badly, as OmniDocBench does it after v1.5."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from rapidfuzz.distance import Levenshtein

from pagemill_eval.benchmarks.omnidocbench.elements import Category, Element
from pagemill_eval.benchmarks.omnidocbench.matching import Match, inline_last
from pagemill_eval.benchmarks.omnidocbench.truth import FORMULA
from pagemill_eval.benchmarks.omnidocbench.v17_normalise import (
    plain_text,
    text_of,
    with_normal_formulas,
    without_delimiters,
)

_BAD = 0.45
_LONG = 80
"""Characters from which a text is matched again; a title, and a text with a formula, always are."""
_NEAR = 8
"""Predictions before and after the earlier ones that are examined."""
_GAIN = 0.2
_EQUAL = 1e-12
_FORMULA = re.compile(r"\$[^$]+\$|\\\([^)]*\\\)|\\(?:frac|sum|int|sqrt|left|right)")


@dataclass(frozen=True, slots=True)
class _Run:
    """Predictions that follow each other."""

    start: int
    end: int
    text: str
    edit: float
    away: int
    """Places from the first of the earlier ones."""

    def is_better(self, other: _Run | None) -> bool:
        if other is None or abs(self.edit - other.edit) > _EQUAL:
            return other is None or self.edit < other.edit
        return (self.end - self.start, self.away) < (other.end - other.start, other.away)


def as_text(match: Match) -> Match:
    """A match; of a text with a formula both sides as text."""
    formulas = match.truth_category == FORMULA, match.prediction_category == Category.EQUATION
    if not match.prediction_category or formulas[0] == formulas[1]:
        return match
    truth = _plain(match.raw_truth, is_formula=formulas[0])
    predicted = _plain(match.raw_prediction, is_formula=formulas[1])
    normal = plain_text(truth), plain_text(predicted)
    return replace(
        match,
        raw_truth=truth,
        raw_prediction=predicted,
        normal_truth=normal[0],
        normal_prediction=normal[1],
        edit=Levenshtein.normalized_distance(*normal),
    )


def _plain(content: str, *, is_formula: bool) -> str:
    return text_of(without_delimiters(content) if is_formula else content)


def matched_again(matches: Sequence[Match], predicted: Sequence[Element]) -> list[Match]:
    """The matches, some of titles and texts with another run of predictions that no other one has.

    Args:
        matches: Matches of a page.
        predicted: Its text and formulas.
    """
    pool = sorted(predicted, key=inline_last)
    owned = [_places(match, pool) for match in matches]
    texts = [
        text_of(each.content if each.category == Category.TEXT else without_delimiters(each.content)) for each in pool
    ]
    found: list[tuple[float, int, _Run]] = []
    for number, match in enumerate(matches):
        if _is_bad(match):
            taken = {place for other, places in enumerate(owned) if other != number for place in places}
            if run := _best_run(match, pool, texts, owned[number], taken):
                found.append((match.edit - run.edit, number, run))
    changed = list(matches)
    used: set[int] = set()
    for _, number, run in sorted(found, key=lambda each: -each[0]):
        places = range(run.start, run.end)
        if not used & set(places):
            used.update(places)
            changed[number] = replace(
                matches[number],
                prediction=list(places),
                raw_prediction="".join(pool[place].content for place in places),
                normal_prediction=run.text,
                prediction_category=Category.TEXT,
                position=pool[run.start].start,
                edit=run.edit,
            )
    return changed


def _places(match: Match, pool: Sequence[Element]) -> list[int]:
    """Places of a match's predictions, which are numbers in another list, of lines that are not empty."""
    if places := sorted({place for place in match.prediction if place < len(pool)}):
        return places
    position = match.position
    if position is None:
        return []
    return [place for place, each in enumerate(pool) if each.start <= position <= each.end]


def _has_formula(text: str) -> bool:
    has_sign = ("^" in text or "_" in text) and ("$" in text or "\\" in text)
    return has_sign or bool(_FORMULA.search(text))


def _is_bad(match: Match) -> bool:
    if match.truth_category not in ("title", "text_block") or match.edit <= _BAD:
        return False
    return match.truth_category == "title" or len(match.normal_truth) >= _LONG or _has_formula(match.raw_truth)


def _best_run(
    match: Match, pool: Sequence[Element], texts: Sequence[str], owned: Sequence[int], taken: Set[int]
) -> _Run | None:
    """The run of predictions that is nearest to a text, if it is near enough and much nearer than the earlier one."""
    has_formula = _has_formula(match.raw_truth)
    truth = plain_text(with_normal_formulas(match.raw_truth) if has_formula else text_of(match.raw_truth))
    if not truth:
        return None
    first, last = (max(0, owned[0] - _NEAR), min(len(pool), owned[-1] + _NEAR + 1)) if owned else (0, len(pool))
    longest, limit = (8, 0.45) if has_formula else (4, 0.35)
    best: _Run | None = None
    for start in range(first, last):
        for end in range(start + 1, min(last, start + longest) + 1):
            if end - 1 in taken or not (has_formula or pool[end - 1].category == Category.TEXT):
                break
            if text := plain_text("".join(texts[start:end])):
                edit = Levenshtein.normalized_distance(truth, text)
                run = _Run(start, end, text, edit, abs(start - owned[0]) if owned else 0)
                best = run if run.is_better(best) else best
    return best if best and best.edit < match.edit - _GAIN and best.edit <= limit else None
