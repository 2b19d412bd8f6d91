"""A scanned page in blocks: its lines measured on the pixels, and read as those of a text layer are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cv2
import numpy as np

from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import Box, area, as_array, components, intersection, union_box
from pagemill.document.labels import FIGURES, FORMULAS, Label
from pagemill.document.page import ANNOTATION, TextLine
from pagemill.imaging.page import TextLayer
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.layout.reading_order import reading_order
from pagemill.parsing.assemble import blocks_of
from pagemill.parsing.blocks import Block
from pagemill.parsing.inline_formulas import InlineFormulas
from pagemill.parsing.lines import assign_lines, is_vertical
from pagemill.parsing.typography.measured import measured
from pagemill.parsing.typography.page import is_sentence, typographic_blocks
from pagemill.tables.rules import find_rules, has_rules
from pagemill.tables.table import Table
from pagemill.tables.words import usual_height

_LAST_EUROPEAN, _FIRST_EAST_ASIAN = "\u0530", "\u2e80"
_LEVEL, _MOST, _LEAST = 0.15, 0.9, 3
"""Distance of two baselines on one level in font sizes; share and number of lines on one level from which blocks are
rows."""
_SHOWN = FIGURES | FORMULAS | {Label.FORMULA_NUMBER, Label.SEAL, Label.HEADER_IMAGE, Label.FOOTER_IMAGE}


def is_measurable(lines: Sequence[TextLine]) -> bool:
    """Whether lines are recognised ones whose letters stand on baselines, and run from left to right."""
    if any(line.engine in ("text-layer", ANNOTATION) or is_vertical(line) for line in lines):
        return False
    letters = [char for line in lines for char in line.text if char.isalpha()]
    known = sum(char < _LAST_EUROPEAN or char >= _FIRST_EAST_ASIAN for char in letters)
    return bool(letters) and known > _MOST * len(letters) and not is_right_to_left("".join(letters))


def scanned_blocks(
    pixels: Pixels,
    regions: Sequence[DetectedRegion],
    tables: Mapping[int, Table],
    lines: Sequence[TextLine],
    page_number: int | None,
) -> tuple[list[Block], InlineFormulas] | None:
    """The blocks of a page in reading order, with the recognised lines by those that stand for them in the blocks.

    Args:
        pixels: Of the straight page.
        regions: Completed.
        tables: Recognised ones by the index of their region.
        lines: Recognised lines.
        page_number: From 1, where it is known.

    Returns:
        None where typography does not tell.
    """
    height, width = pixels.shape[:2]
    found = blocks_of(regions, lines, tables, {}, width, height, InlineFormulas())
    shown = [block for block in found if block.label in _SHOWN]
    apart = {id(line) for block in shown if block.label not in FIGURES for line in block.lines}
    page = measured([line for line in lines if id(line) not in apart], pixels)
    text, originals = _in_order(page.lines, found, (width, height)), page.originals
    strokes = _strokes(pixels, lines)
    layer = TextLayer(lines=(), characters=0, unmapped=0, strokes=strokes, drawings=tuple(page.bullets))
    blocks = typographic_blocks(layer, text, shown, (width, height), page_number, written=False)
    if blocks is None:
        return None
    own = [block.box for block in blocks if block.table is not None]
    missed = [
        block
        for block in found
        if block.table is not None and sum(intersection(block.box, box) for box in own) < 0.2 * area(block.box)
    ]
    if missed:
        apart = {id(line) for block in missed for line in block.lines}
        text = [line for line in text if id(originals.get(id(line))) not in apart and not _in_any(line, missed)]
        blocks = typographic_blocks(layer, text, [*shown, *missed], (width, height), page_number, written=False)
    return (blocks, InlineFormulas(originals=originals)) if blocks is not None else None


def _in_order(text: list[TextLine], blocks: Sequence[Block], size: tuple[int, int]) -> list[TextLine]:
    """Lines as the blocks of the layout are read, and row by row in each: so columns tell from rows of cells.

    Blocks side by side that share their baselines are rows, too, where none of them is running text.
    """
    owners = assign_lines(text, [block.box for block in blocks])
    lines: list[list[TextLine]] = [[] for _ in blocks]
    for owner, line in zip(owners, text, strict=True):
        if owner >= 0:
            lines[owner].append(line)
    beside = [
        (one, other)
        for one in range(len(blocks))
        for other in range(one)
        if lines[one] and lines[other] and _share_rows(lines[one], lines[other])
    ]
    groups = components(len(blocks), beside)
    boxes = as_array(union_box(blocks[member].box for member in group) for group in groups)
    labels = [blocks[group[0]].label for group in groups]
    place = dict.fromkeys(range(-1, len(blocks)), -1)
    for rank, index in enumerate(reading_order(boxes, labels, size)):
        place |= dict.fromkeys(map(int, groups[index]), rank)
    keyed = zip(owners, text, strict=True)
    return [line for _, line in sorted(keyed, key=lambda one: (place[one[0]], one[1].box[3], one[1].box[0]))]


def _share_rows(one: Sequence[TextLine], other: Sequence[TextLine]) -> bool:
    """Whether nearly all lines of two blocks have one in the other on their level, and none of them is running text."""
    few, many = sorted((one, other), key=len)
    level = sum(
        any(abs(line.box[3] - beside.box[3]) < _LEVEL * (line.font_size or 0.0) for beside in many) for line in few
    )
    prose = any(3 * sum(is_sentence(line.text) for line in side) > len(side) for side in (few, many))
    return len(few) >= _LEAST and level >= _MOST * len(few) and not prose


def _in_any(line: TextLine, blocks: Sequence[Block]) -> bool:
    return any(intersection(line.box, block.box) > 0.5 * area(line.box) for block in blocks)


def _strokes(pixels: Pixels, lines: Sequence[TextLine]) -> tuple[Box, ...]:
    """The rules that the page draws."""
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY).astype(np.uint8)
    size = usual_height(lines)
    if not has_rules(grey, size):
        return ()
    rules = find_rules(grey, size, as_array(line.box for line in lines), whole_page=True)
    level = [(rule.start, rule.position, rule.end, rule.position) for rule in rules.horizontal]
    upright = [(rule.position, rule.start, rule.position, rule.end) for rule in rules.vertical]
    return (*level, *upright)
