"""The content of a document, block by block, each with its section and its places on the pages.

Paragraphs are whole over page breaks; captions are with their figures and tables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import accumulate

from pagemill.document.geometry import Box, union_box
from pagemill.document.labels import RUNNING_TEXT, TASK_OF_LABEL, Label, Task
from pagemill.document.marks import shown_spans
from pagemill.document.page import ContentFormat, PageResult, Region, Status
from pagemill.document.spans import carried
from pagemill.export.context import Sections, heading_level
from pagemill.export.markdown import plain_content, table_of
from pagemill.export.model_markdown import is_list
from pagemill.export.parts import PageRenderer, TextPart, is_in_text, page_parts, stream_joined
from pagemill.formulas.reading import latex_of_text
from pagemill.tables.table import Table


class Kind(Enum):
    """What a block is."""

    HEADING = "heading"
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    PICTURE = "picture"
    FORMULA = "formula"
    CODE = "code"
    UNREAD = "unread"


@dataclass(frozen=True)
class Piece:
    """A region and its characters in a block."""

    page: PageResult
    region: Region
    start: int
    end: int

    def box(self, start: int, end: int) -> Box:
        """The box around some characters of the block: that of their lines, or of the region where it has none."""
        if not self._middles or (start <= self.start and end >= self.end):
            return self.region.bbox
        first, last = bisect_left(self._middles, start), bisect_left(self._middles, end)
        return union_box([line.box for line in self.region.lines[first:last]]) if first < last else self.region.bbox

    @cached_property
    def _middles(self) -> list[float]:
        """Middles of the lines, ascending; empty if the lines are unknown."""
        lengths = [len(line.text) for line in self.region.lines]
        total = sum(lengths)
        if not total:
            return []
        # Joining lines drops hyphens and adds spaces: a line is where its middle is, as a share of the text.
        scale = (self.end - self.start) / total
        return [self.start + scale * (at - length / 2) for at, length in zip(accumulate(lengths), lengths, strict=True)]


@dataclass(slots=True, kw_only=True)
class Block(TextPart):
    """A block. The text of tables is empty, that of pictures their lettering."""

    kind: Kind
    page: PageResult
    region: Region
    """The first one."""
    section: tuple[str, ...] = ()
    """The headings above it."""
    captions: list[Region] = field(default_factory=list)
    pieces: list[Piece] = field(init=False)

    def __post_init__(self) -> None:
        self.pieces = [Piece(self.page, self.region, 0, len(self.text))]

    def add_rows(self, rest: Block, table: Table) -> None:
        """Merge with the part of the table on the next page."""
        self.table = table
        self.pieces += rest.pieces

    def begin_list(self) -> None:
        """Move the outermost items to the margin."""
        TextPart.begin_list(self)
        self.pieces = [Piece(self.page, self.region, 0, len(self.text))]

    def _add_spans(self, rest: Block) -> None:
        TextPart._add_spans(self, rest)
        start = len(self.text) - len(rest.text)
        last = self.pieces[-1]  # it may have lost a hyphen
        self.pieces[-1] = Piece(last.page, last.region, last.start, min(last.end, start))
        self.pieces += [
            Piece(piece.page, piece.region, start + piece.start, start + piece.end) for piece in rest.pieces
        ]


def blocks(pages: Iterable[PageResult], *, furniture: bool = False) -> Iterator[Block]:
    """The blocks of a document in reading order, the footnotes of a page at its end; in bounded memory.

    Args:
        pages: In page order, all of one document.
        furniture: With running heads and feet, page numbers and marginal notes.
    """
    sections = Sections()
    for block in stream_joined((page, _of_page(page, sections, furniture)) for page in pages):
        if block.kind is not Kind.UNREAD:
            yield block


def _of_page(page: PageResult, sections: Sections, furniture: bool) -> list[Block]:
    if page.status is Status.FAILED:
        return []
    renderer = _Blocks(page, sections)
    beside = [
        block
        for region in page.regions
        if region.label is Label.SEAL or (furniture and not is_in_text(region, page.leaves_out))
        for block in renderer.beside(region)
    ]
    for block in beside:
        block.is_note = True  # it ends no list or table
    found = beside + page_parts(renderer)
    return sorted(found, key=lambda block: (block.region.label is Label.FOOTNOTE, block.region.index))


class _Blocks(PageRenderer[Block]):
    def __init__(self, page: PageResult, sections: Sections) -> None:
        super().__init__(page, "")
        self._sections = [sections.path(region) for region in page.regions]
        self._tables = {region.index: table for region in page.regions if (table := table_of(region)) is not None}

    def failure(self, reason: str) -> Block:
        return Block("", kind=Kind.UNREAD, page=self.page, region=self.page.regions[0])

    def picture(self, region: Region) -> Block:
        return self._block(region, Kind.PICTURE, plain_content(region))

    def beside(self, region: Region) -> Iterator[Block]:
        """Blocks that are not in the Markdown: a picture, or its text."""
        if region.label in (Label.SEAL, Label.HEADER_IMAGE, Label.FOOTER_IMAGE):
            yield self._block(region, Kind.PICTURE, "" if region.label is Label.SEAL else plain_content(region))
        elif region.content:
            yield self._block(region, Kind.TEXT, plain_content(region))

    def block(self, region: Region, number: str | None) -> Block | None:
        # The text of a table depends on the format: what it is written as comes from its cells.
        if region.index in self._tables:
            return self._block(region, Kind.TABLE, "")
        # It is given with its figure or table.
        if region.caption_of is not None and self._has_captions(self.page.regions[region.caption_of]):
            return None
        text = plain_content(region)
        if region.content_format in (ContentFormat.LATEX, ContentFormat.FORMULA_TEXT):
            latex = text if region.content_format is ContentFormat.LATEX else latex_of_text(text)
            return self._block(region, Kind.FORMULA, latex.strip() + (f" \\tag{{{number}}}" if number else ""))
        if region.label is Label.ALGORITHM:
            block = self._block(region, Kind.CODE, text)
            block.is_code = True
            return block
        if heading_level(region) is not None:
            return self._block(region, Kind.HEADING, " ".join(text.split()))
        lines = [line for line in text.split("\n") if line.strip()]
        if region.list_item or (region.content_format is ContentFormat.MARKDOWN and is_list(lines)):
            block = self._block(region, Kind.LIST, "\n".join(lines))
            block.is_list = True
            return block
        block = self._block(region, Kind.TEXT, text)
        block.flows = region.label in RUNNING_TEXT
        block.open = block.flows and region.continues
        return block

    def _block(self, region: Region, kind: Kind, text: str) -> Block:
        return Block(
            text,
            spans=carried(shown_spans(region), region.content or "", text),
            kind=kind,
            page=self.page,
            region=region,
            section=self._sections[region.index],
            captions=self.captions.get(region.index, []) if self._has_captions(region) else [],
            table=self._tables.get(region.index),
        )

    def _has_captions(self, region: Region) -> bool:
        """Whether captions are placed with a region, rather than at their own positions."""
        return TASK_OF_LABEL[region.label] is Task.SKIP or region.index in self._tables
