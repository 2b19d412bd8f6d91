"""Filled-in form fields and check boxes: beside their labels, and part of the text wherever they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import area, as_array, intersection, union_box
from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.page import ANNOTATION, TextLine, Word
from pagemill.document.spans import reworded
from pagemill.imaging.page import CHECKED, UNCHECKED
from pagemill.parsing.blocks import Block
from pagemill.parsing.lines import Row, line_size
from pagemill.parsing.thresholds import PARSING


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
        for above, row in pairwise([block.rows[0], *block.rows]):
            owner = _label_of(row, others) or (owner if _goes_on(above, row) else None)
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
        if TASK_OF_LABEL[block.label] in (Task.ABANDON, Task.SKIP) or block.label is Label.ALGORITHM:
            block.label = Label.TEXT


def with_marks(lines: Sequence[TextLine], marks: Sequence[TextLine]) -> list[TextLine]:
    """Add the marks of a page to its lines, in the place of what was read there from the pixels.

    A check box becomes the word of its label's line that its place says; without a label near it is a line of its own.

    Args:
        lines: Of the page, level.
        marks: As in :class:`~pagemill.imaging.page.TextLayer`, in the same pixels.
    """
    # A mark has no direction of its own: it is level where its page is.
    marks = [msgspec.structs.replace(mark, polygon=None) for mark in marks]
    boxes = [mark for mark in marks if mark.text in (CHECKED, UNCHECKED)]
    values = [mark for mark in marks if mark.text not in (CHECKED, UNCHECKED)]
    result = []
    for line in lines:  # what is printed or read as a box is its mark; fields are drawn with their values
        is_box = len(line.text.strip()) <= 1 and _lies_in(line, boxes)
        is_read = line.engine not in ("text-layer", ANNOTATION)
        if not is_box and not (is_read and _lies_in(line, values)):
            result.append(line)
    found = as_array(line.box for line in result)
    for mark in boxes:
        label = _label(mark, result[: len(found)], found)
        if label is None:
            result.append(mark)
        else:
            result[label] = _beside(result[label], mark)
            found[label] = result[label].box
    return [*result, *values]


def _lies_in(line: TextLine, marks: Sequence[TextLine]) -> bool:
    return any(intersection(line.box, mark.box) > PARSING.mark_in_line * area(line.box) for mark in marks)


def _label(mark: TextLine, lines: Sequence[TextLine], found: NDArray[np.float64]) -> int | None:
    """The line on the level of a check box that is nearest to it, within reach."""
    if not len(found):
        return None
    x1, y1, x2, y2 = mark.box
    level = (found[:, 1] < (y1 + y2) / 2) & ((y1 + y2) / 2 < found[:, 3])
    gap = np.maximum(np.maximum(found[:, 0] - x2, x1 - found[:, 2]), 0.0)
    # The label follows its box more often than not: 1 % decides where both sides are equally near.
    gap = np.where(found[:, 2] < x1, 1.01 * gap, gap)
    gap = np.where(level & [line.polygon is None for line in lines], gap, np.inf)
    nearest = int(gap.argmin())
    return nearest if gap[nearest] <= PARSING.mark_reach * line_size(lines[nearest]) else None


def _beside(line: TextLine, mark: TextLine) -> TextLine:
    """The line with a mark as one of its words, in the order of their places."""
    sign = Word(mark.text, mark.box)
    words = line.words or (Word(line.text.strip(), line.box),)
    middle = (mark.box[0] + mark.box[2]) / 2
    before = sum((word.box[0] + word.box[2]) / 2 < middle for word in words)
    joined = (*words[:before], sign, *words[before:])
    text = " ".join(word.text for word in joined) + (" " if line.text.endswith(" ") else "")
    box = union_box((line.box, mark.box)) if before in (0, len(words)) else line.box
    return reworded(line, text, words=joined, box=box, engine=ANNOTATION)
