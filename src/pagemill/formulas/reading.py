"""Formulas of which only the plain text is known, line by line: as LaTeX that shows the same signs."""

from __future__ import annotations

import functools

from pagemill.formulas.check import renders
from pagemill.formulas.signs import FUNCTIONS, joined, latex_of, letter_of
from pagemill.late import re

_PIECE = re.compile(r"[^\W\d_]{2,}|\s+|.", re.DOTALL)
_SPECIAL = re.compile(r"[#$%&_{}]")


def latex_of_text(text: str) -> str:
    """LaTeX that renders and shows the signs of a text in its rows; empty for an empty text.

    What is raised, lowered or over a bar on the page is beside its neighbours here: nobody recognised more.
    """
    rows = [" ".join(row.split()) for row in text.splitlines()]
    written = [_row(row) for row in rows if row]
    if len(written) < 2:
        return "".join(written)
    return r"\begin{gathered} " + r" \\ ".join(written) + r" \end{gathered}"


def _row(row: str) -> str:
    latex = ""
    for piece in _PIECE.findall(row):
        latex = joined(latex, _part(piece))
    # As text it is shown as printed, rather than lost, whatever keeps it from rendering.
    return latex if renders(latex) else rf"\text{{{_escaped(row)}}}"


def _part(piece: str) -> str:
    if piece.isspace():
        return " "
    if len(piece) == 1:
        return latex_of(*letter_of(piece, "i"))
    if piece in FUNCTIONS:
        return f"\\{piece}"
    letters = [latex_of(*letter_of(letter, "i")) for letter in piece]
    # Two letters are a product more often than a word, and Greek ones are variables at any length.
    if any(letter.startswith("\\") and not letter.startswith(r"\text") for letter in letters) or len(piece) == 2:
        return functools.reduce(joined, letters)
    return rf"\text{{{piece}}}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", re.sub(r"[\\^~]", " ", text))
