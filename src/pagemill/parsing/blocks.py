"""A block: a region on its way from layout detection to the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

import msgspec

from pagemill.document.geometry import Box, Point, union_box
from pagemill.document.labels import Label
from pagemill.document.page import ANNOTATION, Furniture, TextLine
from pagemill.parsing.lines import Row, rows_of, weighted_median
from pagemill.tables.table import Table


class Block(msgspec.Struct, eq=False):
    """A region with its rows."""

    box: Box
    label: Label
    rows: list[Row]
    source: str = ""
    score: float | None = None
    polygon: tuple[Point, ...] | None = None
    rank: int | None = None
    """Place in the reading order that the layout model predicts."""
    part: int | None = None
    """Of blocks that are read one after the other the number of what they are part of."""
    table: Table | None = None
    latex: str | None = None
    """Of a display formula whose symbols are known."""
    inner_lines: tuple[TextLine, ...] = ()
    """Lines of a table or picture, which do not become running text."""
    text: str = ""
    level: int | None = None
    is_list: bool = False
    list_depth: int = 0
    """Number of list items that it is inside of."""
    furniture: Furniture | None = None

    @property
    def lines(self) -> tuple[TextLine, ...]:
        """All lines in reading order."""
        return self.inner_lines or tuple(line for row in self.rows for line in row.lines)

    @property
    def size(self) -> float:
        """Median font size in pixels; 0 without text."""
        return median(row.size for row in self.rows) if self.rows else 0.0  # asked often: numpy would be slower

    @property
    def measured(self) -> bool:
        """Whether all font sizes are known, from a text layer or measured on the letters; otherwise estimated."""
        return all(line.font_size for line in self.lines)

    @property
    def recognized(self) -> bool:
        """Whether its text is recognised, not that of a text layer."""
        return any(line.engine not in ("text-layer", ANNOTATION) for line in self.lines)

    @property
    def plain(self) -> str:
        """The rows' texts in one line, for patterns."""
        return " ".join(row.text for row in self.rows)

    def piece(self, rows: list[Row], label: Label | None = None) -> Block:
        """A block of some of its rows."""
        box = union_box(row.box for row in rows)
        return Block(box, label or self.label, rows, self.source, self.score, rank=self.rank, part=self.part)

    def take(self, *others: Block) -> None:
        """Add the lines of others, each to the row that it stands in."""
        self.rows = rows_of([line for block in (self, *others) for line in block.lines])
        self._grow(others)

    def append(self, below: Block) -> None:
        """Add the rows of another block below its own."""
        self.rows = [*self.rows, *below.rows]
        self._grow([below])

    def _grow(self, others: Iterable[Block]) -> None:
        self.box, self.polygon = union_box(block.box for block in (self, *others)), None


def merge_neighbours(
    blocks: Sequence[Block], belong: Callable[[Block, Block], bool], text: Callable[[Block, Block], str]
) -> list[Block]:
    """Join blocks with the blocks before them in reading order.

    Args:
        blocks: In reading order.
        belong: Whether two blocks are one.
        text: Of the first of them, which has the rows of both by then and the text of its own.
    """
    result: list[Block] = []
    for block in blocks:
        if result and belong(result[-1], block):
            result[-1].append(block)
            result[-1].text = text(result[-1], block)
        else:
            result.append(block)
    return result


def body_size(blocks: Iterable[Block]) -> float:
    """Font size of most of a page's text in pixels: the median over characters; 0 without text."""
    rows: Sequence[Row] = [row for block in blocks for row in block.rows]
    if not rows:
        return 0.0
    return weighted_median([row.size for row in rows], [len(row.text) for row in rows])
