"""Formulas that layout detection mixed up with words, and the other way round."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pagemill.document.labels import RUNNING_TEXT, TITLES, Label
from pagemill.parsing.lists import marker
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pagemill.document.page import Region
    from pagemill.parsing.blocks import Block

_OPERATOR = re.compile(r"[=<>≤≥≠≈±×÷∑∏∫√∂∇∞^+]")
_RELATION = re.compile(r"[=≤≥≠≈∑∏∫√∂∇∞]")
"""What running text and labels hardly ever hold."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_SCRIPT = re.compile(r"[\u0590-\u08ff\u0e00-\u0e7f\u3040-\u30ff\u3131-\ud7a3\u4e00-\u9fff]")
"""Letters of scripts that formulas are not written in."""
_CUT = RUNNING_TEXT | TITLES
_NUMBER = re.compile(r"^[(\[（]?\s*\d{1,3}(?:[.\-]\d{1,3})*[a-z]?\s*[)\]）.]?$")


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
    """Whether a short block without a word holds a relation or a sign of analysis beside letters."""
    text = block.plain
    short = 0 < len(block.rows) <= PARSING.formula_rows and not marker(text)
    return short and _RELATION.search(text) is not None and any(char.isalpha() for char in text)


def cut_at_formulas(blocks: Sequence[Block]) -> list[Block]:
    """Cut running text that goes on below a formula into what stands above it and what stands below."""
    formulas = [block for block in blocks if block.latex is not None]
    result: list[Block] = []
    for block in blocks:
        parts = [block]
        if block.label in _CUT and block.table is None:
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


def gather_formulas(blocks: Sequence[Block]) -> list[Block]:
    """Give formulas the pieces that layout left apart: exponents, limits, numerators, the other side of an equation."""
    taken: set[Block] = set()
    if sum(block.label is Label.DISPLAY_FORMULA for block in blocks) > PARSING.max_formulas:
        return list(blocks)
    for _ in range(PARSING.formula_gatherings):  # a piece may be next to another piece
        before = len(taken)
        for formula in blocks:
            if formula.label is not Label.DISPLAY_FORMULA or formula.latex or not formula.rows or formula in taken:
                continue
            pieces = [
                block for block in blocks if block is not formula and block not in taken and _is_piece(formula, block)
            ]
            if pieces:
                formula.take(*pieces)
                taken.update(pieces)
        if len(taken) == before:
            break
    return [block for block in blocks if block not in taken]


def _is_piece(formula: Block, block: Block) -> bool:
    """Whether a block is part of a formula: wordless, short, and beside it or right above or below it."""
    if (
        not block.rows
        or block.table is not None
        or block.latex is not None
        or block.label not in TITLES | {Label.TEXT, Label.DISPLAY_FORMULA}
    ):
        return False
    text = block.plain
    x1, y1, x2, y2 = formula.box
    near = PARSING.formula_near * max(formula.size, block.size)
    gap_x, gap_y = max(x1 - block.box[2], block.box[0] - x2), max(y1 - block.box[3], block.box[1] - y2)
    if block.label is Label.DISPLAY_FORMULA:
        return gap_x < near and gap_y < -PARSING.formula_level * min(y2 - y1, block.box[3] - block.box[1])
    if _WORD.search(text) or _SCRIPT.search(text):
        return False
    if _NUMBER.match(text):  # of the formula, or an exponent inside its frame
        return len(text) <= 2 and gap_x < 0 and gap_y < 0
    return gap_x < near and gap_y < PARSING.formula_above * near


def numbers_behind(blocks: Sequence[Block]) -> list[Block]:
    """Blocks in reading order with each number of a formula right behind the formula on whose line it stands."""
    formulas = [block for block in blocks if block.latex is not None]
    numbers = [block for block in blocks if block.label is Label.FORMULA_NUMBER]
    of_formula: dict[Block, list[Block]] = {}
    for number in numbers:
        _, top, _, bottom = number.box
        level = [f for f in formulas if f.box[1] - 2 < (top + bottom) / 2 < f.box[3] + 2]
        if level:
            apart = min(level, key=lambda f: max(f.box[0] - number.box[2], number.box[0] - f.box[2]))
            of_formula.setdefault(apart, []).append(number)
    moved = {number for each in of_formula.values() for number in each}
    return [each for block in blocks if block not in moved for each in (block, *of_formula.get(block, ()))]


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
