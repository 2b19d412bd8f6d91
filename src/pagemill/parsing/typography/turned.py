"""Tables that are turned by a quarter on an upright page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import msgspec

from pagemill.document.geometry import Box
from pagemill.document.labels import Label
from pagemill.document.page import TextLine
from pagemill.imaging.page import TextLayer
from pagemill.parsing.blocks import Block
from pagemill.parsing.lines import direction
from pagemill.parsing.typography.cells import aligned_tables
from pagemill.parsing.typography.drawn import drawn_rules
from pagemill.parsing.typography.rows import leading_of, pieces_of, rows_of_pieces
from pagemill.parsing.typography.ruled import open_tables, ruled_tables, without


def turned_tables(
    layer: TextLayer, lines: Sequence[TextLine], size: tuple[int, int], source: str
) -> tuple[list[Block], list[TextLine]]:
    """Blocks of the tables that turned lines make, and the lines that are in none.

    Args:
        layer: Of the page.
        lines: Its lines that are not level.
        size: Width and height of the page in pixels.
        source: Who found them.
    """
    width, height = size
    blocks: list[Block] = []
    left = list(lines)
    for angle, turn, back in (
        (90, _downwards(width), _upwards(width)),
        (-90, _upwards(height), _downwards(height)),
    ):
        own = [line for line in lines if abs(direction(line) - angle) < 1]
        if not own:
            continue
        pieces = pieces_of([_turned(line, turn) for line in own], 0, right_to_left=False)
        fills = (turn(box) for box, _ in layer.fills)
        drawn = drawn_rules(map(turn, layer.strokes), fills, 0, mirrored=False)
        tables = ruled_tables(pieces, drawn, body := median(piece.size for piece in pieces))
        tables += open_tables(without(pieces, tables), drawn, body)
        rows = rows_of_pieces(without(pieces, tables))
        tables += [table for _, _, table in aligned_tables(rows, drawn, leading_of(rows))]
        for table in tables:
            block = Block(back(table.box), Label.TABLE, [], source)
            block.table = replace(table.table, line_indices=())
            block.inner_lines = tuple(own[piece.order] for piece in table.pieces)
            block.text = table.table.to_html()
            blocks.append(block)
            taken = set(map(id, block.inner_lines))
            left = [line for line in left if id(line) not in taken]
    return blocks, left


def _downwards(across: float) -> Callable[[Box], Box]:
    """Boxes of a page seen so that what is written downwards is level: from its right side."""
    return lambda box: (box[1], across - box[2], box[3], across - box[0])


def _upwards(across: float) -> Callable[[Box], Box]:
    """The same of what is written upwards: from its left side."""
    return lambda box: (across - box[3], box[0], across - box[1], box[2])


def _turned(line: TextLine, turn: Callable[[Box], Box]) -> TextLine:
    words = tuple(msgspec.structs.replace(word, box=turn(word.box)) for word in line.words)
    return msgspec.structs.replace(line, box=turn(line.box), polygon=None, words=words)
