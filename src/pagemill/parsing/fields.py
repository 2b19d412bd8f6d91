"""Filled-in form fields among the blocks of a page: beside their labels, and part of the text wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagemill.document.geometry import union_box
from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.page import ANNOTATION
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pagemill.document.page import TextLine
    from pagemill.parsing.blocks import Block
    from pagemill.parsing.lines import Row


def is_filled_in(lines: Iterable[TextLine]) -> bool:
    """Whether one of the lines comes from a form field or another annotation."""
    return any(line.engine == ANNOTATION for line in lines)


def join_fields(blocks: Sequence[Block]) -> list[Block]:
    """Move field values that layout made blocks of their own to the rows of their labels.

    A label is a short row at the left of the value, on its level, that ends its block or in a colon.
    """
    values = [block for block in blocks if block.rows and all(line.engine == ANNOTATION for line in block.lines)]
    others = [block for block in blocks if block.rows and block.table is None and block not in values]
    for block in values:
        owner: Block | None = None
        rest: list[Row] = []
        for above, row in zip([None, *block.rows], block.rows, strict=False):
            owner = _label_of(row, others) or (owner if above is not None and _goes_on(above, row) else None)
            if owner is None:
                rest.append(row)
            else:
                owner.take(block.piece([row]))
        if len(rest) < len(block.rows):
            block.rows, block.polygon = rest, None
            block.box = union_box(row.box for row in rest) if rest else block.box
    return [block for block in blocks if block.rows or block not in values]


def _label_of(value: Row, blocks: Sequence[Block]) -> Block | None:
    """The block that holds the nearest label at the left of a value; None where something else is nearer."""
    level = (value.box[1] + value.box[3]) / 2
    beside = [
        (value.box[0] - row.box[2], row, block)
        for block in blocks
        for row in block.rows
        if row.box[1] < level < row.box[3] and row.box[2] <= value.box[0] + PARSING.field_edge * row.size
    ]
    if not beside:
        return None
    gap, row, block = min(beside, key=lambda one: one[0])
    ends = row is block.rows[-1] or row.text.rstrip().endswith((":", "："))
    return block if ends and gap < PARSING.field_reach * row.size and len(row.text) <= PARSING.field_label else None


def _goes_on(above: Row, below: Row) -> bool:
    """Whether a row is the next line of a value in several lines."""
    aligned = abs(below.box[0] - above.box[0]) < PARSING.field_edge * above.size
    return aligned and below.box[1] - above.box[3] < PARSING.field_leading * above.size


def keep_fields(blocks: Sequence[Block]) -> None:
    """Make text of what was filled in where layout sees running heads, page numbers, pictures or code."""
    for block in blocks:
        if not block.rows or not is_filled_in(block.lines):
            continue
        if TASK_OF_LABEL[block.label] in (Task.ABANDON, Task.SKIP) or _is_form(block):
            block.label = Label.TEXT


def _is_form(block: Block) -> bool:
    """Whether a supposed code block is labels and fields rather than code with a note on it."""
    filled_in = sum(line.engine == ANNOTATION for line in block.lines)
    return block.label is Label.ALGORITHM and filled_in >= PARSING.form_share * len(block.lines)
