"""A scanned page in blocks: its lines measured on the pixels, and read as those of a text layer are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from pagemill.document.geometry import as_array, clip, components, union_box
from pagemill.document.labels import FIGURES, FORMULAS, Label
from pagemill.document.page import ANNOTATION, TextLine
from pagemill.imaging.page import TextLayer
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.layout.reading_order import reading_order
from pagemill.parsing.assemble import blocks_of
from pagemill.parsing.blocks import Block
from pagemill.parsing.inline_formulas import InlineFormulas
from pagemill.parsing.lines import assign_lines, is_vertical, join_rows
from pagemill.parsing.pairs.regions import SOURCE as PAIRS
from pagemill.parsing.typography.measured import measured
from pagemill.parsing.typography.page import is_sentence, typographic_blocks
from pagemill.parsing.typography.thresholds import SCANNED
from pagemill.tables.table import Table

_LATER_LATIN = ("\u1e00", "\u2000")
_LAST_EUROPEAN = "\u0530"
_MEASURABLE = 0.9
"""Share of letters that are Latin, Greek or Cyrillic from which a page is measured."""
_COLUMN_LINES, _FULL, _MOST_COLUMNS = 3, 0.8, 2
"""Least lines of a block that is a column, and words of one; share of its width from which a line fills it, and most
columns side by side: press pages are read by the layout."""
_MOST_DISORDER = 0.05
"""Share of lines read after one that the layout reads later, from which columns were taken for rows: 0.2 around a
picture in the middle, up to 0.02 where the order is right."""
_LEVEL, _MOST, _LEAST = 0.15, 0.9, 3
"""Distance of two baselines on one level in font sizes; share and number of lines on one level from which blocks are
rows."""
_SURE_TABLE = 0.9
"""Score from which a table is believed whose cells only the places of its lines suggest: around items of invoices it
is 0.4 to 0.75."""
_SHOWN = FIGURES | FORMULAS | {Label.FORMULA_NUMBER, Label.SEAL, Label.HEADER_IMAGE, Label.FOOTER_IMAGE}


def is_measurable(lines: Sequence[TextLine]) -> bool:
    """Whether there are recognised lines alone, not too many, in letters on baselines: Latin, Greek and Cyrillic."""
    if len(lines) > SCANNED.most_lines:
        return False
    if any(line.engine in ("text-layer", ANNOTATION) or is_vertical(line) for line in lines):
        return False
    letters = [char for line in lines for char in line.text if char.isalpha()]
    known = sum(char < _LAST_EUROPEAN or _LATER_LATIN[0] <= char < _LATER_LATIN[1] for char in letters)
    return bool(letters) and known > _MEASURABLE * len(letters)


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
    pictures = [block for block in shown if block.label in FIGURES]
    for block in shown:
        if block not in pictures and block.rows and not block.text:  # seals, logos, numbers of formulas
            block.text = join_rows(block.rows)
    if _columns(found) > (1 if pictures else _MOST_COLUMNS):
        return None
    tabular = []
    for block in found:
        is_paired = block.source == PAIRS and bool(block.table or block.text)
        if block.table is not None and (
            is_paired or block.table.method != "text" or (block.score or 0.0) >= _SURE_TABLE
        ):
            block.text = block.table.to_html()
        if block.text and (is_paired or block.table is not None):
            tabular.append(block)
    paired = [block for block in tabular if block.source == PAIRS]
    apart = {id(line) for block in [*shown, *tabular] if block not in pictures for line in block.lines}
    rows = [line for block in paired for line in block.lines]
    page = measured([line for line in lines if id(line) not in apart], pixels, rows)
    text, originals = _in_order(page.lines, found, (width, height)), page.originals
    layer = TextLayer(lines=(), characters=0, unmapped=0, drawings=tuple(page.bullets))
    blocks = typographic_blocks(layer, text, [*shown, *tabular], (width, height), page_number, page.rows, written=False)
    if blocks is None or _disorder(blocks, text) > _MOST_DISORDER:
        return None
    for block in blocks:
        lines = [originals.get(id(line), line) for line in block.lines]
        if lines and block not in pictures:
            frame = [block.box] if block.table is not None else []
            block.box = clip(union_box([*frame, *(line.box for line in lines)]), width, height)
    return blocks, InlineFormulas(originals=originals)


def _columns(blocks: Sequence[Block]) -> int:
    """How many blocks of running text stand side by side."""
    boxes = [block.box for block in blocks if len(block.rows) >= _COLUMN_LINES and _is_column(block)]
    counts = [sum(other[1] < (y1 + y2) / 2 < other[3] for other in boxes) for _, y1, _, y2 in boxes]
    return max(counts, default=0)


def _is_column(block: Block) -> bool:
    """Whether rows have several words and fill a block: labels differ in length, and values are single words."""
    words = median(len(row.text.split()) for row in block.rows)
    full = sum(row.box[2] - row.box[0] > _FULL * (block.box[2] - block.box[0]) for row in block.rows)
    return words >= _COLUMN_LINES and 2 * full > len(block.rows)


def _in_order(text: Sequence[TextLine], blocks: Sequence[Block], size: tuple[int, int]) -> list[TextLine]:
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


def _disorder(blocks: Sequence[Block], ordered: Sequence[TextLine]) -> float:
    """Share of lines of sentences that are read after one that comes later in another order."""
    place = {id(line): rank for rank, line in enumerate(ordered) if is_sentence(line.text)}
    ranks = [place[id(line)] for block in blocks for line in block.lines if id(line) in place]
    return sum(below < above for above, below in pairwise(ranks)) / max(1, len(ranks))


def _share_rows(one: Sequence[TextLine], other: Sequence[TextLine]) -> bool:
    """Whether nearly all lines of two blocks have one in the other on their level, and none of them is running text."""
    few, many = sorted((one, other), key=len)
    level = sum(
        any(abs(line.box[3] - beside.box[3]) < _LEVEL * (line.font_size or 0.0) for beside in many) for line in few
    )
    prose = any(3 * sum(is_sentence(line.text) for line in side) > len(side) for side in (few, many))
    return len(few) >= _LEAST and level >= _MOST * len(few) and not prose
