"""Scores of one page against its drawn truth: characters, tables, formulas, reading order, what the Markdown lacks."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from pagemill.errors import TooLargeError
from pagemill_eval.teds import teds
from pagemill_eval.text import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pages.layouts import Block

FOUND = 0.6
"""Most edits per character at which a stretch of the prediction counts as an element; beyond it the element is lost."""
_TAKEN = "\0"
_OPTIONAL = ("furniture", "margin")
"""Kinds that the Markdown may hold or leave out."""
_BULLET = re.compile(r"^\s*(?:[-*+•–‣▪])\s+", re.MULTILINE)
_TABLE = re.compile(r"<table.*?</table>", re.DOTALL | re.IGNORECASE)
_PIPES = re.compile(r"(?:^[ \t]*\|.*\|[ \t]*(?:\n|$))+", re.MULTILINE)
_DISPLAY = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]", re.DOTALL)
_INLINE = re.compile(r"(?<![\\$])\$([^$\n]+?)(?<!\\)\$|\\\((.+?)\\\)")
_LEADER = re.compile(r"(?:\s*[.·․…‥]){3,}\s*|\s*…\s*")
_FENCE = re.compile(r"^(?:```|~~~).*$", re.MULTILINE)


@dataclass(slots=True)
class PageScore:
    """What one page scored. Ratios are None where the page has nothing to score."""

    cer: float
    """Edits to the elements' characters and characters that belong to none, per true character; at most 1."""
    order: float | None
    """Edit distance of the order of the elements found, per element."""
    missing: int
    """True elements that were not found."""
    teds: list[float] = field(default_factory=list)
    teds_s: list[float] = field(default_factory=list)
    false_tables: int = 0
    formula: list[float] = field(default_factory=list)
    """Normalised edit distance of each displayed formula."""
    pairs: list[float] = field(default_factory=list)
    """Of each label with a value: 1 where the value follows it within a row of the Markdown, else 0."""
    lost_words: int = 0
    """Words in the record that the Markdown lacks, but for running heads and page numbers."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def score_page(blocks: Sequence[Block], markdown: str, regions: Sequence[dict[str, Any]]) -> PageScore:
    """Score the Markdown and the record of a page.

    Characters are compared wherever they stand: each element is looked for in the text of the whole page, so that
    neither the order nor the regions' boundaries matter. Tables count with the text of their cells, row by row.

    Args:
        blocks: The true elements, in reading order.
        markdown: What was made of the page.
        regions: The regions of its record.
    """
    text, formulas = plain_text(markdown)
    elements = [element_text(block) for block in blocks]
    of_forms = any(block.kind == "field" and block.style for block in blocks)
    if of_forms:  # what leads the eye from label to value is no text
        text = _LEADER.sub(" ", text)
    places, rest = locate(elements, text)
    errors = length = missing = 0
    found: list[tuple[int, int]] = []
    for index, (block, element, place) in enumerate(zip(blocks, elements, places, strict=True)):
        if not element or block.kind == "formula" or block.kind in _OPTIONAL:
            continue
        length += len(element)
        errors += place[1] if place else len(element)
        missing += place is None
        if place and block.ordered:
            found.append((place[0], index))
    errors += sum(1 for character in rest if character != _TAKEN and not character.isspace())
    predicted_tables = [str(region["content"]) for region in regions
                        if region.get("content_format") == "html" and region.get("content")]  # fmt: skip
    order = _order(found, [block.article for block in blocks])
    score = PageScore(min(1.0, errors / length) if length else 0.0, order, missing)
    true_tables = [block.html for block in blocks if block.kind == "table"]
    score.teds, score.teds_s = _score_tables(true_tables, predicted_tables)
    if not of_forms:  # fields may be rows of tables
        score.false_tables = max(0, len(predicted_tables) - len(true_tables))
    score.pairs = _score_pairs(blocks, markdown)
    score.formula = _score_formulas([block.latex for block in blocks if block.kind == "formula"], formulas)
    score.lost_words = _lost_words(blocks, text + " " + " ".join(latex_text(formula) for formula in formulas), regions)
    return score


def differences(blocks: Sequence[Block], markdown: str, most: int = 8) -> list[str]:
    """The elements with the most edits beside what was read there, and what belongs to none; for people.

    Args:
        blocks: The true elements, in reading order.
        markdown: What was made of the page.
        most: Elements to tell.
    """
    text, _ = plain_text(markdown)
    elements = [element_text(block) for block in blocks]
    places, rest = locate(elements, text)
    lines = []
    for block, element, place in zip(blocks, elements, places, strict=True):
        if element and block.kind not in (*_OPTIONAL, "formula") and (place is None or place[1]):
            edits = place[1] if place else len(element)
            lines.append((edits, f"  {block.kind}, {edits} edits: {element[:100]}"))
            if place:
                lines.append((edits, f"  {'read as':>{len(block.kind)}}: {text[place[0] : place[0] + 100]}"))
    lines.sort(key=lambda line: -line[0])
    left = " ".join(rest.replace(_TAKEN, " ").split())
    return [line for _, line in lines[: 2 * most]] + ([f"  belongs to nothing: {left[:300]}"] if left else [])


def plain_text(markdown: str) -> tuple[str, list[str]]:
    """The text of Markdown without its marks, normalised; and the displayed formulas, which are taken out of it."""
    formulas: list[str] = []

    def take(match: re.Match[str]) -> str:
        formulas.append((match[1] or match[2]).strip())
        return "\n"

    text = re.sub(r"<!--.*?-->", " ", markdown, flags=re.DOTALL)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    parts = re.split(r"(^```.*?^```[ \t]*$)", text, flags=re.DOTALL | re.MULTILINE)
    for index, part in enumerate(parts):
        if part.startswith("```"):
            parts[index] = _FENCE.sub("", part)
            continue
        part = _DISPLAY.sub(take, part)
        part = _TABLE.sub(lambda match: "\n" + table_text(match[0]) + "\n", part)
        part = _PIPES.sub(_pipe_text, part)
        part = _INLINE.sub(lambda match: latex_text(match[1] or match[2]), part)
        part = re.sub(r"</?[a-zA-Z][^<>]*>", "", re.sub(r"<br\s*/?>", " ", part))
        part = re.sub(r"^\s*#{1,6}\s+|^\s*>\s?", "", part, flags=re.MULTILINE)
        part = _BULLET.sub("", part)
        part = part.replace("[ ]", "☐").replace("[x]", "☑").replace("**", "")
        parts[index] = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", part)
    return _folded(html.unescape("\n".join(parts))), formulas


def _folded(text: str) -> str:
    """Normalised; letters of formulas as plain letters, no space around signs of arithmetic: both are spelling."""
    text = re.sub("[\U0001d400-\U0001d7ff]", lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return re.sub(r" ?([-=<>≤≥≈+]) ?", r"\1", normalise(text.replace("−", "-")))


def table_text(table: str) -> str:
    """The text of a table's cells, row by row."""
    return html.unescape(re.sub(r"<[^<>]*>", " ", table))


def _pipe_text(match: re.Match[str]) -> str:
    rows = [row for row in match[0].splitlines() if not re.fullmatch(r"[\s|:\-]+", row)]
    return "\n" + "\n".join(" ".join(re.split(r"(?<!\\)\|", row)) for row in rows) + "\n"


_NAMES = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "theta": "θ", "lambda": "λ", "mu": "μ", "pi": "π",
    "rho": "ρ", "sigma": "σ", "omega": "ω", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "approx": "≈", "infty": "∞",
    "sum": "∑", "prod": "∏", "int": "∫", "times": "×", "cdot": "·", "pm": "±", "lt": "<", "gt": ">",
}  # fmt: skip


def latex_text(latex: str) -> str:
    """A formula as characters in a row, for comparison with text that has no LaTeX."""
    text = re.sub(
        r"\\(?:frac|sqrt|hat|bar|vec|left|right|mathrm|text|begin\{\w+\}|end\{\w+\}|,|;|!|quad)(?![a-z])", "", latex
    )
    text = re.sub(r"\\([a-zA-Z]+)", lambda match: _NAMES.get(match[1], match[1]), text)
    return re.sub(r"[\\{}^_$&\s]", "", text).replace("−", "-")


def element_text(block: Block) -> str:
    """The text of an element as it is compared."""
    if block.kind == "table":
        return _folded(table_text(block.html))
    if block.kind == "formula":
        return latex_text(block.latex)
    text = block.text if block.kind == "code" else _BULLET.sub("", block.text)
    if block.kind != "code":
        text = _INLINE.sub(lambda match: latex_text(match[1] or match[2]), text)
    return _folded(text)


def locate(elements: Sequence[str], text: str) -> tuple[list[tuple[int, int] | None], str]:
    """Where each element stands in a text, and with how many edits; the text with what was found struck out.

    First what stands there letter by letter is taken, then the most similar stretch, the longest elements first; what
    is taken is not found again inside of another. An element may be torn in two, as by a column's end.
    """
    places: list[tuple[int, int] | None] = [None] * len(elements)
    longest_first = sorted((i for i in range(len(elements)) if elements[i]), key=lambda i: (-len(elements[i]), i))
    for index in longest_first:
        if (start := text.find(elements[index])) >= 0:
            places[index] = (start, 0)
            text = _strike(text, start, start + len(elements[index]))
    for index in longest_first:
        element = elements[index]
        if places[index] is None and len(element) > 2 and text.strip(_TAKEN + " "):
            found, distance = nearest(element, text)
            if distance <= FOUND * len(element):
                places[index] = (found[0][0], distance)
                for start, end in found:
                    text = _strike(text, start, end)
    return places, text


def _strike(text: str, start: int, end: int) -> str:
    return text[:start] + _TAKEN * (end - start) + text[end:]


_TEAR = 3
"""Edits that tearing an element in two counts in the choice: so a letter is not looked for elsewhere."""


def nearest(element: str, text: str) -> tuple[list[tuple[int, int]], int]:
    """The stretch of a text, or the two stretches, with the fewest edits to an element.

    Returns:
        Start and end of each stretch, and the edits.
    """
    ends, prefixes = _ends(element, text)
    whole = int(ends.min())
    if whole <= 4 * _TEAR:
        return [_stretch(element, text, ends)], whole
    _, suffixes = _ends(element[::-1], text[::-1])
    torn = prefixes + suffixes[::-1]  # at each place of the element: fewest edits of what is before it and after it
    place = int(np.argmin(torn))
    if torn[place] + _TEAR >= whole:
        return [_stretch(element, text, ends)], whole
    first = _stretch(element[:place], text, _ends(element[:place], text)[0])
    rest = _strike(text, *first)
    found = _ends(element[place:], rest)[0]
    edits = int(prefixes[place]) + int(found.min())  # what both halves would take counts once
    if edits + _TEAR >= whole:
        return [_stretch(element, text, ends)], whole
    return [first, _stretch(element[place:], rest, found)], edits


def _stretch(element: str, text: str, ends: np.ndarray[tuple[int], np.dtype[np.int32]]) -> tuple[int, int]:
    end = int(np.argmin(ends))
    window = text[max(0, end - 2 * len(element)) : end]
    return end - int(np.argmin(_ends(element[::-1], window[::-1])[0])), end


def _ends(
    element: str, text: str
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """Fewest edits from an element to a stretch that ends at each place of a text (Sellers).

    Returns:
        They, and the fewest edits of each of the element's beginnings, from the empty one to all of it.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    columns = np.arange(len(codes) + 1, dtype=np.int32)
    row = np.zeros(len(codes) + 1, dtype=np.int32)
    least = np.zeros(len(element) + 1, dtype=np.int32)
    for index, character in enumerate(element, start=1):
        below = row + 1
        below[0] = index
        np.minimum(below[1:], row[:-1] + (codes != ord(character)), out=below[1:])
        row = np.minimum.accumulate(below - columns) + columns  # insertions
        least[index] = row.min()
    return row, least


def _order(found: list[tuple[int, int]], articles: Sequence[int]) -> float | None:
    """Edit distance of the order of elements, per element; articles come in the order in which they were read."""
    if len(found) < 2:
        return None
    predicted = [index for _, index in sorted(found)]
    read: defaultdict[int, list[int]] = defaultdict(list)
    for place, index in enumerate(predicted):
        read[articles[index]].append(place)
    true = sorted(predicted, key=lambda index: (float(np.median(read[articles[index]])), articles[index], index))
    return Levenshtein.distance(predicted, true) / len(predicted)


def _score_tables(true: Sequence[str], predicted: Sequence[str]) -> tuple[list[float], list[float]]:
    """TEDS and TEDS-S of each true table with its own predicted one; the most similar pairs are matched first."""
    cleaned = [_clean_table(table) for table in predicted]
    pairs = sorted(
        ((_teds(guess, table, False), i, j) for i, table in enumerate(true) for j, guess in enumerate(cleaned)),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    full, structure = [0.0] * len(true), [0.0] * len(true)
    used: set[int] = set()
    matched: set[int] = set()
    for score, i, j in pairs:
        if i not in matched and j not in used:
            matched.add(i)
            used.add(j)
            full[i], structure[i] = score, _teds(cleaned[j], true[i], True)
    return full, structure


def _clean_table(table: str) -> str:
    table = re.sub(r"<caption.*?</caption>", "", table, flags=re.DOTALL)
    table = re.sub(r"<br\s*/?>", " ", table)
    return re.sub(r"</?(?:thead|tbody|tfoot|b|strong|i|em|u|p|div|span)\b[^<>]*>", "", table)


def _teds(predicted: str, true: str, structure_only: bool) -> float:
    try:
        return max(0.0, teds(predicted, true, structure_only))
    except TooLargeError:
        return 0.0


_DELETED = re.compile(
    r"\\(?:tag|hspace|begin|end)\{[^{}]*\}|\\(?:mathbf|mathrm|mathit|mathbb|mathcal|mathsf|text|operatorname|boldsymbol"
    r"|displaystyle|left|right|quad|qquad|,|;|:|!)(?![a-zA-Z])|[\s$]"
)


def normalise_formula(latex: str) -> str:
    """What is compared of LaTeX: without spacing, fonts, environments' names and case (OmniDocBench's rule)."""
    return re.sub(r"^\.+|\.+$", "", _DELETED.sub("", latex)).replace("\\limits", "").lower()


def _score_formulas(true: Sequence[str], predicted: Sequence[str]) -> list[float]:
    """Normalised edit distance of each true formula to its own predicted one; without one 1."""
    goals = [normalise_formula(latex) for latex in true]
    guesses = [normalise_formula(latex) for latex in predicted]
    pairs = sorted(
        (Levenshtein.normalized_distance(goal, guess), i, j)
        for i, goal in enumerate(goals)
        for j, guess in enumerate(guesses)
    )
    scores = [1.0] * len(goals)
    used: set[int] = set()
    matched: set[int] = set()
    for distance, i, j in pairs:
        if i not in matched and j not in used:
            matched.add(i)
            used.add(j)
            scores[i] = distance
    return scores


_LABEL_EDITS, _VALUE_EDITS = 0.34, 0.25
"""Most edits per character at which a label and a value count as read: the measure tells rows, not letters."""


def _score_pairs(blocks: Sequence[Block], markdown: str) -> list[float]:
    """For each field with a value whether a row of the Markdown has the value right behind the label."""
    lines = re.sub(r"(?=<tr\b)|(?<=</tr>)", "\n", re.sub(r"<br\s*/?>", " ", markdown)).split("\n")
    rows = [row for line in lines if (row := _letters(plain_text(line)[0]))]
    scores = []
    for block in blocks:
        if block.kind == "field" and block.value:
            value = _letters(block.value)
            scores.append(float(any(_follows(_letters(block.text)[: -len(value)], value, row) for row in rows)))
    return scores


def _follows(label: str, value: str, row: str) -> bool:
    ends, _ = _ends(label, row)
    begins, _ = _ends(value[::-1], row[::-1])
    return bool(((ends <= _LABEL_EDITS * len(label)) & (begins[::-1] <= _VALUE_EDITS * len(value))).any())


def _letters(text: str) -> str:
    return "".join(re.findall(r"\w", text)).casefold()


def _lost_words(blocks: Sequence[Block], text: str, regions: Sequence[dict[str, Any]]) -> int:
    """Words of the record that the Markdown has fewer times, those of running heads and page numbers left out.

    Formulas count by their signs; a word that a column breaks is one word in the Markdown.
    """
    written = Counter(_words(text))
    recorded: list[str] = []
    for region in regions:
        if not (content := region.get("content")):
            continue
        is_latex = region.get("content_format") == "latex"
        words = _words(latex_text(content) if is_latex else plain_text(str(content))[0])
        if words and recorded and recorded[-1] + words[0] in written:
            words[0] = recorded.pop() + words[0]
        recorded += words
    furniture = Counter(word for block in blocks if block.kind == "furniture" for word in _words(block.text))
    return (Counter(recorded) - written - furniture).total()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
