"""OmniDocBench after v1.5."""

from __future__ import annotations

from pagemill_eval.benchmark import Rules
from pagemill_eval.benchmarks.omnidocbench.benchmark import OmniDocBenchV15
from pagemill_eval.benchmarks.omnidocbench.elements import Category, Element
from pagemill_eval.benchmarks.omnidocbench.formula_lines import lines_of
from pagemill_eval.benchmarks.omnidocbench.formula_matching import match_formulas
from pagemill_eval.benchmarks.omnidocbench.matching import (
    FORMULAS,
    MAX_WINDOW_STEPS,
    Match,
    MatchRules,
    quick_match,
    simple_match,
)
from pagemill_eval.benchmarks.omnidocbench.pages import PageMatch, TextPair, pool_of, predicted_order, true_order
from pagemill_eval.benchmarks.omnidocbench.second_match import as_text, matched_again
from pagemill_eval.benchmarks.omnidocbench.truth import FORMULA, IGNORED, TABLE, Page, true_elements
from pagemill_eval.benchmarks.omnidocbench.v17_elements import LaterReader, converts_latex
from pagemill_eval.benchmarks.omnidocbench.v17_normalise import (
    plain_formula,
    plain_table,
    plain_text,
    without_delimiters,
)
from pagemill_eval.cdm import OMNIDOCBENCH

V17 = MatchRules(
    normal_text=plain_text,
    normal_formula=plain_formula,
    lines=lines_of,
    bare=without_delimiters,
    order_of_line=lambda order, line: order + line / 1000,
    attaches_formulas=False,
    longest_run=160,
    window_steps=10 * MAX_WINDOW_STEPS,
    reports_ignored=True,
)


_NO_CONVERTER = "a LaTeX table is not scored: latexmlc is not installed"


class OmniDocBenchV17(OmniDocBenchV15):
    """OmniDocBench v1.7: 1,651 pages. A page without a prediction is an empty one, by the official rules as well."""

    name = "omnidocbench-v1.7"
    title = "OmniDocBench v1.7"
    origin = "OmniDocBench v1.7 (dangvu53/OmniDocBench 9c594aa)"
    cdm_rules = OMNIDOCBENCH
    rounds_components = False
    skips_missing = False
    most_nodes = 3000
    """For the 120 s that the official scorer takes at most: apted needs 3.3 s for a table of 533 elements, and ten
    times as long for three times as many."""

    def normal_table(self, text: str) -> str:
        """What of a table counts."""
        return plain_table(text)

    def match(self, page: Page, markdown: str, rules: Rules) -> PageMatch:
        """Match a page's truth with its prediction."""
        return match_page(page, markdown, rules)


def match_page(page: Page, markdown: str, rules: Rules = Rules.OFFICIAL) -> PageMatch:
    """Match a page's truth with its predicted Markdown.

    Args:
        page: From the published file.
        markdown: The prediction.
        rules: The official ones lose the place of a page's first predicted table.
    """
    ignored = {
        detection.anno_id for detection in page.layout_dets if detection.ignore and detection.anno_id is not None
    }
    text, tables = true_elements(page, repeat=False, without=ignored)
    elements = LaterReader().elements(markdown)
    predicted = [element for element in elements if element.category == Category.HTML_TABLE]
    contents = [table.content for table in tables if _table_key(table)]
    table_pairs, _ = simple_match([table for table in tables if _table_key(table)], predicted, _table_key)
    first = 1 if rules is Rules.OFFICIAL else 0
    placed = [(tables[true].start, predicted[at].start) for true, at in table_pairs if at is not None and at >= first]

    pool = pool_of(elements)
    matches = matched_again([as_text(match) for match in quick_match(text, pool, V17)], pool)
    texts = [match for match in matches if match.truth_category not in (FORMULA, *IGNORED)]
    possible = [element for element in elements if element.category == Category.POSSIBLE_FORMULA]
    formulas = match_formulas(
        [element for element in text if element.category == FORMULA],
        [*(element for element in pool if element.category in FORMULAS), *possible],
        [match for match in matches if match.truth_category == FORMULA],
        V17,
    )
    counted = {detection.category_type for detection in page.layout_dets if not detection.ignore}
    lost = any(element.category == Category.LATEX_TABLE for element in elements)
    return PageMatch(
        texts=[_pair(match) for match in texts],
        formulas=[_pair(match) for match in formulas],
        tables=[(contents[true], "" if other is None else predicted[other].content) for true, other in table_pairs],
        true_order=true_order([*texts, *formulas], [tables[true].start for true, _ in table_pairs]),
        predicted_order=predicted_order([*texts, *formulas], placed),
        without_tables=0.0 if TABLE in counted else None,
        without_formulas=0.0 if FORMULA in counted else None,
        note="" if not lost or converts_latex() else _NO_CONVERTER,
    )


def _table_key(table: Element) -> str:
    return plain_table(table.content) if "<table" in table.content.lower() else table.content


def _pair(match: Match) -> TextPair:
    """The texts of a match; one of which nothing is left counts as it is."""
    return TextPair(
        match.normal_truth or match.raw_truth,
        match.normal_prediction or match.raw_prediction,
        match.raw_truth,
        match.raw_prediction,
    )
