"""Heads of columns that are turned or slanted to save width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import structs

from pagemill.document.geometry import Box, union_box
from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.parsing.blocks import Block
from pagemill.parsing.lines import direction
from pagemill.parsing.typography.thresholds import TYPOGRAPHY


def levelled_heads(turned: Sequence[TextLine], level: Sequence[TextLine]) -> dict[int, tuple[TextLine, TextLine]]:
    """Turned lines that stand side by side over columns of level text, each with a level line in its place.

    That line is at the foot of the turned one, where the column begins, so that tables are found as if all heads were
    level. By the identity of the level line: itself and the turned one.
    """
    found: dict[int, tuple[TextLine, TextLine]] = {}
    if len(turned) > TYPOGRAPHY.most_heads:
        return found
    words = [word.box for line in level for word in line.words] or [line.box for line in level]
    for group in _side_by_side(turned):
        size = max(map(_size, group))
        foot = max(line.box[3] for line in group)
        places = [_foot_x(line) for line in group]
        pitch = min(after - before for before, after in pairwise(places))
        below = [box for box in words if -size < box[1] - foot < TYPOGRAPHY.head_to_column * size]
        near = min(pitch / 2, 2 * size)
        over = sum(any(box[0] - near < x < box[2] + near for box in below) for x in places)
        ended = sum(not _goes_on(line, turned) for line in group)
        # A column may be empty at the top, and a long head may stand above another table's.
        if min(over, ended) < 0.6 * len(group):
            continue
        beside = next((line.box for line in level if abs(_baseline(line) - foot) < size), None)
        top, bottom = (beside[1], beside[3]) if beside else (foot - 0.85 * size, foot + 0.25 * size)
        for line, x in zip(group, places, strict=True):
            natural = max(line.box[2] - line.box[0], line.box[3] - line.box[1])
            # With gaps as wide as the heads: those that are closer are words of one cell.
            half = min(natural, 0.5 * pitch) / 2
            stand_in = _level(line, (x - half, top, x + half, bottom))
            found[id(stand_in)] = stand_in, line
    return found


def are_of_tables(blocks: Sequence[Block], heads: Mapping[int, tuple[TextLine, TextLine]]) -> bool:
    """Whether all blocks with level lines of turned ones are tables, which have more text than these."""
    for block in blocks:
        lines = _lines(block)
        own = sum(id(line) in heads for line in lines)
        if own and (block.label is not Label.TABLE or len(lines) < 2 * own):
            return False
    return True


def restore_turned(blocks: Sequence[Block], heads: Mapping[int, tuple[TextLine, TextLine]]) -> None:
    """Put the turned lines back into the blocks that took up level ones for them."""
    for block in blocks:
        own = [heads[id(line)][1] for line in _lines(block) if id(line) in heads]
        if not own:
            continue
        block.box = union_box([block.box, *(line.box for line in own)])
        block.inner_lines = tuple(_original(line, heads) for line in block.inner_lines)
        for row in block.rows:
            row.lines = [_original(line, heads) for line in row.lines]


def _lines(block: Block) -> list[TextLine]:
    return [*block.inner_lines, *(line for row in block.rows for line in row.lines)]


def _original(line: TextLine, heads: Mapping[int, tuple[TextLine, TextLine]]) -> TextLine:
    return heads[id(line)][1] if id(line) in heads else line


def _side_by_side(lines: Sequence[TextLine]) -> list[list[TextLine]]:
    """Groups of lines in one direction that end at one height and do not touch, from the left."""
    groups: list[list[TextLine]] = []
    for line in sorted(lines, key=_foot_x):
        if not TYPOGRAPHY.least_slant <= abs(direction(line)) <= 91:
            continue
        last = next((group for group in groups if _stands_beside(group[-1], line)), None)
        if last is None:
            groups.append([line])
        else:
            last.append(line)
    return [group for group in groups if len(group) > 1]


def _stands_beside(line: TextLine, other: TextLine) -> bool:
    size = min(_size(line), _size(other))
    # What is written downwards may hang from one height.
    ends = [abs(line.box[3] - other.box[3])] + [abs(line.box[1] - other.box[1])] * (direction(line) > 0)
    return (
        abs(direction(line) - direction(other)) < 3 and min(ends) < 0.6 * size and _foot_x(other) - _foot_x(line) > size
    )


def _goes_on(line: TextLine, turned: Sequence[TextLine]) -> bool:
    """Whether another text stands behind a line, as in the rows of a table that is turned as a whole."""
    near, x, degrees = _size(line) / 2, _foot_x(line), direction(line)
    return any(
        other.box[3] < line.box[1] and abs(_foot_x(other) - x) < near and abs(direction(other) - degrees) < 3
        for other in turned
    )


def _foot_x(line: TextLine) -> float:
    """Where the lower end of a turned line is, as x."""
    degrees = direction(line)
    if abs(degrees) > 80:
        return (line.box[0] + line.box[2]) / 2
    return line.box[0] + _size(line) / 2 if degrees < 0 else line.box[2] - _size(line) / 2


def _size(line: TextLine) -> float:
    return line.font_size or min(line.box[2] - line.box[0], line.box[3] - line.box[1])


def _baseline(line: TextLine) -> float:
    return line.box[3] - 0.25 * _size(line)


def _level(line: TextLine, box: Box) -> TextLine:
    """The line as level text in a box; its words have widths by their lengths."""
    text = line.text.strip()
    step = (box[2] - box[0]) / max(1, len(text))
    words, at = [], 0
    for word in text.split():
        at = text.index(word, at)
        words.append(Word(word, (box[0] + at * step, box[1], box[0] + (at + len(word)) * step, box[3])))
        at += len(word)
    return structs.replace(line, box=box, polygon=None, words=tuple(words))
