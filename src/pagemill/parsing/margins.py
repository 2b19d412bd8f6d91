"""Headers, footers, page numbers, marginal notes and footnotes, also where layout detection called them text."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.document.labels import RUNNING_TEXT, TITLES, Label
from pagemill.late import re
from pagemill.parsing.blocks import Block
from pagemill.parsing.lines import is_mostly_vertical
from pagemill.parsing.paragraphs import HAS_WORD, ends_sentence
from pagemill.parsing.thresholds import PARSING

_FURNITURE = frozenset({Label.HEADER, Label.FOOTER})
_MARGINAL = _FURNITURE | {Label.NUMBER, Label.HEADER_IMAGE, Label.FOOTER_IMAGE, Label.ASIDE_TEXT}
_MAY_RUN = RUNNING_TEXT | TITLES | {Label.FIGURE_TITLE}

PAGE_NUMBER = re.compile(
    r"^[\W_]*(?:(?:page|p\.|seite|страница)?\s*(?:\d{1,4}|[ivxlcdm]{1,7})(?:\s*(?:/|of|von|de|sur)\s*\d{1,4})?"
    r"|\d{1,4}\s*(?:쪽|페이지|页|頁|ページ)|[a-z]-?\d{1,3}|[a-z]?-?\d{1,3}-\d{1,4})[\W_]*$",
    re.IGNORECASE,
)
_RUNNING = re.compile(
    "|".join(
        (
            r"download(?:ed)?\s+(?:from|date|by|at|on)\b",
            r"https?://|\bwww\.|\bdoi\b|\bissn\b|\bisbn\b|arxiv:\d",
            r"©|\(c\)\s*\d{4}|copyright|all rights reserved|creative\s?commons|open access|confidential|proprietary",
            r"published by|preprint|accepted manuscript|\bp/n\b|\brevision\b|\brev\.?\s*\d",
            r"this (?:content|article|work|version) (?:was |is )?(?:downloaded|available|published)",
            r"\bvol(?:ume|\.)\s*\d|\bissue\s*\d|\bno\.\s*\d+\s*[|,(]|\bpage\s+\d+\s+of\s+\d+",
        )
    ),
    re.IGNORECASE,
)
"""What running heads and feet say and running text at the edge of a page hardly ever does."""
_NOTE_WORD = re.compile(r"^\W{0,2}\d{0,3}\)?\s*[^\W\d]")
"""A mark and a word, which a numbered list item with its point is not."""
_FOOTNOTE = re.compile(r"^(?:\d{1,3}\)?|\*{1,3}|[†‡§¶]+|[a-e]\)|\(\d{1,2}\)|주\s?\d?[:)])\s*\D")
_SURE_NOTE = re.compile(r"^(?:\d{1,2}\)|\*{1,3}\s|[†‡§¶]+|주\s?\d?[:)])\s*\S")
"""Marks that no running foot starts with."""


def mark_margins(blocks: Sequence[Block], width: int, height: int, body: float) -> None:
    """Label what stands in the margins of a page.

    Args:
        blocks: All blocks of the page.
        width: Of the page in pixels.
        height: Of the page in pixels.
        body: Font size of running text in pixels.
    """
    for block in blocks:
        if block.label in _FURNITURE and block.rows and not _is_number(block):
            if _is_inside(block, width, height):
                block.label = Label.TEXT
            elif _is_large(block, body):
                block.label = Label.PARAGRAPH_TITLE
            elif block.label is Label.FOOTER and _is_note(block, body):
                block.label = Label.FOOTNOTE
        if _is_aside(block, width, body):
            block.label = Label.ASIDE_TEXT
    for edge in (0, height):
        _mark_edge(blocks, height, body, edge)
    for block in blocks:
        if block.label in _FURNITURE and _is_number(block):
            block.label = Label.NUMBER
    _mark_footnotes(blocks, body)
    _restore_only_text(blocks)


def _restore_only_text(blocks: Sequence[Block]) -> None:
    """Running heads run along with something: on a page that shows nothing else they are what it says."""
    if any(block.label not in _FURNITURE | {Label.NUMBER, Label.ASIDE_TEXT} for block in blocks):
        return
    for block in blocks:
        if block.label in _FURNITURE and block.rows:
            block.label = Label.TEXT


def _is_number(block: Block) -> bool:
    return len(block.rows) == 1 and PAGE_NUMBER.match(block.plain.strip()) is not None


def _is_inside(block: Block, width: int, height: int) -> bool:
    """Whether what layout takes for a head or foot is far from the edge where those are, as lone lines can be.

    Those of pages that were printed sideways are at the sides, and vertical.
    """
    _, y1, _, y2 = block.box
    distance = y1 if block.label is Label.HEADER else height - y2
    return distance > PARSING.furniture_reach * height and not _is_upright_at_side(block, width, 1)


def _is_large(block: Block, body: float) -> bool:
    """Whether what layout takes for a running head is set too large for one: the title of a newspaper or a leaflet."""
    large = block.size > PARSING.title_size * body
    return block.label is Label.HEADER and large and HAS_WORD.search(block.plain) is not None


def _is_note(block: Block, body: float) -> bool:
    """Whether what stands at the foot of a page is a footnote: a sure mark, or a mark and a sentence, small."""
    sentence = ends_sentence(block.plain) or _SURE_NOTE.match(block.plain) is not None
    small = block.size <= PARSING.small_print_read * body
    return small and sentence and _FOOTNOTE.match(block.plain) is not None


def _is_upright_at_side(block: Block, width: int, slender: int) -> bool:
    """Whether a block is at the left or right edge and over so many times as high as wide."""
    x1, y1, x2, y2 = block.box
    at_side = x2 < PARSING.side_band * width or x1 > (1 - PARSING.side_band) * width
    return at_side and y2 - y1 > slender * (x2 - x1)


def _span(block: Block, edge: float) -> list[float]:
    """How far a block's outer and inner end are from the page's upper or lower edge, a y."""
    return sorted(abs(edge - y) for y in block.box[1::2])


def _is_aside(block: Block, width: int, body: float) -> bool:
    """Vertical text at the left or right edge (a repository's stamp, a thumb index).

    On the page of a vertical newspaper, which was turned, a large one is a headline across.
    """
    text = block.label in RUNNING_TEXT | TITLES | {Label.VERTICAL_TEXT} and block.size <= PARSING.title_size * body
    return text and is_mostly_vertical(block.lines) and _is_upright_at_side(block, width, 2)


def _mark_edge(blocks: Sequence[Block], height: int, body: float, edge: int) -> None:
    """Mark the running head (or foot) and the page number: the outermost blocks, row by row inwards."""
    total_rows = sum(len(block.rows) for block in blocks if block.label not in _MARGINAL)
    for _ in range(PARSING.edge_rows):  # a head, a rule's width below it a second row, a page number
        content = [block for block in blocks if block.label not in _MARGINAL]
        inner = [block for block in content if block.rows and block.label in _MAY_RUN]
        outermost = min(inner, key=lambda block: _span(block, edge)[1], default=None)
        if outermost is None or any(_span(block, edge)[1] <= _span(outermost, edge)[0] for block in content):
            return
        row = [block for block in inner if _same_band(block, outermost)]
        if not all(_span(block, edge)[1] < PARSING.band * height for block in row):
            return
        kinds = [_kind(block, blocks, height, body, total_rows, edge) for block in row]
        if not any(kinds):
            return
        for block, kind in zip(row, kinds, strict=True):
            if kind or block.size <= PARSING.running_size * body:
                block.label = kind or (Label.FOOTER if edge else Label.HEADER)


def _same_band(block: Block, other: Block) -> bool:
    return min(block.box[3], other.box[3]) > max(block.box[1], other.box[1])


def _kind(block: Block, blocks: Sequence[Block], height: int, body: float, total_rows: int, edge: int) -> Label | None:
    """What a block at an edge is, if not text: a page number, or a running head or foot."""
    if _is_number(block) and total_rows > 1:
        return Label.NUMBER
    if edge and _is_note(block, body):
        return None
    running = Label.FOOTER if edge else Label.HEADER
    text = block.plain.strip()
    if _RUNNING.search(text):
        return running
    if total_rows < PARSING.body_rows:
        return None
    gap = _gap_inwards(block, blocks, edge)
    small, characters, least_gap = PARSING.small_running
    if block.size < small * body and len(text) < characters and gap > least_gap * body:
        return running
    largest = PARSING.running_title_size if not edge and block.label in TITLES else PARSING.running_size
    place = _span(block, edge)[1] < PARSING.outer_band * height and len(block.rows) <= 2
    apart = gap > PARSING.apart * max(body, block.size)
    return running if place and apart and block.size <= largest * body else None


def _gap_inwards(block: Block, blocks: Sequence[Block], edge: float) -> float:
    """Distance in pixels to the next block further away from an edge of the page; infinite when there is none."""
    end = _span(block, edge)[1]
    gaps = [
        _span(other, edge)[0] - end
        for other in blocks
        if other.label is not Label.ASIDE_TEXT and not _same_band(block, other) and _span(other, edge)[1] > end
    ]
    return min(gaps, default=float("inf"))


def _mark_footnotes(blocks: Sequence[Block], body: float) -> None:
    """Label small print with a footnote mark at the foot of its column, and the rest of it in other columns."""
    ends = [block for block in blocks if block.label in RUNNING_TEXT and _ends_column(block, blocks)]
    for block in ends:
        if _is_footnote(block, body):
            block.label = Label.FOOTNOTE
    notes = [block for block in blocks if block.label is Label.FOOTNOTE]
    for block in ends:
        beside = any(_same_band(block, note) and not _same_column(block, note) for note in notes)
        if beside and block.size <= PARSING.small_print * body:
            block.label = Label.FOOTNOTE


def _is_footnote(block: Block, body: float) -> bool:
    first = block.rows[0].text
    if not _FOOTNOTE.match(first):
        return False
    if block.size <= PARSING.small_print * body or block.measured:
        return block.size <= PARSING.small_print * body
    return block.size <= PARSING.small_print_read * body and _NOTE_WORD.match(first) is not None


def _ends_column(block: Block, blocks: Sequence[Block]) -> bool:
    """Whether a block lies below all running text of its column."""
    if not block.rows:
        return False
    return not any(
        other.label in RUNNING_TEXT
        and other.box[1] >= block.box[3]
        and other.size > block.size
        and _same_column(block, other)
        for other in blocks
    )


def _same_column(block: Block, other: Block) -> bool:
    return min(other.box[2], block.box[2]) > max(other.box[0], block.box[0])
