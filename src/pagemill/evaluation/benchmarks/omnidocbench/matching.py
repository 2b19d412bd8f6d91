"""Pairing elements of the truth with those of a prediction, as OmniDocBench v1.5 does it ("quick match")."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from pagemill.errors import lacks_extra
from pagemill.evaluation.benchmarks.omnidocbench.elements import Category, Element
from pagemill.evaluation.benchmarks.omnidocbench.normalise import normal_formula, normal_text
from pagemill.evaluation.benchmarks.omnidocbench.truth import FORMULA, IGNORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

FORMULAS = frozenset({FORMULA, Category.EQUATION})
"""Categories that are normalised as formulas."""
MAX_WINDOW_STEPS = 1e10
"""Work of one page's window distances, after which it is matched one to one, as the official scorer does after 30 s.

In steps of 64 characters: 150 lines and 600 pieces of 70 characters are nearly 1e10 and take 3 s. A count in place of a
time limit gives the same score on every machine.
"""
_CALL_STEPS = 200
"""What a distance costs whatever its length."""
_SETTLED = 0.25
_MERGED = 0.6
_HELD = 0.7
_WITHIN = 0.4
_ARRAY = re.compile(r"\\begin\{array\}\{(?P<columns>[^}]*)\}(?P<body>.*?)\\end\{array\}", re.DOTALL)
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


@dataclass(frozen=True, slots=True)
class MatchRules:
    """What differs between versions of the matching."""

    normal_text: Callable[[str], str]
    normal_formula: Callable[[str], str]
    array: re.Pattern[str]
    """A formula that is one a line: its ``body``, and its ``columns`` if it has any."""
    columns: re.Pattern[str]
    """Columns of such a formula, without separators."""
    order_of_line: Callable[[float, int], float]
    """Place in reading order of a line of a formula."""
    attaches_formulas: bool
    """Whether a formula can be found within a longer piece."""
    longest_run: int
    """Most pieces of one line."""


V15 = MatchRules(
    normal_text=normal_text,
    normal_formula=normal_formula,
    array=_ARRAY,
    columns=re.compile(r"[clr]"),
    order_of_line=lambda order, line: round(order + line / 10, 1),
    attaches_formulas=True,
    longest_run=10**9,
)


def quick_match(truth: Sequence[Element], predicted: Sequence[Element], rules: MatchRules = V15) -> list[Match]:
    """Match the truth of a page with its prediction.

    Args:
        truth: Text and formulas in reading order; ``start`` is their place in it.
        predicted: Text and formulas.
        rules: Of a version.
    """
    split = _split_arrays(truth, rules, ordered=True), _split_arrays(sorted(predicted, key=_inline_last), rules)
    pool = _Pool(*split, rules)
    if not pool.truth:
        return []
    if not pool.predicted:
        return [pool.match([index], []) for index in range(len(pool.truth)) if not pool.is_ignored(index)]
    if len(pool.truth) == len(pool.predicted) == 1:
        return [pool.match([0], [0])]

    kept_truth = [index for index in range(len(pool.truth)) if not pool.is_ignored(index)]
    kept_predicted = _not_ignored(pool)
    if not kept_truth:
        return []
    if not kept_predicted:
        return [pool.match([index], []) for index in kept_truth]
    lines = [pool.truth[index] for index in kept_truth]
    pieces = [pool.predicted[index] for index in kept_predicted]
    attachable = {
        line for line, index in enumerate(kept_truth) if rules.attaches_formulas or not pool.is_formula(index)
    }
    try:
        pairs = _pairs(lines, pieces, rules, attachable, _Windows())
    except _TooMuchWork:
        single, _ = _one_to_one(pool.truth, pool.predicted)
        return [pool.match([line], [] if piece is None else [piece]) for line, piece in single]
    return [
        pool.match([kept_truth[line] for line in line_group], [kept_predicted[piece] for piece in piece_group])
        for line_group, piece_group in pairs
    ]


class _Pool:
    """Elements of both sides, normalised, without those of which nothing is left.

    Order, position and category of an element are read from the list that still holds the empty ones, at the place in
    the list that does not: the official scorer does so.
    """

    def __init__(self, truth: Sequence[Element], predicted: Sequence[Element], rules: MatchRules) -> None:
        self.truth, self._true_elements = _normalised(truth, rules)
        self.predicted, self._predicted_elements = _normalised(predicted, rules)
        self._all_truth, self._all_predicted = truth, predicted

    def is_ignored(self, index: int) -> bool:
        return self._true_elements[index].category in IGNORED

    def is_formula(self, index: int) -> bool:
        return self._true_elements[index].category in FORMULAS

    def match(self, truth: list[int], predicted: list[int]) -> Match:
        categories = Counter(self._true_elements[index].category for index in truth)
        first = self._all_predicted[predicted[0]] if predicted else None
        return Match(
            truth=truth,
            prediction=predicted,
            normal_truth="".join(self.truth[index] for index in truth),
            normal_prediction="".join(self.predicted[index] for index in predicted),
            raw_truth=_raw([self._true_elements[index] for index in truth]),
            raw_prediction=_raw([self._predicted_elements[index] for index in predicted]),
            truth_category=categories.most_common(1)[0][0],
            prediction_category=first.category if first else "",
            orders=[self._all_truth[index].start for index in truth],
            position=first.start if first else None,
        )


def _normalised(elements: Sequence[Element], rules: MatchRules) -> tuple[list[str], list[Element]]:
    texts = [
        (rules.normal_formula if each.category in FORMULAS else rules.normal_text)(each.content) for each in elements
    ]
    kept = [index for index, text in enumerate(texts) if text]
    return [texts[index] for index in kept], [elements[index] for index in kept]


def _raw(elements: Sequence[Element]) -> str:
    if len(elements) > 1 and all(element.category in FORMULAS for element in elements):
        lines = [element.content.strip().strip("$").strip("\n") for element in elements]
        inner = [match[1].strip() if (match := re.search(r"\\\[(.+?)(?<!\\)\\\]", line)) else line for line in lines]
        return "\\begin{array}{l} " + " \\\\ ".join(f"{{{line}}}" for line in inner) + " \\end{array}"
    return "".join(element.content for element in elements)


def _inline_last(element: Element) -> tuple[bool, float]:
    return element.inline, element.start


def _split_arrays(elements: Iterable[Element], rules: MatchRules, ordered: bool = False) -> list[Element]:
    """Formulas of several lines as one formula a line."""
    found = []
    for element in elements:
        match = rules.array.search(element.content) if element.category in FORMULAS else None
        if not match or not rules.columns.fullmatch(_COLUMN_SEPARATORS.sub("", match["columns"] or "")):
            found.append(element)
            continue
        lines = [line.strip() for line in re.split(r"\\\\", match["body"])]
        place = match.start("body")
        for number, line in enumerate((line for line in lines if line), start=1):
            place = element.content.index(line, place)
            start = rules.order_of_line(element.start or 0, number) if ordered else element.start + place
            place += len(line)
            found.append(element.with_content(f"\\[{line}\\]", start))
    return found


def _not_ignored(pool: _Pool) -> list[int]:
    ignored = [text for index, text in enumerate(pool.truth) if pool.is_ignored(index)]
    if not ignored:
        return list(range(len(pool.predicted)))
    nearest = distances(ignored, pool.predicted).min(axis=0)
    return [int(index) for index in np.flatnonzero(nearest >= _SETTLED)]


def distances(one: Sequence[str], two: Sequence[str]) -> NDArray[np.float64]:
    """Normalised edit distance of each text to each other."""
    found: NDArray[np.float64] = cdist(one, two, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    return found


def assignment(costs: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Pairs of rows and columns of least total cost; the official scorers use this very function, ties included.

    Raises:
        MissingDependencyError: SciPy is not installed.
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError as error:
        raise lacks_extra("OmniDocBench needs SciPy", "eval") from error
    rows, columns = linear_sum_assignment(costs)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _pairs(
    lines: Sequence[str], pieces: Sequence[str], rules: MatchRules, attachable: set[int], windows: _Windows
) -> list[tuple[list[int], list[int]]]:
    """Groups of lines of the truth, and the pieces of the prediction for each."""
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
    if waiting and unused:
        rest = costs[np.ix_(waiting, unused)]
        for row, column in assignment(rest):
            groups[(unused[column],)] = [waiting[row]]
        paired = {line for group in groups.values() for line in group}
        waiting = [line for line in waiting if line not in paired]
    return [(sorted(group), list(unit)) for unit, group in groups.items() if group] + [([line], []) for line in waiting]


class _TooMuchWork(Exception):
    """A page's window distances take too long."""


class _Windows:
    """Window distances within a bound on their work."""

    def __init__(self) -> None:
        self._left = MAX_WINDOW_STEPS

    def distance(self, piece: str, text: str, limit: float) -> float | None:
        """As :func:`window_distance`.

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
    """Least edit distance of a piece to the stretches of its length in a text, over that length.

    Args:
        piece: Not empty.
        text: What it is looked for in.
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
