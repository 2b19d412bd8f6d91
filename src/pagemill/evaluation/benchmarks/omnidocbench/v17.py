"""OmniDocBench after v1.5: what its rules change for text, tables and reading order.

The changes to formulas are not all here: display formulas are not cut or joined again after the first matching, text is
not searched for formulas, and titles that were matched badly are not matched again. So figures of formulas differ from
the official ones, and those of text a little.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from pagemill.evaluation.benchmark import Prediction, Rules, Sample, SampleScore
from pagemill.evaluation.benchmarks.omnidocbench.benchmark import (
    OmniDocBenchV15,
    markdown_of,
    page_scores,
    too_large,
)
from pagemill.evaluation.benchmarks.omnidocbench.elements import Category, Element, elements_of
from pagemill.evaluation.benchmarks.omnidocbench.matching import MatchRules, quick_match, simple_match
from pagemill.evaluation.benchmarks.omnidocbench.normalise import (
    clean_text,
    latex_to_text,
    normal_formula,
    normal_table,
    replaced_formulas,
    soup,
)
from pagemill.evaluation.benchmarks.omnidocbench.pages import (
    PageMatch,
    TextPair,
    pair_of,
    pool_of,
    predicted_order,
    true_order,
)
from pagemill.evaluation.benchmarks.omnidocbench.truth import FORMULA, IGNORED, Page, composed, true_elements
from pagemill.evaluation.cdm import OMNIDOCBENCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.evaluation.benchmarks.omnidocbench.matching import Match

_LONGEST_FORMULA = 128
_ESCAPED = re.compile(r"\\([\\_&%^])")
_CIRCLED = re.compile(r"\\textcircled\{(.*?)\}")
_CIRCLES = re.compile("[\u2460-\u2473\u24b6-\u24ea]")
_REMOVED_FROM_FORMULAS = re.compile(
    r"\\tag\*\{.*?\}|\\nonumber|\\phantom\{.*?\}|\\[!,;:]|&|\\[{}]|~|(?<=\\begin\{array\})\{[^}]*\}|\s+"
)
_SIMPLE_BRACES = re.compile(r"\{([^{}\\])\}")
_CELL = re.compile(r"(<td[^>]*>)(.*?)(</td>)", re.DOTALL)
_WRAPPED_CELL = re.compile(r"\$(.*)\$|\\\((.*)\\\)", re.DOTALL)
_CELL_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("✓✔☑", "√"),
        **dict.fromkeys("✗✘✕✖", "×"),
        **dict.fromkeys("∼〜", "～"),
        "Ø": "∅",
        "\u00a0": " ",
        "\u200b": None,
    }
)
_GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"),
    *("xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
)
_OPERATORS = {
    "times": "×",
    "pm": "±",
    "leq": "≤",
    "le": "≤",
    "geq": "≥",
    "ge": "≥",
    "neq": "≠",
    "approx": "≈",
    "cdot": "·",
    "div": "÷",
    "rightarrow": "→",
    "leftarrow": "←",
    "uparrow": "↑",
    "downarrow": "↓",
    "sim": "～",
    "infty": "∞",
}


def _letter(name: str) -> str:
    case = "CAPITAL" if name[0].isupper() else "SMALL"
    return unicodedata.lookup(f"GREEK {case} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}")


_MACROS = {**_OPERATORS, **{name: _letter(name) for each in _GREEK for name in (each, each.capitalize())}}
_MACRO = re.compile(r"\\(" + "|".join(sorted(_MACROS, key=len, reverse=True)) + r")(?![A-Za-z])")


def plain_text(text: str) -> str:
    """Word characters alone; circled characters are those inside, and long or structured formulas stay as they are."""
    text = _CIRCLED.sub(r"\1", text)
    text = _CIRCLES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)

    def plain(formula: str) -> str | None:
        if len(formula) > _LONGEST_FORMULA or "\\begin" in formula or "\\\\" in formula or "&" in formula:
            return None
        latex = _ESCAPED.sub("", formula)
        if latex.count("{") != latex.count("}") or not any(character in latex for character in "\\^_"):
            return None
        return latex_to_text(latex)

    return clean_text(replaced_formulas(text, plain))


def plain_formula(latex: str) -> str:
    """As of v1.5, with fewer spaces, delimiters and braces."""
    latex = _REMOVED_FROM_FORMULAS.sub(lambda match: " " if match[0].isspace() else "", latex)
    latex = re.sub(r"\\(?:mid|vert)(?![A-Za-z])", "|", latex)
    return _SIMPLE_BRACES.sub(r"\1", normal_formula(latex))


def plain_table(html: str) -> str:
    """As of v1.5, with the symbols in cells unified."""
    return _CELL.sub(lambda match: match[1] + _cell(match[2]) + match[3], normal_table(html))


def _cell(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).translate(_CELL_CHARACTERS).strip()
    wrapped = _WRAPPED_CELL.fullmatch(text)
    if wrapped and len(text) <= _LONGEST_FORMULA:
        text = wrapped[1] if wrapped[1] is not None else wrapped[2]
    text = _MACRO.sub(lambda match: _MACROS[match[1]], text)
    text = re.sub(r"\\([%#&_])", r"\1", text).strip()
    return "—" if text in ("-", "–", "−", "—") else text


V17 = MatchRules(
    normal_text=plain_text,
    normal_formula=plain_formula,
    array=re.compile(
        r"\\begin\{(?:array\}\{(?P<columns>[^}]*)|aligned|align\*?|split|gather\*?|multline\*?|eqnarray\*?)\}"
        r"(?P<body>.*?)\\end\{(?:array|aligned|align\*?|split|gather\*?|multline\*?|eqnarray\*?)\}",
        re.DOTALL,
    ),
    columns=re.compile(r"|[clr]|[clr]*[lr][clr]*"),
    order_of_line=lambda order, line: order + line / 1000,
    attaches_formulas=False,
    longest_run=160,
)


class OmniDocBenchV17(OmniDocBenchV15):
    """OmniDocBench v1.7, text, tables and reading order: 1,651 pages.

    A page without a prediction is an empty one, by the official rules as well.
    """

    name = "omnidocbench-v1.7"
    title = "OmniDocBench v1.7"
    cdm_rules = OMNIDOCBENCH
    rounds_components = False
    origin = "OmniDocBench v1.7 (dangvu53/OmniDocBench 9c594aa) without its rematching of formulas"

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Match the page and score its pairs."""
        markdown, note = markdown_of(prediction)
        page = sample.truth
        if rules is Rules.PAGEMILL:
            markdown, page = unicodedata.normalize("NFC", markdown), composed(page)
        metrics, terms, pairs = page_scores(match_page(*truth_of(page), markdown), self.cdm_rules, plain_table)
        return SampleScore(
            id=sample.id,
            status=prediction.status,
            metrics=metrics,
            pairs=pairs,
            terms=terms,
            groups=sample.groups,
            error=prediction.error or note or too_large(pairs),
        )


def truth_of(page: Page) -> tuple[list[Element], list[Element]]:
    """Text and formulas of a page, and its tables, without those that are marked to be ignored."""
    ignored = {each.anno_id for each in page.layout_dets if each.ignore and each.anno_id is not None}
    return true_elements(page, repeat=False, without=ignored)


def match_page(text: Sequence[Element], tables: Sequence[Element], markdown: str) -> PageMatch:
    """Match a page's truth with its predicted Markdown.

    Args:
        text: Text and formulas of the truth.
        tables: Tables of the truth.
        markdown: The prediction.
    """
    elements = elements_of(markdown, only_text=True)
    predicted = [element for element in elements if element.category == Category.HTML_TABLE]
    pairs, left = simple_match(tables, predicted, lambda element: plain_table(element.content))
    rows = [row for index in left for row in _rows(predicted[index])] if tables else []
    matches = quick_match(text, [*pool_of(elements), *rows], V17)
    counted = [match for match in matches if match.truth_category not in IGNORED]
    orders = [(tables[true].start, None if other is None else predicted[other].start) for true, other in pairs]
    return PageMatch(
        texts=[_text_pair(match) for match in counted if not _is_formula_pair(match)],
        formulas=[pair_of(match) for match in counted if _is_formula_pair(match)],
        tables=[(tables[true].content, "" if other is None else predicted[other].content) for true, other in pairs],
        true_order=true_order(counted, [order for order, _ in orders]),
        predicted_order=predicted_order(counted, [(order, start) for order, start in orders if start is not None]),
    )


def _rows(table: Element) -> list[Element]:
    texts = [" ".join(row.get_text(" ").split()) for row in soup(table.content).find_all("tr")]
    return [Element(Category.TEXT, text, table.start) for text in texts if text]


def _is_formula_pair(match: Match) -> bool:
    return match.truth_category == FORMULA and match.prediction_category in ("", Category.EQUATION)


def _text_pair(match: Match) -> TextPair:
    """Texts as they are; of a formula beside text both sides as text, without delimiters."""
    formulas = (match.truth_category == FORMULA, match.prediction_category == Category.EQUATION)
    if not any(formulas):
        return pair_of(match)
    truth, predicted = (plain_text(_bare(raw)) for raw in (match.raw_truth, match.raw_prediction))
    return TextPair(truth, predicted, match.raw_truth, match.raw_prediction)


def _bare(latex: str) -> str:
    latex = latex.strip().strip("$").strip()
    return latex[2:-2].strip() if latex.startswith(("\\[", "\\(")) and latex.endswith(("\\]", "\\)")) else latex
