"""Elements of a predicted page as OmniDocBench v1.7 takes it apart.

Text, descriptions of images and cells of tables that look like formulas are possible formulas as well.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pagemill_eval.benchmarks.omnidocbench.elements import (
    Category,
    Element,
    MarkdownReader,
    delimited,
    images,
    replaced,
    substituted,
    without_fences,
)
from pagemill_eval.benchmarks.omnidocbench.normalise import soup
from pagemill_eval.benchmarks.omnidocbench.v17_normalise import is_whole, plain_latex, plain_table
from pagemill_eval.limited import run_limited

_WRAPPERS = [
    (re.compile(pattern, re.DOTALL), closer)
    for pattern, closer in (
        (r"\$\$(.*?)\$\$", "$$"),
        (r"\\\[(.*?)\\\]", "\\]"),
        (r"\\\((.*?)\\\)", "\\)"),
        (r"\$(.*?)\$", "$"),
    )
]
_INLINE = (("$", "$"), ("\\(", "\\)"))
_DISPLAYED = (("$$", "$$"), ("\\[", "\\]"))
_AROUND = (("\\[", "\\]"), ("\\(", "\\)"), ("$$", "$$"), ("$", "$"))
_OPERATOR = re.compile(
    r"\\(?:frac|sqrt|sum|int|prod|times|div|square|cdots|left|right|approx|xrightarrow|rightarrow|longrightarrow)"
    r"|[=<>≤≥≈÷×±∑∫√→^_□△…%/+-]"
)
_NOT_RESIDUE = re.compile(r"\\[A-Za-z]+|[=<>≤≥÷×±∑∫√^_□△…%/()+\-]|\d|\s")
_CJK = re.compile(r"[\u4e00-\u9fff]")
_LONG_WORD = re.compile(r"[A-Za-z]{4,}")
_FRACTION = re.compile(r"\\frac|\d+\s*/\s*\d+")
_ARITHMETIC = re.compile(r"[=+\-×÷/≈]|\\times|\\div|\\approx")
_RELATION = re.compile(r"[=≈≠≤≥]|\\approx|\\neq|\\leq|\\geq")
_NO_ARITHMETIC = re.compile(
    r"\\begin\{|\\end\{|\\(?:mathbf|left|right|cdot|lambda|Gamma|varGamma|text|matrix|pmatrix|bmatrix)"
)
_AS_LATEX = (
    *(("……", " \\cdots \\cdots "), ("…", " \\cdots "), ("×", " \\times "), ("÷", " \\div "), ("≤", " \\leq ")),
    *(("≥", " \\geq "), ("≠", " \\neq "), ("≈", " \\approx "), ("□", " \\square "), ("△", " \\triangle ")),
    *(("（", "("), ("）", ")"), ("［", "["), ("］", "]"), ("｛", "{"), ("｝", "}")),
)
_ARROW = re.compile(r"(.*?)\\xrightarrow\s*\{([^{}]+)\}(.*)")
_REDOX = "氧化还原反应"

_SPACE = r"(?:\\qquad|\\quad|\\enspace|\\,|\\;|\\:)\s*"
_NUMBER = re.compile(rf"\s*(\\left\(\s*[0-9IVXivx]+\s*\\right\)|\(\s*[0-9IVXivx]+\s*\))\s*(?:{_SPACE})*")
_CAPTIONS = [
    re.compile(rf"{_SPACE}({caption})\s*$") for caption in (r"\\text\s*\{[^{}]*\}\.?", r"\([^)]*[A-Za-z][^)]*\)\.?")
]
_SPACES_AT_END = re.compile(rf"(?:{_SPACE})+$")
_MATHS = re.compile(r"\\[A-Za-z]+|[=<>≤≥÷×±∑∫√_^{}]")
_QUAD = re.compile(r"\s*\\q?quad\s*")

_STRONG = (
    *("=", "<", ">", "≤", "≥", "≈", "≠", "^", "+", "-", "/", "\\cdot", "\\frac", "\\sqrt", "\\sum", "\\int", "\\times"),
    *("\\div", "\\approx", "\\neq", "\\leq", "\\geq", "\\xrightarrow", "\\longrightarrow"),
)
_LABEL = re.compile(r"[A-Za-z0-9._,-]+|[A-Za-z][A-Za-z0-9_.,-]*|[ΓγλμνxyzuvwMNOabcABC0-9._,-]+")

_DESCRIPTION = re.compile(r"the image |the figure |the diagram |diagram:|\[diagram:|\[image:|qr code ")
_HTML_BLOCK = re.compile(r"<(?:div|dir)\b", re.IGNORECASE)
_BLOCK_TAGS = ["div", "dir", "p", "li"]

_LATEX_CONVERTER = "latexmlc"
_CONVERSION_S = 60.0
_PACKAGES = (
    *("subcaption", "url", "graphicx", "caption", "multirow", "booktabs", "color", "colortbl", "fontspec"),
    *("xcolor,soul,framed", "amsmath,amssymb,mathtools,bm,mathrsfs,textcomp"),
)
_REACHING = """
input include import subimport subfile openin openout closein closeout read readline write immediate special output
includegraphics graphicspath lstinputlisting verbatiminput bibliography documentclass documentstyle usepackage
RequirePackage LoadClass directlua latelua ShellEscape catcode lccode uccode lowercase uppercase csname expandafter
noexpand scantokens makeatletter loop repeat whiledo forloop multido foreach def edef gdef xdef let futurelet chardef
mathchardef protected newcommand renewcommand providecommand newenvironment renewenvironment newtheorem newcolumntype
newread newwrite newif DeclareRobustCommand DeclareMathOperator NewDocumentCommand RenewDocumentCommand everypar
everymath everydisplay everycr everyhbox everyvbox
"""
_REACHES_OUT = re.compile(
    rf"\^\^|\\(?:{'|'.join(_REACHING.split())})(?![A-Za-z])|\\(?:begin|end)\s*\{{\s*(?:document|filecontents)"
)
"""Commands that a table does not need: files, definitions, loops, changes of command characters."""
_TABLES = re.compile(r"<table\b[^>]*>(.*)</table>", re.DOTALL | re.IGNORECASE)


class LaterReader(MarkdownReader):
    """Parses one prediction by the rules of v1.7."""

    def elements(self, markdown: str) -> list[Element]:
        """The elements, in the order in which they start, without formulas within text that are a name or a number."""
        return [
            element for element in super().elements(markdown) if not (element.inline and _is_label(element.content))
        ]

    def cleaned(self, markdown: str) -> str:
        """Spaces stand for images; their descriptions may be formulas, and paragraphs that describe them hold none."""
        spans = []
        for start, end, description in images(markdown):
            self._found += _possible_formulas(Element(Category.TEXT, description.strip(), start, end=end))
            spans.append((start, end))
        blocks = re.split(r"(\n\s*\n)", without_fences(replaced(markdown, spans, " ")))
        blocks[::2] = [_without_inline(block) if _describes_image(block) else block for block in blocks[::2]]
        return "".join(blocks)

    def table(self, table: Element) -> Iterable[Element]:
        """A table, from HTML with those of its cells that look like formulas."""
        if table.category == Category.LATEX_TABLE:
            converted = plain_table(html_of_latex(table.content))
            return [replace(table, category=Category.HTML_TABLE, content=converted) if converted else table]
        return [table, *_formulas_of_cells(table)]

    def formula(self, formula: Element) -> Iterable[Element]:
        """A formula without its number and caption, which are text; or several, if it is a row of calculations."""
        formula, beside = _without_margin(formula)
        return [*(_calculations(formula) or [formula]), *beside]

    def text(self, text: Element) -> Iterable[Element]:
        """Text, and the formula that it may be."""
        text = replace(text, content=_text_of_html(text.content))
        return [text, *_possible_formulas(text)]


def converts_latex() -> bool:
    """Whether tables of LaTeX can be converted on this machine."""
    return shutil.which(_LATEX_CONVERTER) is not None


def html_of_latex(latex: str) -> str:
    """The tables of LaTeX source as HTML; empty if they cannot be converted, or reach for more than a table needs."""
    if _REACHES_OUT.search(latex) or not is_whole(latex.strip(), is_table=True) or not converts_latex():
        return ""
    with tempfile.TemporaryDirectory(prefix="pagemill-latex-") as folder:
        source, target = Path(folder, "table.tex"), Path(folder, "table.html")
        packages = "\n".join(f"\\usepackage{{{name}}}" for name in _PACKAGES)
        source.write_text(
            f"\\documentclass[border=20pt]{{article}}\n{packages}\n\\begin{{document}}\n{latex}\n\\end{{document}}\n",
            encoding="utf-8",
            errors="replace",
        )
        command = [_LATEX_CONVERTER, "--quiet", "--nocomments", f"--log={folder}/log", str(source), f"--dest={target}"]
        command.append("--expire=-1")  # no server of its own, which would outlive it
        try:
            ended = run_limited(command, Path(folder), seconds=_CONVERSION_S, cpu_seconds=60, memory=2**31)
            content = target.read_text(encoding="utf-8") if ended == (0, "", ended.output) else ""
        except (OSError, UnicodeError):  # the rules score such a table as none
            return ""
    return "\n".join(f"<table>{table}</table>" for table in _TABLES.findall(content))


def _unwrapped(text: str) -> str:
    for pattern, closer in _WRAPPERS:
        text = substituted(pattern, closer, r" \1 ", text)
    return text


def _possible_formulas(text: Element) -> Iterator[Element]:
    if _looks_like_formula(text.content) and (latex := _as_latex(text.content)):
        is_found = "\\xrightarrow" in latex or "\\longrightarrow" in latex
        category = Category.FOUND_FORMULA if is_found else Category.POSSIBLE_FORMULA
        yield replace(text, category=category, content=latex)


def _formulas_of_cells(table: Element) -> Iterator[Element]:
    start = table.start
    for cell in soup(table.content).find_all(["td", "th"]):
        text = " ".join(cell.get_text(separator=" ").split())
        if _is_calculation(text) and (latex := _as_latex(text)):
            yield Element(Category.FOUND_FORMULA, latex, start, end=start + len(text))
            start += len(text) + 1


def _looks_like_formula(text: str) -> bool:
    text = " ".join(text.split())
    if len(text) > 220:
        return False
    bare = _unwrapped(text)
    size = len("".join(bare.split()))
    operators, digits = len(_OPERATOR.findall(bare)), len(re.findall(r"\d", bare))
    cjk, words = len(_CJK.findall(bare)), len(_LONG_WORD.findall(bare))
    has_formula = any(True for pairs in (_INLINE, _DISPLAYED) for _ in delimited(text, pairs))
    return bool(size) and (
        (has_formula and len(_NOT_RESIDUE.sub("", bare)) <= 18 and operators >= 1)
        or (("□" in bare or "\\square" in bare) and operators >= 1 and words <= 1 and size <= 80)
        or (any(arrow in bare for arrow in ("\\xrightarrow", "\\longrightarrow", "→")) and cjk <= 24 and size <= 120)
        or (operators >= 2 and digits >= 1 and words <= 2 and cjk <= 12 and size <= 100)
        or (operators >= 3 and not words and cjk <= 18 and size <= 80)
    )


def _is_calculation(text: str) -> bool:
    if not text or len(text) > 120 or not _looks_like_formula(text) or not _ARITHMETIC.search(text):
        return False
    return len(re.findall(r"\d", text)) >= 2 or bool(_FRACTION.search(text))


def _as_latex(text: str) -> str:
    text = _unwrapped(" ".join(text.replace("\u3000", " ").split()))
    for sign, latex in _AS_LATEX:
        text = text.replace(sign, latex)
    if match := _ARROW.search(text):
        before, label, behind = (part.strip() for part in match.groups())
        if label and "\\" not in label:
            label = f"\\text{{{label}}}"
        arrow = f"\\xrightarrow{{{label}}}"
        if behind.endswith(_REDOX):
            arrow, behind = f"\\underset{{{_REDOX}}}{{{arrow}}}", behind.removesuffix(_REDOX).strip()
        text = f"{before} {arrow} {behind}".strip()
    text = re.sub(r"(?<!\\)([%&])", r"\\\1", text)
    text = re.sub(r"\s+", " ", text).strip()
    return text if not text or text.startswith(("\\begin{", "$$", "\\[")) else f"\\[ {text} \\]"


def _opened(text: str) -> tuple[str, str, str]:
    """Opener, closer and inside of a formula on one line."""
    text = " ".join(text.split())
    for opener, closer in _AROUND:
        if text.startswith(opener) and text.endswith(closer) and len(text) >= len(opener + closer):
            return opener, closer, text[len(opener) : len(text) - len(closer)].strip()
    return "", "", text


def _as_words(latex: str) -> str:
    return " ".join(plain_latex(latex.strip()).split())


def _is_caption(latex: str) -> bool:
    plain = _as_words(latex)
    letters, words = len(re.findall(r"[A-Za-z]", plain)), len(re.findall(r"[A-Za-z]{2,}", plain))
    signs, has_digit = len(_MATHS.findall(latex.strip())), re.search(r"\d", plain)
    inner = plain[1:-1] if plain.startswith("(") and plain.endswith(")") else plain
    if re.fullmatch(r"[0-9IVXivx]+", inner.replace(" ", "")):
        return False
    return (letters >= 10 and words >= 2 and signs <= 6) or (letters >= 14 and not has_digit and signs <= 3)


def _caption_of(latex: str) -> re.Match[str] | None:
    matches = (pattern.search(latex) for pattern in _CAPTIONS)
    return next((match for match in matches if match and _is_caption(match[1])), None)


def _without_margin(formula: Element) -> tuple[Element, list[Element]]:
    """A formula without the number before it and the captions behind it, and those as text."""
    opener, closer, inner = _opened(formula.content)
    number = _NUMBER.match(inner)
    if not inner or not (number or _caption_of(inner)):
        return formula, []
    beside: list[tuple[str, float, float]] = []
    if number:
        beside.append((number[1], formula.start, min(formula.end, formula.start + len(number[1]))))
        inner = inner[number.end() :].strip()
    while match := _caption_of(inner):
        beside.append((match[1], max(formula.start, formula.end - len(match[1])), formula.end))
        inner = inner[: match.start()].rstrip()
    inner = _SPACES_AT_END.sub("", inner).strip()
    if not inner:
        return replace(formula, content=" ".join(formula.content.split())), []
    texts = [Element(Category.TEXT, _as_words(latex), start, end=end) for latex, start, end in beside]
    content = f"{opener} {inner} {closer}" if opener else inner
    return replace(formula, content=content), [text for text in texts if text.content]


def _calculations(formula: Element) -> list[Element]:
    """The calculations in a row of them."""
    opener, closer, inner = _opened(formula.content)
    parts = [part.strip() for part in _QUAD.split(inner) if part.strip()]
    if len(parts) < 2 or not all(map(_is_equation, parts)):
        return []
    width = max(max(formula.end - formula.start, len(parts)) // len(parts), 1)
    starts = [formula.start + number * width for number in range(len(parts))]
    ends = [*(min(formula.end, start + width) for start in starts[:-1]), formula.end]
    return [
        replace(formula, content=f"{opener} {part} {closer}" if opener else part, start=start, end=end)
        for part, start, end in zip(parts, starts, ends, strict=True)
    ]


def _is_equation(latex: str) -> bool:
    latex = " ".join(latex.split())
    if len(latex) > 160 or _NO_ARITHMETIC.search(latex) or not _RELATION.search(latex):
        return False
    return len(re.findall(r"\d", latex)) >= 2 or bool(_FRACTION.search(latex))


def _is_label(formula: str) -> bool:
    """Whether a formula within text is a name or a number, or an arrow alone."""
    bare = _unwrapped(formula.strip())
    compact = "".join(bare.split())
    if compact.startswith(("\\xrightarrow", "\\longrightarrow")):
        return True
    if not compact or len(compact) > 24 or any(token in bare for token in _STRONG):
        return False
    return bool(_LABEL.fullmatch(compact))


def _describes_image(block: str) -> bool:
    text = " ".join(block.split()).lower()
    return len(text) >= 24 and bool(_DESCRIPTION.match(text))


def _without_inline(text: str) -> str:
    for pattern, closer in _WRAPPERS[2:]:
        text = substituted(pattern, closer, r"\1", text)
    return text


def _text_of_html(text: str) -> str:
    """The text of a piece that begins with a block of HTML; other pieces stay."""
    if "<table" in text.lower() or not _HTML_BLOCK.match(text):
        return text
    tree = soup(text)
    for tag in tree.find_all(["style", "script"]):
        tag.decompose()
    for tag in tree.find_all("br"):
        tag.replace_with("\n")
    for tag in tree.find_all(_BLOCK_TAGS):
        if not tag.contents or tag.contents[-1] != "\n":
            tag.append("\n")
    lines = tree.get_text().replace("\xa0", " ").split("\n")
    return "\n".join(line.strip() for line in lines if line.strip()) or text
