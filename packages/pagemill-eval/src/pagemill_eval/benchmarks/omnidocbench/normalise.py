"""Normalisation of texts, formulas and tables in OmniDocBench v1.5."""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pagemill_eval.benchmarks.omnidocbench.elements import delimited, substituted, up_to_last

_INLINE = (("$", "$"), ("\\(", "\\)"))
ESCAPED = re.compile(r"\\([\\_&%^])")
_NOT_TEXT = re.compile(r"[^\w\u4e00-\u9fff]")
_WHITE = ("\\t", "\\n", "\t", "\n", "/t", "/n")

_DISPLAYED = re.compile(r"\\\[(.+?)(?<!\\)\\\]")
_REMOVED_FROM_FORMULAS = [
    re.compile(pattern)
    for pattern in (r"\\tag\{.*?\}", r"\\hspace\{.*?\}", r"\\begin\{.*?\}", r"\\end\{.*?\}", r"\\arraycolsep.*?\}")
]
COMMANDS = (
    *("\\mathbf", "\\mathrm", "\\mathnormal", "\\mathit", "\\mathbb", "\\mathcal", "\\mathscr", "\\mathfrak"),
    *("\\mathsf", "\\mathtt", "\\textbf", "\\text", "\\boldmath", "\\boldsymbol", "\\operatorname", "\\bm"),
    *("\\symbfit", "\\mathbfcal", "\\symbf", "\\scriptscriptstyle", "\\notag", "\\setlength", "\\coloneqq"),
    *("\\space", "\\thickspace", "\\thinspace", "\\medspace", "\\nobreakspace", "\\negmedspace", "\\quad"),
    *("\\qquad", "\\enspace", "\\substackw", " ", "$$", "\\left", "\\right", "\\displaystyle"),
    "\\text",  # again: it may have appeared by the removal of a space
)

_WHOLE_TABLE = re.compile(r"<table\b[^>]*>(.*)</table>", re.DOTALL | re.IGNORECASE)
_ATTRIBUTES = re.compile(r' (?:style|height|width|align|class)=".*?"')
_TBODY = re.compile(r"</?tbody>")
_BARE_TAGS = re.compile(r"</?(?:sup|sub|span|div|p)>")
_COLGROUP = re.compile(r"<colgroup>.*?</colgroup>")


def normal_text(text: str) -> str:
    """Word characters alone, formulas within lines as text."""
    return clean_text(with_plain_formulas(text))


def clean_text(text: str) -> str:
    """Delete everything but word characters and Chinese characters; no NFC."""
    for sequence in _WHITE:
        text = text.replace(sequence, "")
    return _NOT_TEXT.sub("", text)


def with_plain_formulas(text: str) -> str:
    """Formulas within lines that have markup, as plain text."""

    def plain(formula: str) -> str | None:
        latex = ESCAPED.sub("", formula)
        return latex_to_text(latex) if any(character in latex for character in "\\^_") else None

    return replaced_formulas(text, plain)


def replaced_formulas(text: str, plain: Callable[[str], str | None]) -> str:
    """Replace inline formulas by the result of a function; None leaves one unchanged."""
    lines = []
    for line in text.split("\n"):
        parts: list[str] = []
        place = 0
        for start, end, opener in delimited(line, _INLINE):
            if (converted := plain(line[start + len(opener) : end - len(opener)])) is not None:
                parts += [line[place:start], converted.strip()]
                place = end
        lines.append("".join(parts) + line[place:])
    return "\n".join(lines)


def latex_to_text(latex: str) -> str | None:
    """Plain text of a formula; None if it cannot be read."""
    converter = _latex_converter()
    if latex.endswith("\\"):
        latex += " "  # pylatexenc 3.0 alpha reads a backslash at the end for ever
    try:
        return str(converter.latex_to_text(latex))
    except Exception:  # pylatexenc raises many kinds for malformed input: the rules keep the formula then
        return None


@lru_cache(maxsize=1)
def _latex_converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text

    logging.getLogger("pylatexenc").addHandler(logging.NullHandler())  # malformed input is not news here
    return LatexNodes2Text()


def normal_formula(latex: str) -> str:
    """A formula without delimiters, styles and spaces, in lower case."""
    latex = latex.strip().strip("$").strip("\n")
    if match := _DISPLAYED.search(latex, 0, up_to_last("\\]", latex)):
        latex = match[1].strip()
    for pattern in _REMOVED_FROM_FORMULAS:
        latex = substituted(pattern, "}", "", latex)
    latex = latex.strip(".")
    for command in COMMANDS:
        latex = latex.replace(command, "")
    return latex.lower()


def normal_table(text: str) -> str:
    """A document with the table's rows and cells, without attributes but spans and without markup in cells."""
    if "<table" not in text.replace(" ", "").replace("'", '"'):
        return ""
    return framed_table(html.unescape(_with_plain_tags(text)))


def framed_table(content: str) -> str:
    """A document of the rows of a text's tables, without attributes but spans and without bare tags in cells."""
    content = unicodedata.normalize("NFKC", content.replace("\n", "")).strip()
    content = "".join(_WHOLE_TABLE.findall(content))
    content = _TBODY.sub("", _ATTRIBUTES.sub("", content))
    content = re.sub(r"\s+", " ", content)
    content = f'<html><body><table border="1" >{content}</table></body></html>'
    return _COLGROUP.sub("", _BARE_TAGS.sub("", content))


def soup(text: str) -> Any:
    """HTML as Beautiful Soup's own parser reads it, whose reading of malformed HTML the rules imply."""
    from bs4 import BeautifulSoup

    return BeautifulSoup(text, "html.parser")


def _with_plain_tags(text: str) -> str:
    tree = soup(text)
    for cell in tree.find_all("th"):
        cell.name = "td"
    hide_tags(tree, ["thead", "span"])
    return str(tree)


def hide_tags(tree: Any, names: list[str]) -> None:
    """Write a tree without some tags (but with their content), and MathML only as its LaTeX.

    To take nested ones out takes time with the square of their number.
    """
    for tag in tree.find_all(names):
        tag.hidden = True
    for formula in tree.find_all("math"):
        formula.string = f"${formula.get('alttext', '')}$"
        formula.hidden = True
