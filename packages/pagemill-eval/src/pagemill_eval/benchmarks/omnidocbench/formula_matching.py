"""Matching of a page's display formulas after v1.5: of several ways to pair and join them, the one that costs least."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from pagemill_eval.benchmarks.omnidocbench.elements import Category, Element
from pagemill_eval.benchmarks.omnidocbench.formula_lines import with_arrays
from pagemill_eval.benchmarks.omnidocbench.matching import (
    Match,
    MatchRules,
    assignment,
    distances,
    divided,
    normalised,
    one_array,
    quick_match,
)
from pagemill_eval.benchmarks.omnidocbench.truth import FORMULA

_MOST_JOINED = 10
_MORE_JOINED = 12
"""If the numbers of formulas differ by two or more."""
_MOST_LINES = 8
"""Lines of a predicted formula whose lines are joined in every way."""
_MOST_WAYS = 128
"""To join the lines of a page's formulas."""
_EQUAL = 1e-12
_Cost = tuple[float, int, int, int]
"""Sum of normalised distances, sum of distances, sum of lengths, formulas from within text."""


@dataclass(frozen=True, slots=True)
class _Formula:
    """A predicted formula or a part of it, and the number of its element."""

    element: Element
    source: int


class _Formulas:
    """Predicted formulas in order."""

    def __init__(self, formulas: Iterable[_Formula], rules: MatchRules) -> None:
        self.all = list(formulas)
        self.texts, elements = normalised([formula.element for formula in self.all], rules)
        """Normalised texts, without empty ones. Position and source are read from the list that has these, too."""
        self.contents = [element.content for element in elements]


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to match."""

    rows: list[Match]
    """One for each formula of the truth."""
    formulas: _Formulas
    """The prediction's that the rows number."""
    arrays: int
    """Formulas whose cases were made arrays."""


def match_formulas(
    truth: Sequence[Element], predicted: Sequence[Element], current: Sequence[Match], rules: MatchRules
) -> list[Match]:
    """Match the display formulas of a page.

    Args:
        truth: Formulas in reading order.
        predicted: Formulas, and what may be some.
        current: Their matches together with the text.
        rules: Rules of the version.
    """
    formulas = [_Formula(element, number) for number, element in enumerate(dict.fromkeys(predicted))]
    ways = _Ways(truth, rules)
    found = [_Way(list(current), _Formulas(sorted(formulas, key=_place), rules), 0), *ways.of(formulas, 0)]
    changed = [
        replace(formula, element=replace(formula.element, content=with_arrays(formula.element.content)))
        for formula in formulas
    ]
    if arrays := sum(one != two for one, two in zip(formulas, changed, strict=True)):
        found += ways.of(changed, arrays)
    best: tuple[float, ...] | None = None
    rows: list[Match] = []
    for way in found:
        if not ways.is_complete(way.rows):
            continue
        cost = _cost(way, len(formulas))
        if best is None or _is_less(cost, best):
            best, rows = cost, way.rows
    return rows


def _place(formula: _Formula) -> tuple[float, bool, float]:
    return formula.element.start, formula.element.inline, formula.element.end


def _cost(way: _Way, count: int) -> tuple[float, ...]:
    """What decides, in this order."""
    pairs = [row for row in way.rows if row.prediction]
    length = sum(max(len(row.normal_truth), len(row.normal_prediction)) for row in pairs)
    distance = sum(Levenshtein.distance(row.normal_truth, row.normal_prediction) for row in pairs)
    used = {
        way.formulas.all[index].source for row in pairs for index in row.prediction if index < len(way.formulas.all)
    }
    total = sum(row.edit for row in way.rows)
    return (
        total,
        distance / length if length else 0.0,
        max(0, count - len(used)),
        total / len(way.rows) if way.rows else math.inf,
        -way.arrays,
        len(way.rows) - len(pairs),
    )


def _is_less(one: Sequence[float], two: Sequence[float]) -> bool:
    for first, second in zip(one, two, strict=True):
        if abs(first - second) > _EQUAL:
            return first < second
    return False


class _Ways:
    """Ways to match the formulas of one page's truth."""

    def __init__(self, truth: Sequence[Element], rules: MatchRules) -> None:
        self._truth, self._rules = truth, rules
        self._lines = divided(truth, rules, ordered=True)
        self._true_texts, self._true_elements = normalised(self._lines, rules)

    def is_complete(self, rows: Sequence[Match]) -> bool:
        """Whether each formula of the truth has a row of its own, and no text for a prediction."""
        known = {tuple(row.truth) for row in rows}
        return (
            len(rows) == len(known) == len(self._true_texts)
            and all(len(row.truth) == 1 for row in rows)
            and all(row.prediction_category != Category.TEXT for row in rows)
        )

    def of(self, formulas: Sequence[_Formula], arrays: int) -> Iterator[_Way]:
        """Ways to match these formulas, whole and line by line."""
        whole = _Formulas(sorted(formulas, key=_place), self._rules)
        elements = [formula.element for formula in formulas]
        yield _Way(quick_match(self._truth, elements, self._rules, divides=False), whole, arrays)
        yield _Way(self._one_to_one(whole), whole, arrays)
        yield from self._in_order(whole, arrays)
        for parts in self._with_lines_joined(whole.all):
            yield _Way(self._one_to_one(parts), parts, arrays)
        lines = [line for formula in whole.all for line in self._lines_of(formula)]
        if len(lines) > len(formulas):
            yield from self._in_order(_Formulas(lines, self._rules), arrays)

    def _lines_of(self, formula: _Formula) -> list[_Formula]:
        return [_Formula(line, formula.source) for line in divided([formula.element], self._rules)]

    def _row(self, line: int, run: Sequence[int], formulas: _Formulas) -> Match:
        text = " ".join(formulas.texts[index] for index in run)
        contents = [formulas.contents[index] for index in run]
        return Match(
            truth=[line],
            prediction=list(run),
            normal_truth=self._true_texts[line],
            normal_prediction=text,
            raw_truth=self._true_elements[line].content,
            raw_prediction=self._array(contents) if len(run) > 1 else "".join(contents),
            truth_category=FORMULA,
            prediction_category=Category.EQUATION if run else "",
            orders=[self._lines[line].start],  # of the list with the empty ones, as all over these rules
            position=formulas.all[run[0]].element.start if run else None,
            edit=Levenshtein.normalized_distance(self._true_texts[line], text) if run else 1.0,
        )

    def _array(self, contents: Iterable[str]) -> str:
        return one_array(filter(None, map(self._rules.bare, contents)))

    def _one_to_one(self, formulas: _Formulas) -> list[Match]:
        """Minimum total distance, where a formula without a partner costs 1 on either side."""
        lines, pieces = len(self._true_texts), len(formulas.texts)
        costs = np.ones((lines + pieces, lines + pieces))
        costs[lines:, pieces:] = 0.0
        if lines and pieces:
            costs[:lines, :pieces] = distances(self._true_texts, formulas.texts)
        partners = [piece for _, piece in assignment(costs)][:lines]
        return [self._row(line, [piece] if piece < pieces else [], formulas) for line, piece in enumerate(partners)]

    def _with_lines_joined(self, formulas: Iterable[_Formula]) -> Iterator[_Formulas]:
        """All ways to join lines that follow each other in a formula; none if they are too many."""
        choices: list[list[list[_Formula]]] = []
        for formula in formulas:
            lines = self._lines_of(formula)
            if 1 < len(lines) <= _MOST_LINES:
                choices.append([self._cut(lines, cuts) for cuts in range(1 << (len(lines) - 1))])
            else:
                choices.append([[formula]])
        ways = math.prod(map(len, choices))
        if 1 < ways <= _MOST_WAYS:
            for choice in product(*choices):
                yield _Formulas(sorted(chain.from_iterable(choice), key=_place), self._rules)

    def _cut(self, lines: Sequence[_Formula], cuts: int) -> list[_Formula]:
        """Lines, joined where the bit between two of them is not set."""
        ends = [*(place + 1 for place in range(len(lines) - 1) if cuts >> place & 1), len(lines)]
        return [self._join(lines[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def _join(self, lines: Sequence[_Formula]) -> _Formula:
        first, last = lines[0], lines[-1]
        if len(lines) == 1:
            return first
        content = f"\\[{self._array(line.element.content for line in lines)}\\]"
        return replace(first, element=replace(first.element, content=content, inline=False, end=last.element.end))

    def _in_order(self, formulas: _Formulas, arrays: int) -> Iterator[_Way]:
        if self._true_texts and formulas.texts:
            for with_gaps in (False, True):
                yield _Way(self._cheapest_in_order(formulas, with_gaps), formulas, arrays)

    def _cheapest_in_order(self, formulas: _Formulas, with_gaps: bool) -> list[Match]:
        """Minimum total distance of pairs in the same order: one true formula, and a run of predicted ones."""
        lines, pieces = len(self._true_texts), len(formulas.texts)
        find = _Runs(formulas, lines, with_gaps)
        runs = [list(find.of(start)) for start in range(pieces)]
        joined = [[" ".join(formulas.texts[index] for index in run) for run in of_start] for of_start in runs]
        best: dict[tuple[int, int], _Cost] = {(0, 0): (0.0, 0, 0, 0)}
        origin: dict[tuple[int, int], tuple[int, int, Sequence[int] | None]] = {}

        def reach(line: int, piece: int, cost: _Cost, before: tuple[int, int, Sequence[int] | None]) -> None:
            if (line, piece) not in best or _is_cheaper(cost, best[line, piece]):
                best[line, piece], origin[line, piece] = cost, before

        for line in range(lines + 1):
            for piece in range(pieces + 1):
                total, distance, length, inline = best[line, piece]
                if piece < pieces:
                    reach(line, piece + 1, (total + 1.0, distance, length, inline), (line, piece, None))
                if line == lines:
                    continue
                reach(line + 1, piece, (total + 1.0, distance, length, inline), (line, piece, ()))
                if piece == pieces:
                    continue
                truth = self._true_texts[line]
                found = cdist([truth], joined[piece], scorer=Levenshtein.distance)[0]
                for run, text, edits in zip(runs[piece], joined[piece], found.tolist(), strict=True):
                    longer = max(len(truth), len(text))
                    is_inline = len(run) == 1 and formulas.all[run[0]].element.inline
                    cost = total + edits / longer, distance + edits, length + longer, inline + is_inline
                    reach(line + 1, run[-1] + 1, cost, (line, piece, run))
        rows: list[Match] = []
        line, piece = lines, pieces
        while line or piece:
            line, piece, last = origin[line, piece]
            if last is not None:
                rows.append(self._row(line, last, formulas))
        return rows[::-1]


def _is_cheaper(one: _Cost, two: _Cost) -> bool:
    if abs(one[0] - two[0]) > _EQUAL:
        return one[0] < two[0]
    if one[2] and two[2] and one[1] * two[2] != two[1] * one[2]:
        return one[1] * two[2] < two[1] * one[2]
    if bool(one[2]) != bool(two[2]):
        return bool(one[2])
    return one[3] < two[3]


class _Runs:
    """Predicted formulas that may be joined: neighbours, or lines of one formula, of which some may be left out."""

    def __init__(self, formulas: _Formulas, lines: int, with_gaps: bool) -> None:
        self._formulas, self._pieces = formulas.all, len(formulas.texts)
        difference = abs(lines - self._pieces)
        self._longest = _MORE_JOINED if lines > 1 and difference > 1 else _MOST_JOINED
        self._span, self._gaps = self._longest, 0
        if with_gaps:
            self._span = min(self._pieces, self._longest) + 2
            self._gaps = 2 if difference > 2 else 1 if difference or self._pieces > 3 else 0

    def of(self, start: int) -> Iterator[tuple[int, ...]]:
        """Runs that begin with a formula; each before those that it begins."""
        return self._longer((start,), self._gaps, min(self._pieces, start + self._span))

    def _longer(self, run: tuple[int, ...], gaps: int, end: int) -> Iterator[tuple[int, ...]]:
        yield run
        if len(run) < self._longest:
            for following in range(run[-1] + 1, min(end, run[-1] + gaps + 2)):
                longer = (*run, following)
                if self._is_one(longer):
                    yield from self._longer(longer, gaps - (following - run[-1] - 1), end)

    def _is_one(self, run: Sequence[int]) -> bool:
        members = [self._formulas[index] for index in run]
        if len({member.source for member in members}) == 1:
            return True
        return run[-1] - run[0] + 1 == len(run) and not any(member.element.inline for member in members)
