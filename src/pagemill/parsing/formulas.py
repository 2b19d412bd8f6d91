"""Formulas that layout detection mixed up with words, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pagemill.document.labels import RUNNING_TEXT, TITLES, Label
from pagemill.document.page import Region
from pagemill.late import re
from pagemill.parsing.blocks import Block
from pagemill.parsing.lists import marker
from pagemill.parsing.thresholds import PARSING

_OPERATOR = re.compile(r"[=<>≤≥≠≈±×÷∑∏∫√∂∇∞^+]")
_RELATION = re.compile(r"[=≤≥≠≈∑∏∫√∂∇∞]")
"""What running text and labels hardly ever hold."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_SCRIPT = re.compile(r"[\u0590-\u08ff\u0e00-\u0e7f\u3040-\u30ff\u3131-\ud7a3\u4e00-\u9fff]")
"""Letters of scripts that formulas are not written in."""


def mark_formulas(blocks: Iterable[Block]) -> None:
    """Label formulas that are nothing but words as text, and text and headings that are an equation as formulas."""
    for block in blocks:
        if block.latex is not None:
            continue
        words = _WORD.findall(block.plain)
        operator = _OPERATOR.search(block.plain) is not None
        printed = len("".join(block.plain.split()))
        if block.label is Label.DISPLAY_FORMULA and not operator:
            foreign = len(_SCRIPT.findall(block.plain)) >= PARSING.formula_scripts * max(printed, 1)
            if foreign or (len(words) > 1 and sum(map(len, words)) >= PARSING.formula_words * printed):
                block.label = Label.TEXT
        elif block.label in TITLES | {Label.TEXT} and not words and _is_equation(block):
            block.label = Label.DISPLAY_FORMULA


def _is_equation(block: Block) -> bool:
    """Whether a block without a word holds a relation or a sign of analysis beside letters."""
    text = block.plain
    return not marker(text) and _RELATION.search(text) is not None and any(char.isalpha() for char in text)


def cut_at_formulas(blocks: Sequence[Block]) -> list[Block]:
    """Cut running text that goes on below a formula into what stands above it and what stands below."""
    formulas = [block for block in blocks if block.latex is not None]
    result: list[Block] = []
    for block in blocks:
        parts = [block]
        if block.label in RUNNING_TEXT | TITLES and block.table is None:
            for formula in formulas:
                parts = [piece for part in parts for piece in _cut(part, formula)]
        result.extend(parts)
    return result


def _cut(block: Block, formula: Block) -> list[Block]:
    x1, y1, x2, y2 = block.box
    left, top, right, bottom = formula.box
    if not block.rows or min(x2, right) <= max(x1, left) or top > y2 or bottom < y1:
        return [block]
    middle = (top + bottom) / 2
    above = [row for row in block.rows if row.box[1] + row.box[3] < 2 * middle]
    below = [row for row in block.rows if row.box[1] + row.box[3] >= 2 * middle]
    return [block.piece(rows) for rows in (above, below) if rows]


def mark_numbers(regions: Sequence[Region]) -> None:
    """A formula's number belongs to the formula beside it, right before or after it in reading order."""
    for number in regions:
        if number.label is not Label.FORMULA_NUMBER:
            continue
        _, top, _, bottom = number.bbox
        for other in regions[max(number.index - 1, 0) : number.index + 2]:
            _, y1, _, y2 = other.bbox
            beside = min(y2, bottom) - max(y1, top) > 0.5 * min(y2 - y1, bottom - top)
            if other.label is Label.DISPLAY_FORMULA and beside:
                number.caption_of = other.index
                break
