"""Pairing elements of the truth with those of a prediction, as OmniDocBench v1.5 does it ("quick match")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from pagemill_eval.benchmarks.omnidocbench.elements import Category, Element
from pagemill_eval.benchmarks.omnidocbench.normalise import normal_formula, normal_text
from pagemill_eval.benchmarks.omnidocbench.truth import FORMULA, IGNORED

FORMULAS = frozenset({FORMULA, Category.EQUATION, Category.FOUND_FORMULA, Category.POSSIBLE_FORMULA})
"""Categories that are normalised as formulas."""
MAX_WINDOW_STEPS = 1e10
"""Work of one page's window distances, after which it is matched one to one, as the official scorer does after 30 s.

In steps of 64 characters: 150 lines and 600 pieces of 70 characters are nearly 1e10 and take 3 s. A count instead of a
time limit gives the same score on every machine.
"""
_CALL_STEPS = 200
"""Constant cost of a distance."""
_SETTLED = 0.25
_MERGED = 0.6
_HELD = 0.7
_WITHIN = 0.4
_ARRAY = re.compile(r"\\begin\{array\}\{(?P<columns>[^}]*)\}(?P<body>.*?)\\end\{array\}", re.DOTALL)
_DISPLAYED = re.compile(r"\\\[(.+?)(?<!\\)\\\]")
_COLUMN_SEPARATORS = re.compile(r"[@!]\{[^}]*\}|[\s|]")


@dataclass(slots=True)
class Match:
    """Elements of the truth that belong together, and what was predicted for them."""

    truth: list[int]
    """Their places among those of the truth that were not empty."""
    prediction: list[int]
    normal_truth: str
    normal_prediction: str
    raw_truth: str
    raw_prediction: str
    truth_category: str
    prediction_category: str
    """Empty if nothing was predicted."""
    orders: list[Any]
    """Places in reading order."""
    position: float | None
    """Start of the first piece of the prediction."""
    edit: float = 1.0
    """Normalised edit distance by which later versions choose among matches; 1 for what was paired as left over."""


@dataclass(frozen=True, slots=True)
class MatchRules:
    """Differences between versions of the matching."""

    normal_text: Callable[[str], str]
    normal_formula: Callable[[str], str]
    lines: Callable[[str], list[tuple[str, int]] | None]
    """Lines of a formula that is one a line, with their places in it; None for one that stays whole."""
    bare: Callable[[str], str]
    """A formula without delimiters."""
    order_of_line: Callable[[float, int], float]
    """Place in reading order of a line of a formula."""
    attaches_formulas: bool
    """Whether a formula can be found within a longer piece."""
    longest_run: int
    """Maximum number of pieces of one line."""
    window_steps: float
    """Work of one page's window distances, after which it is matched one to one."""
    reports_ignored: bool = False
    """Whether ignored elements of the truth that have a prediction are matches, too."""


def _lines_of_array(latex: str) -> list[tuple[str, int]] | None:
    match = _ARRAY.search(latex)
    if not match or not re.fullmatch(r"[clr]", _COLUMN_SEPARATORS.sub("", match["columns"])):
        return None
    found: list[tuple[str, int]] = []
    place = match.start("body")
    for line in filter(None, (line.strip() for line in match["body"].split("\\\\"))):
        place = latex.index(line, place)
        found.append((line, place))
        place += len(line)
    return found


def _bare_formula(latex: str) -> str:
    latex = latex.strip().strip("$").strip("\n")
    return match[1].strip() if (match := _DISPLAYED.search(latex)) else latex


V15 = MatchRules(
    normal_text=normal_text,
    normal_formula=normal_formula,
    lines=_lines_of_array,
    bare=_bare_formula,
    order_of_line=lambda order, line: round(order + line / 10, 1),
    attaches_formulas=True,
    longest_run=10**9,
    window_steps=MAX_WINDOW_STEPS,
)


def quick_match(
    truth: Sequence[Element], predicted: Sequence[Element], rules: MatchRules = V15, *, divides: bool = True
) -> list[Match]:
    """Match the truth of a page with its prediction.

    Args:
        truth: Text and formulas in reading order; ``start`` is their place in it.
        predicted: Text and formulas.
        rules: Rules of a version.
        divides: Divide predicted formulas into lines, as those of the truth.
    """
    pieces: Sequence[Element] = sorted(predicted, key=inline_last)
    pool = _Pool(divided(truth, rules, ordered=True), divided(pieces, rules) if divides else pieces, rules)
    if not pool.truth:
        return []
    if len(pool.truth) == len(pool.predicted) == 1:
        return [pool.match([0], [0])]
    lines = [index for index in range(len(pool.truth)) if not pool.is_ignored(index)]
    kept, ignored = _not_ignored(pool) if pool.predicted else ([], [])
    if not lines or not kept:
        return [pool.match([index], []) for index in lines]
    try:
        groups = _pairs(
            [pool.truth[line] for line in lines],
            [pool.predicted[piece] for piece in kept],
            rules,
            {at for at, line in enumerate(lines) if rules.attaches_formulas or not pool.is_formula(line)},
            _Windows(rules.window_steps),
        )
    except _TooMuchWork:
        single, _ = _one_to_one(pool.truth, pool.predicted)
        return [pool.match([line], [] if piece is None else [piece]) for line, piece in single]
    matches = [
        pool.match([lines[at] for at in line_group], [kept[at] for at in piece_group], is_left=is_left)
        for line_group, piece_group, is_left in groups
    ]
    return [*matches, *(pool.match([line], [piece]) for line, piece in ignored if rules.reports_ignored)]


class _Pool:
    """Elements of both sides, normalised, without empty ones.

    Order, position and category of an element are read from the list that still holds the empty ones, at the place in
    the list that does not: the official scorer does so.
    """

    def __init__(self, truth: Sequence[Element], predicted: Sequence[Element], rules: MatchRules) -> None:
        self.truth, self._true_elements = normalised(truth, rules)
        self.predicted, self._predicted_elements = normalised(predicted, rules)
        self._all_truth, self._all_predicted = truth, predicted
        self._rules = rules

    def is_ignored(self, index: int) -> bool:
        return self._true_elements[index].category in IGNORED

    def is_formula(self, index: int) -> bool:
        return self._true_elements[index].category in FORMULAS

    def match(self, truth: list[int], predicted: list[int], *, is_left: bool = False) -> Match:
        categories = Counter(self._true_elements[index].category for index in truth)
        first = self._all_predicted[predicted[0]] if predicted else None
        return Match(
            truth=truth,
            prediction=predicted,
            normal_truth="".join(self.truth[index] for index in truth),
            normal_prediction="".join(self.predicted[index] for index in predicted),
            raw_truth=self._raw([self._true_elements[index] for index in truth]),
            raw_prediction=self._raw([self._predicted_elements[index] for index in predicted]),
            truth_category=categories.most_common(1)[0][0],
            prediction_category=first.category if first else "",
            orders=[self._all_truth[index].start for index in truth],
            position=first.start if first else None,
            edit=1.0 if is_left or not predicted else self._edit(truth, predicted),
        )

    def _edit(self, truth: list[int], predicted: list[int]) -> float:
        """The edit distance; for several lines of the truth only the first piece counts."""
        pieces = predicted[:1] if len(truth) > 1 else predicted
        return Levenshtein.normalized_distance(
            "".join(self.truth[index] for index in truth), " ".join(self.predicted[index] for index in pieces)
        )

    def _raw(self, elements: Sequence[Element]) -> str:
        contents = [element.content for element in elements]
        if len(elements) > 1 and all(element.category in FORMULAS for element in elements):
            return one_array(map(self._rules.bare, contents))
        return "".join(contents)


def normalised(elements: Sequence[Element], rules: MatchRules) -> tuple[list[str], list[Element]]:
    """Normalised contents of elements, and the elements, without empty ones."""
    texts = [
        (rules.normal_formula if element.category in FORMULAS else rules.normal_text)(element.content)
        for element in elements
    ]
    kept = [index for index, text in enumerate(texts) if text]
    return [texts[index] for index in kept], [elements[index] for index in kept]


def one_array(formulas: Iterable[str]) -> str:
    """Formulas as the lines of one."""
    return "\\begin{array}{l} " + " \\\\ ".join(f"{{{formula}}}" for formula in formulas) + " \\end{array}"


def inline_last(element: Element) -> tuple[bool, float]:
    """Order of predictions: formulas within text come last."""
    return element.inline, element.start


def divided(elements: Iterable[Element], rules: MatchRules, *, ordered: bool = False) -> list[Element]:
    """Formulas of several lines as one formula a line; ``ordered`` elements have a place in reading order."""
    found: list[Element] = []
    for element in elements:
        lines = rules.lines(element.content) if element.category in FORMULAS else None
        for number, (line, place) in enumerate(lines or (), start=1):
            start = rules.order_of_line(element.start or 0, number) if ordered else element.start + place
            found.append(replace(element, content=f"\\[{line}\\]", start=start, end=start + len(line) - 1))
        if lines is None:
            found.append(element)
    return found


def _not_ignored(pool: _Pool) -> tuple[list[int], list[tuple[int, int]]]:
    """Predictions that are near to no ignored element of the truth; and for such elements the prediction of each."""
    ignored = [index for index in range(len(pool.truth)) if pool.is_ignored(index)]
    if not ignored:
        return list(range(len(pool.predicted))), []
    costs = distances([pool.truth[index] for index in ignored], pool.predicted)
    kept = np.flatnonzero(costs.min(axis=0) >= _SETTLED).tolist()
    near = [(int(row), int(column)) for row, column in np.argwhere(costs < _SETTLED)]
    last = dict(near)  # of several predictions the last one; the others go to elements that have none
    rest = [column for row, column in near if last[row] != column]
    without = [row for row in range(len(ignored)) if row not in last]
    if rest and without:
        last |= {without[row]: rest[column] for row, column in assignment(costs[np.ix_(without, rest)])}
    return kept, [(ignored[row], column) for row, column in last.items()]


def distances(one: Sequence[str], two: Sequence[str]) -> NDArray[np.float64]:
    """Normalised edit distance of each text to each other."""
    found: NDArray[np.float64] = cdist(one, two, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    return found


def assignment(costs: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Pairs of rows and columns of least total cost; the official scorers use this very function, ties included."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _pairs(
    lines: Sequence[str], pieces: Sequence[str], rules: MatchRules, attachable: set[int], windows: _Windows
) -> list[tuple[list[int], list[int], bool]]:
    """Groups of lines of the truth, the pieces of the prediction for each, and whether those were left over."""
    costs = distances(lines, pieces)
    units = _with_runs(len(pieces), _best_runs(_runs(lines, pieces, costs, rules.longest_run, windows)))
    texts = [" ".join(pieces[index] for index in unit) for unit in units]
    merged = distances(lines, texts)
    held = {line: units[unit] for line, unit in assignment(merged) if merged[line, unit] <= _HELD}

    groups: dict[tuple[int, ...], list[int]] = {}
    for line in sorted(held):
        groups.setdefault(tuple(held[line]), []).append(line)
    waiting = [line for line in range(len(lines)) if line not in held]
    attached: set[int] = set()
    for piece, text in enumerate(pieces):
        inside = [line for line in waiting if line in attachable and _is_within(lines[line], text, windows)]
        if inside:  # the piece is used, also where an earlier one has got the lines
            groups.setdefault((piece,), []).extend(line for line in inside if line not in attached)
            attached.update(inside)
    waiting = [line for line in waiting if line not in attached]

    used = {piece for unit in groups for piece in unit}
    # In the order in which Python goes through a set, not always ascending: it decides among equal distances.
    unused = list(set(range(len(pieces))) - used)
    rest = assignment(costs[np.ix_(waiting, unused)]) if waiting and unused else []
    paired = {waiting[row]: unused[column] for row, column in rest}
    return [
        *((sorted(group), list(unit), False) for unit, group in groups.items() if group),
        *(([line], [piece], True) for line, piece in paired.items()),
        *(([line], [], False) for line in waiting if line not in paired),
    ]


class _TooMuchWork(Exception):
    """A page's window distances take too long."""


class _Windows:
    """Window distances within a bound on their work."""

    def __init__(self, steps: float) -> None:
        self._left = steps

    def distance(self, piece: str, text: str, limit: float) -> float | None:
        """Like :func:`window_distance`.

        Raises:
            _TooMuchWork: The page's bound is reached.
        """
        length = len(piece)
        if length <= len(text):
            self._left -= (len(text) - length + 1) * (_CALL_STEPS + length * (length / 64 + 1))
            if self._left < 0:
                raise _TooMuchWork
        return window_distance(piece, text, limit)


def window_distance(piece: str, text: str, limit: float) -> float | None:
    """Minimum edit distance of a piece to the stretches of its length in a text, over that length.

    Args:
        piece: Not empty.
        text: The text to search.
        limit: Distances above it may come out as any larger number.

    Returns:
        None if the text is shorter than the piece.
    """
    length = len(piece)
    if length > len(text) or not length:
        return None
    if piece in text:
        return 0.0
    # Indel distances are at most twice as large: a stretch that is near by edits has this similarity at least. The
    # ratio also looks at stretches that stand out at both ends, which are most of them in a text of the same length.
    similarity = (1.0 - limit) * 100.0 - 0.1
    if len(text) > 3 * length and not fuzz.partial_ratio(piece, text, score_cutoff=similarity):
        return 1.0
    cutoff = int(limit * length) + 1
    windows = [text[start : start + length] for start in range(len(text) - length + 1)]
    found = cdist([piece], windows, scorer=Levenshtein.distance, score_cutoff=cutoff, dtype=np.int32)
    return float(found.min()) / length


def _runs(
    lines: Sequence[str], pieces: Sequence[str], costs: NDArray[np.float64], longest: int, windows: _Windows
) -> list[tuple[list[int], float]]:
    """For each line without a near piece, the run of pieces that is nearest to it, and its distance."""
    free = set(np.flatnonzero(costs.min(axis=0) >= _SETTLED).tolist())
    found = []
    for index in np.flatnonzero(costs.min(axis=1) >= _SETTLED).tolist():
        line = lines[index]
        best: tuple[list[int], float] | None = None
        for start in sorted(free):
            run, cost = _longest_run(line, pieces, start, free, float(costs[index, start]), longest, windows)
            if best is None or cost < best[1]:
                best = run, cost
        if best:
            found.append(best)
    return found


def _longest_run(
    line: str, pieces: Sequence[str], start: int, free: set[int], cost: float, longest: int, windows: _Windows
) -> tuple[list[int], float]:
    run, joined = [start], pieces[start]
    while (following := start + len(run)) in free and len(run) < longest:
        longer = f"{joined} {pieces[following]}"
        longer_cost = Levenshtein.normalized_distance(line, longer)
        if longer_cost > cost:
            break
        # The last piece of the run was checked when it came, but for the first.
        if len(run) == 1 and not _fits(pieces[start], line, windows, inclusive=True):
            break
        if not _fits(pieces[following], line, windows, inclusive=False):
            break
        run.append(following)
        joined, cost = longer, longer_cost
        if len(joined) > len(line):
            break
    return run, cost


def _is_within(line: str, text: str, windows: _Windows) -> bool:
    distance = windows.distance(line, text, _WITHIN)
    return distance is not None and distance < _WITHIN


def _fits(piece: str, line: str, windows: _Windows, inclusive: bool) -> bool:
    distance = windows.distance(piece, line, _MERGED)
    return distance is not None and (distance <= _MERGED if inclusive else distance < _MERGED)


def _best_runs(runs: Sequence[tuple[list[int], float]]) -> list[list[int]]:
    """Runs that do not overlap, of the least mean cost where they compete."""
    groups: list[list[tuple[list[int], float]]] = []
    for run in sorted(runs, key=lambda each: each[0][0]):
        if groups and any(set(run[0]) & set(other[0]) for other in groups[-1]):
            groups[-1].append(run)
        else:
            groups.append([run])
    best = []
    for group in groups:
        paths: list[list[tuple[list[int], float]]] = [group[:1]]
        for run in group[1:]:
            placed = False
            for path in paths:
                same = next((index for index, other in enumerate(path) if other[0] == run[0]), None)
                if same is not None:
                    path[same] = min(path[same], run, key=lambda each: each[1])
                    placed = True
                elif not any(set(run[0]) & set(other[0]) for other in path):
                    path.append(run)
                    placed = True
            if not placed:
                paths.append([run])
        best += [run for run, _ in min(paths, key=lambda path: sum(cost for _, cost in path) / len(path))]
    return best


def _with_runs(count: int, runs: Sequence[list[int]]) -> list[list[int]]:
    starts = {run[0]: run for run in runs}
    inside = {index for run in runs for index in run[1:]}
    return [starts.get(index, [index]) for index in range(count) if index not in inside]


def simple_match(
    truth: Sequence[Element],
    predicted: Sequence[Element],
    normal: Callable[[Element], str] = lambda element: element.content,
) -> tuple[list[tuple[int, int | None]], list[int]]:
    """Match one to one, whatever the distance.

    Returns:
        Places of the truth, each with one of the prediction or None; and the places of what is left of the prediction.
    """
    return _one_to_one(list(map(normal, truth)), list(map(normal, predicted)))


def _one_to_one(truth: Sequence[str], predicted: Sequence[str]) -> tuple[list[tuple[int, int | None]], list[int]]:
    if not truth or not predicted:
        return [(index, None) for index in range(len(truth))], list(range(len(predicted)))
    pairs = dict(assignment(distances(truth, predicted)))
    left = [index for index in range(len(predicted)) if index not in pairs.values()]
    return [(index, pairs.get(index)) for index in range(len(truth))], left
