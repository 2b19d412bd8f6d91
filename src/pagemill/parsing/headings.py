"""Which blocks are the title, headings and captions; levels, and what captions belong to."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.document.geometry import Box, split_when
from pagemill.document.labels import FIGURES, RUNNING_TEXT, TASK_OF_LABEL, TITLES, Label, Task
from pagemill.document.page import Region
from pagemill.late import re
from pagemill.parsing.blocks import Block
from pagemill.parsing.lines import join_rows
from pagemill.parsing.lists import BULLET
from pagemill.parsing.paragraphs import HAS_WORD, ends_sentence
from pagemill.parsing.thresholds import PARSING

_SECTION = re.compile(r"^\d{1,2}(?:\.\d{1,2}){0,4}\.?$")
_BROKEN_WORD = re.compile(r"[^\W\d_]{2}[-\u2010]$")
_MAX_LEVEL = 6


def mark_headings(blocks: Sequence[Block], height: int, body: float, page_number: int | None) -> list[Block]:
    """Find title and headings, in reading order, and set their levels.

    The document's title, on its first page, is the largest heading of the upper half when it stands out; it has level
    1. Headings start at level 2; their own numbering (``2.1``) decides the level, else the rank of their size.

    Args:
        blocks: In reading order.
        height: Of the page in pixels.
        body: Font size of running text in pixels.
        page_number: Page in the document, from 1, or from 0 as in the ids of some datasets.

    Returns:
        The blocks; several headings that layout had put into one block are blocks of their own.
    """
    blocks = [part for block in blocks for part in _corrected(block, body)]
    headings = [block for block in blocks if block.label in TITLES]
    set_levels(headings, blocks, height, body, page_number)
    return blocks


def set_levels(
    headings: Sequence[Block], blocks: Sequence[Block], height: int, body: float, page_number: int | None
) -> None:
    """Find the title among the headings of a page, and set the levels of all of them; as :func:`mark_headings`."""
    if page_number in (0, 1, None) and not any(block.label is Label.DOC_TITLE for block in headings):
        _mark_title(headings, blocks, height, body, is_first=page_number is not None)
    ranks: list[float] = []
    alike = PARSING.same_level if all(block.measured for block in headings) else PARSING.same_level_read
    if alike == PARSING.same_level and any(block.recognized for block in headings):
        alike = PARSING.same_level_measured
    for size in sorted((block.size for block in headings if block.label is not Label.DOC_TITLE), reverse=True):
        if not ranks or size < alike * ranks[-1]:
            ranks.append(size)
    for block in headings:
        by_size = min(2 + sum(size * alike > block.size for size in ranks), _MAX_LEVEL)
        block.level = heading_level(block.label, block.plain, by_size)


def _corrected(block: Block, body: float) -> list[Block]:
    """A block with its label as text or heading put right; several headings in one are blocks of their own."""
    if _is_no_title(block):
        block.label = Label.TEXT
    elif _is_missed_heading(block, body):
        block.label = Label.PARAGRAPH_TITLE
        return _one_by_one(block)
    return [block]


def _mark_title(
    headings: Sequence[Block], blocks: Sequence[Block], height: int, body: float, *, is_first: bool
) -> None:
    """Label the heading that stands out as the title; on what is known to be the first page, also one that opens it."""
    upper = [block for block in headings if block.box[1] < PARSING.title_zone * height and _letters(block) > 1]
    title = max(upper, key=lambda block: block.size, default=None)
    others = max((block.size for block in headings if block is not title), default=0.0)
    leads = title is not None and title.size > max(PARSING.largest_size * body, PARSING.largest_lead * others)
    if title is not None and (title.size > PARSING.title_size * body or leads):
        title.label = Label.DOC_TITLE
    elif is_first and len(headings) > 1 and _opens_page(headings[0], blocks):
        headings[0].label = Label.DOC_TITLE


def _is_missed_heading(block: Block, body: float) -> bool:
    """Whether a block of text is set like a heading and reads like one; among references it must be bold."""
    if block.label is Label.REFERENCE_CONTENT:
        if not all(row.bold for row in block.rows) or _NUMBERED_HEADING.match(block.plain):
            return False
    elif block.label is not Label.TEXT:
        return False
    text = block.plain
    return (
        _stands_out(block, body)
        and _may_be_heading(block)
        and HAS_WORD.search(text) is not None
        and not ends_sentence(text)
    )


def _one_by_one(block: Block) -> list[Block]:
    """A block of headings one below the other, apart where the rows of one heading would stand closer."""
    headings = split_when(
        block.rows, lambda above, below: below.box[1] - above.box[3] >= PARSING.heading_gap * below.size
    )
    if len(headings) == 1:
        return [block]
    parts = [block.piece(rows) for rows in headings]
    for part in parts:
        part.text = join_rows(part.rows)
    return parts


def heading_level(label: Label, text: str, by_size: int = 2) -> int | None:
    """1 for a title, else what the heading's own number tells (3 for ``3.1 Setting``); None for what is no heading."""
    numbered = _NUMBERED_HEADING.match(text)
    if label is not Label.PARAGRAPH_TITLE:
        return 1 if label is Label.DOC_TITLE else None
    return min(2 + numbered.group(1).count("."), _MAX_LEVEL) if numbered else by_size


def join_names(blocks: Sequence[Block]) -> list[Block]:
    """Put numbers (``2.1``) and names (``Table 2``) that layout left apart before what stands beside them."""
    texts = RUNNING_TEXT | TITLES | {Label.FIGURE_TITLE}
    joined: set[Block] = set()
    for block in blocks:
        if block.label not in texts or len(block.rows) != 1:
            continue
        name = _ONLY_NAME.match(block.plain)
        if name is None and not _SECTION.match(block.plain):
            continue
        beside = [
            other
            for other in blocks
            if other.label in (texts if name else TITLES)
            and other.rows
            and other is not block
            and other not in joined
            and _stands_before(block, other)
        ]
        if beside:
            named = min(beside, key=lambda other: other.box[0])
            named.take(block)
            named.label = Label.FIGURE_TITLE if name else named.label
            joined.add(block)
    return [block for block in blocks if block not in joined]


def _stands_before(name: Block, block: Block) -> bool:
    """Whether a single row stands right before the first row of another block."""
    first, row = name.rows[0], block.rows[0]
    level = min(first.box[3], row.box[3]) > max(first.box[1], row.box[1])
    least, most = PARSING.number_gap
    return level and least * row.size < row.box[0] - first.box[2] < most * row.size


def _opens_page(heading: Block, blocks: Sequence[Block]) -> bool:
    """Whether a heading is unnumbered and the first block of the body."""
    body = [block for block in blocks if TASK_OF_LABEL[block.label] is not Task.ABANDON]
    return body[0] is heading and _NUMBERED_HEADING.match(heading.plain) is None


def _may_be_heading(block: Block) -> bool:
    return _letters(block) > 0 and len(block.rows) <= PARSING.joined_rows and not BULLET.match(block.plain)


def _is_no_title(block: Block) -> bool:
    """Whether a model's title or heading is a stray sign, a list item, a long text or the first row of one."""
    if block.label in TITLES and _BROKEN_WORD.search(block.plain):
        return True
    if block.label is Label.DOC_TITLE:
        return _letters(block) < 2
    return block.label is Label.PARAGRAPH_TITLE and not _may_be_heading(block)


def _letters(block: Block) -> int:
    return sum(char.isalpha() for char in block.plain)


def _stands_out(block: Block, body: float) -> bool:
    """Whether a block of one to three rows is set larger, or bold and numbered, against the running text."""
    if not 0 < len(block.rows) <= PARSING.promoted_rows or block.is_list or body <= 0:
        return False
    larger = block.size > (PARSING.promoted_size if block.measured else PARSING.promoted_size_read) * body
    bold = all(row.bold for row in block.rows)
    return larger or (bold and block.size >= PARSING.promoted_bold_size * body)


_NAME = (
    r"^[<\[〈【(『「]?\s*(?P<kind>fig(?:ure|\.)?|table|tab\.|chart|scheme|plate|exhibit|listing|graph|map|abb(?:ildung|\.)"
    r"|tabelle|tableau|그림|표|도표|사진|图|圖|表|図)\s*(?:[A-Z]?\d{1,3}(?:[.\-–]\d{1,3})*|[IVX]{1,5}|[A-Z])"
)
_CAPTION = re.compile(_NAME + r"(?:\s*[.:)\]>〉】|–—\-』」]|\s+(?-i:(?=[^a-z\s]))|$)", re.IGNORECASE)
_ONLY_NAME = re.compile(_NAME + r"[.:)\]>〉】|』」]?$", re.IGNORECASE)
_NUMBERED_NAME = re.compile(
    r"^(?:\W\s?)?[^\W\d][^\s\d:：.]{0,11}(?:[ .][^\s\d]{1,3})?\s*\d{1,3}(?:[.\-–]\d{1,3})*\s?[.:：]\s?[^\W\d]"
)
_NUMBERED_HEADING = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\S")
_SENTENCE = re.compile(_NAME + r"\s+(?-i:[a-z])", re.IGNORECASE)
_TABLE_WORDS = frozenset({"table", "tab.", "tabelle", "tableau", "표", "表"})


def mark_captions(blocks: Sequence[Block]) -> None:
    """Label blocks that start as captions do (``Figure 3.``, ``Table 1 Results``, ``<표 2>``).

    What a model took for a caption and reads as a sentence about a figure or table is text, or a numbered heading on a
    page that shows nothing to be captioned.
    """
    shown = any(block.label in FIGURES | {Label.TABLE, Label.ALGORITHM} for block in blocks)
    for block in blocks:
        if block.label is Label.FIGURE_TITLE and _SENTENCE.match(block.plain):
            block.label = Label.TEXT
        elif block.label is Label.FIGURE_TITLE and not shown and _NUMBERED_HEADING.match(block.plain):
            block.label = Label.PARAGRAPH_TITLE
        elif block.label is Label.FIGURE_TITLE and not shown and not is_caption(block.plain):
            block.label = Label.TEXT
        elif block.label in RUNNING_TEXT | TITLES and is_caption(block.plain):
            block.label = Label.FIGURE_TITLE


def mark_typographic_captions(blocks: Sequence[Block]) -> None:
    """Label text next to a picture or table that starts as captions do; a heading above a table stays one."""
    for place, block in enumerate(blocks):
        beside = {other.label for other in (*blocks[max(0, place - 1) : place], *blocks[place + 1 : place + 2])}
        is_beside = bool(beside & (FIGURES | {Label.TABLE}))
        if block.label is Label.TEXT and not block.is_list and is_beside and is_caption(block.plain):
            block.label = Label.FIGURE_TITLE


def is_caption(text: str) -> bool:
    """Whether a text starts as a caption does, and not as a sentence about a figure."""
    match = _CAPTION.match(text)
    if match is None or _SENTENCE.match(text):  # the hyphen in "Table 2-2 shows" separates nothing
        return False
    return not text[match.end() :].lstrip()[:1].islower()


def is_table_title(text: str) -> bool:
    """Whether what is alone above or below the cells of a table is its title, in any language: ``Таблица 2: …``."""
    return is_caption(text) or bool(_NUMBERED_NAME.match(text))


def link_captions(regions: Sequence[Region], height: int) -> None:
    """Tell every caption on a page of this height its nearest figure or table; a table's caption prefers tables."""
    for caption in regions:
        if caption.label is not Label.FIGURE_TITLE:
            continue
        match = _CAPTION.match(plain_text(caption))
        kind = match.group("kind").lower() if match else ""
        near = []
        for shown in regions:
            distance = _distance(caption.bbox, shown.bbox)
            if shown.label in FIGURES | {Label.TABLE} and distance < PARSING.caption_distance * height:
                other_kind = bool(kind) and (shown.label is Label.TABLE) != (kind in _TABLE_WORDS)
                near.append((other_kind, distance, shown.index))
        if near:
            caption.caption_of = min(near)[2]


def plain_text(region: Region) -> str:
    """The content in one line, without the marks of a heading."""
    return " ".join((region.content or "").lstrip("#* ").split())


def _distance(a: Box, b: Box) -> float:
    """Gap between two boxes in pixels; a gap sideways counts double, captions stand above or below."""
    x = max(a[0] - b[2], b[0] - a[2], 0.0)
    y = max(a[1] - b[3], b[1] - a[3], 0.0)
    return 2 * x + y
