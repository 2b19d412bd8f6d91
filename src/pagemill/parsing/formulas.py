"""Formulas that layout detection mixed up with words, and the other way round."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pagemill.document.labels import Label
from pagemill.parsing.blocks import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pagemill.parsing.blocks import Block

_OPERATOR = re.compile(r"[=<>≤≥≠≈±×÷∑∏∫√∂∇∞^+]")
_WORD = re.compile(r"[^\W\d_]{3,}")
_WORDS = 0.6
"""Share of words among what is printed from which a supposed formula is text."""


def mark_formulas(blocks: Iterable[Block]) -> None:
    """Label formulas that are nothing but words as text, and headings that are an equation as formulas."""
    for block in blocks:
        words = _WORD.findall(block.plain)
        operator = _OPERATOR.search(block.plain) is not None
        printed = len("".join(block.plain.split()))
        if block.label is Label.DISPLAY_FORMULA and len(words) > 1 and not operator:
            if sum(map(len, words)) >= _WORDS * printed:
                block.label = Label.TEXT
        elif block.label in TITLES and operator and not words and "=" in block.plain:
            block.label = Label.DISPLAY_FORMULA
