"""Tables of rows of labels and values, and their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pagemill.document.joining import join_pair
from pagemill.document.labels import Label
from pagemill.parsing.pairs.segments import Pair, Segment
from pagemill.tables.table import Cell, Table, build_table


def table_of(run: Sequence[Pair]) -> Table:
    """The table of a run of pairs, of which several may be on one level; its first row is the head.

    Args:
        run: Pairs from the top.
    """
    rows: list[list[Pair]] = []
    for pair in run:
        low = pair.value.box[3] - pair.value.box[1]
        if (
            rows
            and pair.value.middle - rows[-1][-1].value.middle < 0.5 * low
            and all(abs(pair.start - other.start) > low for other in rows[-1])
        ):
            rows[-1].append(pair)
        else:
            rows.append([pair])
    starts = [pair.start for pair in max(rows, key=len)]
    for pairs in rows:  # the longest row may lack a column that another one has
        while len({_nearest(starts, pair.start) for pair in pairs}) < len(pairs):
            starts.append(max((pair.start for pair in pairs), key=lambda x: min(abs(x - start) for start in starts)))
    starts.sort()
    cells = [
        Cell(row=row, column=2 * _nearest(starts, pair.start) + side, text=text, header=not row)
        for row, pairs in enumerate(rows)
        for pair in pairs
        for side, text in enumerate((_text(pair.label), pair.value.text))
    ]
    lines = {segment.line for pair in run for segment in pair.segments}
    return replace(build_table(cells, lines), method="text")


def text_of(table: Table, label: Label) -> str:
    """The rows of a table whose region is contents, or a line of text."""
    between = " … " if label is Label.CONTENT else " "
    return "\n".join(between.join(text for text in row if text) for row in table.grid())


def _nearest(starts: Sequence[float], x: float) -> int:
    return min(range(len(starts)), key=lambda place: abs(starts[place] - x))


def _text(label: Sequence[Segment]) -> str:
    text = label[0].text
    for above, segment in pairwise(label):
        below = segment.box[1] > above.middle
        text = join_pair(text, segment.text) if below else f"{text} {segment.text}"
    return text
