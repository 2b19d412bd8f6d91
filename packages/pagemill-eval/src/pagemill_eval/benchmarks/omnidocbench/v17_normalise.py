"""Normalisation of texts, formulas and tables in OmniDocBench v1.7."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pagemill_eval.benchmarks.omnidocbench.elements import substituted, up_to_last
from pagemill_eval.benchmarks.omnidocbench.normalise import (
    COMMANDS,
    ESCAPED,
    clean_text,
    framed_table,
    hide_tags,
    latex_to_text,
    replaced_formulas,
    soup,
)

_LONGEST_FORMULA = 128
_LONGEST_LATEX = 8000
"""Longer LaTeX is not converted to text."""
_CIRCLED_COMMAND = re.compile(r"\\textcircled\s*\{\s*([^{}]+?)\s*\}")
_CIRCLED = {
    **{0x2460 + number: str(number + 1) for number in range(20)},
    **{
        first + number: chr(ord(letter) + number)
        for first, letter in ((0x24D0, "a"), (0x24B6, "A"))
        for number in range(26)
    },
}
_STRUCTURE = ("\\begin{", "\\end{", "\\array", "\\matrix", "\\tabular", "\\cases", "\\align", "\\\\", "&")

_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_TAG = re.compile(r"\\tag(?![^\W\d_])\s*(?:\*\s*)?(\{)?")
_PHANTOM = re.compile(r"\\phantom(\{)")
_DISPLAYED = re.compile(r"\\\[(.+?)(?<!\\)\\\]|\\\((.+?)(?<!\\)\\\)")
_SPACING = re.compile(r"\\[!,;:]")
_ALIGNMENT = re.compile(r"(?<!\\)&")
_ENVIRONMENTS = [
    re.compile(pattern) for pattern in (r"\\hspace\{.*?\}", r"\\begin\{.*?\}", r"\\end\{.*?\}", r"\\arraycolsep.*?\}")
]
_COLUMNS = re.compile(r"\{[lcr| ]+\}")
_ATOM = re.compile(r"\{([A-Za-z0-9.+\-]+)\}")
_GROUP = re.compile(r"\{([^{}]{1,160})\}")
_OPERATOR = re.compile(r"[=+\-^_\[\]()]|\\\\")

_WORD = re.compile(r"[A-Za-z]{3,}")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_MARKUP = re.compile(r"\\[A-Za-z]+|[_^{}$]|\\[\[\]()]]|&|%|#")
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([^{}]+)\}")
_BRACE = re.compile(r"\\[{}\[\]()]|([{}])")

_LETTERS = (
    *("alpha α", "beta β", "gamma γ", "gama γ", "mu μ", "lambda λ", "theta θ", "eta η", "pi π", "rho ρ", "sigma σ"),
    *("omega ω", "delta δ", "Delta Δ", "epsilon ε", "varepsilon ε", "phi φ", "varphi φ", "tau τ", "partial ∂"),
)
_CELL_COMMANDS = [
    letter.split()
    for letter in (
        *("checkmark √", "checked √", "surd √", "times ×", "xmark ×", "crossmark ×", "pm ±", "mp ∓"),
        *_LETTERS,
        *("varnothing ∅", "emptyset ∅", "sim ～"),
    )
]
"""In this order, wherever they are: ``\\pitch`` becomes ``πtch``."""
_CELL_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("✓✔☑✅🗸", "√"),
        **dict.fromkeys("✗✘✕✖☒❌╳⨯", "×"),
        **dict.fromkeys("∼〜", "～"),
        "Ø": "∅",
    }
)
_DASHES = frozenset("-–−－—")


def plain_text(text: str) -> str:
    """Word characters alone, formulas within lines as text."""
    return clean_text(_uncircled(text_of(text)))


def text_of(text: str) -> str:
    """A text whose formulas within lines are text, but for long and structured ones; circled characters are plain."""

    def plain(formula: str) -> str | None:
        latex = ESCAPED.sub("", formula)
        if not any(character in latex for character in "\\^_"):
            return None
        if latex.endswith("\\"):
            latex += " "
        bare = latex.strip()
        is_long = len(bare) > _LONGEST_FORMULA or bare.count("{") != bare.count("}")
        return None if is_long or any(token in bare for token in _STRUCTURE) else plain_latex(latex)

    return replaced_formulas(_uncircled(text), plain)


def with_normal_formulas(text: str) -> str:
    """A text whose formulas within lines are normalised as display formulas are."""
    return replaced_formulas(text, plain_formula)


def _uncircled(text: str) -> str:
    return _CIRCLED_COMMAND.sub(lambda match: match[1].strip(), text).translate(_CIRCLED)


def plain_latex(latex: str) -> str:
    """LaTeX as text, if it looks like complete LaTeX; otherwise unchanged."""
    bare = latex.strip()
    if not any(character in bare for character in "\\{}$"):
        return bare or latex
    is_cut = (len(bare) - len(bare.rstrip("\\"))) % 2  # pylatexenc reads that for ever, and the scorer gives up
    if is_cut or _is_prose(bare) or _is_hardly_latex(bare) or not is_whole(bare):
        return latex
    text = latex_to_text(bare)
    return latex if text is None else text


def _is_prose(latex: str) -> bool:
    if len(latex) < 32 or len(_MARKUP.findall(latex)) > 2 or any(character in latex for character in "{}$^_"):
        return False
    commands = ("\\frac", "\\sqrt", "\\left", "\\right", "\\begin", "\\end", "\\sum", "\\int", "\\alpha", "\\beta")
    return not any(command in latex for command in commands) and len(_WORD.findall(latex)) > 5 and latex.count(" ") > 4


def _is_hardly_latex(latex: str) -> bool:
    commands, words = len(_COMMAND.findall(latex)), len(_WORD.findall(latex))
    signs = sum(latex.count(character) for character in "{}$^_=&%#")
    if (
        latex in ("\\", "\\\\")
        or (words > 1 and not commands and signs < 2)
        or (words > 3 and commands < 2 and signs < 3)
    ):
        return True
    return not commands and "\\" in latex and (not signs or (latex.endswith("\\") and not latex.endswith("\\\\")))


def is_whole(latex: str, *, is_table: bool = False) -> bool:
    """Whether braces, environments and, of a formula, delimiters are closed, and it is not too long to convert."""
    depth = 0
    for match in _BRACE.finditer(latex):
        depth += {"{": 1, "}": -1}.get(match[1], 0)
        if depth < 0:
            break
    opened: list[str] = []
    for match in _ENVIRONMENT.finditer(latex):
        if match[1] == "begin":
            opened.append(match[2])
        elif not opened or opened.pop() != match[2]:
            return False
    if depth or opened or len(latex) > _LONGEST_LATEX:
        return False
    pairs = ((r"\\left\b", r"\\right\b"), (r"\\\(", r"\\\)"), (r"\\\[", r"\\\]"))
    dollars = len(re.findall(r"(?<!\\)\$", latex))
    return is_table or (
        not dollars % 2 and all(len(re.findall(a, latex)) == len(re.findall(b, latex)) for a, b in pairs)
    )


def without_delimiters(latex: str) -> str:
    """A formula without its delimiters, even repeated ones."""
    return _undelimited(latex, lambda inner: True)


def without_tags(latex: str) -> str:
    """A formula without its number."""
    return _without_groups(latex, _TAG, "\\tag").replace("\\notag", "").replace("\\nonumber", "")


def _without_groups(latex: str, opener: re.Pattern[str], command: str) -> str:
    """Delete a command with its group, in which there may be others. One that is not closed loses the command alone.

    The rules look no further behind such a one if it is a phantom.
    """
    ends = _ends_of_groups(latex)
    kept: list[str] = []
    first = place = 0
    while match := opener.search(latex, place):
        place = match.start() + len(command)
        if match[1] is None:
            continue
        kept.append(latex[first : match.start()])
        end = ends.get(match.end() - 1)
        first = place = place if end is None else end
        if end is None and opener is _PHANTOM:
            break
    return "".join(kept) + latex[first:]


def _ends_of_groups(text: str) -> dict[int, int]:
    """Where each group that is closed ends, behind its brace, by where it begins."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            ends[opened.pop()] = brace.end()
    return ends


@lru_cache(maxsize=4096)
def plain_formula(latex: str) -> str:
    """A formula without delimiters, number, styles, spaces and needless braces, in lower case."""
    latex = without_tags(without_delimiters(_uncircled(latex)))
    if match := _DISPLAYED.search(latex, 0, max(up_to_last("\\]", latex), up_to_last("\\)", latex))):
        latex = (match[1] or match[2]).strip()
    latex = _ALIGNMENT.sub("", _SPACING.sub("", _without_groups(latex, _PHANTOM, "\\phantom")))
    for command, character in (("\\mid", "|"), ("\\vert", "|"), ("\\{", ""), ("\\}", ""), ("~", "")):
        latex = latex.replace(command, character)
    for pattern in _ENVIRONMENTS:
        latex = substituted(pattern, "}", "", latex)
    latex = _COLUMNS.sub("", latex).strip(".")
    for command in COMMANDS:
        latex = latex.replace(command, "")
    before = None
    while latex != before:
        before = latex
        latex = _ATOM.sub(r"\1", latex).replace("{}", "")
        latex = re.sub(r"\}\}+", "}", re.sub(r"\{\{+", "{", latex))
        latex = _GROUP.sub(lambda match: match[1] if _OPERATOR.search(match[1]) else match[0], latex)
    return re.sub(r"\s+", "", latex.lower())


def plain_table(text: str) -> str:
    """The table as in v1.5, with the symbols in its cells unified.

    Raises:
        MissingDependencyError: Beautiful Soup is not installed.
    """
    if "<table" not in text.replace(" ", "").replace("'", '"'):
        return ""
    tree = soup(text)
    for cell in tree.find_all("th"):
        cell.name = "td"
    hide_tags(tree, ["thead", "tbody", "span"])
    tree = soup(str(tree))  # texts that were divided are one
    for node in _strings_in_cells(tree):
        if (plain := plain_cell(str(node))) != str(node):
            node.replace_with(plain)
    return framed_table(html.unescape(str(tree)))


def _strings_in_cells(tree: Any) -> list[Any]:
    """Each once, also in cells within cells, of which the parser makes one for every cell that is not closed."""
    found: list[Any] = []
    tags = [(tree, False)]
    while tags:
        tag, is_inside = tags.pop()
        for child in tag.contents:
            if hasattr(child, "contents"):
                tags.append((child, is_inside or child.name == "td"))
            elif is_inside:
                found.append(child)
    return found


def plain_cell(text: str) -> str:
    """The text of a cell with one character for each symbol, and without the delimiters of a formula around it."""
    text = unicodedata.normalize("NFKC", text).replace("\u200b", "")
    text = _plain_symbols(_undelimited(_plain_symbols(text), _is_short_formula))
    return re.sub(r"\s+", " ", "—" if text.strip() in _DASHES else text).strip()


def _plain_symbols(text: str) -> str:
    for name, character in _CELL_COMMANDS:
        text = text.replace(f"\\{name}", character)
    text = text.translate(_CELL_CHARACTERS)
    for character in "%#&_":
        text = text.replace(f"\\{character}", character)
    return text


def _undelimited(text: str, is_formula: Callable[[str], bool]) -> str:
    """A text without the delimiters around it, as long as what is inside is a formula."""
    text = text.strip()
    while True:
        for opener, closer in _DELIMITERS:
            inner = text[len(opener) : len(text) - len(closer)].strip()
            is_around = text.startswith(opener) and text.endswith(closer) and len(text) >= len(opener + closer)
            if is_around and is_formula(inner):
                text = inner
                break
        else:
            return text


def _is_short_formula(latex: str) -> bool:
    return 0 < len(latex) <= _LONGEST_FORMULA and not set(latex) & set("<>$")
