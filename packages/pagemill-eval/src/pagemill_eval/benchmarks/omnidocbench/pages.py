"""One page of OmniDocBench v1.5: its elements matched with those of a prediction, and the score of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from pagemill_eval.benchmarks.omnidocbench.elements import Category, Element, elements_of
from pagemill_eval.benchmarks.omnidocbench.matching import Match, quick_match, simple_match
from pagemill_eval.benchmarks.omnidocbench.normalise import clean_text, latex_to_text, soup
from pagemill_eval.benchmarks.omnidocbench.truth import FORMULA, IGNORED


@dataclass(frozen=True, slots=True)
class TextPair:
    """Normalised texts, and their sources."""

    truth: str
    prediction: str
    raw_truth: str
    raw_prediction: str

    @property
    def distance(self) -> int:
        """Edit distance."""
        return Levenshtein.distance(self.truth, self.prediction)

    @property
    def length(self) -> int:
        """Length of the longer text."""
        return max(len(self.truth), len(self.prediction))


@dataclass(frozen=True, slots=True)
class PageMatch:
    """A page's truth beside its prediction."""

    texts: list[TextPair]
    formulas: list[TextPair]
    tables: list[tuple[str, str]]
    """HTML of truth and prediction."""
    true_order: list[float]
    predicted_order: list[float]
    without_tables: float | None = None
    """TEDS of the page if no table is scored."""
    without_formulas: float | None = None
    """CDM of the page if no formula is scored."""
    note: str = ""
    """Parts of the prediction that this machine could not score."""


def match_page(text: Sequence[Element], tables: Sequence[Element], markdown: str) -> PageMatch:
    """Match a page's truth with its predicted Markdown.

    Args:
        text: Text and formulas of the truth.
        tables: Tables of the truth.
        markdown: The prediction.
    """
    elements = elements_of(markdown)
    table_pairs, cells = _match_tables(tables, elements)
    matches = quick_match(text, [*pool_of(elements), *cells] if cells else pool_of(elements))
    return PageMatch(
        texts=_text_pairs(matches),
        formulas=[pair_of(match) for match in matches if match.truth_category == FORMULA and not _is_text(match)],
        tables=table_pairs,
        true_order=true_order(_texts(matches)),
        predicted_order=predicted_order(_texts(matches)),
    )


def pool_of(elements: Iterable[Element]) -> list[Element]:
    """Text and formulas, the kind that comes first before the other one: what counts among equal starts."""
    texts: list[Element] = []
    formulas: list[Element] = []
    kinds = {Category.TEXT: texts, Category.EQUATION: formulas, Category.FOUND_FORMULA: formulas}
    found: dict[int, list[Element]] = {}
    for element in elements:
        if (kind := kinds.get(Category(element.category))) is not None:
            kind.append(element)
            found[id(kind)] = kind
    return [element for kind in found.values() for element in kind]


def _match_tables(
    tables: Sequence[Element], elements: Sequence[Element]
) -> tuple[list[tuple[str, str]], list[Element]]:
    """Pairs of tables, and the text in the cells of predicted tables that no table of the truth was left for."""
    tables = [table for table in tables if table.content]
    if not tables:
        return [], []
    predicted = [element for element in elements if element.category == Category.HTML_TABLE]
    if sum(element.category == Category.LATEX_TABLE for element in elements) > len(predicted):
        return [(table.content, "") for table in tables], []  # not converted: they score 0
    pairs, left = simple_match(tables, predicted)
    return (
        [(tables[true].content, "" if other is None else predicted[other].content) for true, other in pairs],
        [cell for index in left for cell in _cells(predicted[index])],
    )


def _cells(table: Element) -> list[Element]:
    texts = [cell.string for cell in soup(table.content).find_all("td")]
    return [Element(Category.TEXT, text.replace("$\\cdot$", "").strip(), table.start) for text in texts if text]


def _is_text(match: Match) -> bool:
    """Whether the prediction for a formula is text."""
    return match.prediction_category not in ("", Category.EQUATION)


def _texts(matches: Iterable[Match]) -> list[Match]:
    return [match for match in matches if match.truth_category not in (FORMULA, *IGNORED)]


def pair_of(match: Match) -> TextPair:
    """The texts of a match."""
    return TextPair(match.normal_truth, match.normal_prediction, match.raw_truth, match.raw_prediction)


def _text_pairs(matches: Sequence[Match]) -> list[TextPair]:
    found = [pair_of(match) for match in _texts(matches)]
    for match in matches:
        if match.truth_category == FORMULA and _is_text(match):
            plain = latex_to_text(match.raw_truth)
            plain = match.raw_truth if plain is None else plain
            truth = clean_text(plain) or plain  # a formula of symbols alone is compared as it is
            found.append(TextPair(truth, match.normal_prediction, match.raw_truth, match.raw_prediction))
    return found


def true_order(matches: Iterable[Match], tables: Sequence[float] = ()) -> list[float]:
    """Places of the truth's elements, those of tables beside those of matches."""
    return sorted(order for order in (*tables, *(order for match in matches for order in match.orders)) if order)


def predicted_order(matches: Iterable[Match], tables: Sequence[tuple[float, float]] = ()) -> list[float]:
    """The places in the order in which their elements were predicted; tables with their start."""
    found = [(match.position, match.orders) for match in matches if match.position is not None]
    found += [(start, [order]) for order, start in tables]
    return [order for _, orders in sorted(found, key=lambda each: each[0]) for order in orders if order]
