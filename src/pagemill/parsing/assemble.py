"""From regions, lines and tables to the record of a page. Pure: same input, same page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import area, as_array, clip, union_box
from pagemill.document.joining import join_pair
from pagemill.document.labels import FIGURES, RUNNING_TEXT, TASK_OF_LABEL, TITLES, Label, Task
from pagemill.document.page import ContentFormat, PageResult, Span, TextLine
from pagemill.document.spans import spans_of, with_scripts
from pagemill.late import re
from pagemill.layout.base import DetectedRegion
from pagemill.layout.reading_order import leading_number, reading_order
from pagemill.layout.text_blocks import group_lines
from pagemill.parsing.blocks import Block, body_size, merge_neighbours
from pagemill.parsing.fields import is_filled_in, join_fields, keep_fields
from pagemill.parsing.formulas import cut_at_formulas, mark_formulas, mark_numbers
from pagemill.parsing.headings import (
    join_names,
    link_captions,
    mark_captions,
    mark_headings,
    mark_typographic_captions,
    mark_units,
    set_levels,
)
from pagemill.parsing.inline_formulas import InlineFormulas
from pagemill.parsing.korean import mark_broken_words
from pagemill.parsing.lines import Row, assign_lines, join_rows, mark_hyphens, rows_of
from pagemill.parsing.listings import code_runs, listing_text, merge_listings
from pagemill.parsing.lists import mark_lists, notes_text
from pagemill.parsing.margins import mark_margins
from pagemill.parsing.pairs.tables import text_of
from pagemill.parsing.paragraphs import RunKind, ends_sentence, mark_continuations, passages
from pagemill.parsing.quality import mean_confidence
from pagemill.parsing.record import add_region
from pagemill.parsing.thresholds import PARSING
from pagemill.tables.table import Table

_LINE_BY_LINE = frozenset({Label.CONTENT, Label.DISPLAY_FORMULA, Label.TABLE})
"""Labels whose line breaks mean something."""
# Both in time that grows with the text's length: a hostile line may be all dots or all blanks.
_LEADERS = re.compile(r"(?:(?<!\s)\s+)?(?:[.·…]\s?){4,}\s*")
_CONTENTS_ROW = re.compile(r"(?:[.·…]\s?){4}\s*(?:\d{1,4}|[ivxlc]{1,6})\s*$")
_NOTE_MARK = re.compile(r"\d{1,3}")
_WITH_FORMULAS = RUNNING_TEXT | TITLES | {Label.FOOTNOTE, Label.FIGURE_TITLE, Label.VISION_FOOTNOTE}
"""Labels whose text may hold formulas between its words."""
_READ_LATER = frozenset({Label.DISPLAY_FORMULA, Label.SEAL, Label.HEADER_IMAGE, Label.FOOTER_IMAGE, Label.TABLE})
"""Labels that stay in the record also when no line of text lies in them."""


def assemble_regions(
    record: PageResult,
    regions: Sequence[DetectedRegion],
    lines: Sequence[TextLine],
    tables: Mapping[int, Table],
    formulas: Mapping[int, str],
    inline: InlineFormulas,
) -> None:
    """Give a record its regions in reading order, with their content.

    Every line ends up in exactly one region: that of its table, the region that holds most of it, or one made for it.

    Args:
        record: Without regions.
        regions: Detected regions, boxes in pixels.
        lines: All lines of the page, boxes in pixels.
        tables: Recognized tables by the index of their region; their ``line_indices`` refer to ``lines``.
        formulas: LaTeX of display formulas by the index of their region.
        inline: Formulas inside the lines.
    """
    width, height = record.width, record.height
    blocks = join_fields(blocks_of(regions, lines, tables, formulas, width, height, inline))
    body = body_size(blocks)
    mark_formulas(blocks)
    blocks = cut_at_formulas(join_names(blocks))
    mark_margins(blocks, width, height, body)
    keep_fields(blocks)
    mark_captions(blocks)
    text = [i for i, block in enumerate(blocks) if block.part is None]
    ranks = _ranks(blocks)
    order = reading_order(
        as_array(blocks[i].box for i in text),
        [blocks[i].label for i in text],
        (width, height),
        [leading_number(blocks[i].plain) for i in text],
        None if ranks is None else [ranks[i] for i in text],
        right_to_left=is_right_to_left("".join(line.text for line in lines)),
        line_height=body / PARSING.ocr_em,
    )
    order = _with_parts(blocks, [text[place] for place in order], body)
    mark_broken_words([block.rows for block in blocks], None)
    mark_hyphens([block.rows for block in blocks])
    blocks = [part for block in (blocks[i] for i in order) for part in _split(block, body)]
    blocks = merge_neighbours(merge_listings(blocks), _is_rest, lambda items, rest: join_pair(items.text, rest.text))
    mark_units(blocks)
    blocks = mark_headings(blocks, height, body, record.page_number)
    mark_lists(blocks)
    notes = _note_marks(blocks)
    for block in blocks:
        _add(record, block, inline, notes)
    mark_continuations(record.regions, lambda region, _: _is_cut(blocks[region.index]))
    link_captions(record.regions, height)
    mark_numbers(record.regions)


def assemble_blocks(record: PageResult, blocks: Sequence[Block], inline: InlineFormulas) -> None:
    """Give a record its regions, of blocks that have their labels, order and text by what the PDF says."""
    body = body_size(blocks)
    mark_typographic_captions(blocks)
    headings = [block for block in blocks if block.label in TITLES]
    set_levels(headings, blocks, record.height, body, record.page_number)
    notes = _note_marks(blocks)
    for block in blocks:
        _add(record, block, inline, notes)
    mark_continuations(record.regions, lambda region, _: _is_cut(blocks[region.index]))
    link_captions(record.regions, record.height)
    mark_numbers(record.regions)


def _with_parts(blocks: Sequence[Block], order: list[int], body: float) -> list[int]:
    """An order of blocks with those of parts of a vertical newspaper, which was turned, that run across its text.

    Headlines come before the tier at their right. Adverts and tables follow the article under which they stand: they
    come before the next headline.
    """
    parts: defaultdict[int, list[int]] = defaultdict(list)
    for index, block in enumerate(blocks):
        if block.part is not None:
            parts[block.part].append(index)
    boxes = {part: union_box(blocks[i].box for i in members) for part, members in parts.items()}
    large = {i for i, block in enumerate(blocks) if block.rows and block.size > PARSING.title_size * body}
    heads = {part for part, members in parts.items() if len(members) == 1 and members[0] in large}
    order = list(order)
    for part in sorted(parts, key=lambda part: (part not in heads, -boxes[part][0])):
        x1, _, x2, y2 = boxes[part]
        if part in heads:
            after = [place for place, i in enumerate(order) if blocks[i].box[0] >= (x1 + x2) / 2]
            place = min(after, default=len(order))
        else:
            over = [place for place, i in enumerate(order) if blocks[i].box[0] < x2 and blocks[i].box[2] > x1]
            place = 1 + max((p for p in over if blocks[order[p]].box[1] < y2), default=-1)
            place += next((n for n, i in enumerate(order[place:]) if blocks[i].label in TITLES), len(order) - place)
        order[place:place] = parts[part]
    return order


def _ranks(blocks: Sequence[Block]) -> list[int | None] | None:
    """The reading order that the layout model predicts, if it ranks all that it found."""
    ranks = [block.rank for block in blocks]
    found = [block for block in blocks if block.score is not None]
    return ranks if found and all(block.rank is not None for block in found) else None


def blocks_of(
    regions: Sequence[DetectedRegion],
    lines: Sequence[TextLine],
    tables: Mapping[int, Table],
    formulas: Mapping[int, str],
    width: int,
    height: int,
    inline: InlineFormulas,
) -> list[Block]:
    """Give every line to a block, in input order of the regions; orphans form blocks at the end."""
    boxes = [clip(region.box, width, height) for region in regions]
    in_table = {line: region for region, table in tables.items() for line in table.line_indices}
    weak = {i for i, region in enumerate(regions) if region.label in FIGURES}
    owners = assign_lines(lines, boxes, weak)
    background = {i for i in weak if area(boxes[i]) > PARSING.background * width * height}
    background |= {owner for line, owner in zip(lines, owners, strict=True) if owner in weak and is_filled_in([line])}
    owned: defaultdict[int, list[TextLine]] = defaultdict(list)
    for index, line in enumerate(lines):
        owner = in_table.get(index, owners[index])
        # Text beside the cells of a table, or printed over a background picture, must not vanish in it.
        # So must fields that were filled in, and their labels: layout models take forms for pictures.
        orphan = owner in background or (owner in tables and index not in in_table)
        owned[-1 if orphan else owner].append(line)
    blocks: list[Block] = []
    for i, region in enumerate(regions):
        own = owned[i]
        # Two tables may share a line, which holds a row of each.
        if not own and i not in tables and region.label not in _READ_LATER | FIGURES:
            continue
        # "reference" frames a bibliography, which its items fill; one that holds lines itself is to be read.
        label = Label.REFERENCE_CONTENT if region.label is Label.REFERENCE else region.label
        block = Block(boxes[i], label, [], region.source, region.score, region.polygon)
        block.rank, block.part = region.order, region.part
        block.table, block.latex = tables.get(i), formulas.get(i)
        if region.label in FIGURES or block.table is not None:
            block.inner_lines = tuple(line for row in rows_of(own) for line in row.lines)
            if block.table is not None and label is not Label.TABLE:  # rows of labels and numbers
                block.text, block.table = text_of(block.table, label), None
        else:
            block.rows = rows_of(inline.lines(own) if label in _WITH_FORMULAS else own)
        blocks.append(block)
    for group in group_lines(as_array(line.box for line in owned[-1])):
        own = inline.lines([owned[-1][i] for i in group])
        box = union_box(line.box for line in own)
        blocks.append(Block(box, Label.TEXT, rows_of(own), source="orphan-lines"))
    return blocks


def _split(block: Block, body: float) -> list[Block]:
    """Turn rows into text; a block of running text with headings or lists in it becomes several blocks."""
    if block.label in RUNNING_TEXT and block.table is None and _is_contents(block.rows):
        block.label = Label.CONTENT
    if block.text:
        return [block]
    if block.table is not None:
        block.text = block.table.to_html()
    elif block.latex is not None:
        block.text = block.latex
    elif block.label is Label.ALGORITHM:
        block.text = listing_text(block.rows)
    elif block.label in _LINE_BY_LINE:
        block.text = "\n".join(_LEADERS.sub(" … ", row.text).strip() for row in block.rows)
    elif block.label is Label.FOOTNOTE:
        block.text = notes_text(block.rows)
    elif block.label not in RUNNING_TEXT:
        block.text = join_rows(block.rows)
    else:
        return _split_text(block, body)
    return [block]


def _split_text(block: Block, body: float) -> list[Block]:
    if not is_filled_in(block.lines) and (runs := code_runs(block.rows)):
        return [part for piece in _without_code(block, runs) for part in _split(piece, body)]
    parts = passages(block.rows, body)
    if not parts:
        return [block]
    if len(parts) == 1:
        block.text, block.is_list = parts[0].text, parts[0].kind is RunKind.LIST
        return [block]
    result: list[Block] = []
    for part in parts:
        piece = block.piece(part.rows, Label.PARAGRAPH_TITLE if part.kind is RunKind.HEADING else None)
        piece.text, piece.is_list = part.text, part.kind is RunKind.LIST
        result.append(piece)
    return result


def _without_code(block: Block, runs: Sequence[tuple[int, int]]) -> list[Block]:
    """Cut a block of running text into text and listings."""
    cuts = sorted({0, len(block.rows), *(cut for run in runs for cut in run)})
    return [
        block.piece(block.rows[start:end], Label.ALGORITHM if (start, end) in runs else None)
        for start, end in pairwise(cuts)
    ]


def _is_contents(rows: Sequence[Row]) -> bool:
    """Whether rows are a table of contents: leaders and page numbers at their ends."""
    return bool(rows) and sum(bool(_CONTENTS_ROW.search(row.text)) for row in rows) > PARSING.contents_rows * len(rows)


def _is_rest(items: Block, block: Block) -> bool:
    """Whether a block is the rest of the last sentence of a list that layout cut apart."""
    if not items.is_list or block.label is not Label.TEXT or block.is_list:
        return False
    least, most = PARSING.list_gap
    below = least * block.size < block.box[1] - items.box[3] < most * block.size
    indented = items.box[0] <= block.box[0] < items.box[2]
    return below and indented and not ends_sentence(items.text) and block.text[:1].islower()


def _is_cut(block: Block) -> bool:
    """Whether the text stops in the middle of a sentence at the end of a full row."""
    if not block.rows or not block.text or ends_sentence(block.text):
        return False
    if block.text[-1] in "-\u2010" and block.text[-2:-1].isalpha():
        return True
    last = block.rows[-1]
    right = max(row.box[2] for row in block.rows)
    return len(block.rows) > 1 and last.box[2] > right - PARSING.fills_line * last.size


def _note_marks(blocks: Sequence[Block]) -> frozenset[str]:
    """What the notes of a page begin with: ``1``, ``12``."""
    rows = [row.text for block in blocks if block.label is Label.FOOTNOTE for row in block.rows]
    return frozenset(match[0] for text in rows if (match := _NOTE_MARK.match(text)))


def _add(record: PageResult, block: Block, inline: InlineFormulas, notes: frozenset[str]) -> None:
    lines = inline.original(block.lines)
    text = "\n".join(row.text for row in rows_of(lines)) if block.label in FIGURES else block.text
    text, with_formulas = inline.told(text)
    spans: tuple[Span, ...] = ()
    if block.label in _WITH_FORMULAS or block.label is Label.CONTENT:
        text, spans = with_scripts(text, spans_of(text, lines), notes)
    html = block.table is not None
    content_format = ContentFormat.HTML if html else ContentFormat.TEXT
    if with_formulas:
        content_format = ContentFormat.MARKDOWN
    if TASK_OF_LABEL[block.label] is Task.FORMULA:
        content_format = ContentFormat.FORMULA_TEXT if block.latex is None else ContentFormat.LATEX
    engines = sorted({line.engine for line in lines if line.engine})
    add_region(
        record,
        block.label,
        block.box,
        content=text if text or html else None,
        polygon=block.polygon,
        score=block.score,
        source=block.source,
        engine="+".join(engines) or None,
        structure=block.table.method if block.table is not None else None,
        content_format=content_format,
        confidence=mean_confidence((line.confidence, line.text) for line in lines),
        level=block.level,
        list_item=block.is_list,
        list_depth=block.list_depth,
        furniture=block.furniture,
        spans=spans,
        style=_style_of(lines),
        tag=lines[0].tag if len({line.tag for line in lines}) == 1 else "",
        lines=lines,
    )


def _style_of(lines: Sequence[TextLine]) -> int | None:
    """The style of most characters."""
    characters: Counter[int] = Counter()
    for line in lines:
        if line.style is not None:
            characters[line.style] += len(line.text)
    return characters.most_common(1)[0][0] if characters else None
